"""Problems with known solutions, drawn from a seed: manufactured ones with narrow, fast and steep features; spectra.

A solution is drawn first, as a smooth part plus a feature of random place, width and kind; source, boundary and initial
values follow from it symbolically (P. Roache, Code verification by the method of manufactured solutions, 2002). The
data of a feature are narrow and their effect is not: a Gaussian source with its potential, a pulse with the step that
it leaves behind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from numpy.random import Generator

from sharp.errors import SpecificationError
from sharp.experiments.verification_suite.known_solutions import (
    ExactExpressions,
    JacobiSolution,
    KnownSolution,
    Place,
    bratu_solutions,
    text_of,
)
from sharp.experiments.verification_suite.spectra import HELD, Spectrum, draw_spectrum
from sharp.problems import Problem, parse_problem

_ACCURACIES = (1e-3, 1e-4, 1e-5, 1e-6)
# Draws until the texts of a problem are short enough for the grammar.
_DRAWS = 60
# Widths are log-uniform from the least, as shares of the domain or of the time.
_LEAST, _LARGEST = 1e-4, 0.2
# Below these widths, features that fill a line of the plane, or anything of space, cannot be resolved in seconds.
_AFFORDABLE_STRIPE, _AFFORDABLE_SPOT, _AFFORDABLE_IN_SPACE = 0.03, 0.003, 0.1
# And what moves through a plane or an interval.
_AFFORDABLE_MOVING = {1: 0.003, 2: 0.05}

_T = sympy.Symbol("t")
_AXES = sympy.symbols("x y z")
_ZERO, _ONE = sympy.Integer(0), sympy.Integer(1)


@dataclass(frozen=True)
class GeneratedProblem:
    """A problem, what is known of its solutions, and what it was made of.

    `known_solutions` are all that are known, any of which is right; `lesser` is the solution of the problem without its
    feature, or with a wider one. `eigenvalues` are the lowest ones and some more, ascending. `solutions` is how many
    there are at least. `affordable` says whether methods could resolve the width in seconds.
    """

    name: str
    family: str
    feature: str
    width: float
    problem: Problem
    known_solutions: tuple[KnownSolution, ...] = ()
    lesser: KnownSolution | None = None
    eigenvalues: tuple[float, ...] = ()
    places: tuple[Place, ...] = ()
    affordable: bool = True
    solutions: int = 1

    @property
    def dimension(self) -> int:
        """The number of space coordinates."""
        return len(self.problem.space)


def generate(seed: int, index: int) -> GeneratedProblem:
    """Return the problem of an index, the same for the same seed."""
    random = np.random.default_rng([seed, index])
    name = f"drawn-{seed}-{index}"
    share = random.random()
    if share < 0.10:
        return of_spectrum(name, draw_spectrum(random))
    if share < 0.14:
        return _with_several(name, random)
    for _ in range(_DRAWS):
        try:
            return _manufactured(name, random)
        except SpecificationError:
            # Its texts are longer than the grammar takes, or a draw has no value somewhere.
            continue
    raise AssertionError(f"{name}: no draw of {_DRAWS} could be written down")


def _specification(name: str, title: str, **parts: Any) -> Problem:
    written = {"pde_spec": 1, "id": name, "title": title, **parts}
    return parse_problem(json.dumps(written), name)


def of_spectrum(name: str, found: Spectrum) -> GeneratedProblem:
    """Return the problem of a spectrum."""
    problem = _specification(
        name,
        f"Eigenvalues: {found.kind}",
        coordinates={"space": list(found.space)},
        fields=["u"],
        equations=[found.equation],
        domain=dict(found.domain),
        boundary=[dict(each) for each in found.boundary],
        eigenvalue={"name": "lam", "count": found.count},
        accuracy=1e-5,
    )
    affordable = len(found.space) == 1 or found.width > _AFFORDABLE_STRIPE
    return GeneratedProblem(
        name, "eigenvalues", found.kind, found.width, problem, eigenvalues=found.values, affordable=affordable
    )


def _with_several(name: str, random: Generator) -> GeneratedProblem:
    """A nonlinear steady problem of several solutions, all of them known."""
    interval = {"type": "box", "bounds": {"x": [0, 1]}}
    rest: dict[str, Any] = {"coordinates": {"space": ["x"]}, "fields": ["u"], "domain": interval}
    known_solutions: tuple[KnownSolution, ...]
    if random.random() < 0.5:
        rate = _number(random.uniform(0.5, 3.2))
        known_solutions, equation, kind = bratu_solutions(rate), f"-u_xx = {rate:g}*exp(u)", "ignition"
    else:
        rate = _number(random.uniform(12, 38) if random.random() < 0.7 else random.uniform(42, 80))
        humps = [count for count in (1, 2) if rate > (count * np.pi) ** 2 * 1.05]
        branches = (JacobiSolution(rate, count, sign) for count in humps for sign in (1, -1))
        known_solutions = (ExactExpressions({"u": "0"}), *branches)
        equation, kind = f"-u_xx = {rate:g}*(u - u**3)", "bifurcation"
    problem = _specification(
        name, "Several solutions", equations=[equation], boundary=list(HELD), accuracy=1e-5, **rest
    )
    return GeneratedProblem(
        name, "several solutions", kind, 1.0, problem, known_solutions, solutions=len(known_solutions)
    )


# Manufactured solutions


@dataclass(frozen=True)
class _Frame:
    """Domain, time and the coordinates of a problem in them: shares of the box around the domain, and of the time."""

    domain: Mapping[str, Any]
    bounds: tuple[tuple[float, float], ...]
    end: float
    transient: bool

    @property
    def dimension(self) -> int:
        return len(self.bounds)

    @property
    def axes(self) -> tuple[Any, ...]:
        return tuple(_AXES[: self.dimension])

    @property
    def extent(self) -> float:
        return self.bounds[0][1] - self.bounds[0][0]

    def share(self, axis: int) -> Any:
        low, high = self.bounds[axis]
        return (_AXES[axis] - low) / (high - low)

    @property
    def moment(self) -> Any:
        return _T / self.end


@dataclass(frozen=True)
class _Feature:
    """What is added to a smooth solution, a wider form of it, and where it is.

    `conductivity` is a factor of the diffusion, and `window` one of the smooth solution, whose slope vanishes with it.
    """

    kind: str
    width: float
    addition: Any = _ZERO
    wider: Any = _ZERO
    places: tuple[Place, ...] = ()
    conductivity: Any = _ONE
    window: Any = _ONE
    affordable: bool = True


def _manufactured(name: str, random: Generator) -> GeneratedProblem:
    frame = _draw_frame(random)
    feature = _draw_feature(random, frame)
    family, operators = _draw_family(random, frame, feature.kind)
    bases = [_smooth(random, frame) for _ in range(family.count("&") + 1)]
    strength = _number(10 ** random.uniform(-0.7, 0.7))
    bases[0] = bases[0] * feature.window
    exact = [bases[0] + strength * feature.addition, *bases[1:]]
    lesser = [bases[0] + strength * feature.wider, *bases[1:]]
    fields = ["u", "v"][: len(exact)]
    equations = [operator(frame, exact, feature.conductivity) for operator in operators]
    left_ends_only = family == "advection"
    # Where conductivity depends on the solution, a slope gives no flux: several solutions may have it.
    slopes = "conductivity" not in family
    boundary = list(_conditions(random, frame, exact, left_ends_only, slopes))
    initial = {
        each + mark: text_of(value.diff(_T, order).subs(_T, 0))
        for each, value in zip(fields, exact, strict=True)
        for order, mark in enumerate(["", "_t"] if family == "wave" else [""])
    }
    # Fast or narrow changes of what moves are dear for every method.
    accuracy = _ACCURACIES[int(random.integers(2 if frame.dimension > 1 else 4))]
    problem = _specification(
        name,
        f"Manufactured: {family}, {feature.kind}",
        coordinates={
            "space": [str(axis) for axis in frame.axes],
            **({"time": "t"} if frame.transient else {}),
        },
        fields=fields,
        equations=equations,
        domain=dict(frame.domain),
        boundary=boundary,
        accuracy=accuracy,
        **({"time": [0, frame.end], "initial": initial} if frame.transient else {}),
    )
    written = [
        ExactExpressions(dict(zip(fields, map(text_of, each), strict=True))) for each in (exact, lesser)
    ]
    moving = family in ("advection", "wave") and feature.width < _AFFORDABLE_MOVING[1]
    return GeneratedProblem(
        name,
        f"{family}, {frame.dimension}D {frame.domain['type']}",
        feature.kind,
        feature.width,
        problem,
        (written[0],),
        written[1],
        places=feature.places,
        affordable=feature.affordable and not moving,
    )


def _number(value: float, digits: int = 4) -> float:
    return float(f"{value:.{digits}g}")


def _width(random: Generator) -> float:
    return _number(10 ** random.uniform(np.log10(_LEAST), np.log10(_LARGEST)), 3)


_POLYGONS: tuple[tuple[tuple[float, float], ...], ...] = (
    ((0, 0), (1, 0), (1, 0.5), (0.5, 0.5), (0.5, 1), (0, 1)),
    ((0, 0), (1, 0.2), (0.8, 1), (0.1, 0.8)),
    ((0, 0), (1, 0), (0.4, 1)),
)


def _draw_frame(random: Generator) -> _Frame:
    dimension = int(random.choice([1, 1, 1, 1, 1, 2, 2, 3], p=[0.15] * 4 + [0.12, 0.12, 0.12, 0.04]))
    transient = bool(random.random() < (0.6 if dimension < 3 else 0.0))
    extent, end = (float(random.choice([1, 1, 0.02, 40])) for _ in range(2))
    low = _number(random.choice([0, 0, -0.5]) * extent)
    bounds = tuple((low, low + extent) for _ in range(dimension))
    names = [str(axis) for axis in _AXES[:dimension]]
    domain: dict[str, Any] = {"type": "box", "bounds": dict(zip(names, map(list, bounds), strict=True))}
    if dimension == 2:
        kind = random.random()
        if kind < 0.2:
            middle = [low + extent / 2] * 2
            domain = {"type": "disk", "center": middle, "radius": extent / 2}
        elif kind < 0.4:
            corners = _POLYGONS[int(random.integers(len(_POLYGONS)))]
            domain = {
                "type": "polygon",
                "vertices": [[_number(low + extent * share, 8) for share in corner] for corner in corners],
            }
    return _Frame(domain, bounds, end, transient)


def _smooth(random: Generator, frame: _Frame) -> Any:
    """A smooth function of space and time, of order one."""
    parts = [
        sympy.sin(_number(random.uniform(0.5, 5)) * frame.share(axis) + _number(random.uniform(0, 6)))
        for axis in range(frame.dimension)
    ]
    found = _number(random.uniform(0.5, 2)) * sympy.Mul(*parts) + _number(random.uniform(-1, 1))
    if frame.transient:
        found += sympy.cos(_number(random.uniform(0.5, 5)) * frame.moment) * frame.share(0) ** 2
    return found


def _center(random: Generator, frame: _Frame) -> list[float]:
    """A random place, as shares: one that lies well inside every domain that is drawn."""
    if frame.domain["type"] == "polygon":
        return [_number(random.uniform(0.2, 0.42)), _number(random.uniform(0.2, 0.42))]
    span = (0.1, 0.9) if frame.domain["type"] == "box" else (0.25, 0.75)
    return [_number(random.uniform(*span)) for _ in range(frame.dimension)]


def _draw_feature(random: Generator, frame: _Frame) -> _Feature:
    kinds: list[Callable[[Generator, _Frame], _Feature]] = [_nothing, _spot, _front]
    if frame.dimension == 1:
        kinds += [_spot, _narrow_source, _spike, _spike, _jump]
    if frame.dimension == 2:
        kinds += [_spot, _stripe]
        kinds += [] if frame.transient else [_boundary_spot]
    if frame.transient:
        kinds += [_pulse, _pulse, _switch, _moving, _blip]
        kinds += [_spark] if frame.dimension == 1 else []
    return kinds[int(random.integers(len(kinds)))](random, frame)


def _nothing(random: Generator, frame: _Frame) -> _Feature:
    del random, frame
    return _Feature("none", 1.0)


def _both(shape: Callable[[float], Any], width: float, wider: float) -> tuple[Any, Any]:
    """Return a shape of some width, and of a wider one."""
    return shape(width), shape(wider)


def _in_place(frame: _Frame, center: Sequence[float], width: float) -> tuple[Place, ...]:
    return tuple(
        Place(str(axis), low + share * (high - low), width * (high - low))
        for axis, (low, high), share in zip(frame.axes, frame.bounds, center, strict=True)
    )


def _in_time(frame: _Frame, moment: float, width: float) -> tuple[Place, ...]:
    return (Place("t", moment * frame.end, width * frame.end),)


def _potential(distance: Any, width: float) -> Any:
    """What has a Gaussian of `distance / width` as its second derivative, up to a factor: of size one far away."""
    scaled = distance / width
    return distance * sympy.erf(scaled) + width * sympy.exp(-(scaled**2)) / sympy.sqrt(sympy.pi)


def _spot_shape(frame: _Frame, center: Sequence[Any], width: float) -> Any:
    away = [frame.share(axis) - place for axis, place in enumerate(center)]
    square = sum((each**2 for each in away), sympy.Integer(0))
    if frame.dimension == 1:
        return _potential(away[0], width)
    if frame.dimension == 2:
        return sympy.log(square + width**2) / 4
    return width / sympy.sqrt(square + width**2)


def _spot(random: Generator, frame: _Frame) -> _Feature:
    center, width = _center(random, frame), _width(random)
    least = {1: 0.0, 2: _AFFORDABLE_SPOT, 3: _AFFORDABLE_IN_SPACE}[frame.dimension]
    shapes = _both(lambda each: _spot_shape(frame, center, each), width, 8 * width + 0.1)
    return _Feature("spot", width, *shapes, _in_place(frame, center, width), affordable=width > least)


def _narrow_source(random: Generator, frame: _Frame) -> _Feature:
    """The response to a source that is constant on a narrow interval: a kink that is rounded by a parabola."""
    (center,), width = _center(random, frame), _width(random)
    away = frame.share(0) - center
    shapes = _both(
        lambda half: sympy.Piecewise(
            (-away, away < -half), (away, away > half), ((away**2 / half + half) / 2, True)
        ),
        width,
        0.1 + width,
    )
    return _Feature("source on an interval", width, *shapes, _in_place(frame, [center], width))


def _front(random: Generator, frame: _Frame) -> _Feature:
    center, width = _center(random, frame), _width(random)
    shapes = _both(lambda each: sympy.tanh((frame.share(0) - center[0]) / each), width, 4 * width)
    least = {1: 0.0, 2: _AFFORDABLE_STRIPE, 3: _AFFORDABLE_IN_SPACE}[frame.dimension]
    return _Feature("front", width, *shapes, _in_place(frame, center, width)[:1], affordable=width > least)


def _stripe(random: Generator, frame: _Frame) -> _Feature:
    center, width, angle = _center(random, frame), _width(random), random.uniform(0.2, 1.3)
    along = _number(np.cos(angle)) * (frame.share(0) - center[0]) + _number(np.sin(angle)) * (
        frame.share(1) - center[1]
    )
    shapes = _both(lambda each: _potential(along, each), width, 8 * width + 0.1)
    places = _in_place(frame, center, width)
    return _Feature("stripe", width, *shapes, places, affordable=width > _AFFORDABLE_STRIPE)


def _boundary_spot(random: Generator, frame: _Frame) -> _Feature:
    """A harmonic function that is narrow on the boundary: it has no source."""
    center, width = _center(random, frame), _width(random)
    x, y = frame.share(0) - center[0], frame.share(1)
    shapes = _both(lambda each: each * (y + each) / (x**2 + (y + each) ** 2), width, 4 * width)
    places = (*_in_place(frame, center, width)[:1], Place("y", frame.bounds[1][0], width * frame.extent))
    return _Feature("boundary spot", width, *shapes, places, affordable=width > _AFFORDABLE_SPOT)


def _spike(random: Generator, frame: _Frame) -> _Feature:
    """A spike of resistance, and the step of the solution there."""
    center, width = _center(random, frame), _width(random)
    scaled = (frame.share(0) - center[0]) / width
    rise = _number(random.uniform(0.3, 3) / width)
    step = frame.share(0) + rise * width * sympy.sqrt(sympy.pi) / 2 * sympy.erf(scaled)
    resistance = 1 + rise * sympy.exp(-(scaled**2))
    places = _in_place(frame, center, width)
    return _Feature("spike of a coefficient", width, step, frame.share(0), places, 1 / resistance)


def _jump(random: Generator, frame: _Frame) -> _Feature:
    """A jump of conductivity, and the kink of the solution there; the flux of its smooth part vanishes there."""
    (center,) = _center(random, frame)
    factor, away = _number(10 ** random.uniform(-2, 2)), frame.share(0) - center
    kink = sympy.Piecewise((away, away < 0), (away / factor, True))
    conductivity = sympy.Piecewise((sympy.Integer(1), away < 0), (sympy.Float(factor), True))
    return _Feature("jump of a coefficient", 1e-9, kink, away, (), conductivity, away**2)


def _pulse(random: Generator, frame: _Frame) -> _Feature:
    moment, width = _number(random.uniform(0.1, 0.9)), _width(random)
    hump = sympy.sin(_number(random.uniform(1, 4)) * frame.share(0) + _number(random.uniform(0, 3)))
    shape = sympy.erf((frame.moment - moment) / width) * hump
    return _Feature("pulse in time", width, shape, sympy.Integer(0), _in_time(frame, moment, width))


def _blip(random: Generator, frame: _Frame) -> _Feature:
    moment, width = _number(random.uniform(0.1, 0.9)), _width(random)
    hump = sympy.cos(_number(random.uniform(1, 4)) * frame.share(0))
    shape = sympy.exp(-(((frame.moment - moment) / width) ** 2)) * hump
    return _Feature("short event", width, shape, sympy.Integer(0), _in_time(frame, moment, width))


def _switch(random: Generator, frame: _Frame) -> _Feature:
    """A source that is switched on at some moment."""
    moment = _number(random.uniform(0.1, 0.9))
    late = frame.moment - moment
    ramp = sympy.Piecewise((sympy.Integer(0), late < 0), (late, True))
    hump = sympy.sin(_number(random.uniform(1, 4)) * frame.share(0) + _number(random.uniform(0, 3)))
    return _Feature("switched source", 1e-9, 3 * ramp * hump, sympy.Integer(0))


def _moving(random: Generator, frame: _Frame) -> _Feature:
    """A spot that crosses the middle of the domain at constant speed."""
    center, width = _center(random, frame), _number(max(_width(random), 5e-4), 3)
    speed = _number(random.uniform(-0.35, 0.35))
    place = [center[0] + speed * (frame.moment - sympy.Rational(1, 2)), *center[1:]]
    shapes = _both(lambda each: _spot_shape(frame, place, each), width, 8 * width + 0.1)
    passing = [center[0] + speed * (moment - 0.5) for moment in (0.0, 0.37, 1.0)]
    places = tuple(p for at in passing for p in _in_place(frame, [at, *center[1:]], width))
    return _Feature(
        "moving source", width, *shapes, places, affordable=width > _AFFORDABLE_MOVING[frame.dimension]
    )


def _spark(random: Generator, frame: _Frame) -> _Feature:
    """A spot that flares up: narrow in space and short in time."""
    center, width = _center(random, frame), _width(random)
    moment, brief = _number(random.uniform(0.1, 0.9)), _width(random)
    rise = (1 + sympy.erf((frame.moment - moment) / brief)) / 2
    shape = _spot_shape(frame, center, width) * rise
    places = (*_in_place(frame, center, width), *_in_time(frame, moment, brief))
    return _Feature("spark", min(width, brief), shape, sympy.Integer(0), places)


# Families of equations: each operator gives an equation as text, with the source that makes a solution exact.

_Operator = Callable[[_Frame, Sequence[Any], Any], str]


def _draw_family(random: Generator, frame: _Frame, feature: str) -> tuple[str, list[_Operator]]:
    coefficient = "coefficient" in feature
    rate = _number(10 ** random.uniform(-1.5, 0.3))
    diffusion = _number(rate * frame.extent**2 / (frame.end if frame.transient else 1.0))
    speed = _number(random.uniform(0.3, 1.5) * frame.extent / (frame.end if frame.transient else 1.0))
    linear = _scalar(diffusion, "0" if random.random() < 0.5 else f"{_number(random.uniform(0.2, 2))}*u")
    families: list[tuple[str, list[_Operator]]] = [("diffusion", [linear])] * 3
    if not coefficient:
        families += [
            ("diffusion with a cubic term", [_scalar(diffusion, "u**3")]),
            ("reaction", [_scalar(diffusion, "u**3/3 - u/2" if frame.transient else "u**3/3 + sinh(u)")]),
            ("transport and diffusion", [_scalar(diffusion, f"{speed!r}*u_x")]),
            ("u & v", [_scalar(diffusion, "u - v/2"), _scalar(2 * diffusion, "v + u/3", 1)]),
        ]
        if frame.transient and frame.dimension == 1:
            families += [
                ("Burgers", [_scalar(diffusion, f"{speed!r}*u*u_x")]),
                ("advection", [_scalar(0.0, f"{speed!r}*u_x")]),
            ]
            # What is switched on has a kink in time, of which a wave's second derivative would be an impulse.
            families += [("wave", [_wave(speed)])] if feature != "switched source" else []
        if not frame.transient:
            families += [
                ("u & v, nonlinear", [_scalar(diffusion, "u + u*v**2"), _scalar(diffusion, "v - u/2", 1)])
            ]
            families += [("conductivity 1 + u**2", [_nonlinear_conductivity])]
    return families[int(random.integers(len(families)))]


def _values(exact: Sequence[Any]) -> dict[Any, Any]:
    found = dict(zip(sympy.symbols("u v"), exact, strict=False))
    return {**found, **{sympy.Symbol(f"{name}_x"): value.diff(_AXES[0]) for name, value in found.items()}}


def _scalar(diffusion: float, rest: str, own: int = 0) -> _Operator:
    """u_t - diffusion div(k grad(u)) + rest = source, for field number `own`."""

    def equation(frame: _Frame, exact: Sequence[Any], conductivity: Any) -> str:
        name, value = "uv"[own], exact[own]
        fluxes = [(axis, conductivity * value.diff(axis)) for axis in frame.axes]
        source = sum((-diffusion * _slope(flux, axis) for axis, flux in fluxes), sympy.Integer(0))
        source += sympy.sympify(rest, locals={}).subs(_values(exact))
        late = frame.transient
        source += value.diff(_T) if late else 0
        spread = f"lap({name})"
        if conductivity != 1:
            spread = f"({text_of(conductivity)}*{name}_x)_x"
        terms = (
            [f"{name}_t"] * late
            + [f"-{diffusion!r}*{spread}"] * (diffusion > 0)
            + [f"({rest})"] * (rest != "0")
        )
        return f"{' + '.join(terms).replace('+ -', '- ')} = {text_of(source)}"

    return equation


def _slope(flux: Any, axis: Any) -> Any:
    """Return a derivative piece by piece, so that what is continuous across a jump has no derivative of a step."""
    return sympy.piecewise_fold(flux).diff(axis) if flux.has(sympy.Piecewise) else flux.diff(axis)


def _wave(speed: float) -> _Operator:
    def equation(frame: _Frame, exact: Sequence[Any], conductivity: Any) -> str:
        del frame, conductivity
        source = exact[0].diff(_T, 2) - speed**2 * exact[0].diff(_AXES[0], 2)
        return f"u_tt = {speed**2!r}*u_xx + {text_of(source)}"

    return equation


def _nonlinear_conductivity(frame: _Frame, exact: Sequence[Any], conductivity: Any) -> str:
    del conductivity
    value = exact[0]
    source = -sum((_slope((1 + value**2) * value.diff(axis), axis) for axis in frame.axes), sympy.Integer(0))
    return f"-div((1 + u**2)*grad(u)) = {text_of(source)}"


def _conditions(
    random: Generator, frame: _Frame, exact: Sequence[Any], left_ends_only: bool, slopes: bool
) -> Sequence[Mapping[str, Any]]:
    names = ["u", "v"][: len(exact)]
    given = dict(zip(names, exact, strict=True))
    if frame.dimension > 1:
        return [
            {"where": "all", "type": "dirichlet", "field": name, "value": text_of(value)}
            for name, value in given.items()
        ]
    x, found = _AXES[0], []
    for name, value in given.items():
        for side, end in enumerate(frame.bounds[0]):
            if left_ends_only and side:
                continue
            condition: dict[str, Any] = {"where": f"x = {end!r}", "type": "dirichlet", "field": name}
            stands = value
            if side and random.random() < 0.3 and slopes:
                condition["type"], stands = "neumann", _slope(value, x)
            found.append({**condition, "value": text_of(stands.subs(x, sympy.Float(end)))})
    return found
