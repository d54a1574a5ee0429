"""Times at which given functions jump or bend: the arguments of switches change sign, and depend on time alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import sympy

from sharp.problems.programs import compile_expressions
from sharp.solving.system import System, real

# How many equal intervals are searched for a change of sign.
_INTERVALS = 4096


def breaks(system: System) -> tuple[float, ...]:
    """Return the times inside the interval of a problem at which its rates or boundary values may not be smooth."""
    if system.problem.time is None:
        return ()
    values = [condition.value for condition in system.conditions]
    time = real(system.time)
    arguments = {
        argument
        for expression in (*system.rates, *values)
        for argument in _switches(expression)
        if argument.free_symbols == {time}
    }
    found = {
        moment for argument in arguments for moment in _roots(argument, system.time, system.problem.time)
    }
    apart = 1e-9 * (system.problem.time[1] - system.problem.time[0])
    kept: list[float] = []
    for moment in sorted(found):
        if not kept or moment - kept[-1] > apart:
            kept.append(moment)
    return tuple(kept)


def _switches(expression: Any) -> Iterator[Any]:
    """Yield what decides between the branches of piecewise functions, steps and absolute values, as a sign."""
    for part in sympy.preorder_traversal(expression):
        match part:
            case sympy.Abs() | sympy.sign() | sympy.Heaviside():
                yield part.args[0]
            case sympy.Max() | sympy.Min():
                yield from (part.args[0] - other for other in part.args[1:])
            case sympy.Rel():
                yield part.lhs - part.rhs


def _roots(argument: Any, name: str, interval: tuple[float, float]) -> Iterator[float]:
    """Yield where a function of time changes sign, by sampling and bisection."""
    from scipy.optimize import brentq

    program = compile_expressions([argument], [name])

    def value(time: Any) -> Any:
        return program(time)[0]

    times = np.linspace(*interval, _INTERVALS + 1)
    with np.errstate(all="ignore"):
        signs = np.sign(value(times))
        yield from times[1:-1][signs[1:-1] == 0]
        for place in np.flatnonzero(signs[:-1] * signs[1:] < 0):
            yield float(
                brentq(value, times[place], times[place + 1], xtol=1e-15 * abs(interval[1] - interval[0]))
            )
