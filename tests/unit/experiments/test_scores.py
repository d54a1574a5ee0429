"""Solved is what the held-out set says: right and wrong solutions, other names, other domains, eigenvalues."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sharp.agent.chains import ToolChain, accepted_tool_chains
from sharp.agent.memory import GraphMemory, ToolRecord
from sharp.agent.settings import models_of_team
from sharp.config import RunConfig
from sharp.experiments.agent_benchmark.chain_scoring import (
    PARAMETERS,
    AcceptedChains,
    executed_steps,
    template_baselines,
)
from sharp.experiments.agent_benchmark.held_out import HeldOutReference, Score, held_out_reference, score
from sharp.experiments.agent_benchmark.runner import run_trial
from sharp.experiments.agent_benchmark.trials import Arm, BenchmarkTrial, TrialResult
from sharp.problems import Problem, parse_problem
from sharp.problems.cases import BenchmarkCase, load_case
from sharp.rule_based import agents
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.functions import compile_function
from tests.helpers.problems.specifications import specification

ROD = specification("cooled-rod")
RENAMED = specification("renamed-rod")
PAIR = specification("steady-pair")


def problem(text: str, *changes: tuple[str, str]) -> Problem:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_problem(text, "test")


def as_stated(found: Problem, factor: float = 1.0) -> DiscreteSolution:
    """The exact solution of a problem, in its own order of coordinates and fields, times a factor."""
    value = found.specification.reference.value
    values = [compile_function(found, value[name]) for name in found.fields]
    return DiscreteSolution("exact", 0, lambda x, t: factor * np.stack([each(x, t) for each in values]), 0)


def truth(case: Problem, folder: Path) -> HeldOutReference:
    return held_out_reference(BenchmarkCase(case, "test"), folder)


@pytest.mark.parametrize(("factor", "solved"), [(1.0, True), (1.0009, True), (1.0011, False), (0.5, False)])
def test_a_solution_that_is_off_by_a_factor_has_that_error(
    tmp_path: Path, factor: float, solved: bool
) -> None:
    case = problem(ROD)
    found = score(case, truth(case, tmp_path), case, as_stated(case, factor))
    assert found.error == pytest.approx(abs(factor - 1), abs=1e-14)
    assert found.maximum == pytest.approx(abs(factor - 1), abs=1e-14)
    assert (found.solved, found.matched_by_position) == (solved, False)


def test_other_names_are_taken_in_their_order_and_said(tmp_path: Path) -> None:
    case = problem(ROD)
    other = problem(RENAMED, ("units: none", "units: {}"), ("long", "1"))
    found = score(case, truth(case, tmp_path), other, as_stated(other))
    assert found.matched_by_position
    assert found.error == pytest.approx(0, abs=1e-14)


def test_the_same_names_in_another_order_are_the_same_names(tmp_path: Path) -> None:
    case = problem(PAIR)
    turned = problem(PAIR, ("space: [x, y]", "space: [y, x]"), ("fields: [u, v]", "fields: [v, u]"))
    found = score(case, truth(case, tmp_path), turned, as_stated(turned))
    assert found == Score(0.0, 0.0, matched_by_position=False)
    taken_in_order = score(case, truth(case, tmp_path), case, as_stated(turned))
    assert not taken_in_order.solved


@pytest.mark.parametrize(
    "change",
    [
        ("x: [0, 1]", "x: [0, 0.9]"),
        ("time: [0, 1]", "time: [0, 0.9]"),
        ("x: [0, 1]", "x: [0.1, 1.1]"),
    ],
)
def test_a_solution_on_a_smaller_domain_is_none(tmp_path: Path, change: tuple[str, str]) -> None:
    case, smaller = problem(ROD), problem(ROD, change)
    assert score(case, truth(case, tmp_path), smaller, as_stated(smaller)).error is None


def test_a_solution_on_a_larger_domain_is_judged_where_it_matters(tmp_path: Path) -> None:
    case, larger = problem(ROD), problem(ROD, ("x: [0, 1]", "x: [-1, 2]"), ("time: [0, 1]", "time: [0, 5]"))
    assert score(case, truth(case, tmp_path), larger, as_stated(larger)).solved


def test_values_that_are_not_finite_and_other_numbers_of_fields_are_no_solution(tmp_path: Path) -> None:
    case, pair = problem(ROD), problem(PAIR)
    assert score(case, truth(case, tmp_path), case, as_stated(case, float("nan"))).error is None
    assert score(case, truth(case, tmp_path), pair, as_stated(pair)) == Score()


def test_all_eigenvalues_of_the_case_are_wanted(tmp_path: Path) -> None:
    case = load_case("drum-tones")
    known = held_out_reference(case, tmp_path)
    drum = DiscreteSolution("exact", 0, lambda x, _: np.zeros((1, 1, len(x))), 0, known.eigenvalues)
    assert score(case.problem, known, case.problem, drum).error == pytest.approx(0, abs=1e-14)
    sharp = replace(drum, eigenvalues=tuple(1.01 * value for value in known.eigenvalues))
    assert score(case.problem, known, case.problem, sharp).error == pytest.approx(0.01)
    fewer = replace(drum, eigenvalues=known.eigenvalues[:-1])
    assert score(case.problem, known, case.problem, fewer) == Score()
    assert score(case.problem, known, case.problem, replace(drum, eigenvalues=())) == Score()


def test_a_computed_reference_is_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = load_case("predator-prey-lake")
    first = held_out_reference(case, tmp_path)
    monkeypatch.setattr("sharp.solvers.solve_problem", None)
    assert np.array_equal(held_out_reference(case, tmp_path).values, first.values)
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(b"torn")
    with pytest.raises(TypeError):
        held_out_reference(case, tmp_path)


def carried_out(chain: ToolChain) -> GraphMemory:
    """The memory of a course in which every step of a chain was carried out and came to something."""
    memory = GraphMemory(chain.plan)
    for step in chain.plan.ids:
        memory = memory.choose(step, chain.parameters[step])
    for step in chain.plan.ids:
        memory = memory.with_record(ToolRecord(step, memory.recipes[step]))
    return memory


@pytest.mark.parametrize(
    "name", ["drum-tones", "heat-graded-rod", "heat-annulus-insulated-hole", "heat-l-plate", "burgers-plane"]
)
def test_the_chain_of_a_case_has_full_marks(name: str) -> None:
    accepted = AcceptedChains(load_case(name).problem)
    found = accepted.process(carried_out(accepted.chains[0]), accepted.problem)
    assert found.parameters.wrong == ()
    assert found.parameters.total > 5
    assert list(found.figures.values()) == pytest.approx([1.0] * len(found.figures))


def test_a_condition_on_the_whole_boundary_may_be_told_at_once_or_part_by_part() -> None:
    at_once = problem(ROD)
    assert at_once.specification.boundary[0].where == "all"
    apart = (
        "{type: dirichlet, where: x = 0, field: u, value: 0}, {type: KIND, where: x = 1, field: u, value: 0}"
    )
    (only,) = [line for line in ROD.splitlines() if line.startswith("boundary")]
    ends = problem(ROD, (only, "boundary: [" + apart.replace("KIND", "dirichlet") + "]"))
    for case, told in ((at_once, ends), (ends, at_once)):
        found = AcceptedChains(case).process(carried_out(accepted_tool_chains(told)[0]), told)
        assert list(found.figures.values()) == pytest.approx([1.0] * len(found.figures))
        assert found.parameters.wrong == ()
    other_end = problem(ROD, (only, "boundary: [" + apart.replace("KIND", "neumann") + "]"))
    assert (
        AcceptedChains(at_once)
        .process(carried_out(accepted_tool_chains(other_end)[0]), other_end)
        .parameters.wrong
    )


def test_a_fixed_template_has_a_parameter_accuracy_too() -> None:
    names = ["heat-graded-rod", "heat-l-plate", "drum-tones"]
    problems = {name: load_case(name).problem for name in names}
    floor = template_baselines(problems)[PARAMETERS]
    of_template = [
        AcceptedChains(problems[name]).given(AcceptedChains(problems[floor.template])).parameters.share
        for name in names
        if name != floor.template
    ]
    assert floor.best == pytest.approx(sum(of_template) / 2)
    assert 0 < floor.mean <= floor.best < 1


def test_parameters_are_judged_by_their_effect_and_under_any_names() -> None:
    case = AcceptedChains(problem(ROD))
    other = problem(
        RENAMED, ("units: none", "parameters: {kappa: 1/5, long: 2/2}"), ("0.1*T_ss", "kappa/2*T_ss")
    )
    found = case.process(carried_out(accepted_tool_chains(other)[0]), other)
    assert found.parameters.wrong == ()
    wrong = problem(
        RENAMED, ("units: none", "parameters: {kappa: 1/4, long: 1}"), ("0.1*T_ss", "kappa/2*T_ss")
    )
    (only,) = case.process(carried_out(accepted_tool_chains(wrong)[0]), wrong).parameters.wrong
    assert only.path == "define_equations#1.equations[0]"
    assert only.reason == "is not equivalent"


def test_only_steps_with_a_sound_result_count() -> None:
    case = AcceptedChains(problem(ROD))
    memory = carried_out(case.chains[0])
    last = memory.records[-1]
    failed = replace(
        memory, records=(*memory.records[:-3], replace(memory.records[-3], error="no"), *memory.records[-2:])
    )
    assert [step.id for step in executed_steps(memory)][-1] == last.step
    assert memory.records[-3].step not in [step.id for step in executed_steps(failed)]
    none = case.process(GraphMemory(case.chains[0].plan), None)
    assert none.figures["node recall"] == 0
    assert none.parameters.share == 0


def test_to_do_without_the_exact_solution_is_no_fault() -> None:
    case = AcceptedChains(problem(ROD))
    unknown = problem(ROD.replace("reference: {kind: exact, value: {u: exp(-0.1*pi**2*t)*sin(pi*x)}}\n", ""))
    found = case.process(carried_out(accepted_tool_chains(unknown)[0]), unknown)
    assert list(found.figures.values()) == pytest.approx([1.0] * len(found.figures))
    assert found.parameters.wrong == ()


def test_who_misunderstands_a_coefficient_and_claims_success_has_not_solved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = load_case("predator-prey-lake")
    spec = case.problem.specification
    (first, *others) = spec.equations
    assert "du*" in first
    wrong = spec.model_copy(update={"equations": (first.replace("du*", "10*du*"), *others)})
    mistaken = replace(case, problem=replace(case.problem, specification=wrong))
    monkeypatch.setattr(agents, "load_case", lambda name: mistaken if name == case.id else load_case(name))
    arm = Arm("none", models_of_team("rule-based"))
    trial = BenchmarkTrial(arm, case, case.statements[0], 0)
    row = run_trial(trial, tmp_path, tmp_path, RunConfig(problem=case.id))
    assert isinstance(row, TrialResult)
    assert (row.ending, row.failed_checks) == ("solved", 0), row.reason
    assert row.error is not None
    assert row.error > 0.01
    assert not row.solved
    assert row.figures["completeness"] == 1
    assert row.parameters is not None
    assert 0.8 < row.parameters < 1
    assert row.parameter_errors[0].startswith("define_equations#1.equations")
