"""Reading the description of a problem back: the same problem, as far as programs go; and what is refused."""

from __future__ import annotations

import random

import pytest

from sharp.llm.prompts import render
from sharp.llm.protocol import Message
from sharp.llm.replies import extract_code
from sharp.problems import load_problem, render_description, render_template
from sharp.problems.loader import parse_problem
from sharp.rule_based.answers import answer
from sharp.rule_based.authoring import UNKNOWN
from sharp.rule_based.equation_analysis import analysis_of
from sharp.rule_based.prompt_problem import task
from tests.helpers.rule_based.conversations import told
from tests.helpers.rule_based.described_problems import asked, case, family, stated

READ = (
    "heat-rod-two-ends",
    "heat-wire-ring",
    "heat-graded-rod",
    "accelerating-flow",
    "burgers-plane",
    "oscillating-ring",
    "klein-gordon-charged-ring",
    "wave-spring-end",
    "wave-harbour-seiche",
    "diffusion-channel",
)


@pytest.mark.parametrize("name", READ)
def test_a_description_says_all_that_a_program_needs(name: str) -> None:
    wanted = case(name)
    found = parse_problem(asked(wanted).described, "read")
    assert found.equations == wanted.equations
    assert found.interface == wanted.interface
    assert (found.bounds, found.grid) == (wanted.bounds, wanted.grid)
    assert found.parameters == pytest.approx(wanted.parameters, rel=1e-9)
    for ours, theirs in zip(found.specification.boundary, wanted.specification.boundary, strict=True):
        assert ours == theirs


def test_the_same_problem_has_the_same_name_whatever_prompt_describes_it() -> None:
    text = render_description(case("heat-wire-ring"))
    prompts = (f"You are judge 2.\n\n{text}\n## Candidates\n\nNone.", f"{text}\n{text}", text)
    names = {task([Message("system", "You are …"), Message("user", prompt)]).name for prompt in prompts}
    assert names == {asked(case("heat-wire-ring")).name}


def test_an_equation_of_the_library_stays_with_the_library() -> None:
    found = asked(load_problem("burgers"))
    assert (found.name, found.described) == ("burgers", "")


REFUSED = {
    "heat-brick": "three space dimensions",
    "drum-tones": "I cannot read its description",
    "heat-brass-disk": "I cannot read its description",
    "poisson-bratu": "does not depend on time",
    "cahn-hilliard-forced": "I cannot read its description",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_is_refused_with_the_reason(name: str) -> None:
    found = asked(case(name))
    assert found.name == ""
    assert REFUSED[name] in found.reason


def test_a_refusal_gives_the_template_and_the_reason() -> None:
    problem = case("heat-brick")
    values = {**told(problem), "template": render_template(problem).strip()}
    said = answer([Message("user", render("codepde/generate", **values).strip())], random.Random(0))
    assert UNKNOWN in said
    assert "three space dimensions" in said
    assert "NotImplementedError" in extract_code(said)


def test_an_equation_whose_rate_is_not_a_term_of_its_own_is_refused() -> None:
    text = """coordinates: {space: [x], time: t}
fields: [u]
equations: ["exp(u_t) = u_xx + 1"]
domain: {type: box, bounds: {x: [0, 1]}}
time: [0, 1]
initial: {u: "sin(pi*x)"}
boundary: [{where: all, type: dirichlet, field: u, value: 0}]
"""
    assert "rate" in asked(stated(text)).reason


@pytest.mark.parametrize(
    ("name", "order", "linearity", "kind"),
    [
        ("heat-rod-two-ends", 2, "linear", "parabolic"),
        ("steepening-sine", 2, "semilinear", "parabolic"),
        ("diffusion-logarithmic-front", 2, "quasilinear", "parabolic"),
        ("accelerating-flow", 1, "linear", "hyperbolic"),
        ("wave-nonlinear-string", 2, "quasilinear", "hyperbolic"),
        ("wave-kelvin-voigt-rod", 2, "linear", "mixed"),
        ("schroedinger-swing", 2, "linear", "mixed"),
        ("kdv-soliton", 3, "semilinear", "mixed"),
    ],
)
def test_equations_are_classified(name: str, order: int, linearity: str, kind: str) -> None:
    verdict = analysis_of(asked(case(name)).described).checks["classification"][1]
    assert (verdict["order"], verdict["linearity"], verdict["type"]) == (order, linearity, kind)


def test_bounds_hold_for_constant_coefficients() -> None:
    found = {
        name: analysis_of(asked(case(name)).described).checks["stability"][1]["bounds"]
        for name in ("leftward-source", "heat-orthotropic-plate", "wave-spring-end", "heat-graded-rod")
    }
    assert [bound["bound"] for bound in found["leftward-source"]] == ["2.8*dx/0.7"]
    assert [bound["bound"] for bound in found["heat-orthotropic-plate"]] == ["dx**2/0.4"]
    assert [bound["bound"] for bound in found["wave-spring-end"]] == ["1.4*dx/sqrt(4)"]
    assert found["heat-graded-rod"] == []


def test_names_that_programs_use_themselves_give_way() -> None:
    text = """coordinates: {space: [x], time: t}
fields: [state]
parameters: {dt: 0.1, np: 2, steps: 1}
equations: ["state_t = dt*state_xx - np*state*steps"]
domain: {type: box, bounds: {x: [0, 1]}}
time: [0, 1]
initial: {state: "sin(pi*x)"}
boundary: [{where: all, type: dirichlet, field: state, value: 0}]
"""
    assert family(stated(text)).signature == "state0_batch, t_coordinate, dt_, np_, steps_"
