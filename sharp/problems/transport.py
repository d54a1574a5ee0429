"""A single field that is carried along: it is given where it enters the domain, and nowhere else.

The velocity of a first-order equation is the vector of its coefficients of u_x, u_y, …, over that of u_t. Where it
points into the domain a value is needed; where it points out, a value would contradict what arrives there
(R. J. LeVeque, *Finite Volume Methods for Hyperbolic Problems*, 2002, ch. 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from sharp.problems.diagnostics import Diagnostic
from sharp.problems.linearisation import LinearisedSystem, boundary_state
from sharp.problems.sampling import (
    Array,
    at_times,
    conditions_at,
    face,
    largest,
    open_parts,
    part_name,
    times,
)

# A speed across the boundary below this share of the largest is that of a flow along it.
_SLOW = 1e-6


@dataclass(frozen=True)
class _Edge:
    """A part of the boundary: the outward speeds at its points [n] (NaN where not known), its condition."""

    part: str
    outward: Array
    condition: int | None

    def reversed(self) -> _Edge:
        """Return the same part with everything flowing the other way."""
        return _Edge(self.part, -self.outward, self.condition)

    @property
    def overdetermined(self) -> bool:
        """Whether a value is prescribed though the field leaves everywhere."""
        return self.condition is not None and bool((self.outward > 0).all())

    @property
    def open(self) -> bool:
        """Whether the field enters somewhere and has no value."""
        return self.condition is None and bool((self.outward < 0).any())


def transport_concerns(system: LinearisedSystem) -> Iterator[Diagnostic]:
    """Yield a concern for each part of the boundary where a transported field has a value too many or too few."""
    if not is_transport(system):
        return
    edges = _edges(system)
    if system.problem.time_name is None and _consistent([edge.reversed() for edge in edges]):
        # A steady equation has no direction: its two sides may be meant the other way round.
        return
    for edge in edges:
        if edge.overdetermined:
            yield _outflow(system, edge)
        if edge.open:
            yield _inflow(system, edge)


def is_transport(system: LinearisedSystem) -> bool:
    """Return whether a problem has one field, and derivatives of first order only."""
    problem = system.problem
    if len(problem.fields) > 1 or problem.specification.eigenvalue:
        return False
    orders = [sum(jet.orders[: len(problem.space)]) for jet in system.jets]
    time = system.order(problem.fields[0], problem.time_name) if problem.time_name else 1
    return max(orders) == 1 and time == 1


def _consistent(edges: list[_Edge]) -> bool:
    return not any(edge.overdetermined or edge.open for edge in edges)


def _edges(system: LinearisedSystem) -> list[_Edge]:
    problem = system.problem
    found = []
    for part in open_parts(problem):
        conditions = list(conditions_at(problem, part))
        known = {str(condition.field): str(condition.value) for _, condition in conditions}
        found.append(_Edge(part, _outward(system, part, known), conditions[0][0] if conditions else None))
    fastest = max((largest(edge.outward) for edge in found), default=0.0)
    return [
        _Edge(e.part, np.where(np.abs(e.outward) > _SLOW * fastest, e.outward, 0), e.condition) for e in found
    ]


def _outward(system: LinearisedSystem, part: str, known: Mapping[str, str]) -> Array:
    """Return the outward speed at points and times of a part: by the values prescribed there and by the initial ones.

    A value is prescribed in vain only if what is in the domain leaves as well.
    """
    problem = system.problem
    side = face(problem.domain, part)
    moments = times(problem)
    points, normals = at_times(side.points, moments), np.repeat(side.normals, max(len(moments), 1), axis=0)
    states = [known, {}] if known and not system.linear else [known]
    speeds = [_normal_speed(system, points, normals, state) for state in states]
    return np.concatenate(speeds)


def _normal_speed(system: LinearisedSystem, points: Array, normals: Array, known: Mapping[str, str]) -> Array:
    problem = system.problem
    frozen = system.frozen(points, boundary_state(problem, known))
    velocity, storage = np.zeros_like(normals), np.zeros(len(points))
    for (_, jet, _), values in zip(system.coefficients, frozen, strict=True):
        space = jet.orders[: len(problem.space)]
        if sum(space) == 1:
            velocity[:, space.index(1)] = values
        elif sum(jet.orders) == 1:
            storage = values
    steady = problem.time_name is None
    with np.errstate(all="ignore"):
        speed = np.sum(velocity * normals, axis=1) / (1.0 if steady else storage)
    return np.asarray(speed)


def _outflow(system: LinearisedSystem, edge: _Edge) -> Diagnostic:
    problem = system.problem
    field, place = problem.fields[0], part_name(problem, edge.part)
    message = (
        f"'{field}' has a value at {place}, where it flows out with the speed {largest(edge.outward):.3g}: "
        "what arrives there would contradict it; a value where it enters may be meant"
    )
    return Diagnostic("outflow-condition", "reject", ("boundary", edge.condition or 0), message)


def _inflow(system: LinearisedSystem, edge: _Edge) -> Diagnostic:
    problem = system.problem
    field, place = problem.fields[0], part_name(problem, edge.part)
    message = (
        f"'{field}' has no value at {place}, where it enters with the speed {-np.nanmin(edge.outward):.3g}"
    )
    question = f"What is {field} at {place}, where it enters the domain?"
    return Diagnostic("missing-boundary-condition", "clarify", ("boundary",), message, question)
