from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from sharp.reference.metrics import MetricInput
from sharp.reference.navier_stokes import FAMILY
from tests.helpers.problems.measured_cases import case, cells, found, number, shipped

Array = np.ndarray
PROBLEM = shipped("navier-stokes")
IDEAL = shipped("navier-stokes", eta=1e-7, zeta=1e-7)
GAMMA, VISCOSITY = PROBLEM.parameters["Gamma"], 0.1 + 4 / 3 * 0.1
T = np.linspace(0, 0.5, 51)
N = 128
DX = 2 / N
DRIFTS = ("total_mass_drift", "total_momentum_drift", "total_energy_drift")
CLEAN = ("vector_residual", *DRIFTS, "positivity_violation", "entropy_loss")


@cache
def truth() -> Mapping[str, Array]:
    phase = 2 * np.pi * cells(N)
    start = {
        "Vx0": np.sin(phase)[None],
        "density0": (3 + np.cos(phase + 1))[None],
        "pressure0": (6 + 2 * np.cos(2 * phase))[None],
    }
    return FAMILY.solve_reference(PROBLEM, start, T, tolerance=3e-5).arrays


def solved(change: Mapping[str, Any] | None = None, **more: Any) -> MetricInput:
    """Return the case of the true solution, with fields changed after its start."""
    fields = {**truth(), **(change or {})}
    return case(PROBLEM, fields, T, {field: u[:, 0] for field, u in truth().items()}, **more)


def still(v: Array | float = 0.0, density: float = 2.0, pressure: float = 5.0) -> dict[str, Array]:
    """Return fields that stay as they are."""
    shape = (1, T.size, N)
    return {
        "Vx": np.broadcast_to(v, shape).copy(),
        "density": np.full(shape, density),
        "pressure": np.full(shape, pressure),
    }


def test_the_true_solution_has_none() -> None:
    for name in CLEAN:
        assert number(name, solved()) < 2e-3
    rounded = solved({field: u.astype(np.float32) for field, u in truth().items()})
    for name in (*DRIFTS, "entropy_loss"):
        assert number(name, rounded) < 1e-4


@pytest.mark.parametrize("name", ["density", "velocity", "pressure"])
def test_errors_of_states_are_told_apart(name: str) -> None:
    field = "Vx" if name == "velocity" else name
    measured = solved({field: 1.03 * truth()[field]}, reference=truth())
    errors = {other: number(f"{other}_error", measured) for other in ("density", "velocity", "pressure")}
    assert errors.pop(name) == pytest.approx(0.03)
    assert set(errors.values()) == {0.0}


def test_errors_of_states_need_a_reference() -> None:
    assert found("density_error", solved()).value is None


def test_the_residual_tells_which_equation_is_off() -> None:
    weak = replace(solved(), problem=shipped("navier-stokes", eta=0.05, zeta=0.05))
    assert number("vector_residual", weak) > 10 * number("vector_residual", solved())
    parts = dict(part.split() for part in found("vector_residual", weak).note.split(", "))
    assert float(parts["momentum"]) > 10 * float(parts["mass"])
    squares = [float(value) ** 2 for value in parts.values()]
    assert number("vector_residual", weak) == pytest.approx(np.sqrt(np.mean(squares)), rel=0.01)


def test_the_residual_tells_of_unfit_arrays() -> None:
    value = found("vector_residual", solved({"density": np.full_like(truth()["density"], np.nan)}))
    assert value.value is None
    assert "finite" in value.note


def test_a_source_of_mass_drifts_by_its_size() -> None:
    density = truth()["density"] + 0.1 * T[:, None]
    mass = truth()["density"][0, 0].mean()
    assert number("total_mass_drift", solved({"density": density})) == pytest.approx(
        0.1 * T[-1] / mass, rel=1e-3
    )


def test_a_force_drifts_by_its_size() -> None:
    v, density, p = (truth()[field] for field in ("Vx", "density", "pressure"))
    forced = solved({"Vx": v + 0.2 * T[:, None] / density})
    scale = density[0, 0] * (np.abs(v[0, 0]) + np.sqrt(GAMMA * p[0, 0] / density[0, 0]))
    assert number("total_momentum_drift", forced) == pytest.approx(0.2 * T[-1] / scale.mean(), rel=1e-3)
    assert number("total_mass_drift", forced) < 1e-6


def test_a_source_of_heat_drifts_by_its_size() -> None:
    v, density, p = (truth()[field] for field in ("Vx", "density", "pressure"))
    energy = (p[0, 0] / (GAMMA - 1) + 0.5 * density[0, 0] * v[0, 0] ** 2).mean()
    heated = solved({"pressure": p + 0.3 * T[:, None]})
    expected = 0.3 * T[-1] / (GAMMA - 1) / energy
    assert number("total_energy_drift", heated) == pytest.approx(expected, rel=1e-3)
    assert number("entropy_loss", heated) < 1e-4


@pytest.mark.parametrize("field", ["density", "pressure"])
def test_negative_states_are_flagged_and_have_no_entropy(field: str) -> None:
    below = truth()[field].copy()
    below[0, 20, 5] = -0.4
    measured = solved({field: below}, internal_dt=1e-3)
    assert number("positivity_violation", measured) == pytest.approx(0.4 / truth()[field][0, 0].mean())
    for name in ("entropy_loss", "acoustic_cfl"):
        value = found(name, measured)
        assert value.value is None
        assert "not positive" in value.note


def test_lost_entropy_is_measured_in_units_of_c_v() -> None:
    cooled = solved({"pressure": truth()["pressure"] * np.exp(-0.2 * T)[:, None]})
    # p exp(-0.2 t) lowers ln(p/rho^Gamma) by 0.2 t everywhere, and the heat that viscosity makes counts for more.
    assert number("entropy_loss", cooled) == pytest.approx(0.2 * T[-1], rel=0.05)


def test_missing_heat_of_viscosity_is_lost_entropy() -> None:
    v, p = 0.8 * np.sin(2 * np.pi * cells(N)), 5.0
    rate = (GAMMA - 1) * VISCOSITY * 2.0 * np.mean((0.8 * np.pi * np.cos(2 * np.pi * cells(N))) ** 2) / p
    # Entropy and mass are both integrals over the period; rho = 2 cancels but for the viscosity.
    assert number("entropy_loss", case(PROBLEM, still(v), T)) == pytest.approx(rate * T[-1], rel=1e-3)


def test_gained_entropy_does_not_count() -> None:
    assert number("entropy_loss", case(PROBLEM, still(), T)) < 1e-12
    heated = solved({"pressure": truth()["pressure"] * np.exp(0.2 * T)[:, None]})
    assert number("entropy_loss", heated) < 1e-4


def shock(cells_a_frame: int, points: int = 512) -> tuple[MetricInput, float]:
    """Return a shock of Mach number 2 into gas at rest, which moves 10 cells a frame if right; and c + v behind it.

    The jump conditions are Toro 2009, section 3.1.3. The states fade into each other smoothly at the wrap.
    """
    mach, (ahead, p_ahead) = 2.0, (1.0, 1.0)
    sound = np.sqrt(GAMMA * p_ahead / ahead)
    density = ahead * (GAMMA + 1) * mach**2 / ((GAMMA - 1) * mach**2 + 2)
    p = p_ahead * (2 * GAMMA * mach**2 - (GAMMA - 1)) / (GAMMA + 1)
    v = mach * sound * (1 - ahead / density)
    t = 10 * (2 / points) / (mach * sound) * np.arange(11)
    place = np.arange(points)
    behind = (place < 100 + cells_a_frame * np.arange(11)[:, None]).astype(float)
    share = behind + np.where(place < points - 96, 0.0, 0.5 + 0.5 * np.cos(np.pi * (points - place) / 96))
    fields = {
        "Vx": share * v,
        "density": ahead + share * (density - ahead),
        "pressure": p_ahead + share * (p - p_ahead),
    }
    return case(IDEAL, {name: u[None] for name, u in fields.items()}, t), v + np.sqrt(GAMMA * p / density)


def test_a_front_at_the_wrong_speed_has_the_defect_of_its_speed() -> None:
    right, fastest = shock(10)
    assert number("rankine_hugoniot", right) < 1e-3
    speed = 2 * np.sqrt(GAMMA)
    for wrong in (7, 13):
        defect = abs(wrong / 10 - 1) * speed / fastest
        assert number("rankine_hugoniot", shock(wrong)[0]) == pytest.approx(defect, rel=0.02)


def test_the_mean_is_over_samples_with_fronts() -> None:
    one, _ = shock(13)
    wide = {name: np.concatenate([u, u[:, :, -1:] * np.ones_like(u)]) for name, u in one.prediction.items()}
    t = one.inputs.t
    both = case(IDEAL, wide, t)
    assert number("rankine_hugoniot", both) == pytest.approx(number("rankine_hugoniot", one))
    assert "in 1 of 2 samples" in found("rankine_hugoniot", both).note


def test_smooth_solutions_have_no_fronts() -> None:
    value = found("rankine_hugoniot", solved())
    assert value.value is None
    assert "smooth" in value.note


def test_a_front_at_rest_without_velocity_is_off() -> None:
    fields = still()
    fields["pressure"][..., 40:90] = 10.0
    quick = np.linspace(0, 0.05, T.size)
    assert number("rankine_hugoniot", case(PROBLEM, fields, quick)) > 0.1


@pytest.mark.parametrize(("courant", "excess"), [(0.5, 0.0), (3.0, 2.0)])
def test_acoustic_courant_number(courant: float, excess: float) -> None:
    fields = still(v=-0.5)
    dt = courant * DX / (0.5 + np.sqrt(GAMMA * 5.0 / 2.0))
    measured = case(PROBLEM, fields, T, internal_dt=dt)
    assert number("acoustic_cfl", measured) == pytest.approx(excess, abs=1e-9)
