"""Measures for a viscous gas: its states, what it conserves, its entropy and its waves."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from sharp.errors import DataError
from sharp.feedback.fronts import rankine_hugoniot
from sharp.feedback.measure import Case, Measure, Value
from sharp.feedback.samples import (
    Array,
    Sample,
    accumulated,
    drift,
    jumps,
    largest_rise,
    mean_over_samples,
    samples,
    step_excess,
)
from sharp.feedback.stability import spacing
from sharp.numerics.gas import gas_of

_FAMILIES = ("navier-stokes-1d",)
_POSITIVE = ("density", "pressure")
_EQUATIONS = ("mass", "momentum", "energy")
_UNPHYSICAL = Value(None, "density or pressure is not positive everywhere: see positivity_violation")


def state_error(case: Case, field: str) -> Value:
    """Return the mean over samples of the relative 2-norm error of one field [n, T, N]; 0 for the reference."""
    from sharp.evaluation.scoring import relative_errors

    assert case.reference is not None
    name = next(port.name for port in case.problem.interface.returns if port.field == field)
    return Value(relative_errors({name: case.prediction[name]}, {name: case.reference[name]}).mean)


def vector_residual(case: Case) -> Value:
    """Return the root mean square of the residuals of the equations of mass, momentum and energy [n, T, N].

    Each is relative to its own terms, so that none hides another; the note has them one by one. How small that of
    the exact solution is depends on the output times, see `sharp.numerics.residual`.
    """
    from sharp.numerics.residual import residual

    try:
        found = residual(case.problem, case.inputs, case.prediction).per_equation
    except DataError as error:
        return Value(None, str(error))
    note = ", ".join(f"{name} {found[name]:.2e}" for name in _EQUATIONS)
    return Value(float(np.sqrt(np.mean([found[name] ** 2 for name in _EQUATIONS]))), note)


def conservation_drift(case: Case, quantity: str) -> Value:
    """Return the largest change in time of total mass, momentum or energy (fields [n, T, N]).

    Relative to the mass or energy of the start, or to its mass times |v| + c, c the speed of sound. Sums over a
    period are exact where the grid resolves the fields; at kinks they are off by about (dx/L)^2.
    """
    gamma = case.problem.parameters["Gamma"]

    def measure(sample: Sample) -> float:
        start = _conserved(gamma, sample.given, quantity)
        scale = sample.given["density"] * _speed(gamma, sample.given) if quantity == "momentum" else start
        return drift(_conserved(gamma, sample.fields, quantity), start, scale)

    return mean_over_samples(case, measure)


def positivity_violation(case: Case) -> Value:
    """Return how far density or pressure [n, T, N] fall below 0, over their means at the start, the worse of both."""

    def measure(sample: Sample) -> float:
        depths = [-sample.fields[field].min() / sample.given[field].mean() for field in _POSITIVE]
        return float(np.max([*depths, 0.0]))

    return mean_over_samples(case, measure)


def entropy_loss(case: Case) -> Value:
    """Return by how much entropy falls behind what viscosity produces, a mass in units of c_v.

    For velocity, density and pressure [n, T, N]. With s = ln(p / rho^Gamma), the integral of rho s grows at the rate
    of that of (Gamma - 1) rho mu v_x^2 / p >= 0 (no heat conduction). What counts is how far the accumulated
    difference ever falls below its largest earlier value; numerical dissipation adds entropy and does not count.
    Differences of neighbours do not overestimate v_x^2, so that thin shocks do not count either. Left for the exact
    solution are sums over x of fields with kinks, and integrals of order 4 in the output step.
    """
    if not _physical(case):
        return _UNPHYSICAL
    gas = gas_of(case.problem)

    def measure(sample: Sample) -> float:
        v, density, p = (sample.fields[field] for field in ("Vx", *_POSITIVE))
        entropy = (density * np.log(p / density**gas.gamma)).mean(axis=1)[:, None]
        weight = (gas.gamma - 1) * density * gas.mu(density) / p
        between = 0.5 * (weight + np.roll(weight, -1, axis=1))
        heating = (between * (jumps(v) / sample.dx) ** 2).mean(axis=1)[:, None]
        lost = largest_rise(accumulated(sample.t, heating) - entropy)
        return float(lost[0] / sample.given["density"].mean())

    return mean_over_samples(case, measure)


def acoustic_cfl(case: Case) -> Value:
    """Return by how much max(|v| + c) dt/dx exceeds 1, for the printed step and the fastest wave at any time."""
    if not _physical(case):
        return _UNPHYSICAL
    gamma = case.problem.parameters["Gamma"]
    with np.errstate(over="ignore"):
        fastest = max(float(_speed(gamma, sample.fields).max()) for sample in samples(case))
    return step_excess(
        case, fastest / spacing(case.problem, case.inputs), "Courant number max(|v| + c) dt/dx"
    )


def _conserved(gamma: float, fields: Mapping[str, Array], quantity: str) -> Array:
    v, density, p = (fields[field] for field in ("Vx", *_POSITIVE))
    match quantity:
        case "mass":
            return density
        case "momentum":
            return density * v
        case _:
            return p / (gamma - 1) + 0.5 * density * v**2


def _speed(gamma: float, fields: Mapping[str, Array]) -> Array:
    """Return |v| + c."""
    return np.asarray(np.abs(fields["Vx"]) + np.sqrt(gamma * fields["pressure"] / fields["density"]))


def _physical(case: Case) -> bool:
    ports = [port.name for port in case.problem.interface.returns if port.field in _POSITIVE]
    return all(case.prediction[name].min() > 0 for name in ports)


def _state_error(field: str, name: str, symbol: str) -> Measure:
    return Measure(
        name=f"{name}_error",
        title=f"Error of the {name}",
        families=_FAMILIES,
        description=f"Distance of the {name} from that of the reference solution.",
        source="Takamoto et al., PDEBench, NeurIPS 2022 (normalised RMSE)",
        shape=f"the {name} {symbol} of all samples, times and points",
        normalisation="2-norm of the difference over that of the reference, per sample; mean over samples",
        needs_reference=True,
        needs_coarse=False,
        function=partial(state_error, field=field),
    )


def _drift(quantity: str, scale: str) -> Measure:
    return Measure(
        name=f"total_{quantity}_drift",
        title=f"Drift of the total {quantity}",
        families=_FAMILIES,
        description=f"How far the total {quantity} strays from that of the initial condition, which is conserved.",
        source="LeVeque, Finite Volume Methods for Hyperbolic Problems, 2002, sections 4.1 and 14.3 (conservation)",
        shape="all samples, times and points",
        normalisation=f"largest change in time over {scale} of the start; mean over samples",
        needs_reference=False,
        needs_coarse=False,
        function=partial(conservation_drift, quantity=quantity),
    )


MEASURES: tuple[Measure, ...] = (
    _state_error("density", "density", "rho"),
    _state_error("Vx", "velocity", "v"),
    _state_error("pressure", "pressure", "p"),
    Measure(
        name="vector_residual",
        title="Residuals of the three equations",
        families=_FAMILIES,
        description="How far the solution is from satisfying the equations of mass, momentum and energy, by fixed "
        "difference operators on the output grid; the note has them one by one.",
        source="Anderson, Computational Fluid Dynamics, 1995, section 2.10 (conservation form); operators in "
        "`sharp.numerics.residual`",
        shape="at most 32 output times, the smooth part of all samples",
        normalisation="per equation, root mean square of the sum of all terms over the sum of those of each, mean "
        "over samples; root mean square over the equations",
        needs_reference=False,
        needs_coarse=False,
        function=vector_residual,
    ),
    _drift("mass", "the mass"),
    _drift("momentum", "the integral of rho (|v| + c)"),
    _drift("energy", "the energy"),
    Measure(
        name="positivity_violation",
        title="Negative density or pressure",
        families=_FAMILIES,
        description="How far density or pressure fall below zero.",
        source="Einfeldt et al., J. Comput. Phys. 92, 1991; Toro, Riemann Solvers and Numerical Methods for Fluid "
        "Dynamics, 2009, section 10.6",
        shape="the smallest values of every sample",
        normalisation="depth below zero over the mean at the start, the worse of both; mean over samples",
        needs_reference=False,
        needs_coarse=False,
        function=positivity_violation,
    ),
    Measure(
        name="entropy_loss",
        title="Sign of entropy production",
        families=_FAMILIES,
        description="Entropy that disappears, or is not produced where viscosity must produce it: wrong shocks, a "
        "missing term of viscous heating, energy lost.",
        source="Landau and Lifshitz, Fluid Mechanics, 1987, section 49 (entropy production by viscosity); Tadmor, Acta "
        "Numerica 12, 2003",
        shape="integrals over the period at all output times",
        normalisation="largest accumulated deficit of entropy over mass, in units of c_v; mean over samples",
        needs_reference=False,
        needs_coarse=False,
        function=entropy_loss,
    ),
    Measure(
        name="rankine_hugoniot",
        title="Rankine-Hugoniot defect",
        families=_FAMILIES,
        description="Error of the speed at which steep fronts of the pressure move, by balances of mass, momentum and "
        "energy in a box around them; nothing where the solution is smooth.",
        source="LeVeque, Finite Volume Methods for Hyperbolic Problems, 2002, sections 11.8 and 14.7 (jump conditions)",
        shape="the steepest front of the pressure at up to 8 output times of every sample",
        normalisation="what the balances miss over the jumps times the fastest wave speed |v| + c; mean over times and "
        "over samples with fronts",
        needs_reference=False,
        needs_coarse=False,
        function=rankine_hugoniot,
    ),
    Measure(
        name="acoustic_cfl",
        title="Acoustic Courant number",
        families=_FAMILIES,
        description="How far the internal time step that the program printed (`dt=...`, or `steps=...`) lets sound "
        "waves travel beyond one cell of the output grid. It says nothing against implicit time stepping.",
        source="Courant, Friedrichs and Lewy, Math. Ann. 100, 1928; Toro, Riemann Solvers and Numerical Methods for "
        "Fluid Dynamics, 2009, section 6.3.2",
        shape="the printed step, and the fastest wave |v| + c of all samples, times and points",
        normalisation="max(|v| + c) dt/dx less 1; 0 below",
        needs_reference=False,
        needs_coarse=False,
        function=acoustic_cfl,
    ),
)
