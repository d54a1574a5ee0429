"""Every case of the benchmark is well-posed: its exact solution satisfies all that the specification says.

Equations, conditions and mean values are checked at random points of a fixed seed, by sympy's derivatives of
the exact solution, and by no solver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache, reduce
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy
from numpy.typing import NDArray
from scipy.special import jn_zeros

from sharp.errors import SpecificationError
from sharp.problems import Problem, parse_problem
from sharp.problems.analysis import order
from sharp.problems.cases import ILL_POSED, BenchmarkCase, list_cases, load_case
from sharp.problems.domains import BoxDomain, PolygonDomain, RoundDomain, distance_to_edge
from sharp.problems.spec import Boundary
from sharp.problems.symbolic import equation_to_sympy, to_sympy

# The hundred cases by category.
COMPOSITION = {
    "heat": 18,
    "diffusion": 6,
    "diffusion-reaction": 7,
    "wave": 19,
    "klein-gordon": 9,
    "advection": 6,
    "burgers": 4,
    "laplace": 9,
    "poisson": 8,
    "allen-cahn": 6,
    "others": 8,
}
POINTS = 20
TOLERANCE = 1e-9

Values = NDArray[np.float64]
# Coordinates by name, each an array [n].
Points = dict[str, Values]

every_case = pytest.mark.parametrize("name", list_cases())


@cache
def loaded(name: str) -> BenchmarkCase:
    return load_case(name)


# ---------------------------------------------------------------------------------------------- expressions


@cache
def expression(problem: Problem, text: str) -> Any:
    return to_sympy(problem.tree(text)).doit()


def exact(problem: Problem) -> dict[str, Any]:
    """The exact solution of each field, empty where there is none."""
    return {name: expression(problem, text) for name, text in problem.specification.reference.value.items()}


def initial(problem: Problem) -> dict[str, Any]:
    """The initial values by key: `u`, `u_t`."""
    given = problem.specification.initial
    return {name: expression(problem, str(start.expression)) for name, start in given.items()}


@cache
def compiled(formula: Any) -> tuple[tuple[str, ...], Callable[..., Any]]:
    """The names in an expression, sorted, and the function of their values."""
    names = tuple(sorted(symbol.name for symbol in formula.free_symbols))
    return names, sympy.lambdify([sympy.Symbol(name) for name in names], formula, ["scipy", "numpy"])


@cache
def derivative(formula: Any, axis: str, count: int) -> Any:
    return formula.diff(sympy.Symbol(axis), count)


def evaluate(problem: Problem, formula: Any, points: Points) -> Values:
    """The value of an expression of coordinates and parameters at points, as an array [n]."""
    values = {**problem.parameters, **points}
    names, function = compiled(formula)
    count = len(next(iter(points.values())))
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.asarray(function(*(values[name] for name in names)), float), count)


def evaluate_text(problem: Problem, text: str | None, points: Points) -> Values:
    return evaluate(problem, expression(problem, str(text)), points)


def assert_close(found: Values, wanted: Values, what: str, scale: float) -> None:
    """Compare values with a relative tolerance; `scale` is the size of what they are made of."""
    largest = max(scale, float(np.max(np.abs(found))), float(np.max(np.abs(wanted))))
    difference = float(np.max(np.abs(found - wanted)))
    assert difference <= TOLERANCE * largest + 1e-14, f"{what}: off by {difference:.3g} beside {largest:.3g}"


# --------------------------------------------------------------------------------------------------- points


def generator(seed: int) -> np.random.Generator:
    """Random numbers that are the same each time; places and times take different seeds, to be independent."""
    return np.random.default_rng(seed)


def with_times(problem: Problem, space: Values, time: float | None = None) -> Points:
    """Name the columns of `space` [n, d], and add random times where there is time."""
    points = {axis: space[:, index] for index, axis in enumerate(problem.space)}
    if problem.time_name and problem.time:
        low, high = problem.time if time is None else (time, time)
        points[problem.time_name] = generator(1).uniform(low, high, len(space))
    return points


def inner(problem: Problem) -> Values:
    """Random points [20, d] in the domain."""
    low, high = np.transpose(list(problem.bounds.values()))
    tried = generator(0).uniform(low, high, (POINTS * 40, len(low)))
    return tried[problem.domain.inside(tried)][:POINTS]


def boundary_points(domain: Any, part: str) -> tuple[Values, Values]:
    """Random points [n, d] on a part of the boundary, and the outward normals there."""
    share = generator(0).uniform(0.02, 0.98, 8)
    match domain:
        case BoxDomain():
            low, high = np.transpose(list(domain.bounds.values()))
            points, normals = generator(0).uniform(low, high, (8, len(low))), np.zeros((8, len(low)))
            axis, side = list(domain.bounds).index(part[:-1]), "-+".index(part[-1])
            points[:, axis], normals[:, axis] = (low, high)[side][axis], (-1.0, 1.0)[side]
            return points, normals
        case RoundDomain():
            outward = np.stack([np.cos(2 * np.pi * share), np.sin(2 * np.pi * share)], axis=1)
            radius, sign = (domain.outer, 1.0) if part == "outer" else (float(domain.inner or 0), -1.0)
            return np.array(domain.center) + radius * outward, sign * outward
        case _:
            start, end = (np.array(point) for point in domain.edges[int(part.split()[1])])
            along = end - start
            normal = np.array([along[1], -along[0]]) / np.hypot(*along)
            return start + share[:, None] * along, np.tile(normal, (8, 1))


def parts_of(problem: Problem, condition: Boundary) -> tuple[str, ...]:
    """The parts of the boundary that a condition covers."""
    domain, where = problem.domain, str(condition.where)
    if where == "all":
        axes = periodic_axes(problem)
        return tuple(part for part in domain.parts if part[:-1] not in axes)
    if where in domain.parts:
        return (where,)
    place = problem.place(where)
    axis, value = to_sympy(place.left).name, to_sympy(place.right).subs(dict(problem.parameters)).doit()
    return domain.on_axis(axis, float(value))


def periodic_axes(problem: Problem) -> list[str]:
    return [str(one.axis) for one in problem.specification.boundary if one.axis is not None]


# ----------------------------------------------------------------------------------------------- conditions


def normal_derivative(problem: Problem, formula: Any, points: Points, normals: Values, count: int) -> Values:
    """The derivative along the normals of order `count`, as a sum over all partial derivatives of that order."""
    total = np.zeros(len(normals))
    for axes in product(range(len(problem.space)), repeat=count):
        share = np.prod(normals[:, axes], axis=1)
        if np.any(share):
            partial = reduce(lambda part, axis: derivative(part, problem.space[axis], 1), axes, formula)
            total += share * evaluate(problem, partial, points)
    return total


@cache
def size(problem: Problem, formula: Any, count: int, time: float | None) -> float:
    """The size of a function or its derivatives in the domain: what a zero on the boundary is compared with."""
    points = with_times(problem, inner(problem), time)
    formulas = {derivative(formula, axis, count) for axis in problem.space}
    return max(float(np.max(np.abs(evaluate(problem, one, points)))) for one in formulas)


def weights_of(condition: Boundary) -> tuple[str, str, int]:
    """Return a, b and k of the condition a u + b (k-th normal derivative of u) = value."""
    if condition.type == "robin":
        return str(condition.a), str(condition.b), 1
    return ("1", "0", 1) if condition.type == "dirichlet" else ("0", "1", condition.order or 1)


def check_condition(
    problem: Problem, condition: Boundary, solution: Mapping[str, Any], time: float | None
) -> None:
    """A function satisfies a condition that is not periodic."""
    formula, (*weights, count) = solution[str(condition.field)], weights_of(condition)
    sizes = [size(problem, formula, one, time) for one in (0, count)]
    for part in parts_of(problem, condition):
        space, normals = boundary_points(problem.domain, part)
        points = with_times(problem, space, time)
        a, b, wanted = (evaluate_text(problem, text, points) for text in (*weights, condition.value))
        value, slope = (normal_derivative(problem, formula, points, normals, one) for one in (0, count))
        scale = float(np.max(np.abs(a))) * sizes[0] + float(np.max(np.abs(b))) * sizes[1]
        what = f"{condition.type} condition of {condition.field} at {part}"
        assert_close(a * value + b * slope, wanted, what, scale)


def check_periodic(problem: Problem, axis: str, solution: Mapping[str, Any], time: float | None) -> None:
    """Functions and their derivatives below the order of the equation are the same at both ends of an axis."""
    ends = [boundary_points(problem.domain, axis + side)[0] for side in "-+"]
    for name, formula in solution.items():
        for count in range(order(problem.equations, name, axis, problem.space) or 1):
            sloping = derivative(formula, axis, count)
            low, high = (evaluate(problem, sloping, with_times(problem, end, time)) for end in ends)
            assert_close(low, high, f"period of {name} along {axis}", size(problem, formula, count, time))


def check_boundary(problem: Problem, solution: Mapping[str, Any], time: float | None = None) -> None:
    for condition in problem.specification.boundary:
        if condition.axis is not None:
            check_periodic(problem, condition.axis, solution, time)
        else:
            check_condition(problem, condition, solution, time)


# -------------------------------------------------------------------------------------------------- corners


def corners(domain: Any) -> Values:
    """The corners [n, d] of a box or polygon; a round domain has none."""
    if isinstance(domain, PolygonDomain):
        return np.array(domain.vertices)
    if isinstance(domain, BoxDomain):
        return np.array(list(product(*domain.bounds.values())))
    return np.empty((0, 2))


def touches(domain: Any, part: str, corner: Values) -> bool:
    if isinstance(domain, PolygonDomain):
        return bool(distance_to_edge(corner[None], *domain.edges[int(part.split()[1])])[0] < 1e-12)
    axis, side = list(domain.bounds).index(part[:-1]), "-+".index(part[-1])
    return bool(corner[axis] == domain.bounds[part[:-1]][side])


def given_at(problem: Problem, corner: Values) -> Iterator[tuple[str, Values]]:
    """Yield the fields and values of all Dirichlet conditions that meet at a corner."""
    points = with_times(problem, np.tile(corner, (4, 1)))
    for condition in problem.specification.boundary:
        if condition.type == "dirichlet" and any(
            touches(problem.domain, part, corner) for part in parts_of(problem, condition)
        ):
            yield str(condition.field), evaluate_text(problem, condition.value, points)


# -------------------------------------------------------------------------------------------------- integrals


def gauss(low: float, high: float, count: int = 60) -> tuple[Values, Values]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return low + (high - low) * (nodes + 1) / 2, weights * (high - low) / 2


def tensor(*rules: tuple[Values, Values]) -> tuple[Values, Values]:
    """Nodes [n, d] and weights [n] of a product rule."""
    nodes = np.stack([axis.ravel() for axis in np.meshgrid(*(rule[0] for rule in rules), indexing="ij")], 1)
    return nodes, np.prod(np.meshgrid(*(rule[1] for rule in rules), indexing="ij"), axis=0).ravel()


def quadrature(domain: Any) -> tuple[Values, Values]:
    """Nodes [n, d] and weights [n] over a domain; a polygon is a signed sum of triangles that fan out."""
    match domain:
        case BoxDomain():
            count = 60 if len(domain.bounds) < 3 else 20
            return tensor(*(gauss(*ends, count) for ends in domain.bounds.values()))
        case RoundDomain():
            polar, weights = tensor(gauss(domain.inner or 0.0, domain.outer), gauss(0.0, 2 * np.pi))
            radius, angle = polar.T
            outward = np.stack([np.cos(angle), np.sin(angle)], axis=1)
            return np.array(domain.center) + radius[:, None] * outward, weights * radius
        case _:
            first, *others = np.array(domain.vertices)
            rules = [triangle(first, *ends) for ends in pairwise(others)]
            return tuple(np.concatenate(column) for column in zip(*rules, strict=True))  # type: ignore[return-value]


def triangle(a: Values, b: Values, c: Values) -> tuple[Values, Values]:
    """The square collapsed to a triangle (Duffy's transformation)."""
    (s, t), weights = (rule.T for rule in tensor(gauss(0.0, 1.0), gauss(0.0, 1.0)))
    area = (b - a)[0] * (c - a)[1] - (b - a)[1] * (c - a)[0]
    return a + s[:, None] * ((b - a) + t[:, None] * (c - b)), weights * s * area


# ---------------------------------------------------------------------------------------------------- checks


def check_equations(problem: Problem) -> None:
    """The exact solution satisfies each equation, up to rounding in the largest of its terms."""
    if not (solution := exact(problem)):
        return
    points = with_times(problem, inner(problem))
    given = problem.specification.coefficients
    solution |= {key: expression(problem, str(one.expression)) for key, one in given.items()}
    coordinates = [sympy.Symbol(axis) for axis in points]
    inserted = {sympy.Function(key)(*coordinates): formula for key, formula in solution.items()}
    for text, equation in zip(problem.specification.equations, problem.equations, strict=True):
        symbolic = equation_to_sympy(equation, tuple(solution), problem.space, problem.time_name)
        sides = [
            [evaluate(problem, term.xreplace(inserted).doit(), points) for term in sympy.Add.make_args(side)]
            for side in (symbolic.lhs, symbolic.rhs)
        ]
        scale = max(float(np.max(np.abs(term))) for side in sides for term in side)
        assert scale > 0, f"{text}: every term vanishes"
        left, right = (np.sum(side, axis=0) for side in sides)
        assert_close(left, right, text, scale)


def check_exact_boundary(problem: Problem) -> None:
    if solution := exact(problem):
        check_boundary(problem, solution)


def check_initial(problem: Problem) -> None:
    """The exact solution and its derivatives along time begin with the initial values."""
    solution = exact(problem)
    if not solution or not problem.time:
        return
    space = inner(problem)
    start, later = with_times(problem, space, problem.time[0]), with_times(problem, space)
    for key, wanted in initial(problem).items():
        field, _, marks = (key, "", "") if key in solution else key.rpartition("_")
        formula = derivative(solution[field], str(problem.time_name), len(marks))
        scale = float(np.max(np.abs(evaluate(problem, formula, later))))
        assert_close(evaluate(problem, formula, start), evaluate(problem, wanted, start), key, scale)


def check_mean(problem: Problem) -> None:
    """The exact solution has the mean values that are stated, at the first and the last time."""
    means, solution = problem.specification.mean, exact(problem)
    if not means or not solution:
        return
    nodes, weights = quadrature(problem.domain)
    for time in problem.time or (0.0,):
        points = with_times(problem, nodes, time)
        for field, mean in means.items():
            values = evaluate(problem, solution[field], points)
            found = np.array([weights @ values / np.sum(weights)])
            wanted = evaluate_text(problem, mean, {key: column[:1] for key, column in points.items()})
            assert_close(found, wanted, f"mean of {field}", float(np.max(np.abs(values))))


def check_start(problem: Problem) -> None:
    """The initial values satisfy the boundary conditions."""
    if not problem.time or "corner-jump" in problem.specification.allow:
        return
    start = {key: formula for key, formula in initial(problem).items() if key in problem.fields}
    check_boundary(problem, start, problem.time[0])


def check_corners(problem: Problem) -> None:
    """Dirichlet conditions that meet in a corner of the domain give the same values there."""
    if "corner-jump" in problem.specification.allow:
        return
    for corner in corners(problem.domain):
        known: dict[str, Values] = {}
        for field, values in given_at(problem, corner):
            assert_close(values, known.setdefault(field, values), f"{field} at {corner}", 1e-3)


# ----------------------------------------------------------------------------------------- tests of all cases


@every_case
def test_a_case_loads_and_has_statements_in_different_styles(name: str) -> None:
    case = loaded(name)
    styles = [statement.style for statement in case.statements]
    assert 2 <= len(styles) <= 3
    assert len(set(styles)) == len(styles)
    assert "incomplete" not in styles
    assert case.tags
    assert ("units" in case.tags) <= bool(case.problem.specification.units)


@every_case
def test_the_exact_solution_satisfies_the_equations(name: str) -> None:
    check_equations(loaded(name).problem)


@every_case
def test_the_exact_solution_satisfies_the_boundary_conditions(name: str) -> None:
    check_exact_boundary(loaded(name).problem)


@every_case
def test_the_exact_solution_satisfies_the_initial_conditions(name: str) -> None:
    check_initial(loaded(name).problem)


@every_case
def test_the_exact_solution_has_the_mean_that_is_stated(name: str) -> None:
    check_mean(loaded(name).problem)


@every_case
def test_initial_and_boundary_values_agree_where_they_meet(name: str) -> None:
    check_start(loaded(name).problem)


@every_case
def test_boundary_values_agree_in_the_corners(name: str) -> None:
    check_corners(loaded(name).problem)


@every_case
def test_stated_eigenvalues_are_as_many_as_wanted_and_ascend(name: str) -> None:
    problem = loaded(name).problem
    wanted, texts = problem.specification.eigenvalue, problem.specification.reference.eigenvalues
    values = [float(evaluate_text(problem, text, {"x": np.zeros(1)})[0]) for text in texts]
    assert not texts or (wanted is not None and len(values) == wanted.count)
    assert values == sorted(values)


def test_the_tones_of_the_drum_are_zeros_of_bessel_functions() -> None:
    problem = loaded("drum-tones").problem
    zeros = [zero for m in range(5) for zero in jn_zeros(m, 4) for _ in range(1 + (m > 0))]
    scale = problem.parameters["v"] / problem.parameters["R"]
    stated = [
        float(evaluate_text(problem, text, {"x": np.zeros(1)})[0])
        for text in problem.specification.reference.eigenvalues
    ]
    assert stated == pytest.approx([(scale * zero) ** 2 for zero in sorted(zeros)[:6]], rel=1e-12)


def test_the_set_has_as_many_cases_of_each_category_as_it_should() -> None:
    paths = list(list_cases().values())
    files = [path for path in paths[0].parents[1].glob("*/*.yaml") if path.parent.name != ILL_POSED]
    assert sorted(paths) == sorted(files)
    assert Counter(path.parent.name for path in paths) == COMPOSITION


def test_about_two_in_five_statements_are_plain() -> None:
    styles = [statement.style for name in list_cases() for statement in loaded(name).statements]
    assert 0.33 <= styles.count("plain") / len(styles) <= 0.47


# -------------------------------------------------------------------------------------- tests of the checks

WAVE = """\
pde_spec: 1
id: wave
title: A string with free ends
coordinates: {space: [x], time: t}
fields: [u]
parameters: {c: 2}
equations: [u_tt = c**2*u_xx]
domain: {type: box, bounds: {x: [0, 1]}}
time: [0, 1]
initial: {u: 0, u_t: 1 + c*pi*cos(pi*x)}
boundary: [{where: all, type: neumann, field: u, value: 0}]
mean: {u: t}
reference: {kind: exact, value: {u: t + sin(c*pi*t)*cos(pi*x)}}
"""
PLATE = """\
pde_spec: 1
id: plate
title: A plate with a hole
coordinates: {space: [x, y]}
fields: [u]
equations: [lap(u) = exp(x)]
domain: {type: annulus, inner: 1, outer: 2}
boundary:
  - {where: inner, type: robin, field: u, a: 3, b: 1, value: (3 - x)*exp(x)}
  - {where: outer, type: neumann, field: u, value: x/2*exp(x)}
reference: {kind: exact, value: {u: exp(x)}}
"""
SQUARE = """\
pde_spec: 1
id: square
title: A square
coordinates: {space: [x, y]}
fields: [u]
equations: [lap(u) = u]
domain: {type: polygon, vertices: [[0, 0], [1, 0], [1, 1], [0, 1]]}
boundary:
  - {where: edge 0, type: dirichlet, field: u, value: exp(x)}
  - {where: x = 1, type: dirichlet, field: u, value: E}
  - {where: edge 2, type: neumann, field: u, value: 0}
  - {where: x = 0, type: neumann, field: u, value: -1}
reference: {kind: exact, value: {u: exp(x)}}
"""
RING = """\
pde_spec: 1
id: ring
title: A ring
coordinates: {space: [x], time: t}
fields: [u]
equations: [u_t = u_xx]
domain: {type: box, bounds: {x: [0, 2*pi]}}
time: [0, 1]
initial: {u: sin(x)}
boundary: [{type: periodic, axis: x}]
reference: {kind: computed, method: fourier, resolution: 32, tolerance: 1e-9}
"""
CHECKS = (check_equations, check_exact_boundary, check_initial, check_mean, check_start, check_corners)


@pytest.mark.parametrize("text", [WAVE, PLATE, SQUARE, RING], ids=["wave", "plate", "square", "ring"])
def test_problems_that_are_right_pass_every_check(text: str) -> None:
    problem = parse_problem(text, "right")
    for check in CHECKS:
        check(problem)


@pytest.mark.parametrize(
    ("text", "right", "wrong", "check"),
    [
        (WAVE, "c**2*u_xx", "c**2*u_xx + 1e-6", check_equations),
        (WAVE, "neumann, field: u, value: 0", "neumann, field: u, value: 1e-6", check_exact_boundary),
        (WAVE, "u_t: 1 +", "u_t: 1.000001 +", check_initial),
        (WAVE, "mean: {u: t}", "mean: {u: 1.000001*t}", check_mean),
        (PLATE, "value: x/2*exp(x)", "value: -x/2*exp(x)", check_exact_boundary),
        (PLATE, "value: (3 - x)*exp(x)", "value: (3 + x)*exp(x)", check_exact_boundary),
        (SQUARE, "neumann, field: u, value: -1", "neumann, field: u, value: 1", check_exact_boundary),
        (SQUARE, "value: E", "value: E + y", check_exact_boundary),
        (SQUARE, "value: E", "value: E + 1e-6", check_corners),
        (RING, "u: sin(x)", "u: sin(x) + x/1e6", check_start),
        (RING, "u: sin(x)", "u: sin(x/2)", check_start),
    ],
)
def test_problems_that_are_wrong_fail_the_check_of_what_is_wrong(
    text: str, right: str, wrong: str, check: Callable[[Problem], None]
) -> None:
    assert text.count(right) == 1
    problem = parse_problem(text.replace(right, wrong), "wrong")
    with pytest.raises(AssertionError, match="off by"):
        check(problem)


def test_integrals_over_each_kind_of_domain() -> None:
    shape = ((-1.0, -1.0), (1.0, -1.0), (1.0, 0.0), (0.0, 0.0), (0.0, 1.0), (-1.0, 1.0))
    for domain, area, moment in (
        (BoxDomain({"x": (0.0, 2.0), "y": (0.0, 3.0)}), 6.0, 8.0),
        (RoundDomain(("x", "y"), (0.0, 0.0), None, 1.0), np.pi, np.pi / 4),
        (RoundDomain(("x", "y"), (0.0, 0.0), 1.0, 2.0), 3 * np.pi, 15 * np.pi / 4),
        (PolygonDomain(("x", "y"), shape), 3.0, 1.0),
    ):
        nodes, weights = quadrature(domain)
        assert np.sum(weights) == pytest.approx(area, rel=1e-12)
        assert weights @ nodes[:, 0] ** 2 == pytest.approx(moment, rel=1e-12)


# ---------------------------------------------------------------------------------------------- the loader


@pytest.fixture
def own_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's own case, which is right; returns its file."""
    monkeypatch.setenv("SHARP_RESOURCES", str(tmp_path))
    path = tmp_path / "data" / "problems" / "own" / "ring.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(RING + "statements: [{style: words, text: A ring}]\ntags: [easy]\n", encoding="utf-8")
    return path


def test_a_users_own_case_has_the_category_of_its_folder(own_case: Path) -> None:
    case = load_case("ring")
    assert (case.id, case.category, case.tags) == ("ring", "own", ("easy",))
    assert case.statements[0].text == "A ring"
    assert list_cases()["ring"] == own_case


def test_what_is_ill_posed_is_no_case(own_case: Path) -> None:
    own_case.parent.rename(own_case.parents[1] / "ill-posed")
    assert "ring" not in list_cases()
    with pytest.raises(SpecificationError, match="unknown case 'ring'"):
        load_case("ring")


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("id: ring", "id: rung", r"ring\.yaml: expected the id 'ring', .*found 'rung'"),
        ("statements: [{style: words, text: A ring}]", "", r"ring\.yaml: statements: expected the problem"),
        (
            "reference: {kind: computed, method: fourier, resolution: 32, tolerance: 1e-9}",
            "",
            r"ring\.yaml: reference: expected one of kind exact or computed, found none",
        ),
        ("u_t = u_xx", "u_t = u_yy", r"ring\.yaml:6: equations\[0\]"),
    ],
)
def test_what_is_wrong_with_a_case_is_named(own_case: Path, right: str, wrong: str, message: str) -> None:
    own_case.write_text(own_case.read_text(encoding="utf-8").replace(right, wrong), encoding="utf-8")
    with pytest.raises(SpecificationError, match=message):
        load_case("ring")


def test_an_unknown_case_is_answered_with_those_alike() -> None:
    with pytest.raises(SpecificationError, match=r"unknown case 'heat-rod-two-end'; .*heat-rod-two-ends"):
        load_case("heat-rod-two-end")
