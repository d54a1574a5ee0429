from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from sharp.reference.fast_poisson import solve_dirichlet
from sharp.rule_based.composer import ComposedProgram, compose, strategies
from sharp.rule_based.derived_family import family_named
from tests.helpers.rule_based.programs import code_of, understood

DARCY = family_named("darcy-2d")
Array = NDArray[np.float64]
SEEDS = range(60)
NODES = 33
# The recipes whose only error is that of their discretization.
SOUND = (
    "poisson-gradients",
    "element-gradients",
    "sparse-direct",
    "sparse-elements",
    "refined-squares",
    "symmetric-scaling",
)


def program(seed: int) -> ComposedProgram:
    return compose("darcy-2d", seed, fault_rate=0.0)


def two_phases(nodes: int = NODES) -> NDArray[np.float32]:
    x, y = np.meshgrid(np.linspace(0, 1, nodes), np.linspace(0, 1, nodes), indexing="ij")
    inside = np.stack([(x - 0.4) ** 2 + (y - 0.6) ** 2 < 0.08, np.sin(7 * x + 3 * y) > 0.2])
    return np.where(inside, 12.0, 3.0).astype(np.float32)


def five_point(a: NDArray[np.float32]) -> Array:
    solutions = []
    for c in a.astype(float):
        along_x, along_y = 0.5 * (c[1:, 1:-1] + c[:-1, 1:-1]), 0.5 * (c[1:-1, 1:] + c[1:-1, :-1])
        n = len(c) - 2
        solutions.append(solve_dirichlet(along_x, along_y, np.full((n, n), 1.0 / (n + 1) ** 2)))
    return np.stack(solutions)


def run(code: str, a: NDArray[np.float32]) -> Array:
    names: dict[str, object] = {}
    exec(compile(code, "program", "exec"), names)
    solver = names["solver"]
    assert callable(solver)
    return np.asarray(solver(a))


def distance(u: Array, v: Array) -> float:
    return float(np.linalg.norm(u - v) / np.linalg.norm(v))


def seeds_of(recipe: str, count: int = 2) -> list[int]:
    return [seed for seed in SEEDS if program(seed).choices["recipe"] == recipe][:count]


def rows_at_the_walls(u: Array) -> Array:
    return np.stack([u[:, 0], u[:, -1], u[:, :, 0], u[:, :, -1]])


def test_both_strategies_have_recipes() -> None:
    assert strategies("darcy-2d") == ("numerical", "transformed")


@pytest.mark.parametrize("recipe", [recipe.name for recipe in DARCY.recipes])
def test_every_recipe_runs(recipe: str, capsys: pytest.CaptureFixture[str]) -> None:
    seeds = seeds_of(recipe) or [next(s for s in range(2000) if program(s).choices["recipe"] == recipe)]
    a = two_phases()
    for seed in seeds:
        u = run(program(seed).code, a)
        assert u.shape == a.shape
        assert np.all(np.isfinite(u))
        assert np.abs(rows_at_the_walls(u)).max() < 1e-12
        assert "steps=" in capsys.readouterr().out


@pytest.mark.parametrize("recipe", SOUND)
def test_sound_recipes_solve_the_equation(recipe: str) -> None:
    a = two_phases(50)
    reference = five_point(a)
    for seed in seeds_of(recipe):
        assert distance(run(program(seed).code, a), reference) < 0.08


def test_the_usual_scheme_is_solved_to_the_tolerance() -> None:
    a = two_phases()
    reference = five_point(a)
    usual = [
        p
        for p in map(program, range(400))
        if p.choices["recipe"] in ("poisson-gradients", "sparse-direct")
        and p.choices["faces"] == "arithmetic"
        and p.choices["precision"] == "float64"
        and p.choices.get("RTOL") not in ("0.001", "0.0001")
        and p.choices["library"] != "jax"
    ]
    assert len(usual) >= 3
    for sound in usual[:6]:
        assert distance(run(sound.code, a), reference) < 1e-4


def test_bilinear_elements_are_the_same_with_and_without_a_matrix() -> None:
    a = two_phases()
    changes = {
        "element-gradients": ("operator", "bilinear-elements"),
        "sparse-elements": ("matrix", "elements"),
    }
    solutions = []
    for recipe, (slot, name) in changes.items():
        host = next(
            p for p in map(program, SEEDS) if p.choices["recipe"] == recipe and p.choices["library"] != "jax"
        )
        choices = replace(understood(host.code, "darcy-2d"), precision="float64")
        choices = choices.with_constant("RTOL", "1e-08").with_block(DARCY.block(slot, name))
        solutions.append(run(code_of(choices.with_block(DARCY.block("cells", "mean"))), a))
    assert distance(*solutions) < 1e-6


def test_every_block_serves_a_recipe() -> None:
    served = {
        (slot, name) for recipe in DARCY.recipes for slot, names in recipe.slots.items() for name in names
    }
    assert {(block.slot, block.name) for block in DARCY.blocks} <= served


def test_sweeps_come_closer_with_their_number() -> None:
    a = two_phases()
    seed = next(s for s in SEEDS if program(s).choices.get("relax") in ("gauss-seidel", "jacobi"))
    choices = understood(program(seed).code, "darcy-2d")
    coarse, fine = (run(code_of(choices.with_constant("SWEEPS", count)), a) for count in ("20", "400"))
    reference = five_point(a)
    assert distance(fine, reference) < 0.5 * distance(coarse, reference)
