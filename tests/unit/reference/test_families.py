"""What the families of benchmark problems have in common."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sharp.problems import Problem, load_problem
from sharp.reference.datasets import uniform_points
from sharp.reference.families import FAMILIES, family_of
from sharp.reference.spectral import relative_l2
from tests.helpers.problems.small_problems import gas_problem, small, together

Array = np.ndarray
PROBLEMS = ("advection", "burgers", "reaction-diffusion", "navier-stokes", "darcy")


def test_the_shipped_problems_are_those_of_the_families() -> None:
    assert [family_of(load_problem(name)).name for name in sorted(PROBLEMS)] == sorted(FAMILIES)
    for name in PROBLEMS:
        problem = load_problem(name)
        assert family_of(problem).name == problem.family
        assert family_of(problem).steady == (problem.time is None)


@pytest.mark.parametrize("name", PROBLEMS)
def test_inputs_depend_on_seed_and_place_alone(name: str) -> None:
    problem = small(name, 32)
    draw = family_of(problem).sample_initial
    few, many, other = (draw(problem, n, seed) for n, seed in ((2, 1), (5, 1), (2, 2)))
    for port, values in few.arrays.items():
        assert values.dtype == np.float32
        assert (values == many.arrays[port][:2]).all()
        assert (values != other.arrays[port]).any()
        if few.evaluate is not None:
            functions = few.evaluate(uniform_points(problem, "x", 32))
            np.testing.assert_allclose(functions[port], values, rtol=1e-6, atol=1e-6)


def gas(x: Array) -> dict[str, Array]:
    fields = np.sin(np.pi * x), 3 + 2 * np.cos(np.pi * x), 10 + 4 * np.sin(2 * np.pi * x)
    return {port: field[None] for port, field in zip(("Vx0", "density0", "pressure0"), fields, strict=True)}


def wave(x: Array) -> dict[str, Array]:
    return {"u0_batch": (0.4 + 0.5 * np.sin(2 * np.pi * x))[None]}


@pytest.mark.parametrize(
    ("make", "evaluate", "finest", "bound", "order"),
    [
        (lambda n: small("advection", n, beta=0.1, end=0.5), wave, 256, 5e-3, 1.6),
        (lambda n: small("advection", n, beta=-0.1, end=0.5), wave, 256, 5e-3, 1.6),
        (lambda n: small("burgers", n, end=0.1, nu=0.1), wave, 128, 1e-3, 1.7),
        (lambda n: gas_problem(True, n, end=0.1), gas, 128, 2e-3, np.log2(2.5)),
    ],
    ids=["advection", "advection to the left", "burgers", "navier-stokes"],
)
def test_published_schemes_are_of_second_order(
    make: Callable[[int], Problem],
    evaluate: Callable[[Array], dict[str, Array]],
    finest: int,
    bound: float,
    order: float,
) -> None:
    errors = []
    for points in (finest // 2, finest):
        problem = make(points)
        family, t = family_of(problem), np.linspace(*problem.time, 3)
        initial = evaluate(uniform_points(problem, "x", points))
        exact = family.solve_reference(problem, initial, t, evaluate=evaluate, tolerance=1e-4)
        data = family.solve_pdebench(problem, initial, t)
        errors.append(relative_l2(together(data), together(exact.arrays))[0])
    assert errors[1] < bound
    assert np.log2(errors[0] / errors[1]) > order
