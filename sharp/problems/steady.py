"""Steady problems: their type, solutions of the homogeneous problem, and data that allow no solution.

A boundary value problem needs an elliptic equation: λ² - ω² = 0 for exp(λ*x + i*ω*y), with one solution that dies
away from each side. A linear problem whose homogeneous form has a solution other than zero has no solution or many
(Fredholm's alternative; W. A. Strauss, *Partial Differential Equations*, ch. 5 and 6).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import sympy

from sharp.problems.diagnostics import Diagnostic
from sharp.problems.domains import BoxDomain
from sharp.problems.evolution import determinant, is_transport, roots
from sharp.problems.fluxes import field_flux
from sharp.problems.linearisation import DerivativeSymbol, LinearisedSystem, compiled, initial_state
from sharp.problems.problem import Problem
from sharp.problems.sampling import (
    Array,
    at_start,
    conditions_at,
    depends_on_fields,
    face,
    inner_points,
    integration,
    open_parts,
    periodic_axes,
    shown,
    values,
)
from sharp.problems.spec import Boundary

# An eigenvalue that is hit up to rounding leaves no unique solution; closer than the second, solutions are large.
_HIT, _NEAR = 1e-9, 1e-3
# Data may be out of balance by this share of their size: they are written with a few digits.
_BALANCE = 1e-6
# Flows through a boundary may be out of balance by this share, which integrals of values with kinks are, too.
_THROUGH = 1e-3


def type_concerns(system: LinearisedSystem) -> Iterator[Diagnostic]:
    """Yield a concern where waves cross a steady problem that has conditions all around."""
    problem = system.problem
    axes = [axis for axis in problem.space if axis not in periodic_axes(problem)]
    bound = [axis for axis in axes if all(system.order(field, axis) > 1 for field in problem.fields)]
    if problem.time_name or len(problem.space) < 2 or not bound or len(bound) < len(axes):
        return
    points, frozen = system.distinct(inner_points(problem.domain), initial_state(problem))
    for axis, (point, column) in product(bound, zip(points, frozen.T, strict=True)):
        if _has_waves(system, column, axis):
            message = (
                f"the equation is not elliptic at {shown(problem, point)}: waves run along {axis}, and conditions at "
                f"both ends of {axis} do not fix them; another sign of a second derivative may be meant, or {axis} "
                "is a time with initial conditions"
            )
            yield Diagnostic("steady-hyperbolic", "reject", ("equations",), message)
            return


def _has_waves(system: LinearisedSystem, coefficients: Array, axis: str) -> bool:
    """Whether exp(λ*x + i*ω·y) solves the principal part with an imaginary λ, for short waves along the other axes."""
    problem = system.problem
    column = problem.space.index(axis)
    others = [index for index in range(len(problem.space)) if index != column]
    for angle in np.pi * np.arange(8) / 8 if len(others) > 1 else [0.0]:
        wave = np.zeros(len(problem.space))
        wave[others] = [np.cos(angle), np.sin(angle)][: len(others)]
        symbol = system.symbol(coefficients, column, 1j * wave.astype(complex), principal=True)
        exponents = roots(determinant(symbol))
        if np.any(np.abs(exponents.real) < 1e-6 * np.abs(exponents)):
            return True
    return False


def constant_concerns(system: LinearisedSystem) -> Iterator[Diagnostic]:
    """Yield a concern for each field that is fixed up to a constant only, and for data that allow no solution."""
    problem = system.problem
    if problem.specification.eigenvalue or is_transport(system):
        return
    for field in problem.fields:
        has_mean = field in problem.specification.mean
        if not _only_derivatives(system, field) or _pinned(system, field):
            if has_mean:
                message = (
                    f"a mean of '{field}' is given, and equations and conditions fix '{field}' without it"
                )
                yield Diagnostic("too-many-conditions", "reject", ("mean", field), message)
            continue
        if problem.time_name is None:
            yield from _balance_concerns(system, field)
        yield from _throughput_concerns(system, field)
        if not has_mean:
            message = f"equations and conditions fix '{field}' up to a constant only, and 'mean' gives none"
            question = f"What is the mean value of {field} over the domain?"
            yield Diagnostic("undetermined-constant", "clarify", ("mean",), message, question)


def _only_derivatives(system: LinearisedSystem, field: str) -> bool:
    """Whether a constant may be added to the field in the equations, at any time."""
    problem = system.problem
    jets = [jet for jet in system.jets if jet.field == field]
    in_time = problem.time_name and any(jet.orders[len(problem.space)] for jet in jets)
    return not in_time and all(any(jet.orders) for jet in jets)


def _pinned(system: LinearisedSystem, field: str) -> bool:
    """Whether a condition holds the value of a field anywhere, or a flux that it is a part of."""
    conditions = system.problem.specification.boundary
    return any(
        (c.field == field and (c.type == "dirichlet" or (c.type == "robin" and c.a != "0")))
        or depends_on_fields(system.problem, c)
        or (
            c.type in ("flux", "neumann", "robin")
            and c.field != field
            and _enters_flux(system.problem, c.field, field)
        )
        for c in conditions
    )


def _enters_flux(problem: Problem, equation_of: str | None, field: str) -> bool:
    """Whether the flux in the equation of one field holds another one itself, as a pressure."""
    form = field_flux(problem, str(equation_of))
    if form is None:
        return False
    without = [part.xreplace(dict.fromkeys(part.atoms(sympy.Derivative), 0)) for part in form.flux]
    calls = (call for part in without for call in part.atoms(sympy.core.function.AppliedUndef))
    return any(call.func.__name__ == field for call in calls)


def _balance_concerns(system: LinearisedSystem, field: str) -> Iterator[Diagnostic]:
    """Yield a concern where sources and fluxes do not cancel: the integral of a divergence is that of the flux.

    Equations that are not div(A grad u) = f with a diagonal and known A are not judged.
    """
    if len(system.problem.fields) > 1 or not system.linear or not _divergence_form(system):
        return
    coarse, fine = (_integrals(system, count) for count in (24, 40))
    source, flux, size = fine
    tolerance = _BALANCE * size + 10 * (abs(source - coarse[0]) + abs(flux - coarse[1]))
    if np.isfinite([*coarse, *fine]).all() and abs(source - flux) > tolerance:
        message = (
            f"no solution exists: the sources of '{field}' need a flux of {source:.6g} through the boundary, the "
            f"conditions give {flux:.6g}"
        )
        yield Diagnostic("incompatible-flux", "reject", ("boundary",), message)


def _throughput_concerns(system: LinearisedSystem, pressure: str) -> Iterator[Diagnostic]:
    """Yield a concern where a constraint a·∇u + b·∇v = g asks for another flow through the boundary than is given.

    The pressure that enforces it is fixed up to a constant exactly where velocities are given on the whole boundary
    (V. Girault and P.-A. Raviart, Finite Element Methods for Navier-Stokes Equations, 1986, ch. I.2).
    """
    problem = system.problem
    for row in range(len(problem.equations)):
        terms = [(jet, value) for i, jet, value in system.coefficients if i == row]
        first = all(sum(jet.orders) == 1 and value.is_number for jet, value in terms)
        if not first or not terms or any(jet.field == pressure for jet, _ in terms):
            continue
        through, amount, moments = (
            0.0,
            0.0,
            at_start(problem, inner_points(problem.domain)[:1])[:, len(problem.space) :],
        )
        for part in open_parts(problem):
            side = face(problem.domain, part, 40)
            points = np.column_stack([side.points, np.repeat(moments, len(side.points), axis=0)])
            given = {str(c.field): c for _, c in conditions_at(problem, part) if c.type == "dirichlet"}
            for jet, factor in terms:
                axis = jet.orders.index(1)
                if axis >= len(problem.space):
                    return
                if jet.field not in given and not np.any(side.normals[:, axis]):
                    continue
                if jet.field not in given:
                    return
                flow = float(factor) * side.normals[:, axis] * values(problem, given[jet.field].value, points)
                through, amount = (
                    through + float(side.weights @ flow),
                    amount + float(side.weights @ np.abs(flow)),
                )
        points, weights = integration(problem.domain, 24)
        inside = np.column_stack([points, np.repeat(moments, len(points), axis=0)])
        source = float(weights @ -sum(system.terms(inside, _zero_state)[row]))
        if np.isfinite([through, amount, source]).all() and abs(through - source) > _THROUGH * (
            amount + abs(source)
        ):
            message = (
                f"no solution exists: equation {row + 1} needs a flow of {source:.6g} out through the boundary, the "
                f"conditions give {through:.6g}; an open outlet has conditions of type flux"
            )
            yield Diagnostic("incompatible-flux", "reject", ("boundary",), message)


def rigid_concerns(system: LinearisedSystem) -> Iterator[Diagnostic]:
    """Yield a concern where a rigid motion of a body may be added to its displacement: nothing holds it.

    The motions are constants and rotations of as many fields of one order as there are axes.
    """
    problem = system.problem
    spec, space = problem.specification, problem.space
    held = [
        name for name in problem.fields if any(c.field == name and c.type == "flux" for c in spec.boundary)
    ]
    if problem.time_name or spec.eigenvalue or len(held) != len(space) or len(space) < 2 or not system.linear:
        return
    motions = _rigid_motions(system, held)
    if not motions:
        return
    found = np.array([_seen_by_conditions(system, held, motion) for motion in motions]).T
    rank = (
        np.linalg.matrix_rank(found, tol=1e-8 * max(float(np.abs(found).max(initial=0.0)), 1e-300))
        if found.size
        else 0
    )
    if rank < len(motions):
        free = len(motions) - int(rank)
        message = (
            f"equations and conditions leave {free} rigid motion{'s' * (free > 1)} of {', '.join(held)} open: "
            "displacements and rotations that strain nothing"
        )
        question = f"Where is the body held: which values have {', '.join(held)} on a part of its boundary?"
        yield Diagnostic("undetermined-constant", "clarify", ("boundary",), message, question)


def _rigid_motions(system: LinearisedSystem, fields: Sequence[str]) -> list[dict[str, Any]]:
    """Return the motions, as expressions by field, that satisfy the homogeneous equations."""
    space = system.symbols[: len(fields)]
    candidates: list[dict[str, Any]] = [{name: sympy.Integer(1)} for name in fields]
    for k in range(len(fields)):
        candidates += [{fields[k]: -space[l], fields[l]: space[k]} for l in range(k + 1, len(fields))]
    points = inner_points(system.problem.domain)

    def strains(motion: dict[str, Any]) -> bool:
        def state(jet: DerivativeSymbol) -> Any:
            whole = motion.get(jet.field, sympy.Integer(0))
            counts = [(s, n) for s, n in zip(space, jet.orders, strict=False) if n]
            return sympy.diff(whole, *counts) if counts else whole

        moved, still = system.terms(points, state), system.terms(points, _zero_state)
        return any(
            np.abs(a.sum(axis=0) - b.sum(axis=0)).max() > 1e-9 * (1 + np.abs(a).max())
            for a, b in zip(moved, still, strict=True)
        )

    return [motion for motion in candidates if not strains(motion)]


def _seen_by_conditions(system: LinearisedSystem, fields: Sequence[str], motion: dict[str, Any]) -> Array:
    """Return what the given values and means notice of a motion, at some points of the boundary."""
    problem = system.problem
    seen = []
    for part in open_parts(problem):
        points = face(problem.domain, part, 5).points
        for _, condition in conditions_at(problem, part):
            if condition.field in fields and condition.type in ("dirichlet", "robin"):
                moved = motion.get(str(condition.field), sympy.Integer(0))
                seen.append(compiled(system.symbols, [moved])(*points.T)[0])
    points, weights = integration(problem.domain, 8)
    for name in problem.specification.mean:
        moved = motion.get(name, sympy.Integer(0))
        seen.append(np.array([weights @ compiled(system.symbols, [moved])(*points.T)[0]]))
    return np.concatenate(seen) if seen else np.zeros(1)


def _divergence_form(system: LinearisedSystem) -> bool:
    """Whether the equation is div(A grad u) = f: the first derivatives' coefficients are those of A's derivatives."""
    problem = system.problem
    count = len(problem.space)
    parts = {jet.orders: value for _, jet, value in system.coefficients}
    unit = np.eye(count, dtype=int)
    second = [parts.get(tuple(2 * row), sympy.Integer(0)) for row in unit]
    first = [parts.get(tuple(row), sympy.Integer(0)) for row in unit]
    known = {tuple(row) for row in (*unit, *(2 * unit))}
    if not set(parts) <= known or system.unknown:
        return False
    if not isinstance(problem.domain, BoxDomain) and len({str(value) for value in second}) > 1:
        return False
    wanted = [a.diff(symbol) for a, symbol in zip(second, system.symbols, strict=True)]
    found = compiled(system.symbols, [*first, *wanted])(*inner_points(problem.domain).T)
    return bool(np.allclose(found[:count], found[count:], rtol=1e-9, atol=1e-12, equal_nan=True))


def _integrals(system: LinearisedSystem, count: int) -> tuple[float, float, float]:
    """Return the integrals of f, of the flux A du/dn, and of the size of both."""
    problem = system.problem
    points, weights = integration(problem.domain, count)
    f = -sum(system.terms(points, _zero_state)[0])
    source, size = float(weights @ f), float(np.abs(weights) @ np.abs(f))
    flux = 0.0
    for part in open_parts(problem):
        for _, condition in conditions_at(problem, part):
            through, amount = _flux(system, part, condition, count)
            flux, size = flux + through, size + amount
    return source, flux, size


def _flux(system: LinearisedSystem, part: str, condition: Boundary, count: int) -> tuple[float, float]:
    problem = system.problem
    side = face(problem.domain, part, count)
    slope = values(problem, condition.value, side.points)
    if condition.type == "flux":
        # It has the sign of the field's own derivatives, and the equation may have the other one.
        frozen = system.frozen(side.points, _zero_state)
        own = [
            value
            for (_, jet, _), value in zip(system.coefficients, frozen, strict=True)
            if sum(jet.orders) == 2
        ]
        flux = np.sign(own[0]) * slope if own else slope
        return float(side.weights @ flux), float(side.weights @ np.abs(flux))
    if condition.type == "robin":
        slope = slope / values(problem, condition.b, side.points)
    frozen = system.frozen(side.points, _zero_state)
    diffusivity = np.zeros(len(side.points))
    for (_, jet, _), value in zip(system.coefficients, frozen, strict=True):
        if sum(jet.orders) == 2:
            diffusivity = diffusivity + value * side.normals[:, jet.orders.index(2)] ** 2
    flux = diffusivity * slope
    return float(side.weights @ flux), float(side.weights @ np.abs(flux))


def _zero_state(jet: DerivativeSymbol) -> Any:
    del jet
    return sympy.Integer(0)


def resonance_concerns(system: LinearisedSystem) -> Iterator[Diagnostic]:
    """Yield a concern where Σ a_k u_kk + c u = f has a wave that satisfies the homogeneous problem, or nearly does."""
    found = _constant_coefficients(system)
    if found is None:
        return
    second, zeroth = found
    problem = system.problem
    choices = [
        _half_waves(system, axis, np.sqrt(zeroth / a)) for axis, a in zip(problem.space, second, strict=True)
    ]
    lengths = np.array([high - low for low, high in problem.bounds.values()])
    modes = [
        (float(np.sum(second * (np.pi * np.array(row) / lengths) ** 2)), row) for row in product(*choices)
    ]
    if not modes:
        return
    eigenvalue, numbers = min(modes, key=lambda mode: abs(mode[0] - zeroth))
    distance = abs(eigenvalue - zeroth) / abs(zeroth)
    waves = ", ".join(f"{n:g} along {axis}" for axis, n in zip(problem.space, numbers, strict=True))
    coefficient = f"the coefficient {zeroth:.10g} of '{problem.fields[0]}' is"
    wave = f"the eigenvalue of the wave with as many half waves as {waves}"
    if distance <= _HIT:
        message = f"{coefficient} {wave}: any multiple of it can be added, a source that contains it has no solution"
        yield Diagnostic("resonance", "reject", ("equations",), message)
    elif distance <= _NEAR:
        message = f"{coefficient} within {distance:.1g} of {wave}: small changes of the data change much"
        yield Diagnostic("resonance", "warn", ("equations",), message)


def _constant_coefficients(system: LinearisedSystem) -> tuple[Array, float] | None:
    """Return the a_k and c of an equation Σ a_k u_kk + c u = f on a box, of one sign; None for any other."""
    problem = system.problem
    if problem.time_name or len(problem.fields) > 1 or not isinstance(problem.domain, BoxDomain):
        return None
    parts = {jet.orders: value for _, jet, value in system.coefficients}
    if problem.specification.eigenvalue or not all(value.is_number for value in parts.values()):
        return None
    second = [float(parts.pop(tuple(2 * row), 0)) for row in np.eye(len(problem.space), dtype=int)]
    zeroth = float(parts.pop((0,) * len(problem.coordinates), 0))
    if parts or not (min(second) > 0 or max(second) < 0) or zeroth * second[0] <= 0:
        return None
    return np.abs(second), abs(zeroth)


def _half_waves(system: LinearisedSystem, axis: str, wave_number: float) -> list[float]:
    """Return how many half waves fit along an axis, up to those that are shorter than the wave number's.

    None do where conditions have no waves whose number of halves is whole or a half.
    """
    problem = system.problem
    low, high = problem.bounds[axis]
    numbers = np.arange(int(wave_number * (high - low) / np.pi) + 2, dtype=float)
    if axis in periodic_axes(problem):
        return list(2 * numbers)
    types = [[c.type for _, c in conditions_at(problem, axis + side)] for side in "-+"]
    match sorted(types):
        case [["dirichlet"], ["dirichlet"]]:
            return list(numbers + 1)
        case [["neumann"], ["neumann"]]:
            return list(numbers)
        case [["dirichlet"], ["neumann"]]:
            return list(numbers + 0.5)
        case _:
            return []
