from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sharp.errors import ConfigurationError
from sharp.experiments.sweeps.cells import LABEL, expand, is_key, is_section, keys_of, label_of
from sharp.experiments.sweeps.file import read_sweep
from sharp.experiments.sweeps.fingerprint import ResourceCache
from sharp.experiments.sweeps.folder import list_sweeps
from sharp.experiments.sweeps.plan import make_plan
from tests.helpers import ROOT
from tests.helpers.experiments.sweep_files import HEAD, cells_of, ids_of, read

MODELS = """\
  models:
    small: {models.generator: qwen3-coder-30b, models.analyst: qwen3-32b}
    large: {model: gpt-oss-120b}
"""


def test_a_cell_for_every_combination_with_a_name_to_read(tmp_path: Path) -> None:
    text = "matrix:\n  models.generator: [qwen3-32b]\n  feedback.metrics: [[nrmse], [residual]]\n  seed: [0, 1]\n"
    cells = cells_of(tmp_path, "matrix:\n  problem: [burgers]\n" + text.removeprefix("matrix:\n"))
    assert [cell.id for cell in cells] == [
        "burgers-qwen3-32b-nrmse-s0",
        "burgers-qwen3-32b-nrmse-s1",
        "burgers-qwen3-32b-residual-s0",
        "burgers-qwen3-32b-residual-s1",
    ]
    last = cells[-1]
    assert last.config.seed == 1
    assert last.config.feedback.metrics == ("residual",)
    assert last.config.models.generator == "qwen3-32b"
    assert last.values == {
        "problem": "burgers",
        "models.generator": "qwen3-32b",
        "feedback.metrics": "residual",
        "seed": 1,
    }


def test_keys_that_move_together_are_an_axis_of_labels(tmp_path: Path) -> None:
    small, large = cells_of(tmp_path, f"matrix:\n{MODELS}")
    assert (small.id, small.values) == ("small", {"models": "small"})
    assert (small.config.models.generator, small.config.models.judges[0]) == ("qwen3-coder-30b", "rule-based")
    assert large.config.models.judges == ("gpt-oss-120b",) * 3
    assert large.config.models.reporter == "gpt-oss-120b"


def test_a_model_for_every_role_keeps_the_number_of_judges(tmp_path: Path) -> None:
    sweep = read(
        tmp_path,
        "name: tried\nbase: {problem: burgers, models: {judges: [rule-based, rule-based]}}\nmatrix: {model: [o3]}",
    )
    (cell,) = expand(sweep)
    assert (cell.id, cell.config.models.judges) == ("o3", ("o3", "o3"))


def test_a_model_in_the_base_stands_for_every_role_and_is_blamed_where_it_stands(tmp_path: Path) -> None:
    text = "name: tried\nbase:\n  problem: burgers\n  model: {}\nmatrix: {{seed: [0]}}"
    (cell,) = expand(read(tmp_path, text.format("o3")))
    assert (cell.config.models.generator, cell.config.models.judges) == ("o3", ("o3",) * 3)
    with pytest.raises(ConfigurationError, match=r":4: "):
        expand(read(tmp_path, text.format("[o3]")))


def test_values_without_a_name_of_their_own_get_a_label(tmp_path: Path) -> None:
    text = "matrix:\n  feedback.weights:\n    even: {nrmse: 1}\n    odd: {nrmse: 2}\n"
    cells = cells_of(tmp_path, text)
    assert [cell.id for cell in cells] == ["even", "odd"]
    assert [cell.config.feedback.weights["nrmse"] for cell in cells] == [1, 2]


def test_excluded_and_included_cells(tmp_path: Path) -> None:
    text = f"""\
matrix:
  problem: [burgers, advection]
{MODELS}  seed: [0, 1]
exclude:
- {{problem: advection, models: large}}
- {{seed: 1, models: small}}
include:
- {{problem: darcy, models: small, seed: 7}}
- {{genesis.candidates: 8}}
- {{seed: 9, id: odd-one}}
"""
    cells = {cell.id: cell for cell in cells_of(tmp_path, text)}
    assert list(cells) == [
        "burgers-small-s0",
        "burgers-large-s0",
        "burgers-large-s1",
        "advection-small-s0",
        "darcy-small-s7",
        "candidates8",
        "odd-one",
    ]
    assert cells["darcy-small-s7"].config.models.generator == "qwen3-coder-30b"
    assert cells["candidates8"].values == {"genesis.candidates": 8}
    assert cells["candidates8"].config.problem == "burgers"
    assert cells["odd-one"].config.seed == 9


def test_names_stay_when_rows_come_and_go(tmp_path: Path) -> None:
    before = ids_of(tmp_path, "matrix: {problem: [burgers, darcy], seed: [0, 1]}")
    after = ids_of(
        tmp_path,
        "matrix: {problem: [advection, burgers, darcy], seed: [1, 0, 5]}\nexclude: [{problem: darcy, seed: 0}]",
    )
    assert set(before) - set(after) == {"darcy-s0"}


def test_the_base_may_be_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    shipped = ROOT / "data" / "problems" / "advection.yaml"
    (tmp_path / "mine" / "spec.yaml").write_text(shipped.read_text())
    (tmp_path / "mine" / "run.yaml").write_text("problem: spec.yaml\nseed: 4\n")
    sweep = read(tmp_path, "name: tried\nbase: mine/run.yaml\nmatrix: {problem: [mine/spec.yaml, burgers]}")
    cells = expand(sweep)
    assert [cell.id for cell in cells] == ["spec", "burgers"]
    assert cells[0].config.problem == str(tmp_path / "mine" / "spec.yaml")
    assert cells[0].values == {"problem": "spec"}
    assert cells[0].config.seed == 4


def test_a_sweep_file_that_was_kept_says_the_same(tmp_path: Path) -> None:
    text = f"""\
name: tried
description: "yes: 1e-3 is text here, and so is #this"
base:
  problem: burgers
  synthesis: {{min_relative_gain: 1e-3}}
matrix:
{MODELS}  evaluation.x64: [true, false, null]
  synthesis.mode: [tournament, best-of-n]
include: [{{seed: 3}}]
exclude: [{{models: small, evaluation.x64: true}}]
limits: {{runs: 3}}
budget: {{dollars: 2.5, wall_time: 90min}}
"""
    sweep = read(tmp_path, text)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "sweep.yaml").write_bytes(sweep.frozen())
    kept = read_sweep(tmp_path / "kept" / "sweep.yaml")
    assert expand(kept) == expand(sweep)
    assert kept.form.model_copy(update={"base": sweep.form.base}) == sweep.form
    assert kept.frozen() == sweep.frozen()


@pytest.mark.parametrize(
    ("name", "cells", "sharing"),
    [
        ("small", 8, 4),
        ("feedback", 9, 6),
        ("candidates", 40, 35),
        ("stability", 60, 30),
        ("judges", 25, 20),
        ("main", 90, 15),
        ("searches", 45, 0),
        ("tournaments", 15, 0),
        ("analysis", 60, 0),
        ("cycles", 15, 0),
        ("structure", 110, 105),
        ("variety", 12, 9),
    ],
)
def test_the_shipped_sweeps_can_be_planned(tmp_path: Path, name: str, cells: int, sharing: int) -> None:
    plan = make_plan(read_sweep(list_sweeps()[name]), tmp_path / "sweep", ResourceCache())
    assert (len(plan.cells), len(plan.shares)) == (cells, sharing)


def test_the_sweep_over_an_earlier_run_needs_that_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = read_sweep(list_sweeps()["prior-run"])
    with pytest.raises(ConfigurationError, match=r"found no prior-run/run\.yaml"):
        make_plan(file, tmp_path / "sweep", ResourceCache())
    (tmp_path / "prior-run").mkdir()
    (tmp_path / "prior-run" / "run.yaml").touch()
    plan = make_plan(file, tmp_path / "sweep", ResourceCache())
    assert (len(plan.cells), {share.stage for share in plan.shares.values()}) == (6, {"analysis"})
    assert {cell.config.genesis.prior_run for cell in plan.cells} == {None, tmp_path / "prior-run"}


def test_options_change_the_base(tmp_path: Path) -> None:
    path = tmp_path / "tried.yaml"
    path.write_text(HEAD + "matrix: {seed: [0]}")
    (cell,) = expand(read_sweep(path, ["genesis.candidates=5"], model="local", base_url="http://h:1/v1"))
    assert cell.config.genesis.candidates == 5
    assert cell.config.models.servers["local"].base_url == "http://h:1/v1"


@pytest.mark.parametrize(
    ("key", "value", "label"),
    [
        ("seed", 3, "s3"),
        ("genesis.candidates", 16, "candidates16"),
        ("synthesis.max_rounds", 4, "max-rounds4"),
        ("synthesis.min_relative_gain", 0.01, "min-relative-gain0.01"),
        ("analysis.stability", True, "stability"),
        ("analysis.stability", False, "no-stability"),
        ("evaluation.x64", None, "x64-unset"),
        ("models.judges", ["rule-based", "rule-based", "o3"], "2xrule-based+o3"),
        ("feedback.metrics", ["nrmse"], "nrmse"),
        ("problem", "/somewhere/my_pde.yaml", "my-pde"),
        ("models.generator", "Qwen/Qwen3-32B", "qwen3-32b"),
        ("feedback.weights", {"nrmse": 1}, None),
        ("feedback.metrics", [], None),
    ],
)
def test_labels(key: str, value: object, label: str | None) -> None:
    assert label_of(key, value) == label


@given(
    key=st.sampled_from(keys_of()),
    value=st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none()),
)
def test_every_label_can_name_a_folder(key: str, value: object) -> None:
    label = label_of(key, value)
    assert label is None or LABEL.fullmatch(label), label


def test_keys_are_told_from_sections() -> None:
    assert all(is_key(key) for key in keys_of())
    assert is_key("models.servers.qwen3.6-27b.base_url")
    assert is_section("sampling.genesis")
    assert not is_key("sampling.genesis")
    assert not is_key("genesis.candidate")
    assert keys_of("context") == ["context.policy"]


sizes = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=sizes, dropped=st.data())
def test_a_matrix_without_what_is_excluded(tmp_path: Path, sizes: list[int], dropped: st.DataObject) -> None:
    keys = ["seed", "genesis.candidates", "synthesis.max_rounds", "synthesis.repairs"][: len(sizes)]
    values = {key: list(range(1, size + 1)) for key, size in zip(keys, sizes, strict=True)}
    out = {key: dropped.draw(st.sampled_from(values[key])) for key in keys if dropped.draw(st.booleans())}
    matrix = "matrix:\n" + "".join(f"  {key}: {listed}\n" for key, listed in values.items())
    exclude = f"exclude: [{{{', '.join(f'{key}: {value}' for key, value in out.items())}}}]\n" if out else ""
    cells = cells_of(tmp_path, matrix + exclude)
    combinations = {()}
    for key in keys:
        combinations = {(*before, value) for before in combinations for value in values[key]}
    kept = {c for c in combinations if not out or any(c[keys.index(key)] != out[key] for key in out)}
    assert {tuple(cell.values.values()) for cell in cells} == kept
    assert len({cell.id for cell in cells}) == len(cells) == len(kept)


COMPLAINTS = [
    (
        "matrix: {sed: [1]}",
        3,
        "matrix.sed.0: 'sed' is not a key of a run configuration; did you mean 'seed'?",
    ),
    (
        "matrix:\n  candidates: [1]",
        4,
        "did you mean 'genesis.candidates'? docs/reference/configuration.md lists them",
    ),
    (
        "matrix:\n  genesis: [{candidates: 3}]",
        4,
        "genesis is a section of a configuration; name its keys: genesis.can",
    ),
    ("matrix:\n  seed: 3", 4, "matrix.seed: expected a list of values, or a mapping of labels to values"),
    ("matrix:\n  seed: []", 4, "matrix.seed: expected a list of values, or a mapping of labels to values"),
    ("matrix:\n  seed: [1, 1]", 4, "matrix.seed.1: two values have the label 's1'; label them yourself"),
    ("matrix:\n  seed:\n  - 1\n  - many", 6, "seed: input should be a valid integer"),
    (
        "matrix:\n  feedback.weights: [{nrmse: 1}]",
        4,
        "give each value of feedback.weights a label: {LABEL: VALUE, …}",
    ),
    (
        "matrix:\n  models:\n    Big One: {model: o3}",
        5,
        "expected a label of small letters, digits and . _ + -",
    ),
    ("matrix:\n  models:\n    big: {}", 5, "matrix.models.big: expected keys of a run configuration"),
    ("matrix:\n  models:\n    big: {modl: o3}", 5, "'modl' is not a key of a run configuration"),
    (
        "matrix:\n  models.generator: [rule-basd]",
        4,
        "there is no model card 'rule-basd'; did you mean 'rule-based'?",
    ),
    ("matrix:\n  problem: [burger]", 4, "problem: there is no problem 'burger'; did you mean 'burgers'?"),
    (
        "matrix:\n  feedback.metrics: [[nrmse], [two-grid]]",
        4,
        "there is no feedback metric 'two-grid' for burgers",
    ),
    (
        "matrix:\n  models.generator: [o3]\n  all: {one: {model: o3}}",
        5,
        "the axes models.generator and all both set models.generator; make them one axis",
    ),
    ("matrix: {seed: [1]}\nexclude: [{sed: 1}]", 4, "exclude.0.sed: expected an axis of the matrix: seed"),
    (
        "matrix: {seed: [1]}\nexclude:\n- {seed: 2}",
        5,
        "exclude.0.seed: 2 is no value of this axis; valid: s1",
    ),
    ("matrix: {seed: [1]}\nexclude: [{}]", 4, "exclude.0: expected values of axes, found none"),
    ("matrix: {seed: [1]}\ninclude: [{}]", 4, "include.0: expected keys of a run configuration or axes"),
    ("matrix: {seed: [1]}\ninclude: [{seed: 2, id: A b}]", 4, "include.0.id: expected small letters"),
    ("matrix: {seed: [1]}\ninclude: [{seed: 1}]", 4, "two cells would be called 's1'"),
    (
        "matrix: {m: {a: {model: o3}}}\ninclude: [{m: b}]",
        4,
        "include.0.m: 'b' is no value of this axis; valid: a",
    ),
    ("matrx: {seed: [1]}", 3, "matrx is not a key of a sweep; did you mean 'matrix'?"),
    ("limits: {runs: 0}", 3, "limits.runs: input should be greater than or equal to 1, found 0"),
    ("budget: {dollar: 1}", 3, "budget.dollar is not a key of a sweep; did you mean 'dollars'?"),
    ("description: nothing else", 1, "expected a matrix, or runs to include; found neither"),
    ("matrix:\n  seed: {a: 1, a: 2}", 4, "this key is given twice"),
]


@pytest.mark.parametrize(("text", "line", "complaint"), COMPLAINTS, ids=[c[2][:40] for c in COMPLAINTS])
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, line: int, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        cells_of(tmp_path, text)
    assert f"tried.yaml:{line}: " in str(error.value)
    assert complaint in str(error.value)


def test_one_mistake_in_many_cells_is_said_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as error:
        cells_of(tmp_path, "matrix: {genesis.candidates: [0, 4], seed: [0, 1, 2]}")
    assert str(error.value).count("\n") == 0
    thirty = list(range(30))
    huge = f"matrix: {{seed: {thirty}, synthesis.repairs: {thirty}, synthesis.patch_retries: {thirty}}}"
    with pytest.raises(ConfigurationError, match="at most 10000 combinations, found 27000"):
        cells_of(tmp_path, huge)


@pytest.mark.parametrize(
    ("base", "complaint"),
    [
        (
            "base: [1]",
            "tried.yaml:2: base: expected a problem, the name of a configuration file, or the keys",
        ),
        ("base: burger", "tried.yaml:2: problem: there is no problem 'burger'"),
        ("base: gone.yaml", "gone.yaml: cannot be read: No such file or directory"),
        ("base: {problem: burgers, gnesis: {}}", "tried.yaml:2: gnesis is not a key of a run configuration"),
        ("description: no base", "tried.yaml:1: base is missing"),
        ("base: {seed: 1}", "problem is missing"),
    ],
)
def test_what_is_wrong_with_a_base(tmp_path: Path, base: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        expand(read(tmp_path, f"name: tried\n{base}\nmatrix: {{seed: [1]}}\n"))
    assert complaint in str(error.value)


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    text = f"matrix: {{models.judges: [[{', '.join(['o3', 'gpt-4o'] * 4)}, {', '.join(['deepseek-r1'])}]]}}"
    assert len(ids_of(tmp_path, text)) == 1
    names = ", ".join(f"synthesis.{key}: [{index}]" for index, key in enumerate(["max_rounds", "repairs"], 1))
    with pytest.raises(ConfigurationError, match="is longer than 120 characters; give values short"):
        cells_of(
            tmp_path,
            text[:-1] + f", {names}, genesis.candidates: [123], analysis.per_candidate: [false], "
            "evaluation.timing_repeats: [3], evaluation.require_sandbox: [true]}",
        )
