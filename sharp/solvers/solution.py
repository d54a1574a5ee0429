"""The solution of a problem: its values anywhere, its estimated error, and the verdict of the checks."""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sharp.error_messages import valid_values
from sharp.errors import InputError, NotSolved, OutsideDomain
from sharp.problems import Diagnostic, Problem, asking, domain_lines
from sharp.solvers.cross_check import CrossCheck
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.grid import Array
from sharp.solvers.quantities import ComputedQuantity, QuantityEstimate, compute_all, estimate_all
from sharp.solvers.recommend import MethodRanking, Recommendation
from sharp.solvers.refine import RefinementStudy
from sharp.solvers.sample_points import evaluate
from sharp.solvers.verification import (
    FEATURES,
    REFINEMENT,
    CheckStatus,
    Verdict,
    VerificationCheck,
    verdict_of,
)

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure


# A time is accepted this far outside the time interval, relative to its length: ends that were computed are rounded.
_ROUNDING = 1e-12


def within_time(problem: Problem, times: Array) -> NDArray[np.bool_]:
    """Return which times are in the time interval, up to rounding; all of them for a steady problem."""
    start, end = problem.time or (-np.inf, np.inf)
    slack = _ROUNDING * (end - start) if problem.time else 0.0
    return np.asarray((times >= start - slack) & (times <= end + slack))


@dataclass(frozen=True)
class MethodResult:
    """What one method came to: its refinement, the checks of its solution and the quantities asked for, if computed."""

    refinement: RefinementStudy
    checks: tuple[VerificationCheck, ...] = ()
    quantities: Mapping[str, ComputedQuantity] = field(default_factory=dict)

    @property
    def verdict(self) -> CheckStatus:
        """The worst verdict of the checks."""
        return verdict_of(self.checks) if self.checks else "failed"

    @property
    def usable_for_cross_check(self) -> bool:
        """Whether the solution may bear witness for another: nothing shows that it is wrong, and its error is known."""
        return self.verdict != "failed" and isfinite(self.refinement.error)

    @property
    def may_contradict(self) -> bool:
        """Whether it speaks against a solution that is further away than its own error, however large that is."""
        failed = {check.name for check in self.checks if check.verdict == "failed"}
        seen = all(check.verdict == "verified" for check in self.checks if check.name == FEATURES)
        return bool(self.checks) and isfinite(self.refinement.error) and failed <= {REFINEMENT} and seen


@dataclass(frozen=True, repr=False)
class Solution:
    """The solution of a problem, with its estimated error and the verdict of the checks.

    Coordinates, times and values are in the units of the specification. A solution is a function: `solution(0.5, t=1)`.
    For an eigenvalue problem it is the first eigenfunction, scaled to a largest absolute value of 1, and `eigenvalues`
    holds the numbers. `accuracy` is the relative error that was aimed at, `trials` holds what every method came to,
    `trial` the best of these, `cross_check` the comparison with a second method, `alternatives` other solutions of a
    nonlinear steady problem, as far as they were found, and `seconds` what everything took. `quantities` are the
    numbers that the specification asks for, by name; `quantity` gives others.
    """

    problem: Problem
    accuracy: float
    verdict: Verdict
    concerns: tuple[Diagnostic, ...] = ()
    choice: MethodRanking | None = None
    trials: tuple[MethodResult, ...] = ()
    trial: MethodResult | None = None
    cross_check: CrossCheck | None = None
    alternatives: tuple[DiscreteSolution, ...] = ()
    seconds: float = 0.0
    quantities: Mapping[str, QuantityEstimate] = field(default_factory=dict)

    @property
    def error(self) -> float:
        """The estimated relative L2 error over space, time and the worst field; infinite where it is not known.

        It is a statement about the error only if `verdict.verified` is true.
        """
        return self.verdict.error

    @property
    def discrete(self) -> DiscreteSolution | None:
        """The solution as its method computed it, whatever the checks say of it; None if there is none."""
        return self.trial.refinement.solution if self.trial else None

    @property
    def method(self) -> str | None:
        """The name of the numerical method that computed the solution."""
        return self.discrete.method if self.discrete else None

    @property
    def eigenvalues(self) -> tuple[float, ...]:
        """The eigenvalues of an eigenvalue problem, ascending; empty for other problems."""
        return self.discrete.eigenvalues if self.discrete else ()

    @property
    def recommendation(self) -> Recommendation | None:
        """Why this method was chosen."""
        if self.choice is None or self.trial is None:
            return None
        return self.choice.named(self.trial.refinement.method)

    def __call__(self, *space: ArrayLike, t: ArrayLike | None = None, field: str | None = None) -> Array:
        """Return the values at points, one argument for each space coordinate.

        The arguments are broadcast to a common shape S. `t` is a time or an array of times of shape T, and is left out
        for a steady problem. The result has the shape T + S; for a system of several fields it is [fields, *T, *S],
        unless `field` names one of them. Raises `InputError` for a wrong number of coordinates or a missing time,
        `OutsideDomain`, and `NotSolved` if there is no solution.
        """
        names = self.problem.space
        if len(space) != len(names):
            raise InputError(f"expected {len(names)} coordinates ({', '.join(names)}), found {len(space)}")
        try:
            coordinates = np.broadcast_arrays(*(np.asarray(values, dtype=float) for values in space))
        except (TypeError, ValueError) as error:
            raise InputError(
                f"expected numbers or arrays that go together for {', '.join(names)}: {error}"
            ) from None
        points = np.stack([values.ravel() for values in coordinates], axis=1)
        values = self.at(points, None if t is None else np.ravel(t))
        shape = (*(() if t is None else np.shape(t)), *coordinates[0].shape)
        fields: Array = values.reshape(-1, *shape)
        if field is None:
            return fields if len(fields) > 1 else np.asarray(fields[0])
        return np.asarray(fields[self._index(field)])

    def at(self, points: ArrayLike, times: ArrayLike | None = None) -> Array:
        """Return the values [fields, k, m] at points [m, d] and times [k]; [fields, m] for a steady problem.

        Raises like a call of the solution.
        """
        discrete = self._required()
        places = np.asarray(points, dtype=float).reshape(-1, len(self.problem.space))
        moments = self._moments(times)
        self._check_places(places)
        # Methods expect ascending times, each once.
        distinct, order = np.unique(moments, return_inverse=True)
        values = evaluate(discrete, places, distinct)[:, order]
        return values[:, 0] if self.problem.time is None else values

    def quantity(self, value: str, **asked: Any) -> QuantityEstimate:
        """Return a number with its error: an expression of fields and their first derivatives.

        `take`, `over`, `at` and `unit` are those of `quantities` in specifications (docs/reference/problems.md):
        `solution.quantity("u", at={"x": 0.5, "t": 1})`, `solution.quantity("-k*u_x", take="integral", over="x = 0")`.
        Raises `SpecificationError` for what cannot be asked, and `NotSolved`.
        """
        self._required()
        assert self.trial is not None, "there is a solution"
        problem = asking(self.problem, {"quantity": {"value": value, **asked}})
        study = self.cross_check.study if self.cross_check else None
        own = compute_all(problem, self.trial.refinement, self.accuracy)
        other = compute_all(problem, study, self.accuracy) if study else None
        found = estimate_all(problem, own, self.accuracy, other, sound=self.verdict.verified)
        return found["quantity"]

    def probe(self, name: str) -> Array:
        """Return the values [fields, times] at a probe point of the specification; raises `NotSolved`."""
        from sharp.solvers.output import probe_values

        found = probe_values(self.problem, self._required())
        if name not in found:
            raise InputError(f"there is no probe {name!r}; {valid_values('probes', name, list(found))}")
        return found[name]

    def to_xarray(self, **coordinates: ArrayLike) -> xarray.Dataset:
        """Return the values on a grid as a data set with a variable for each field, not a number outside the domain.

        The grid is the output grid of the specification; keywords replace the points of single coordinates:
        `to_xarray(x=[0, 0.5, 1], t=[0, 1])`. Units, method, error and verdict are attributes. Raises `InputError` if
        xarray is not installed, `OutsideDomain` for times, and `NotSolved`.
        """
        from sharp.solvers.output import Output, dataset, on_grid, output_axes

        axes, times = output_axes(self.problem)
        names = [*self.problem.space, *([self.problem.time_name] if self.problem.time_name else [])]
        for name in coordinates:
            if name not in names:
                raise InputError(
                    f"there is no coordinate {name!r}; {valid_values('coordinates', name, names)}"
                )
        given = {name: np.atleast_1d(np.asarray(values, dtype=float)) for name, values in coordinates.items()}
        axes = tuple(given.get(name, axis) for name, axis in zip(self.problem.space, axes, strict=True))
        times = given.get(str(self.problem.time_name), times)
        if self.problem.time is not None:
            self._moments(times)
        discrete = self._required()
        values = on_grid(self.problem, discrete, axes, times)
        return dataset(Output(self.problem, axes, times, values), discrete, self.verdict)

    def save(self, path: str | Path) -> tuple[Path, ...]:
        """Write the values on the output grid as one file for other programs, with the verdict in it; return its path.

        The ending decides: `.nc` (NetCDF; needs xarray), `.vtu` (VTK, for ParaView; needs meshio), `.csv`, `.npz`. For
        a problem in time `.vtu` stands for a file at each time, and for NAME.vtu.series, which lists them and comes
        first. Raises `InputError` for another ending or a missing library, and `NotSolved`.
        """
        from sharp.solvers.output import output
        from sharp.solvers.saving import save

        discrete = self._required()
        return save(Path(path), output(self.problem, discrete), discrete, self.verdict)

    def plot(self) -> Figure:
        """Return a figure: lines for one space coordinate, maps for two, for three a map of the middle plane."""
        from sharp.solvers.figures import draw

        return draw(self.problem, self._required())

    def __repr__(self) -> str:
        how = f"{self.method}, error {self.error:.1e}, " if self.discrete else ""
        return f"<Solution of {self.problem.id}: {how}{self.verdict.status}>"

    def _repr_html_(self) -> str:
        lines = [f"<b>{html.escape(self.problem.title)}</b><br>{html.escape(self.verdict.headline)}"]
        if self.eigenvalues:
            lines.append(f"eigenvalues: {', '.join(f'{value:.10g}' for value in self.eigenvalues)}")
        lines += [html.escape(str(quantity)) for quantity in self.quantities.values()]
        if self.discrete is not None:
            buffer = BytesIO()
            self.plot().savefig(buffer, format="png", dpi=72)
            picture = b64encode(buffer.getvalue()).decode()
            alt = html.escape(f"plot of {', '.join(self.problem.fields)}")
            lines.append(f'<img alt="{alt}" src="data:image/png;base64,{picture}">')
        return f"<div>{'<br>'.join(lines)}</div>"

    def _required(self) -> DiscreteSolution:
        if self.discrete is None:
            raise NotSolved(f"{self.problem.id}: there is no solution: {self.verdict.reason}")
        return self.discrete

    def _index(self, field: str) -> int:
        fields = self.problem.fields
        if field not in fields:
            raise InputError(f"there is no field {field!r}; {valid_values('fields', field, fields)}")
        return fields.index(field)

    def _moments(self, times: ArrayLike | None) -> Array:
        problem = self.problem
        if problem.time is None:
            if times is not None:
                raise InputError(f"{problem.id} is a steady problem; expected no time")
            return np.zeros(1)
        start, end = problem.time
        span = f"{problem.time_name} from {start:g} to {end:g}"
        if times is None:
            raise InputError(f"{problem.id} depends on time; expected t, {span}")
        moments = np.asarray(times, dtype=float).ravel()
        outside = ~within_time(problem, moments)
        if np.any(outside):
            raise OutsideDomain(
                f"{problem.id}: no solution at {problem.time_name} = {moments[outside][0]:g}; {span}"
            )
        return np.asarray(np.clip(moments, start, end))

    def _check_places(self, points: Array) -> None:
        problem = self.problem
        outside = ~problem.domain.inside(points)
        if np.any(outside):
            where = ", ".join(f"{value:g}" for value in points[outside][0])
            domain = "; ".join(domain_lines(problem)).replace("`", "")
            raise OutsideDomain(
                f"{problem.id}: no solution at ({where}), one of {np.sum(outside)} points outside the domain; "
                f"expected {domain}"
            )
