"""The ill-posed track: every case gets exactly its verdict and kind, and cases that are wrong are told so."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import sharp
from sharp.errors import SpecificationError
from sharp.problems import in_other_styles
from sharp.problems.cases import list_cases, list_ill_posed, load_ill_posed, parse_ill_posed

CASES = sorted(list_ill_posed())

CASE = """\
pde_spec: 1
id: cold
statements:
  - style: words
    text: It is cold.
expected: {verdict: clarify, kind: missing-domain}
"""


@pytest.mark.parametrize("name", CASES)
def test_the_specification_of_a_case_gets_its_verdict_and_kind(name: str) -> None:
    case = load_ill_posed(name)
    found = case.diagnose()
    assert found.verdict == case.verdict, found.concerns
    deciding = [concern for concern in found.concerns if concern.verdict == case.verdict]
    assert case.kind in {concern.kind for concern in deciding}, found.concerns
    assert bool(found.questions) >= (case.verdict == "clarify")


def test_the_track_covers_each_kind_several_times() -> None:
    cases = [load_ill_posed(name) for name in CASES]
    kinds = Counter(case.kind for case in cases)
    assert len(cases) >= 60
    assert {kind: count for kind, count in kinds.items() if count < 2} == {}
    assert len(kinds) >= 20
    assert min(Counter(case.verdict for case in cases).values()) >= 25
    styles = {statement.style for case in cases for statement in case.statements}
    assert styles == {
        "plain",
        "words",
        "units",
        "scrambled",
        "distracting",
        "typos",
        "german",
        "chinese",
        "incomplete",
    }


def test_every_case_is_stated_in_five_styles_and_no_two_statements_are_the_same() -> None:
    said = {name: in_other_styles(load_ill_posed(name).statements) for name in CASES}
    five = {"plain", "words", "typos", "scrambled", "distracting"}
    assert {name: five - {each.style for each in stated} for name, stated in said.items()} == {
        name: set() for name in CASES
    }
    texts = Counter(each.text for stated in said.values() for each in stated)
    assert {text for text, count in texts.items() if count > 1} == set()


def test_every_kind_has_one_verdict() -> None:
    verdicts = {(case.kind, case.verdict) for case in map(load_ill_posed, CASES)}
    assert len(verdicts) == len({kind for kind, _ in verdicts})


def test_the_kinds_of_all_cases_are_documented_with_their_verdict() -> None:
    document = (Path(sharp.__file__).parents[1] / "docs" / "reference" / "problems.md").read_text(
        encoding="utf-8"
    )
    rows = re.findall(r"^\| (`[^|]+) \| ([a-z, ]+) \|", document, flags=re.MULTILINE)
    documented = {
        kind: verdicts.split(", ") for kinds, verdicts in rows for kind in re.findall(r"`([a-z-]+)`", kinds)
    }
    for case in map(load_ill_posed, CASES):
        assert case.verdict in documented[case.kind]


def test_no_case_is_one_of_the_hundred() -> None:
    assert not set(CASES) & list_cases().keys()
    assert all(Path(path).stem == name for name, path in list_ill_posed().items())


def test_statements_do_not_tell_what_is_wrong() -> None:
    texts = [statement.text for name in CASES for statement in load_ill_posed(name).statements]
    assert all(len(text) > 50 for text in texts if text.isascii())
    assert len(set(texts)) == len(texts)
    telling = ("ill-posed", "contradict", "missing", "under-specified", "incompatible")
    assert [text for text in texts if any(word in text.lower() for word in telling)] == []


def test_faults_of_a_case_name_the_line() -> None:
    assert parse_ill_posed(CASE, "cold.yaml").kind == "missing-domain"
    for old, new, sentence in (
        ("id: cold\n", "", "cold.yaml:1: id: this key is required, and missing"),
        (
            "verdict: clarify",
            "verdict: tell",
            "cold.yaml:6: expected.verdict: found a text 'tell'; valid values: clarify, reject",
        ),
        (", kind", ", knid", "expected.knid: unknown key; did you mean 'kind'?"),
        ("style: words", "style: rhyme", "cold.yaml:4: statements[0].style: "),
        (
            "expected: {verdict: clarify, kind: missing-domain}",
            "",
            "cold.yaml:1: expected: a case that is wrong on",
        ),
        ("statements:\n  - style: words\n    text: It is cold.\n", "", "statements: a case that is wrong on"),
    ):
        assert CASE.count(old) == 1
        with pytest.raises(SpecificationError) as caught:
            parse_ill_posed(CASE.replace(old, new), "cold.yaml")
        assert sentence in str(caught.value)


def test_lines_of_a_problem_are_those_of_its_file() -> None:
    found = parse_ill_posed(CASE, "cold.yaml").diagnose()
    assert all(place.startswith("cold.yaml:1") for place in found.places)
    hadamard = load_ill_posed("hadamard")
    (place,) = hadamard.diagnose().places
    line = int(place.split(":")[1])
    assert list_ill_posed()["hadamard"].read_text().splitlines()[line - 1].strip() == "boundary:"


def test_unknown_cases_list_the_known_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpecificationError, match="unknown case 'hadamar'; did you mean 'hadamard'"):
        load_ill_posed("hadamar")
    folder = tmp_path / "data" / "problems" / "ill-posed"
    folder.mkdir(parents=True)
    (folder / "warm.yaml").write_text(CASE)
    monkeypatch.setenv("SHARP_RESOURCES", str(tmp_path))
    with pytest.raises(
        SpecificationError, match="expected the id 'warm', as the file is called, found 'cold'"
    ):
        load_ill_posed("warm")
