"""Which methods suit a problem, in which order, and why: by rules, without trying any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sharp.error_messages import valid_values
from sharp.errors import ConfigurationError
from sharp.problems import BoxDomain
from sharp.solvers.method import NumericalMethod
from sharp.solvers.system import FirstOrderSystem
from sharp.solvers.traits import Situation, SolutionRegularity

# Best first; a method that cannot solve the problem says so itself, so that domains need no rules here.
_RANKS: Mapping[Situation, str] = {
    "smooth": "etd imex fourier chebyshev polar fem fd fv muscl characteristics rbf fem-cubic",
    "nonsmooth": "fd polar fem fem-cubic fv muscl chebyshev etd imex fourier characteristics rbf",
    "discontinuous-coefficient": "fem fem-cubic fd fv muscl polar chebyshev etd imex fourier characteristics rbf",
    "advected-discontinuity": "characteristics fv muscl fd chebyshev etd imex fourier polar fem rbf fem-cubic",
    "narrow-data": "characteristics etd imex fem fd fem-cubic chebyshev fourier polar rbf fv muscl",
    "steep-front": "etd imex fourier fd fv muscl chebyshev polar fem characteristics rbf fem-cubic",
}
ORDER = {situation: tuple(ranks.split()) for situation, ranks in _RANKS.items()}
# On an interval differences are as good as elements where all is smooth; elements end where something jumps.
_ON_A_LINE: Mapping[Situation, str] = {
    "smooth": "etd imex fourier chebyshev fd fem fem-cubic fv muscl characteristics",
    "nonsmooth": "fem fem-cubic fd fv muscl chebyshev etd imex fourier characteristics",
}
_LINE_ORDER = ORDER | {situation: tuple(ranks.split()) for situation, ranks in _ON_A_LINE.items()}
_SUITS = {
    "characteristics": "curves that are traced back keep whatever is carried along as sharp as it is",
    "etd": "everything repeats, and exponential steps follow the linear part of Fourier modes exactly",
    "imex": "differences of high order and implicit-explicit steps share nothing with modes and exponential ones",
    "fourier": "everything repeats, and Fourier modes converge faster than any power of their number",
    "chebyshev": "polynomials through Chebyshev nodes converge faster than any power of their number",
    "polar": "the domain is round, and modes along the angle with Chebyshev nodes along the radius fit it exactly",
    "fem": "finite elements on triangles fit any plane domain, and shrink towards its corners",
    "fd": "finite differences are of a fixed order, but share nothing with global polynomials",
    "fv": "finite volumes are of low order, but robust",
    "muscl": "finite volumes of second order are the most robust",
    "rbf": "differences on scattered nodes share nothing with elements but the outline of the domain",
    "fem-cubic": "cubic elements have another degree and other meshes than the elements of higher degree",
    "pinn": "a network is trained, as nothing else can solve the problem",
}
_THOUGH = {
    "characteristics": "curves that are traced back keep whatever is carried along as sharp as it is",
    "etd": "modes over the whole domain resolve little there",
    "imex": "differences of high order look at few neighbours",
    "fourier": "modes over the whole domain resolve little there",
    "chebyshev": "polynomials over the whole domain resolve little there",
    "polar": "the domain is round",
    "fem": "finite elements never differentiate a coefficient, and fit any shape",
    "fd": "differences look at few neighbours, so that errors stay where they arise",
    "fv": "finite volumes conserve what flows, and carry jumps without oscillations",
    "muscl": "finite volumes of second order smear jumps a little more, and hardly ever fail",
    "rbf": "differences on scattered nodes share nothing with elements but the outline of the domain",
    "fem-cubic": "cubic elements have another degree and other meshes than the elements of higher degree",
    "pinn": "a network is trained, as nothing else can solve the problem",
}


# Methods that work mode by mode.
_MODAL = ("etd", "imex")
# So many modes along an interval are better followed by exponential steps than by dense matrices.
_MANY = 100
# With more modes along each axis, in 1 to 3 dimensions, narrow data are not for Fourier modes.
_AFFORDABLE = (2000, 300, 64)
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

    @property
    def first_ones(self) -> tuple[Recommendation, ...]:
        """The methods that look for a solution: without those for comparisons, where there are others."""
        found = tuple(
            each for each in self.recommendations if not getattr(each.method, "compares_only", False)
        )
        return found or self.recommendations

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
    reasons = {name: _refusal(system, method) for name, method in by_name.items()}
    refusals = {name: reason.rstrip(".") for name, reason in reasons.items() if reason}
    if forced is not None and forced not in by_name:
        raise ConfigurationError(f"unknown method '{forced}'; {valid_values('methods', forced, by_name)}")
    if forced in refusals:
        raise ConfigurationError(f"the method '{forced}' cannot solve this problem: {refusals[forced]}")
    traits = SolutionRegularity(system)
    ranks = _LINE_ORDER if len(system.space) == 1 and not traits.quasilinear else ORDER
    order = [name for name in ranks[traits.situation] if name in by_name]
    order += [name for name in by_name if name not in order]
    if set(order) - refusals.keys() - _ON_REQUEST.keys():
        refusals |= {name: why for name, why in _ON_REQUEST.items() if name in by_name and name != forced}
    if traits.jumps_reason and (_FOR_JUMPS & by_name.keys()) - refusals.keys():
        others = [name for name in by_name if name not in {*_FOR_JUMPS, *refusals, forced}]
        refusals |= dict.fromkeys(others, "it does not conserve what jumps need to move at the right speed")
    if traits.carries and traits.situation == "smooth":
        # Where nothing is smoothed, the mass matrices of elements cost more than they bring.
        order.sort(key=lambda name: name in ("fem", "fem-cubic"))
    if "etd" in by_name and "etd" not in refusals:
        order = _placed(
            order, traits.situation, by_name["etd"].resolution_sequence(system)[0], len(system.space)
        )
    able = [name for name in sorted(order, key=lambda name: name != forced) if name not in refusals]
    return MethodRanking(
        tuple(Recommendation(by_name[name], _reason(name, traits, name == forced)) for name in able), refusals
    )


def _placed(order: list[str], situation: Situation, modes: int, dimension: int) -> list[str]:
    """Return the order with the methods by modes in the place that the number of modes says, with which it would begin.

    On an interval dense matrices for few modes are cheap, and implicit steps of high order are few, but narrow data ask
    for more modes than the first ones; those that need very many are for methods whose nodes lie closer there.
    """
    others = [name for name in order if name not in _MODAL]
    modal = [name for name in order if name in _MODAL]
    if situation == "narrow-data" and modes > _AFFORDABLE[dimension - 1]:
        return [*others, *modal]
    if dimension > 1 or modes >= _MANY or situation == "narrow-data" or "fourier" not in others:
        return order
    place = others.index("fourier") + 1
    return [*others[:place], *modal, *others[place:]]


def _refusal(system: FirstOrderSystem, method: NumericalMethod) -> str | None:
    """Return why a method cannot solve a system; what only weak forms can express is told here for all others."""
    if system.constrained and not _has_elements(system):
        return (
            f"{_constrained_names(system)} is there for a constraint, as the pressure of an incompressible flow is: "
            "that is solved in plane domains that repeat nowhere, in boxes that repeat along every axis and, if "
            "steady, in other boxes; state a plane section of the problem, or one of these boxes"
        )
    constraints = getattr(method, "takes_constraints", False)
    if not getattr(method, "weak_forms", False):
        if system.constrained and not constraints:
            return f"{_constrained_names(system)} is there for a constraint, which needs elements that fit each other"
        if system.inertia is not None and not constraints:
            return "not every field has a time derivative, and it advances those that have"
        if system.conditions_hold_fields:
            return "a condition depends on the solution, which weak forms alone can express"
        if system.flux_conditions:
            return "a flux is given that holds more than one normal derivative, which weak forms alone can express"
    return method.unsupported_reason(system)


def _has_elements(system: FirstOrderSystem) -> bool:
    """Whether some method here has pressures that go with velocities in such a domain."""
    plane = len(system.space) < 3 and not system.periodic
    steady_box = system.steady and isinstance(system.problem.domain, BoxDomain)
    return plane or steady_box or set(system.space) == set(system.periodic)


def _constrained_names(system: FirstOrderSystem) -> str:
    return ", ".join(system.components[index].field for index in system.constrained)


def _reason(name: str, traits: SolutionRegularity, forced: bool) -> str:
    if forced:
        return "It was requested."
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
