"""Programs for equations outside the library: run, and compared with exact solutions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from sharp.rule_based.composer import ComposedProgram, compose
from tests.helpers.rule_based.described_problems import (
    arguments,
    asked,
    case,
    distance,
    exact,
    family,
    run,
    stated,
)

# Errors of all recipes are below the first bound, and of the best below the second; the worst is implicit Euler's.
CASES: Mapping[str, tuple[float, float]] = {
    "heat-graded-rod": (2e-3, 2e-5),
    "heat-wire-ring": (1e-3, 5e-5),
    "accelerating-flow": (2e-2, 1e-6),
    "viscous-front": (5e-3, 1e-4),
    "wave-hanging-rope": (2e-1, 1e-4),
    "wave-plucked-string-sum": (2e-1, 1e-6),
    "wave-running-belt": (5e-2, 1e-4),
    "wave-telegraph-line": (1e-1, 1e-4),
    "heat-orthotropic-plate": (5e-3, 1e-5),
    "oblique-wave": (5e-3, 1e-5),
}
# A rod and a ring whose data are at centres of cells.
CELLS = """coordinates: {{space: [x], time: t}}
fields: [u]
equations: [u_t = 0.1*u_xx]
domain: {{type: box, bounds: {{x: [0, 2]}}}}
time: [0, 0.5]
initial: {{u: "1 + cos(pi*x)"}}
boundary: [{boundary}]
outputs: {{grid: cells, points: {{x: 40}}, times: 6}}
reference: {{kind: exact, value: {{u: "1 + exp(-0.1*pi**2*t)*cos(pi*x)"}}}}
"""
INSULATED, RING = "{where: all, type: neumann, field: u, value: 0}", "{type: periodic, axis: x}"


def sound(name: str, recipe: str, **choices: str) -> ComposedProgram:
    """Return the first sound program of a recipe with the wanted choices."""
    programs = (compose(name, seed, recipes=[recipe], fault_rate=0.0) for seed in range(500))
    return next(program for program in programs if choices.items() <= program.choices.items())


@pytest.mark.parametrize("name", CASES)
def test_every_recipe_comes_close_to_the_exact_solution(name: str) -> None:
    problem = case(name)
    given, reference, errors = arguments(problem, batch=1), exact(problem), {}
    for recipe in family(problem).recipes:
        arrays = run(sound(asked(problem).name, recipe.name).code, given)
        np.testing.assert_allclose(arrays[0][:, 0], given[0], rtol=1e-6, atol=1e-6 * np.abs(given[0]).max())
        errors[recipe.name] = distance(arrays, reference)
    most, least = CASES[name]
    assert max(errors.values()) < most, errors
    assert min(errors.values()) < least, errors


@pytest.mark.parametrize(("space", "order"), [("central-2", 2), ("central-4", 4), ("central-6", 6)])
def test_differences_have_their_order(space: str, order: int) -> None:
    problem = case("heat-wire-ring")
    code = sound(asked(problem).name, "adaptive", space=space, RTOL="1e-7", METHOD='"Radau"').code
    code = code.replace("RTOL = 1e-7", "RTOL = 1e-11")
    coarse, fine = (
        distance(run(code, arguments(problem, {"x": count}, batch=1)), exact(problem, {"x": count}))
        for count in (13, 25)
    )
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.4)


@pytest.mark.parametrize(("recipe", "order"), [("first-order-implicit", 1), ("implicit-lines", 2)])
def test_implicit_steps_have_their_order(recipe: str, order: int) -> None:
    problem = stated(CELLS.format(boundary=RING))
    program = sound(asked(problem).name, recipe, MAX_STEP="2e-3", space="central-2")
    given = arguments(problem, batch=1)
    coarse, fine, limit = (
        run(program.code.replace("MAX_STEP = 2e-3", f"MAX_STEP = {step}"), given)
        for step in (0.1, 0.05, 1e-3)
    )
    reference = np.stack([array[-1] for array in limit])
    assert np.log2(distance(coarse, reference) / distance(fine, reference)) == pytest.approx(order, abs=0.2)


@pytest.mark.parametrize("boundary", [INSULATED, RING], ids=["insulated", "ring"])
def test_data_at_centres_of_cells_are_moved_to_the_mesh_and_back(boundary: str) -> None:
    problem = stated(CELLS.format(boundary=boundary))
    codes = [sound(asked(problem).name, recipe.name).code for recipe in family(problem).recipes]
    errors = [distance(run(code, arguments(problem)), exact(problem)) for code in codes]
    assert max(errors) < 1e-2
    assert min(errors) < 1e-4


def test_samples_do_not_mix() -> None:
    problem = case("heat-graded-rod")
    start, coefficient, *rest = arguments(problem, batch=3)
    start = start * np.array([[1.0], [2.0], [3.0]])
    coefficient = coefficient * np.array([[1.0], [0.5], [1.0]])
    for recipe in family(problem).recipes:
        (found,) = run(sound(asked(problem).name, recipe.name).code, (start, coefficient, *rest))
        np.testing.assert_allclose(found[2], 3.0 * found[0], rtol=1e-4, atol=1e-4, err_msg=recipe.name)
        assert np.abs(found[1, -1] - 2.0 * found[0, -1]).max() > 1e-3, recipe.name


def test_conditions_hold_at_every_output() -> None:
    problem = case("wave-spring-end")
    (found,) = run(sound(asked(problem).name, "collocation").code, arguments(problem, batch=1))
    np.testing.assert_allclose(found[0, :, 0], 0.0, atol=1e-8)
    values = problem.parameters
    slope = (3.0 * found[0, 1:, -1] - 4.0 * found[0, 1:, -2] + found[0, 1:, -3]) / (
        2.0 * problem.spacing["x"]
    )
    np.testing.assert_allclose(
        values["K"] * found[0, 1:, -1] + values["tension"] * slope, values["P"], atol=5e-3
    )


def test_parameters_that_are_not_passed_are_written_down() -> None:
    text = CELLS.format(boundary=RING).replace("0.1*u_xx", "d*u_xx").replace("-0.1*", "-d*")
    text += """parameters: {d: 0.1}
interface:
  inputs: [{name: start, field: u, shape: [batch, N]}]
  coordinates: times
  returns: [{name: u, field: u, shape: [batch, T+1, N]}]
"""
    problem = stated(text)
    code = sound(asked(problem).name, "adaptive").code
    assert "\nd = 0.1\n" in code
    assert "def solver(start, times):" in code
    assert distance(run(code, arguments(problem)), exact(problem)) < 1e-2
