"""What methods by Fourier modes on periodic boxes share: which problems they take, and with how many modes."""

from __future__ import annotations

import numpy as np

from sharp.problems import BoxDomain
from sharp.solvers.data_features import break_times, equation_features, initial_features
from sharp.solvers.discontinuities import has_discontinuous_flux_coefficient
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.fourier_modes import FourierModes
from sharp.solvers.grid import Array
from sharp.solvers.method import Deadline, SolverFailed
from sharp.solvers.modal_stepping import ModalSteps
from sharp.solvers.modal_system import ModalSystem, initial_shares_beyond
from sharp.solvers.semilinear import semilinear
from sharp.solvers.system import FirstOrderSystem, UnsupportedProblem

# Nodes along each axis in 1, 2 and 3 dimensions: from the fewest on, each half as many again as the one before.
_FEWEST = (24, 16, 12)
_MOST = (6000, 800, 128)
_RATIO = 1.5
# The initial state is resolved when further modes hold less than this share of it.
_RESOLVED = 1e-4
# Modes that grow by themselves feed others: so many times as many are needed.
_UNSTABLE = 4.0
# Data that make half of a change within a share of the domain need so many modes over that share.
_ACROSS = 2.0
# And may be missed altogether by nodes of which fewer lie within it.
_HIDDEN = 8.0
# The tolerance of steps, as a share of the accuracy that is asked for, and the least that rounding allows. Where the
# linear part damps nothing, errors of all steps stay.
_IN_TIME, _UNDAMPED = 0.1, 0.01
_LEAST = 1e-13


class ModalMethod:
    """Derivatives are factors of Fourier modes, and `resolution` is the number of these along each axis.

    A kind of modes says which factors, and a kind of steps how they are advanced in time.
    """

    name: str
    takes_constraints = True
    modes: type[FourierModes]
    steps: type[ModalSteps]

    def unsupported_reason(self, system: FirstOrderSystem) -> str | None:
        """It takes periodic boxes and equations whose stiff part is linear."""
        if not isinstance(system.problem.domain, BoxDomain) or set(system.space) != system.periodic:
            return "it takes boxes that are periodic along every axis"
        if system.steady:
            return "it steps in time, and the problem is steady"
        if has_discontinuous_flux_coefficient(system.problem):
            return (
                "a factor inside a derivative jumps, and Fourier modes do not say that the flux is continuous"
            )
        try:
            ModalSystem(semilinear(system), 2, self.modes)
        except (UnsupportedProblem, SolverFailed) as error:
            return str(error)
        return None

    def resolution_sequence(self, system: FirstOrderSystem) -> tuple[int, ...]:
        """Return numbers of modes along each axis, from the first that resolves the initial state."""
        index = len(system.space) - 1
        counts = [_FEWEST[index]]
        while counts[-1] * _RATIO < _MOST[index]:
            counts.append(round(counts[-1] * _RATIO))
        problem = system.problem
        widths = [each.width for each in equation_features(problem) if each.thin]
        # What is too narrow for the finest nodes is in none of their modes.
        widths += [each.width for each in initial_features(problem) if each.width < _HIDDEN / counts[-1]]
        narrow = _ACROSS / min(widths, default=1.0)
        least = min(max(narrow, _UNSTABLE * _highest_unstable(system, counts[-1])), counts[-3])
        beyond = initial_shares_beyond(system, counts[-1])
        resolved = (n for n in counts[:-1] if n >= least and beyond[(n - 1) // 2] < _RESOLVED)
        # An initial state that is never resolved may be smoothed in time.
        first = next(resolved, least)
        return tuple(count for count in counts if count >= first)

    def solve(
        self, system: FirstOrderSystem, resolution: int, accuracy: float, deadline: Deadline
    ) -> DiscreteSolution:
        """Return the solution by so many modes."""
        discrete = ModalSystem(semilinear(system), max(1, (resolution - 1) // 2), self.modes)
        assert system.problem.time is not None
        share = _IN_TIME if discrete.operator.damps else _UNDAMPED
        tolerance = max(share * accuracy, _LEAST)
        computed = self.steps(discrete, tolerance, deadline).over(system.problem.time, break_times(system))
        fields = [index for index, component in enumerate(system.components) if component.order == 0]

        def evaluated(points: Array, times: Array) -> Array:
            values = discrete.modes.at(points)
            return np.stack([values(computed.fields(time)[fields]) for time in times.tolist()], axis=1)

        facts = {"time steps": float(2 * len(computed.steps)), "share of the last modes": computed.tail}
        unknowns = len(system.components) * (2 * discrete.modes.highest + 1) ** len(system.space)
        return DiscreteSolution(self.name, resolution, evaluated, unknowns, facts=facts)


def _highest_unstable(system: FirstOrderSystem, most: int) -> int:
    """Return the number of the last mode along any axis whose own linear part grows faster than the mean's."""
    split, found = semilinear(system), 0
    for index, axis in enumerate(system.space):
        low, high = system.problem.bounds[axis]
        numbers = 2 * np.pi / (high - low) * np.arange(most // 2 + 1)
        rates = np.zeros((len(system.components), len(numbers)))
        for column, jet in enumerate(system.jets):
            if jet.order == jet.by[index]:
                rates[jet.component] += (
                    split.factors[jet.component, column] * ((1j * numbers) ** jet.order).real
                )
        growing = np.any(rates > rates[:, :1] + 1e-9 * np.abs(rates).max(), axis=0)
        found = max(found, int(np.max(np.flatnonzero(growing), initial=0)))
    return found if found < most // 2 else 0
