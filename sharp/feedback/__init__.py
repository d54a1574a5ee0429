"""Feedback measures: what can be said of a run besides its error (paper appendix B.2.6, requirement R32)."""

from sharp.feedback.coarse import coarsened, restricted
from sharp.feedback.measure import Case, Measure, Value
from sharp.feedback.registry import ALL, compute, measures_for
from sharp.feedback.stability import explicit_limits

__all__ = [
    "ALL",
    "Case",
    "Measure",
    "Value",
    "coarsened",
    "compute",
    "explicit_limits",
    "measures_for",
    "restricted",
]
