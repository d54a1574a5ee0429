"""Diagnosis: what is missing is asked for, what is wrong or contradictory is refused, everything else is solved."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from click.testing import CliRunner

from sharp.cli.catalogue import problems as command
from sharp.cli.exits import NEEDS_ANSWER
from sharp.errors import SpecificationError
from sharp.problems import parse_problem
from sharp.problems.diagnosis import diagnose, diagnose_file
from sharp.yaml_source import InvalidSpecification

ROD = """\
pde_spec: 1
id: rod
title: A rod
coordinates: {space: [x], time: t}
fields: [u]
parameters:
  k: {value: 2, unit: W/(m*K)}
  C: {value: 4, unit: J/(m**3*K)}
  alpha: k/C
  L: {value: 3, unit: m}
units: {x: m, t: s, u: K}
equations:
  - u_t = alpha*u_xx
domain:
  type: box
  bounds: {x: [0, L]}
time: [0, 2]
initial:
  u: sin(pi*x/L)
boundary:
  - {where: x = 0, type: dirichlet, field: u, value: 0}
  - {where: x = L, type: dirichlet, field: u, value: 0}
"""

LEFT = "  - {where: x = 0, type: dirichlet, field: u, value: 0}\n"
RIGHT = "  - {where: x = L, type: dirichlet, field: u, value: 0}\n"

# The replaced text, by what; the kind, the path, and the question (empty: refused).
FAULTS = [
    ("initial:\n  u: sin(pi*x/L)\n", "", "missing-initial-condition", "initial", "What is u at t = 0?"),
    (
        "units: {x: m, t: s, u: K}\nequations:\n  - u_t =",
        "equations:\n  - u_tt =",
        "missing-initial-condition",
        "initial",
        "What is u_t at t = 0?",
    ),
    ("  u: sin(pi*x/L)\n", "  u:\n", "missing-initial-condition", "initial.u", "What is u at the beginning?"),
    (RIGHT, "", "missing-boundary-condition", "boundary", "What else holds for u at x = 3?"),
    (
        f"boundary:\n{LEFT}{RIGHT}",
        "boundary: []\n",
        "missing-boundary-condition",
        "boundary",
        "What holds for u at x = 0 and at x = 3?",
    ),
    (
        f"boundary:\n{LEFT}{RIGHT}",
        "",
        "missing-boundary-condition",
        "boundary",
        "What holds at the boundary of the domain?",
    ),
    (
        RIGHT,
        "  - {where: x = L, type: dirichlet, field: u}\n",
        "missing-boundary-condition",
        "boundary[1]",
        "What is the value of boundary condition 2?",
    ),
    ("  k: {value: 2, unit: W/(m*K)}\n", "", "unknown-name", "parameters.alpha", "What is the value of k?"),
    ("  k: {value: 2, unit", "  k: {unit", "unknown-name", "parameters.k.value", "What is the value of k?"),
    ("alpha: k/C", "alpha:", "unknown-name", "parameters.alpha", "What is the value of alpha?"),
    ("alpha*u_xx", "alpha*u_xx + q", "unknown-name", "equations[0]", "What is the value of q?"),
    (
        "x: [0, L]",
        "x: [0, W]",
        "unknown-name",
        "domain.bounds.x[1]",
        "What is the value of W, a number (domains do not move; for a change of phase, state the enthalpy on a fixed "
        "domain)?",
    ),
    (
        "domain:\n  type: box\n  bounds: {x: [0, L]}\n",
        "",
        "missing-domain",
        "domain",
        "In which domain is the problem posed, and how large is it?",
    ),
    (
        "  bounds: {x: [0, L]}\n",
        "",
        "missing-domain",
        "domain.bounds",
        "From where to where does the domain reach along each axis?",
    ),
    ("{x: [0, L]}\n", "{}\n", "missing-domain", "domain.bounds", "From where to where does x run?"),
    (
        "time: [0, 2]\n",
        "",
        "missing-time-interval",
        "time",
        "From when to when is the solution wanted: the first and last t?",
    ),
    (
        "time: [0, 2]",
        "time: [0]",
        "missing-time-interval",
        "time[1]",
        "From when to when is the solution wanted?",
    ),
    (
        "fields: [u]",
        "fields: [u, v]",
        "missing-equation",
        "equations",
        "Which other equation holds for u, v?",
    ),
    (
        "equations:\n  - u_t = alpha*u_xx\n",
        "",
        "missing-equation",
        "equations",
        "Which equation is to be solved?",
    ),
    (RIGHT, RIGHT + RIGHT.replace("dirichlet", "neumann"), "too-many-conditions", "boundary", ""),
    (RIGHT, RIGHT + RIGHT, "too-many-conditions", "boundary[1]", ""),
    ("  u: sin(pi*x/L)\n", "  u: sin(pi*x/L)\n  u_t: 0\n", "too-many-conditions", "initial.u_t", ""),
    (RIGHT, LEFT.replace("dirichlet", "neumann"), "cauchy-data", "boundary", ""),
    ("u: K}", "u: K, x_0: m}", "form", "units.x_0", ""),
    ("{x: m, t", "{x: mm, t", "unit-mismatch", "equations[0]", ""),
    ("alpha: k/C", "alpha: {value: k/C, unit: m}", "unit-mismatch", "parameters.alpha", ""),
    ("  C: {value: 4", "  C: {value: 0", "singular-coefficient", "parameters.alpha", ""),
    ("title: A rod", "titel: A rod", "form", "titel", ""),
    ("x = L, type", "x = 2, type", "form", "boundary[1].where", ""),
    ("u_xx", "u_yy", "form", "equations[0]", ""),
    ("fields: [u]", "fields: [u", "form", "", ""),
    ("title: A rod", "title: A rod\ntitle: again", "form", "title", ""),
]


def test_the_problem_that_the_others_break_is_solved() -> None:
    found = diagnose(ROD, "rod.yaml")
    assert (found.verdict, found.concerns, found.questions) == ("solve", (), ())
    assert found.problem == parse_problem(ROD, "rod.yaml")


@pytest.mark.parametrize(("old", "new", "kind", "path", "question"), FAULTS)
def test_faults_of_the_text_have_kind_verdict_place_and_question(
    old: str, new: str, kind: str, path: str, question: str
) -> None:
    assert ROD.count(old) == 1, "the replaced text must be in the specification once"
    found = diagnose(ROD.replace(old, new), "rod.yaml")
    assert found.problem is None
    chosen = [
        (concern, place)
        for concern, place in zip(found.concerns, found.places, strict=True)
        if concern.kind == kind and place.partition(": ")[2] == path
    ]
    assert chosen, (found.concerns, found.places)
    concern, place = chosen[0]
    assert place.startswith("rod.yaml:")
    assert concern.question == question
    assert concern.verdict == found.verdict == ("clarify" if question else "reject")


def test_transport_asks_for_the_inflow_and_refuses_the_outflow() -> None:
    river = (
        ROD.replace("u_t = alpha*u_xx", "u_t + speed*u_x = 0")
        .replace("  L: {", "  speed: 2\n  L: {")
        .replace("sin(pi*x/L)", "sin(pi*x/L)**2")
    )
    assert diagnose(river.replace(RIGHT, ""), "river.yaml").verdict == "solve"
    missing = diagnose(river.replace(RIGHT, "").replace("boundary:\n" + LEFT, "boundary: []\n"), "river.yaml")
    assert (missing.verdict, missing.questions) == (
        "clarify",
        ("What is u at x = 0, where it enters the domain?",),
    )
    for conditions in (LEFT + RIGHT, RIGHT):
        wrong = diagnose(river.replace(LEFT + RIGHT, conditions), "river.yaml")
        assert (wrong.verdict, [c.kind for c in wrong.concerns]) == ("reject", ["outflow-condition"])


def test_korteweg_asks_for_its_third_condition_at_either_end() -> None:
    text = ROD.replace("alpha*u_xx", "-u_xxx*1").replace("units: {x: m, t: s, u: K}\n", "")
    assert diagnose(text, "kdv.yaml").questions == ("What else holds for u at x = 0 or x = 3?",)


def test_conditions_on_round_domains_are_counted_by_part() -> None:
    text = """\
pde_spec: 1
id: ring
title: A ring
coordinates: {space: [x, y]}
fields: [u]
equations: [lap(u) = 0]
domain: {type: annulus, inner: 1, outer: 2}
boundary:
  - {where: outer, type: dirichlet, field: u, value: 0}
"""
    assert diagnose(text, "ring.yaml").questions == ("What holds for u on inner?",)
    twice = diagnose(text + "  - {where: all, type: neumann, field: u, value: 0}\n", "ring.yaml")
    assert [(c.kind, c.verdict) for c in twice.concerns] == [("too-many-conditions", "reject")]
    sizeless = diagnose(text.replace(", outer: 2", ""), "ring.yaml")
    assert sizeless.questions == ("What is the outer radius of the domain?",)


def test_what_the_problem_check_finds_has_lines_too() -> None:
    found = diagnose(ROD.replace("sin(pi*x/L)", "1 + x/L"), "rod.yaml")
    assert (found.verdict, found.problem is None) == ("clarify", False)
    assert found.places == ("rod.yaml:21: boundary[0]", "rod.yaml:22: boundary[1]")
    assert len(found.questions) == 2
    accepted = ROD.replace("sin(pi*x/L)", "1 + x/L") + "allow: [corner-jump]\n"
    assert diagnose(accepted, "rod.yaml").verdict == "solve"


def test_refusing_weighs_more_than_asking_and_asking_more_than_warning() -> None:
    hot = ROD.replace("sin(pi*x/L)", "1 + x/L")
    backward = diagnose(hot.replace("= alpha", "= -alpha"), "rod.yaml")
    assert backward.verdict == "reject"
    assert {c.verdict for c in backward.concerns} == {"reject", "clarify"}
    kinked = diagnose(ROD.replace(RIGHT, RIGHT.replace("dirichlet", "neumann")), "rod.yaml")
    assert [(c.kind, c.verdict) for c in kinked.concerns] == [("slope-jump", "warn")]
    assert kinked.verdict == "solve"


def test_questions_are_asked_once() -> None:
    found = diagnose(ROD.replace("value: 0}", "value: T0}"), "rod.yaml")
    assert len(found.concerns) == 2
    assert found.questions == ("What is the value of T0?",)


def test_errors_of_specifications_carry_their_faults_to_other_processes() -> None:
    with pytest.raises(InvalidSpecification) as caught:
        parse_problem(ROD.replace(RIGHT, ""), "rod.yaml")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert [fault.kind for fault in copy.faults] == ["missing-boundary-condition"]
    assert isinstance(copy, SpecificationError)


@pytest.mark.parametrize(
    ("old", "new", "code", "last"),
    [
        ("A rod", "A bar", 0, "rod: correct"),
        (RIGHT, RIGHT.replace("dirichlet", "neumann"), 0, "rod: correct"),
        (RIGHT, "", NEEDS_ANSWER, "rod.yaml: needs an answer"),
        ("sin(pi*x/L)", "1", NEEDS_ANSWER, "rod: needs an answer"),
        ("= alpha", "= -alpha", 2, "rod: rejected"),
        (RIGHT, RIGHT + RIGHT, 2, "rod.yaml: rejected"),
    ],
)
def test_the_command_says_what_to_do_by_its_exit_code(
    tmp_path: Path, old: str, new: str, code: int, last: str
) -> None:
    file = tmp_path / "rod.yaml"
    file.write_text(ROD.replace(old, new))
    shown = CliRunner().invoke(command, ["check", str(file)])
    assert shown.exit_code == code
    assert shown.stdout.splitlines()[-1].endswith(last)
    facts = json.loads(CliRunner().invoke(command, ["check", str(file), "--json"]).stdout)
    found = diagnose_file(file)
    assert facts["ok"] == (code == 0)
    assert facts["verdict"] == found.verdict
    assert [c["message"] for c in facts["concerns"]] == [c.message for c in found.concerns]
    for concern in found.concerns:
        assert f"({concern.kind}): {concern.message}" in shown.stdout
        assert concern.question in shown.stdout


def test_a_file_under_another_name_is_not_the_problem_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data" / "problems"
    folder.mkdir(parents=True)
    (folder / "bar.yaml").write_text(ROD)
    monkeypatch.setenv("SHARP_RESOURCES", str(tmp_path))
    with pytest.raises(SpecificationError, match="expected the id 'bar'"):
        diagnose_file("bar")
    assert diagnose_file(folder / "bar.yaml").verdict == "solve"
    with pytest.raises(SpecificationError, match="cannot be read"):
        diagnose_file(folder / "none.yaml")
