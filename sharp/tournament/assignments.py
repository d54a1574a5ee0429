"""Which method each candidate of genesis is asked for: combinations that fit the problem, each once.

What a method needs stands beside it, as properties of the problem or of the methods that it goes with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, product
from random import Random
from typing import Any

from sharp.problems import BoxDomain, Problem, periodic_axes
from sharp.tournament.state import Analysis, Assignment

# From so many steps of the smallest bound on, schemes whose every part is explicit are not asked for.
STIFF_STEPS = 100_000


@dataclass(frozen=True)
class Method:
    """One choice for a part of a program: all that it needs, what it needs one of, and what it offers other parts."""

    name: str
    needs: frozenset[str]
    one_of: frozenset[str]
    offers: frozenset[str]

    def fits(self, known: frozenset[str]) -> bool:
        """Whether a problem, with the methods of the other parts, has what this one needs."""
        return self.needs <= known and (not self.one_of or not self.one_of.isdisjoint(known))


def _method(name: str, needs: str = "", one_of: str = "", offers: str = "") -> Method:
    return Method(name, *(frozenset(words.split()) for words in (needs, one_of, offers)))


METHODS: Mapping[str, Sequence[Method]] = {
    "discretisation": (
        _method(
            "the closed form, trigonometric interpolation of the data", "solved periodic", "", "evaluated"
        ),
        _method("the closed form, spline interpolation of the data", "solved", "", "evaluated"),
        _method("central differences of second order", "box", "", "marching nodal"),
        _method("central differences of fourth or sixth order", "box", "", "marching nodal"),
        _method("compact differences of fourth order", "box", "", "marching nodal"),
        _method("finite volumes with limited slopes", "unsteady box", "", "marching conservative"),
        _method("finite volumes with WENO reconstruction", "unsteady box", "", "marching conservative"),
        _method("finite volumes with harmonic means at the faces of cells", "steady box", "", "marching"),
        _method("Fourier pseudo-spectral, dealiased", "periodic", "", "marching fourier"),
        _method("Chebyshev collocation", "bounded box", "", "marching"),
        _method("finite elements of first or second order", "", "", "marching"),
        _method("discontinuous Galerkin of second order", "unsteady line", "hyperbolic mixed", "marching"),
        _method("semi-Lagrangian with cubic interpolation", "unsteady box", "hyperbolic mixed", "marching"),
    ),
    "integrator": (
        _method("none, as the closed form gives every time", "evaluated"),
        _method("strong-stability-preserving Runge-Kutta of third order", "unsteady mild marching"),
        _method("classical Runge-Kutta of fourth order", "unsteady mild marching"),
        _method("exponential integrator of fourth order", "unsteady fourier", "", "splitting"),
        _method("implicit-explicit Runge-Kutta", "unsteady marching", "parabolic mixed stiff", "splitting"),
        _method("Crank-Nicolson", "unsteady marching", "parabolic mixed stiff"),
        _method("L-stable Rosenbrock or implicit Runge-Kutta", "unsteady marching", "parabolic mixed stiff"),
        _method("Strang splitting with an exact sub-step", "unsteady marching split", "", "splitting"),
        _method("adaptive steps of SciPy's solve_ivp", "unsteady marching scipy"),
        _method("sparse direct factorisation", "steady marching scipy"),
        _method("preconditioned conjugate gradients", "steady marching"),
        _method("multigrid", "steady box nodal"),
    ),
    "transformation": (
        _method("none, the equation as it is given"),
        _method("the transformation that the analysis found", "transformed", "", "transforming"),
        _method("the conservative form", "unsteady conservative"),
        _method("a frame that moves with the mean speed", "unsteady periodic marching", "hyperbolic mixed"),
        _method("an internal grid of twice the points along each axis", "box marching"),
        _method("extrapolation to the limit from two step sizes", "unsteady mild marching"),
    ),
    "library": (
        _method("NumPy"),
        _method("NumPy and SciPy", "has-scipy", "", "scipy"),
        _method("JAX, compiled", "has-jax"),
        _method("PyTorch", "has-torch"),
    ),
}
# What programs are taken to find where nobody has looked.
USUAL_PACKAGES = ("numpy", "scipy", "jax")
# What the methods of a combination offer where it follows the strategy that the analysis chose.
_FOLLOWS = {"analytical": "evaluated", "transformed": "transforming", "hybrid": "splitting"}


def assign(
    problem: Problem,
    analysis: Analysis,
    seed: int,
    number: int,
    packages: Collection[str] = (),
) -> list[Assignment]:
    """Return the assignments of the first candidates, a pure function whose shorter lists begin the longer ones.

    Combinations that follow the strategy of the analysis come before all others. Of those that are left, the next is
    one whose methods were asked for least so far, by the seed among equals. Used up, they begin again. Libraries are
    among the `packages` that programs find, if that is known.
    """
    installed = {f"has-{name}" for name in packages or USUAL_PACKAGES}
    known, rng = properties(problem, analysis) | installed, Random(f"{seed}/assignments")
    combinations = feasible(known)
    rng.shuffle(combinations)
    mark = _FOLLOWS.get(analysis.strategy or "")
    following = [
        parts for parts in combinations if mark is None or any(mark in part.offers for part in parts)
    ]
    others = [parts for parts in combinations if parts not in following]
    drawn = _balanced([following, others])
    return [_assignment(parts) for parts in islice(cycle(islice(drawn, number)), number)]


def properties(problem: Problem, analysis: Analysis) -> frozenset[str]:
    """Return what a problem is and what its analysis found, as far as methods depend on it."""
    verdicts = {step.name: step.verdict for step in analysis.steps}
    found = {"steady" if problem.time is None else "unsteady"}
    if isinstance(problem.domain, BoxDomain):
        periodic = periodic_axes(problem) == {*problem.space}
        found |= {
            "box",
            "periodic" if periodic else "bounded",
            *(["line"] if len(problem.space) == 1 else []),
        }
    found.add("stiff" if _is_stiff(problem, analysis, verdicts.get("stability", {})) else "mild")
    # A problem that was not classified may be of any kind.
    found.add(verdicts.get("classification", {}).get("type", "mixed"))
    branches = {"analytical": "solved", "transformation": "transformed", "hybrid": "split"}
    found |= {word for step, word in branches.items() if verdicts.get(step, {}).get("verdict") == "yes"}
    return frozenset(found)


def feasible(known: frozenset[str]) -> list[tuple[Method, ...]]:
    """Return all combinations, one method a part, in which every method has what it needs."""
    possible = known.union(*(method.offers for methods in METHODS.values() for method in methods))
    choices = ([method for method in methods if method.fits(possible)] for methods in METHODS.values())
    return [
        parts
        for parts in product(*choices)
        if all(part.fits(known.union(*(each.offers for each in parts))) for part in parts)
    ]


def _is_stiff(problem: Problem, analysis: Analysis, verdict: Mapping[str, Any]) -> bool:
    """Return whether explicit steps are too many by the smallest bound; without a value, what the model said of it."""
    bounds = [bound.value for bound in analysis.bounds if bound.value is not None and bound.value > 0]
    if problem.time is None or not bounds:
        return verdict.get("stiff") is True
    return (problem.time[1] - problem.time[0]) / min(bounds) > STIFF_STEPS


def _balanced(groups: Sequence[Sequence[tuple[Method, ...]]]) -> Iterator[tuple[Method, ...]]:
    """Yield the combinations of one group after the other, the next always of the methods that were least asked for."""
    asked: Counter[str] = Counter()
    for group in groups:
        left = list(group)
        while left:
            parts = min(left, key=lambda parts: sum(asked[part.name] for part in parts))
            left.remove(parts)
            asked.update(part.name for part in parts)
            yield parts


def _assignment(parts: Sequence[Method]) -> Assignment:
    return Assignment(**{kind: part.name for kind, part in zip(METHODS, parts, strict=True)})
