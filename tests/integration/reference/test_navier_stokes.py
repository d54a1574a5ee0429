from __future__ import annotations

import numpy as np
import pytest

from sharp.errors import DataError
from sharp.reference import godunov, navier_stokes
from sharp.reference.spectral import relative_l2
from tests.helpers.problems.small_problems import PORTS, gas_problem, together

Array = np.ndarray
GAMMA, VISCOSITY = 5 / 3, 0.1 + 4 / 3 * 0.1


def given(v: Array, density: Array, pressure: Array) -> dict[str, Array]:
    fields = (v, density, pressure)
    return {port: np.atleast_2d(field) for port, field in zip(PORTS.values(), fields, strict=True)}


def grid(n: int) -> Array:
    return -1 + (np.arange(n) + 0.5) * 2 / n


@pytest.mark.parametrize("scheme", ["reference", "pdebench"])
def test_uniform_flow_stays(scheme: str) -> None:
    problem, t = gas_problem(), np.linspace(0, 0.05, 6)
    initial = given(np.full(64, 0.7), np.full(64, 2.0), np.full(64, 5.0))
    if scheme == "reference":
        solution, tolerance = dict(navier_stokes.FAMILY.solve_reference(problem, initial, t).arrays), 1e-12
    else:
        solution, tolerance = navier_stokes.FAMILY.solve_pdebench(problem, initial, t), 1e-3
    for name, port in PORTS.items():
        np.testing.assert_allclose(solution[name], np.full((1, 6, 64), initial[port][0, 0]), rtol=tolerance)


def test_a_contact_travels_unchanged() -> None:
    problem, t = gas_problem(points=64, times=3, end=0.4), np.array([0.0, 0.2, 0.4])

    def evaluate(x: Array) -> dict[str, Array]:
        return given(np.full(x.size, 0.5), 3 + 2 * np.abs(np.sin(np.pi * x)), np.full(x.size, 5.0))

    truth = navier_stokes.FAMILY.solve_reference(problem, evaluate(grid(64)), t, evaluate=evaluate)
    exact = np.stack([evaluate(grid(64) - 0.5 * time)["density0"][0] for time in t])
    np.testing.assert_allclose(truth.arrays["pressure"], 5.0, rtol=1e-9)
    np.testing.assert_allclose(truth.arrays["Vx"], 0.5, rtol=1e-9)
    assert relative_l2(truth.arrays["density"][0], exact).max() < 2e-3
    smooth = np.abs(np.sin(np.pi * (grid(64) - 0.2))) > 0.3
    np.testing.assert_allclose(truth.arrays["density"][0, -1][smooth], exact[-1][smooth], rtol=1e-5)


@pytest.mark.parametrize("kinematic", [False, True])
def test_sound_is_damped_as_linear_theory_says(kinematic: bool) -> None:
    density, pressure, size, k = 2.0, 3.0, 1e-3, 2 * np.pi
    diffusivity = VISCOSITY if kinematic else VISCOSITY / density
    sound_squared = GAMMA * pressure / density
    growth = np.roots([1, diffusivity * k**2, sound_squared * k**2])[0]
    t = np.linspace(0, 0.4, 5)

    def linear(x: Array, time: float) -> Array:
        wave = size * np.exp(1j * k * x + growth * time)
        return np.stack(
            [(1j * growth / k * wave).real, density * wave.real, density * sound_squared * wave.real]
        )

    def evaluate(x: Array) -> dict[str, Array]:
        v, rho, p = linear(x, 0.0)
        return given(
            *(np.stack([base + part, base - part]) for base, part in ((0, v), (density, rho), (pressure, p)))
        )

    problem = gas_problem(kinematic)
    truth = navier_stokes.FAMILY.solve_reference(
        problem, evaluate(grid(64)), t, evaluate=evaluate, tolerance=1e-8
    )
    odd = np.diff(together(truth.arrays)[::-1], axis=0)[0] / 2  # the quadratic parts cancel
    expected = np.stack([linear(grid(64), time) for time in t], axis=1)
    assert np.linalg.norm(odd - expected) < 1e-3 * np.linalg.norm(expected)


def test_truth_holds_its_error_estimate_and_its_start() -> None:
    problem, t = gas_problem(times=3, end=0.1), np.array([0.0, 0.05, 0.1])
    drawn = navier_stokes.sample_initial(problem, 4, 3)
    told: list[tuple[int, int, str]] = []
    truth = navier_stokes.FAMILY.solve_reference(
        problem,
        drawn.arrays,
        t,
        evaluate=drawn.evaluate,
        tolerance=1e-4,
        progress=lambda *news: told.append(news),
    )
    better = navier_stokes.FAMILY.solve_reference(
        problem, drawn.arrays, t, evaluate=drawn.evaluate, tolerance=2e-5
    )
    off = relative_l2(together(truth.arrays), together(better.arrays))
    assert (off < truth.error).all()
    assert (truth.error <= 1e-4).all()
    assert told[-1] == (4, 4, "reference solution of navier-stokes")
    for name, port in PORTS.items():
        assert truth.arrays[name].shape == (4, 3, 64)
        assert (truth.arrays[name][:, 0] == drawn.arrays[port]).all()
    assert min(truth.arrays[name].min() for name in ("density", "pressure")) > 0


def test_error_estimate_covers_what_kinks_hide_between_values() -> None:
    problem, t = gas_problem(points=128, times=3, end=0.1), np.array([0.0, 0.05, 0.1])

    def evaluate(x: Array) -> dict[str, Array]:
        folded = np.abs(np.sin(np.pi * (x - 0.123)))
        return given(np.zeros(x.size), 3 + 2 * folded, 10 + 4 * folded)

    known = navier_stokes.FAMILY.solve_reference(problem, evaluate(grid(128)), t, evaluate=evaluate)
    guessed = navier_stokes.FAMILY.solve_reference(problem, evaluate(grid(128)), t)
    off = relative_l2(together(guessed.arrays), together(known.arrays))
    assert (off < 2 * guessed.error).all()
    assert (guessed.error < 100 * off).all()
    assert (guessed.error > 10 * known.error).all()


def test_initial_conditions_are_drawn_from_their_ranges() -> None:
    problem = gas_problem(points=256)
    drawn = navier_stokes.sample_initial(problem, 200, 5)
    assert drawn.arrays.keys() == set(PORTS.values())
    assert all(array.dtype == np.float32 for array in drawn.arrays.values())
    for port, smallest in (("density0", 1.0), ("pressure0", 10.0)):
        low, spread = drawn.arrays[port].min(axis=1), np.ptp(drawn.arrays[port], axis=1)
        for values in (low, spread):
            assert smallest * 0.999 < values.min() < 1.5 * smallest
            assert 9.5 * smallest < values.max() < 10.001 * smallest
    v = drawn.arrays["Vx0"]
    assert 1 < np.abs(v).max() < 2
    assert abs(v.mean()) < 0.1
    windowed = np.mean(np.mean(np.abs(np.diff(v)) < 1e-6, axis=1) > 0.2)
    assert 0.4 < windowed < 0.6


@pytest.mark.parametrize("solve", [navier_stokes.FAMILY.solve_reference, navier_stokes.FAMILY.solve_pdebench])
def test_impossible_gas_is_refused(solve: object) -> None:
    problem, t = gas_problem(), np.linspace(0, 0.05, 6)
    good = np.ones(64)
    with pytest.raises(DataError, match="expected pressure0 to be positive, found the minimum -1"):
        solve(problem, given(good, good, -good), t)
    with pytest.raises(DataError, match=r"expected density0 to be positive, found the minimum nan"):
        solve(problem, given(good, np.full(64, np.nan), good), t)
    with pytest.raises(DataError, match=r"one shape \[n, N\], found .*'pressure0': \[1, 32\]"):
        solve(problem, given(good, good, good[:32]), t)


def test_published_scheme_conserves_and_keeps_its_precision_to_itself() -> None:
    import jax

    problem, t = gas_problem(points=128), np.linspace(0, 0.05, 6)
    drawn = navier_stokes.sample_initial(problem, 2, 4)
    solution = navier_stokes.FAMILY.solve_pdebench(problem, drawn.arrays, t)
    with jax.enable_x64(True):
        again = navier_stokes.FAMILY.solve_pdebench(problem, drawn.arrays, t)
    for name, port in PORTS.items():
        assert solution[name].dtype == again[name].dtype == np.float32
        assert (solution[name] == again[name]).all()
        assert (solution[name][:, 0] == drawn.arrays[port]).all()
    v, density, _ = together(solution).swapaxes(0, 1)
    for conserved in (density, density * v):
        drift = conserved.mean(axis=-1) - conserved[:, :1].mean(axis=-1)
        assert np.abs(drift).max() < 2e-4


def test_published_scheme_does_not_depend_on_how_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, t = gas_problem(), np.linspace(0, 0.05, 6)
    drawn = navier_stokes.sample_initial(problem, 1, 6)
    as_one = navier_stokes.FAMILY.solve_pdebench(problem, drawn.arrays, t)
    monkeypatch.setattr(godunov, "_MOST_CELLS_IN_ONE_KERNEL", 0)
    godunov.compile_scheme.cache_clear()
    as_many = navier_stokes.FAMILY.solve_pdebench(problem, drawn.arrays, t)
    godunov.compile_scheme.cache_clear()
    assert relative_l2(together(as_many), together(as_one))[0] < 2e-5
