"""Which methods suit a problem, in which order, and why: by rules, without trying any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sharp.error_messages import valid_values
from sharp.errors import ConfigurationError
from sharp.solvers.method import NumericalMethod
from sharp.solvers.system import FirstOrderSystem
from sharp.solvers.traits import Situation, SolutionRegularity

# Best first; a method that cannot solve the problem says so itself, so that domains need no rules here.
ORDER: Mapping[Situation, tuple[str, ...]] = {
    "smooth": ("fourier", "chebyshev", "polar", "fem", "fd", "fv", "muscl", "characteristics"),
    "nonsmooth": ("fd", "polar", "fem", "fv", "muscl", "chebyshev", "fourier", "characteristics"),
    "discontinuous-coefficient": (
        "fem",
        "fd",
        "fv",
        "muscl",
        "polar",
        "chebyshev",
        "fourier",
        "characteristics",
    ),
    "advected-discontinuity": (
        "characteristics",
        "fv",
        "muscl",
        "fd",
        "chebyshev",
        "fourier",
        "polar",
        "fem",
    ),
    "narrow-data": ("characteristics", "fem", "fd", "chebyshev", "fourier", "polar", "fv", "muscl"),
    "steep-front": ("fourier", "fd", "fv", "muscl", "chebyshev", "polar", "fem", "characteristics"),
}
_SUITS = {
    "characteristics": "curves that are traced back keep whatever is carried along as sharp as it is",
    "fourier": "everything repeats, and Fourier modes converge faster than any power of their number",
    "chebyshev": "polynomials through Chebyshev nodes converge faster than any power of their number",
    "polar": "the domain is round, and modes along the angle with Chebyshev nodes along the radius fit it exactly",
    "fem": "finite elements on triangles fit any plane domain, and shrink towards its corners",
    "fd": "finite differences are of a fixed order, but share nothing with global polynomials",
    "fv": "finite volumes are of low order, but robust",
    "muscl": "finite volumes of second order are the most robust",
    "pinn": "a network is trained, as nothing else can solve the problem",
}
_THOUGH = {
    "characteristics": "curves that are traced back keep whatever is carried along as sharp as it is",
    "fourier": "modes over the whole domain resolve little there",
    "chebyshev": "polynomials over the whole domain resolve little there",
    "polar": "the domain is round",
    "fem": "finite elements never differentiate a coefficient, and fit any shape",
    "fd": "differences look at few neighbours, so that errors stay where they arise",
    "fv": "finite volumes conserve what flows, and carry jumps without oscillations",
    "muscl": "finite volumes of second order smear jumps a little more, and hardly ever fail",
    "pinn": "a network is trained, as nothing else can solve the problem",
}


# Slow, and rarely accurate to more than four digits where the others are.
_ON_REQUEST = {"pinn": "it is tried only when asked for, or where no other method can solve the problem"}


# Where jumps travel, the others put them into wrong places, or blur and overshoot them.
_FOR_JUMPS = frozenset({"characteristics", "fv", "muscl"})


@dataclass(frozen=True)
class Recommendation:
    """A method, and in a sentence why it stands where it stands in the list."""

    method: NumericalMethod
    reason: str


@dataclass(frozen=True)
class MethodRanking:
    """The methods to try in this order, and why the others cannot solve the problem, by name."""

    recommendations: tuple[Recommendation, ...]
    refusals: Mapping[str, str]

    def named(self, name: str) -> Recommendation:
        """Return the recommendation of a method."""
        return next(found for found in self.recommendations if found.method.name == name)


def recommend(
    system: FirstOrderSystem, methods: Sequence[NumericalMethod], forced: str | None = None
) -> MethodRanking:
    """Return the methods that can solve a system, best first, or the forced one followed by what may check it.

    Raises `ConfigurationError` where the forced method is unknown or cannot solve the system.
    """
    by_name = {method.name: method for method in methods}
    reasons = {name: method.unsupported_reason(system) for name, method in by_name.items()}
    refusals = {name: reason.rstrip(".") for name, reason in reasons.items() if reason}
    if forced is not None and forced not in by_name:
        raise ConfigurationError(f"unknown method '{forced}'; {valid_values('methods', forced, by_name)}")
    if forced in refusals:
        raise ConfigurationError(f"the method '{forced}' cannot solve this problem: {refusals[forced]}")
    traits = SolutionRegularity(system)
    order = [name for name in ORDER[traits.situation] if name in by_name]
    order += [name for name in by_name if name not in order]
    if set(order) - refusals.keys() - _ON_REQUEST.keys():
        refusals |= {name: why for name, why in _ON_REQUEST.items() if name in by_name and name != forced}
    if traits.jumps_reason and (_FOR_JUMPS & by_name.keys()) - refusals.keys():
        others = [name for name in by_name if name not in {*_FOR_JUMPS, *refusals, forced}]
        refusals |= dict.fromkeys(others, "it does not conserve what jumps need to move at the right speed")
    able = [name for name in sorted(order, key=lambda name: name != forced) if name not in refusals]
    return MethodRanking(
        tuple(Recommendation(by_name[name], _reason(name, traits, name == forced)) for name in able), refusals
    )


def _reason(name: str, traits: SolutionRegularity, forced: bool) -> str:
    if forced:
        return "It was asked for."
    match traits.situation:
        case "smooth":
            return f"Nothing speaks against a smooth solution; {_SUITS.get(name, 'nothing speaks for it')}."
        case "steep-front":
            seen = f"Fronts may become as thin as {traits.front_thickness:.0e} of the domain"
        case "narrow-data":
            seen = f"The data vary within {traits.narrowest:.0e} of the domain"
        case _:
            seen = f"The solution may not be smooth, as {traits.nonsmooth_reason or traits.jumps_reason}"
    return f"{seen}; {_THOUGH.get(name, 'nothing speaks for it')}."
