"""Whether a problem is well posed: that a solution exists, is the only one, and depends continuously on the data.

The checks look at the linearised equations at sampled points of the domain, at values that meet, and at data that
have to be in balance. None invents or repairs anything. What is not known, such as sampled initial states, is not
judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from sharp.problems.compatibility import compatibility_concerns
from sharp.problems.diagnostics import Diagnostic
from sharp.problems.evolution import count_concerns, evolution_concerns, transport_concerns
from sharp.problems.exact_solution import check_exact_solution
from sharp.problems.linearisation import LinearisedSystem, linearised_system
from sharp.problems.problem import Problem
from sharp.problems.singularities import singularity_concerns
from sharp.problems.steady import constant_concerns, resonance_concerns, rigid_concerns, type_concerns

_CHECKS: tuple[Callable[[LinearisedSystem], Iterator[Diagnostic]], ...] = (
    evolution_concerns,
    type_concerns,
    transport_concerns,
    count_concerns,
    constant_concerns,
    rigid_concerns,
    resonance_concerns,
    compatibility_concerns,
    check_exact_solution,
)


def check_well_posedness(problem: Problem) -> tuple[Diagnostic, ...]:
    """Return all that is or may be wrong with a problem, nothing where it is well posed."""
    singular = tuple(singularity_concerns(problem))
    if any(concern.verdict == "reject" for concern in singular):
        return singular
    system = linearised_system(problem)
    # Values out of the range of numbers count as unknown.
    with np.errstate(all="ignore"):
        return (*singular, *(concern for check in _CHECKS for concern in check(system)))
