"""What came of a problem, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from sharp.solvers.cross_check import CrossCheck
from sharp.solvers.recommend import MethodRanking
from sharp.solvers.refine import RefinementStudy, ResolutionAttempt
from sharp.solvers.verification import EXACT, RESIDUAL, VerificationCheck

_WORDS = {
    "chebyshev": "Chebyshev collocation",
    "fourier": "Fourier collocation",
    "fd": "finite differences",
    "polar": "polar collocation",
    "fem": "finite elements",
    "fv": "finite volumes",
    "pinn": "a neural network",
}


def display_name(method: str) -> str:
    """Return what a method is called in sentences."""
    return _WORDS.get(method, method)


def error_sentence(
    refinement: RefinementStudy, checks: Sequence[VerificationCheck], opinion: CrossCheck | None
) -> str:
    """Return how large the error is and how that is known, then what is doubted."""
    named = {check.name: check for check in checks}
    parts = [_estimated(refinement)]
    if RESIDUAL in named:
        parts.append(f"residual {named[RESIDUAL].value:.1e}")
    if opinion is not None:
        parts.append(f"another method, {display_name(opinion.method)}, agrees to {opinion.distance:.1e}")
    if EXACT in named:
        parts.append(f"the exact solution is {named[EXACT].value:.1e} away")
    doubts = [
        f"{check.name} {check.value:.1e} is above its limit of {check.limit:.0e}"
        for check in checks
        if check.verdict != "verified"
    ]
    return "; ".join(parts) + (f". Not verified: {', '.join(doubts)}" if doubts else "")


def _estimated(refinement: RefinementStudy) -> str:
    method = display_name(refinement.method)
    if not isfinite(refinement.error):
        return f"a solution by {method} {refinement.summary}, of unknown error"
    return f"estimated relative error {refinement.error:.1e}, by refinement of {method} {refinement.summary}"


def unsolved_sentence(choice: MethodRanking, refinements: Sequence[RefinementStudy]) -> str:
    """Return why there is no solution."""
    if not choice.recommendations:
        reasons = "; ".join(f"{display_name(name)}: {reason}" for name, reason in choice.refusals.items())
        return f"no method here can solve this problem ({reasons})"
    reasons = "; ".join(f"{display_name(found.method)}: {_failure(found)}" for found in refinements)
    return f"no method found a solution ({reasons or 'there was no time'})"


def _failure(refinement: RefinementStudy) -> str:
    """Return why the coarsest attempt failed: finer ones often end by the limit of time alone."""
    return next((attempt.failure for attempt in refinement.attempts), "no time was left")


def attempt_text(attempt: ResolutionAttempt) -> str:
    """Return one attempt as a line of progress."""
    start = f"{attempt.method}, resolution {attempt.resolution}: "
    if attempt.failure:
        return f"{start}{attempt.failure}" + (f" ({attempt.seconds:.2g} s)" if attempt.seconds else "")
    change = "" if attempt.difference is None else f", differs by {attempt.difference:.1e}"
    return f"{start}{attempt.unknowns} unknowns, {attempt.seconds:.2g} s{change}"
