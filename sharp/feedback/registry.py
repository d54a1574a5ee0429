"""All measures, those that a problem may be judged by, and their computation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import chain
from math import isfinite

import numpy as np

from sharp.documents import hint
from sharp.errors import ConfigurationError
from sharp.feedback import advection, burgers, darcy, general, navier_stokes, reaction_diffusion
from sharp.feedback.measure import Case, Measure, Value
from sharp.problems import Problem

_MODULES = (general, advection, burgers, reaction_diffusion, navier_stokes, darcy)
ALL: Mapping[str, Measure] = {
    measure.name: measure for measure in chain.from_iterable(module.MEASURES for module in _MODULES)
}


def measures_for(problem: Problem) -> dict[str, Measure]:
    """Return the measures that a solver of this problem may be judged by, by name."""
    return {
        name: measure
        for name, measure in ALL.items()
        if not measure.families or problem.family in measure.families
    }


def compute(names: Collection[str], case: Case) -> dict[str, Value]:
    """Return what the named measures find in a run; a number that overflows is None, with a note.

    Raises `ConfigurationError` for a name that is no measure of the problem.
    """
    valid = measures_for(case.problem)
    wrong = [name for name in names if name not in valid]
    if wrong:
        raise ConfigurationError(
            f"{case.problem.id}: there is no feedback measure {wrong[0]!r}{hint(wrong[0], valid)}"
        )
    return {name: _measured(valid[name], case) for name in names}


def _measured(measure: Measure, case: Case) -> Value:
    """Let a measure see what it needs and no more."""
    if measure.needs_coarse and case.coarse is None:
        return Value(None, "there is no solution on the coarser grid")
    if measure.needs_reference and case.reference is None:
        return Value(None, "there is no reference solution")
    seen = replace(
        case,
        reference=case.reference if measure.needs_reference else None,
        coarse=case.coarse if measure.needs_coarse else None,
    )
    with np.errstate(all="ignore"):
        found = measure.function(seen)
    return found if found.value is None or isfinite(found.value) else Value(None, "the numbers overflow")
