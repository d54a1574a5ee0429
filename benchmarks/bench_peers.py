"""`sharp solve` beside other libraries that solve differential equations, at equal measured error, in one run.

    pip install "pde-sharp[peers]"
    python benchmarks/bench_peers.py [--only kdv …] [--json FILE]

Every problem has a wanted error at its final time, measured against an exact solution or an independent reference on a
finer grid: modes with exponential steps that are halved until nothing changes. A peer is given, from a list of settings
that its own documentation advises (resolution, order, step), each in turn, and the first that keeps the wanted error
counts; *seconds* are those of this run, *everything* adds what is prepared for it, compilation by JAX or Numba
included. What it took to find the setting does not count. Ours is given the specification and the wanted error alone:
*everything* is the whole call, with its search for a resolution and all checks but the second method; *seconds* are
those of our first setting that keeps the error, as a peer's. Imports are done before. Seconds are those of processors;
a peer that takes longer than `--patience` for one setting is given up.
"""

# ruff: noqa: ARG005, E501, E731  specifications and one-line functions are given to several libraries in one place
from __future__ import annotations

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import signal
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Table, command_line, write_rows

from sharp.problems import parse_problem
from sharp.solvers import SolveOptions, solve_problem

TAU = 2 * np.pi

Array = np.ndarray
# Accuracies by which one of our resolutions steps in time, in shares of the wanted one.
LOOSER = (100, 10, 1)
# Runs a prepared computation and returns values on the comparison points.
Run = Callable[[], Array]
Prepare = Callable[..., Run]


@dataclass(frozen=True)
class Case:
    """A problem: its specification, wanted error, points, reference there, and what peers are given."""

    name: str
    specification: str
    wanted: float
    points: Array
    reference: Callable[[], Array]
    peers: Mapping[str, tuple[Prepare, Sequence[tuple[Any, ...]]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """Who solved what, with which error, in how many processor seconds; why not, where it did not."""

    problem: str
    who: str
    setting: str
    error: float
    seconds: float
    everything: float = 0.0
    ratio: float = 0.0


def specification(
    fields: str,
    equations: Sequence[str],
    bounds: Mapping[str, tuple[str, str]],
    end: float | None = None,
    initial: Mapping[str, str] | None = None,
    boundary: Sequence[Mapping[str, Any]] | None = None,
    **more: Any,
) -> str:
    """Return the text of a specification; without `boundary` everything repeats."""
    given = boundary if boundary is not None else [{"type": "periodic", "axis": axis} for axis in bounds]
    sides = ", ".join(f"{axis}: [{low}, {high}]" for axis, (low, high) in bounds.items())
    timed = ", time: t" if end is not None else ""
    lines = [
        "pde_spec: 1", "id: peer", "title: peer", f"coordinates: {{space: [{', '.join(bounds)}]{timed}}}",
        f"fields: [{fields}]", f"equations: {list(equations)}", f"boundary: {list(map(dict, given))}",
    ]  # fmt: skip
    if "domain" not in more:
        lines.append(f"domain: {{type: box, bounds: {{{sides}}}}}")
    if end is not None:
        lines += [f"time: [0, {end}]", f"initial: {dict(initial or {})}"]
    return "\n".join([*lines, *(f"{key}: {value}" for key, value in more.items())])


def grid_points(count: int, *sides: tuple[float, float]) -> Array:
    """Return the points [count ** d, d] of an even grid without the upper ends."""
    axes = [np.linspace(low, high, count, endpoint=False) for low, high in sides]
    return np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)


def thinned(values: Array, count: int) -> Array:
    """Return every so-manieth value [fields, count ** d] of values [fields, n, …] on an even grid."""
    step = values.shape[1] // count
    kept = values[(slice(None), *(slice(None, None, step),) * (values.ndim - 1))]
    return kept.reshape(len(values), -1)


# --- the independent reference -----------------------------------------------------------------------------------


def by_exponential_steps(
    symbol: Callable[..., Array],
    nonlinear: Callable[..., Array],
    initial: Callable[..., Array],
    sides: Sequence[float],
    nodes: int,
    end: float,
    count: int,
    wanted: float,
) -> Array:
    """Return values [fields, count ** d] by modes on n nodes an axis, with steps halved until that changes nothing.

    `symbol(*k)` is [fields, …]; `nonlinear(û, k, back)` gives the values of the rest, `back` being the inverse transform. All products are taken on twice as many nodes as there are modes. Changes below a thousandth of the
    wanted error are nothing.
    """
    dimension = len(sides)
    counts = [np.fft.fftfreq(nodes, 1 / nodes)] * dimension
    numbers = np.meshgrid(*counts, indexing="ij")
    kept = np.all([np.abs(each) < nodes / 4 for each in numbers], axis=0)
    waves = [TAU / side * each for side, each in zip(sides, numbers, strict=True)]
    axes = tuple(range(-dimension, 0))
    x = np.meshgrid(*(np.arange(nodes) * side / nodes for side in sides), indexing="ij")
    start = np.fft.fftn(initial(*x), axes=axes) * kept
    linear = np.broadcast_to(symbol(*waves), start.shape) * kept

    def back(modes: Array) -> Array:
        return np.fft.ifftn(modes, axes=axes).real

    def rest(modes: Array) -> Array:
        return np.fft.fftn(nonlinear(modes, waves, back), axes=axes) * kept

    steps, last = 64, np.full((len(start), count**dimension), np.inf)
    while True:
        found = thinned(back(exponential_steps(linear, rest, start, end, steps)), count)
        change = np.linalg.norm(found - last) / np.linalg.norm(found)
        if change <= wanted / 1000:
            return found
        steps, last = 2 * steps, found


def exponential_steps(
    linear: Array, rest: Callable[[Array], Array], modes: Array, end: float, steps: int
) -> Array:
    """Return û at the end by ETDRK4 (Cox and Matthews 2002), its weights by circles (Kassam and Trefethen 2005)."""
    dt = end / steps
    z = linear * dt
    half, whole = np.exp(z / 2), np.exp(z)
    middle = first = between = final = 0.0 + 0.0j
    circle = np.exp(1j * TAU * (np.arange(32) + 0.5) / 32)
    for point in circle:
        r = z + point
        e = np.exp(r)
        middle = middle + (np.exp(r / 2) - 1) / r / 32
        first = first + (-4 - r + e * (4 - 3 * r + r**2)) / r**3 / 32
        between = between + (2 + r + e * (r - 2)) / r**3 / 32
        final = final + (-4 - 3 * r - r**2 + e * (4 - r)) / r**3 / 32
    for _ in range(steps):
        n = rest(modes)
        a = half * modes + dt * middle * n
        na = rest(a)
        b = half * modes + dt * middle * na
        nb = rest(b)
        nc = rest(half * a + dt * middle * (2 * nb - n))
        modes = whole * modes + dt * (first * n + 2 * between * (na + nb) + final * nc)
    return modes


# --- the peers ---------------------------------------------------------------------------------------------------


def exponax(
    make: Callable[[Any, int, float], Any],
    initial: Callable[..., Array],
    sides: Sequence[float],
    end: float,
    count: int,
) -> Prepare:
    """Return what runs a stepper of exponax, compiled, from t = 0 to the end."""

    def prepare(nodes: int, steps: int) -> Run:
        import exponax as ex
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        x = np.meshgrid(*(np.arange(nodes) * side / nodes for side in sides), indexing="ij")
        state = jnp.asarray(initial(*x))
        advance = jax.jit(ex.repeat(make(ex, nodes, end / steps), steps)).lower(state).compile()
        return lambda: thinned(np.asarray(advance(state).block_until_ready()), count)

    return prepare


def py_pde(
    rates: Mapping[str, str],
    initial: Callable[..., Array],
    sides: Sequence[float],
    end: float,
    count: int,
    boundary: Any = "periodic",
) -> Prepare:
    """Return what runs py-pde's PDE with its adaptive explicit solver or SciPy's, as its documentation advises."""

    def prepare(nodes: int, tolerance: float) -> Run:
        import pde

        periodic = boundary == "periodic"
        grid = pde.CartesianGrid([[0, side] for side in sides], nodes, periodic=periodic)
        cells = [
            each + side / nodes / 2
            for each, side in zip(
                np.meshgrid(*(np.arange(nodes) * side / nodes for side in sides), indexing="ij"),
                sides,
                strict=True,
            )
        ]
        fields = [pde.ScalarField(grid, values) for values in initial(*cells)]
        state = fields[0] if len(fields) == 1 else pde.FieldCollection(fields)
        equation = pde.PDE(dict(rates), **({} if periodic else {"bc": boundary}))
        solver = pde.ScipySolver(
            equation, method="LSODA" if len(sides) == 1 else "RK45", rtol=tolerance, atol=tolerance
        )
        pde.Controller(solver, t_range=end * 1e-6, tracker=None).run(state)

        def run() -> Array:
            found = pde.Controller(solver, t_range=end, tracker=None).run(state)
            values = (
                np.atleast_2d(found.data)
                if len(fields) == 1 and len(sides) == 1
                else found.data.reshape(len(fields), *grid.shape)
            )
            return centred(values, count, sides, periodic)

        return run

    return prepare


def centred(values: Array, count: int, sides: Sequence[float], periodic: bool) -> Array:
    """Return values [fields, count ** d] at an even grid by splines of order 3 between the centres of cells."""
    from scipy.ndimage import map_coordinates

    nodes = values.shape[1]
    at = np.meshgrid(*(np.arange(count) * nodes / count - 0.5 for _ in sides), indexing="ij")
    mode = "grid-wrap" if periodic else "nearest"
    return np.stack([map_coordinates(each, at, order=5, mode=mode).ravel() for each in values])


def fipy_burgers(
    initial: Callable[..., Array], side: float, viscosity: float, end: float, count: int
) -> Prepare:
    """Return FiPy's implicit steps for Burgers' equation on a periodic grid, with one sweep at the old speed."""

    def prepare(nodes: int, steps: int) -> Run:
        import fipy

        mesh = fipy.PeriodicGrid1D(nx=nodes, dx=side / nodes)
        start = initial(mesh.cellCenters.value[0])[0]

        def run() -> Array:
            u = fipy.CellVariable(mesh=mesh, value=start, hasOld=True)
            speed = 0.5 * u.faceValue * [[1.0]]
            equation = fipy.TransientTerm() + fipy.CentralDifferenceConvectionTerm(
                coeff=speed
            ) == fipy.DiffusionTerm(coeff=viscosity)
            for _ in range(steps):
                u.updateOld()
                for _ in range(2):
                    equation.sweep(u, dt=end / steps)
            return centred(np.array([u.value]), count, (side,), periodic=True)

        return run

    return prepare


def fipy_heat(
    conductivity: Callable[[Array], Array], start: Callable[[Array], Array], end: float, points: Array
) -> Prepare:
    """Return FiPy's implicit steps for heat in a rod whose ends are held at zero."""

    def prepare(nodes: int, steps: int) -> Run:
        import fipy

        mesh = fipy.Grid1D(nx=nodes, dx=1 / nodes)
        k = fipy.FaceVariable(mesh=mesh, value=conductivity(mesh.faceCenters.value[0]))

        def run() -> Array:
            u = fipy.CellVariable(mesh=mesh, value=start(mesh.cellCenters.value[0]))
            u.constrain(0.0, mesh.facesLeft)
            u.constrain(0.0, mesh.facesRight)
            equation = fipy.TransientTerm() == fipy.DiffusionTerm(coeff=k)
            for _ in range(steps):
                equation.solve(u, dt=end / steps)
            x = np.concatenate([[0.0], mesh.cellCenters.value[0], [1.0]])
            from scipy.interpolate import CubicSpline

            return CubicSpline(x, np.concatenate([[0.0], u.value, [0.0]]))(points[:, 0])[None]

        return run

    return prepare


def fipy_poisson(source: Callable[[Array, Array], Array], points: Array) -> Prepare:
    """Return FiPy's steady solution of -lap(u) = f on the unit square with zero on all sides."""

    def prepare(nodes: int) -> Run:
        import fipy

        mesh = fipy.Grid2D(nx=nodes, ny=nodes, dx=1 / nodes, dy=1 / nodes)

        def run() -> Array:
            u = fipy.CellVariable(mesh=mesh, value=0.0)
            u.constrain(0.0, mesh.exteriorFaces)
            f = fipy.CellVariable(mesh=mesh, value=source(*mesh.cellCenters.value))
            (fipy.DiffusionTerm(coeff=1.0) == -f).solve(u)
            return at_cells(u.value.reshape(nodes, nodes).T, points)

        return run

    return prepare


def at_cells(values: Array, points: Array) -> Array:
    """Return values [1, m] at points by cubic splines through the centres of cells and zeros on the sides."""
    from scipy.interpolate import RectBivariateSpline

    nodes = len(values)
    axis = np.concatenate([[0.0], (np.arange(nodes) + 0.5) / nodes, [1.0]])
    return RectBivariateSpline(axis, axis, np.pad(values, 1)).ev(*points.T)[None]


def skfem_poisson(source: Callable[..., Array], points: Array) -> Prepare:
    """Return scikit-fem's quadratic or quartic triangles for -lap(u) = f with zero on the boundary."""

    def prepare(refinements: int, degree: int) -> Run:
        import skfem
        from skfem.helpers import dot, grad

        element = {1: skfem.ElementTriP1, 2: skfem.ElementTriP2, 4: skfem.ElementTriP4}[degree]()

        @skfem.BilinearForm
        def stiffness(u: Any, v: Any, _: Any) -> Any:
            return dot(grad(u), grad(v))

        @skfem.LinearForm
        def load(v: Any, w: Any) -> Any:
            return source(*w.x) * v

        def run() -> Array:
            start = skfem.MeshTri.init_sqsymmetric()
            mesh = start.refined(refinements)
            basis = skfem.Basis(mesh, element)
            found = skfem.solve(
                *skfem.condense(stiffness.assemble(basis), load.assemble(basis), D=basis.get_dofs())
            )
            return (basis.probes(points.T) @ found)[None]

        return run

    return prepare


def skfem_heat(
    conductivity: Callable[[Array], Array], start: Callable[[Array], Array], end: float, points: Array
) -> Prepare:
    """Return scikit-fem's quadratic elements with Crank-Nicolson steps, as in its example of the heat equation."""

    def prepare(elements: int, steps: int) -> Run:
        import skfem
        from scipy.sparse.linalg import splu
        from skfem.helpers import dot, grad

        @skfem.BilinearForm
        def stiffness(u: Any, v: Any, w: Any) -> Any:
            return conductivity(w.x[0]) * dot(grad(u), grad(v))

        @skfem.BilinearForm
        def mass(u: Any, v: Any, _: Any) -> Any:
            return u * v

        def run() -> Array:
            basis = skfem.Basis(skfem.MeshLine(np.linspace(0, 1, elements + 1)), skfem.ElementLineP2())
            k, m, dt = stiffness.assemble(basis), mass.assemble(basis), end / steps
            free = basis.complement_dofs(basis.get_dofs())
            u = start(basis.doflocs[0])
            left = splu((m + dt / 2 * k)[free][:, free].tocsc())
            right = (m - dt / 2 * k)[free][:, free]
            for _ in range(steps):
                u[free] = left.solve(right @ u[free])
            return (basis.probes(points.T) @ u)[None]

        return run

    return prepare


def skfem_corner(exact: Callable[..., Array], points: Array) -> Prepare:
    """Return scikit-fem's quadratic triangles for lap(u) = 0 on an L, divided further about its corner."""

    def prepare(refinements: int, further: int) -> Run:
        import skfem
        from skfem.models.poisson import laplace

        def run() -> Array:
            mesh = skfem.MeshTri.init_lshaped().scaled((1.0, -1.0)).refined(refinements)
            for level in range(further):
                centres = mesh.p[:, mesh.t].mean(axis=1)
                mesh = mesh.refined(np.flatnonzero(np.hypot(*centres) < 2.0 ** -(level + 1)))
            basis = skfem.Basis(mesh, skfem.ElementTriP2())
            held, u = basis.get_dofs(), exact(*basis.doflocs)
            found = skfem.solve(*skfem.condense(laplace.assemble(basis), x=u, D=held))
            return (basis.probes(points.T) @ found)[None]

        return run

    return prepare


def skfem_elasticity(force: Callable[..., Array], points: Array) -> Prepare:
    """Return scikit-fem's triangles of some degree for a square of Lamé's constants 1 that is held on all sides."""

    def prepare(refinements: int, degree: int) -> Run:
        import skfem
        from skfem.models.elasticity import linear_elasticity

        element = skfem.ElementVector({2: skfem.ElementTriP2, 4: skfem.ElementTriP4}[degree]())

        @skfem.LinearForm
        def load(v: Any, w: Any) -> Any:
            return (force(*w.x) * v).sum(axis=0)

        def run() -> Array:
            basis = skfem.Basis(skfem.MeshTri.init_sqsymmetric().refined(refinements), element)
            stiffness = linear_elasticity(1.0, 1.0).assemble(basis)
            found = skfem.solve(*skfem.condense(stiffness, load.assemble(basis), D=basis.get_dofs()))
            return np.asarray(basis.interpolator(found)(points.T))

        return run

    return prepare


def findiff_poisson(source: Callable[..., Array], points: Array) -> Prepare:
    """Return findiff's differences of some order on a grid of nodes, for -lap(u) = f with zero on all sides."""

    def prepare(nodes: int, order: int) -> Run:
        import findiff
        from scipy.interpolate import RectBivariateSpline

        def run() -> Array:
            axis = np.linspace(0, 1, nodes)
            x, y = np.meshgrid(axis, axis, indexing="ij")
            step = axis[1] - axis[0]
            operator = findiff.FinDiff(0, step, 2, acc=order) + findiff.FinDiff(1, step, 2, acc=order)
            conditions = findiff.BoundaryConditions((nodes, nodes))
            conditions[0, :] = conditions[-1, :] = conditions[:, 0] = conditions[:, -1] = 0.0
            u = findiff.PDE(operator, -source(x, y), conditions).solve()
            return RectBivariateSpline(axis, axis, u, kx=5, ky=5).ev(*points.T)[None]

        return run

    return prepare


# --- the problems ------------------------------------------------------------------------------------------------


def spectral_case(
    name: str,
    fields: str,
    equations: Sequence[str],
    sides: Sequence[float],
    end: float,
    initial: Mapping[str, str],
    start: Callable[..., Array],
    symbol: Callable[..., Array],
    nonlinear: Callable[..., Array],
    nodes: int,
    wanted: float,
    count: int,
    peers: Mapping[str, tuple[Callable[..., Prepare], Sequence[tuple[Any, ...]]]],
    **more: Any,
) -> Case:
    """Return a problem on a periodic box whose lower ends are 0."""
    axes = "xyz"[: len(sides)]
    text = specification(
        fields, equations, {a: ("0", repr(s)) for a, s in zip(axes, sides, strict=True)}, end, initial, **more
    )
    return Case(
        name,
        text,
        wanted,
        grid_points(count, *((0.0, side) for side in sides)),
        lambda: by_exponential_steps(symbol, nonlinear, start, sides, nodes, end, count, wanted),
        {who: (make(start, sides, end, count), settings) for who, (make, settings) in peers.items()},
    )


def _exponax(make: Callable[[Any, int, float], Any]) -> Callable[..., Prepare]:
    return lambda start, sides, end, count: exponax(make, start, sides, end, count)


def _py_pde(rates: Mapping[str, str]) -> Callable[..., Prepare]:
    return lambda start, sides, end, count: py_pde(rates, start, sides, end, count)


def _laplacian(waves: Sequence[Array]) -> Array:
    return -sum(np.square(wave) for wave in waves)


def periodic_cases() -> list[Case]:
    """Return the problems on periodic boxes."""
    length = 32 * np.pi
    soliton = [9.0, 18.0]
    return [
        spectral_case(
            "Kuramoto-Sivashinsky, 1D", "u", ["u_t = -u*u_x - u_xx - u_xxxx"], [length], 30,
            {"u": "cos(x/16)*(1 + sin(x/16))"}, lambda x: np.array([np.cos(x / 16) * (1 + np.sin(x / 16))]),
            lambda k: np.array([k**2 - k**4]), lambda m, k, back: -back(m) * back(1j * k[0] * m), 512, 1e-5, 64,
            {
                "exponax": (_exponax(lambda ex, n, dt: ex.stepper.KuramotoSivashinskyConservative(1, length, n, dt, order=4)),
                            [(192, 300), (192, 600), (256, 1200), (256, 2400)]),
                "py-pde": (_py_pde({"u": "-u * d_dx(u) - laplace(u) - laplace(laplace(u))"}), [(256, 1e-5), (512, 1e-6)]),
            },
        ),
        spectral_case(
            "two KdV solitons", "u", ["u_t = -6*u*u_x - u_xxx"], [40.0], 1.5,
            {"u": f"4.5/cosh(1.5*(x - {soliton[0]}))**2 + 2/cosh(x - {soliton[1]})**2"},
            lambda x: np.array([4.5 / np.cosh(1.5 * (x - soliton[0])) ** 2 + 2 / np.cosh(x - soliton[1]) ** 2]),
            lambda k: np.array([1j * k**3]), lambda m, k, back: -6 * back(m) * back(1j * k[0] * m), 768, 1e-5, 64,
            {"exponax": (_exponax(lambda ex, n, dt: ex.stepper.KortewegDeVries(1, 40.0, n, dt, convection_scale=6.0, dispersivity=1.0, hyper_diffusivity=0.0, order=4)),
                         [(256, 1500), (320, 3000), (320, 6000), (384, 12000)]),
             "py-pde": (_py_pde({"u": "-6 * u * d_dx(u) - d_dx(laplace(u))"}), [(256, 1e-5), (512, 1e-6)])},
        ),
        spectral_case(
            "Burgers, 1D", "u", ["u_t = -u*u_x + 0.02*u_xx"], [TAU], 2.0, {"u": "sin(x) + 1/2"},
            lambda x: np.array([np.sin(x) + 0.5]), lambda k: np.array([-0.02 * k**2]),
            lambda m, k, back: -back(m) * back(1j * k[0] * m), 1024, 1e-3, 64,
            {"exponax": (_exponax(lambda ex, n, dt: ex.stepper.Burgers(1, TAU, n, dt, diffusivity=0.02, order=4)),
                         [(128, 50), (192, 100), (256, 200)]),
             "py-pde": (_py_pde({"u": "-u * d_dx(u) + 0.02 * laplace(u)"}), [(256, 1e-4), (512, 1e-5), (1024, 1e-5)]),
             "fipy": (lambda start, sides, end, count: fipy_burgers(start, TAU, 0.02, end, count),
                      [(256, 200), (512, 1000), (1024, 2000)])},
        ),
        spectral_case(
            "Gray-Scott, 2D", "u, v", ["u_t = 2e-5*lap(u) - u*v**2 + 0.04*(1 - u)", "v_t = 1e-5*lap(v) + u*v**2 - 0.1*v"],
            [1.0, 1.0], 60, {
                "u": "1 - 0.5*exp(-80*((x - 0.5)**2 + (y - 0.5)**2))", "v": "0.25*exp(-80*((x - 0.5)**2 + 1.5*(y - 0.5)**2))"},
            lambda x, y: np.array([1 - 0.5 * np.exp(-80 * ((x - 0.5) ** 2 + (y - 0.5) ** 2)), 0.25 * np.exp(-80 * ((x - 0.5) ** 2 + 1.5 * (y - 0.5) ** 2))]),
            lambda *k: np.stack([2e-5 * _laplacian(k) - 0.04, 1e-5 * _laplacian(k) - 0.1]),
            lambda m, k, back: (lambda u, v: np.stack([-u * v**2 + 0.04, u * v**2]))(*back(m)), 256, 1e-3, 32,
            {"exponax": (_exponax(lambda ex, n, dt: ex.stepper.reaction.GrayScott(2, 1.0, n, dt, order=4)), [(96, 100), (128, 100), (128, 200), (160, 400)]),
             "py-pde": (_py_pde({"u": "2e-5 * laplace(u) - u * v**2 + 0.04 * (1 - u)", "v": "1e-5 * laplace(v) + u * v**2 - 0.1 * v"}), [(128, 1e-5), (256, 1e-5)])},
        ),
        spectral_case(
            "Cahn-Hilliard, 2D", "c", ["c_t = lap(c**3 - c - 0.04*lap(c))"], [TAU, TAU], 0.5,
            {"c": "0.3*cos(2*x)*sin(y) + 0.2*sin(3*x + 2*y)"}, lambda x, y: np.array([0.3 * np.cos(2 * x) * np.sin(y) + 0.2 * np.sin(3 * x + 2 * y)]),
            lambda *k: np.array([-_laplacian(k) - 0.04 * _laplacian(k) ** 2]), lambda m, k, back: back(_laplacian(k) * np.fft.fft2(back(m) ** 3)), 96, 1e-4, 32,
            {"exponax": (_exponax(lambda ex, n, dt: ex.stepper.reaction.CahnHilliard(2, TAU, n, dt, diffusivity=1.0, gamma=0.04, order=4)), [(32, 100), (64, 100), (64, 200), (96, 200), (96, 400), (128, 400)]),
             "py-pde": (_py_pde({"c": "laplace(c**3 - c - 0.04 * laplace(c))"}), [(64, 1e-4), (128, 1e-4)])},
        ),
        spectral_case(
            "vorticity, 2D", "w, psi", ["w_t + psi_y*w_x - psi_x*w_y = 0.01*lap(w)", "lap(psi) = -w"], [TAU, TAU], 2.0,
            {"w": "sin(x)*cos(2*y) + 0.5*cos(3*x + y)"}, lambda x, y: np.array([np.sin(x) * np.cos(2 * y) + 0.5 * np.cos(3 * x + y)]),
            lambda *k: np.array([0.01 * _laplacian(k)]), _carried, 128, 1e-5, 32,
            {"exponax": (_exponax(lambda ex, n, dt: ex.stepper.NavierStokesVorticity(2, TAU, n, dt, diffusivity=0.01, vorticity_convection_scale=-1.0, order=4)), [(64, 10), (64, 20), (64, 40), (64, 80), (96, 160)])},
            mean="{psi: 0}",
        ),
        spectral_case(
            "Allen-Cahn, 2D", "u", ["u_t = 0.05*lap(u) + u - u**3"], [TAU, TAU], 2.0, {"u": "0.5*sin(x)*cos(2*y) + 0.3*cos(x + y)"},
            lambda x, y: np.array([0.5 * np.sin(x) * np.cos(2 * y) + 0.3 * np.cos(x + y)]), lambda *k: np.array([0.05 * _laplacian(k) + 1]),
            lambda m, k, back: -(back(m) ** 3), 96, 1e-4, 32,
            {"exponax": (_exponax(lambda ex, n, dt: ex.stepper.reaction.AllenCahn(2, TAU, n, dt, diffusivity=0.05, order=4)), [(32, 10), (32, 20), (64, 40)]),
             "py-pde": (_py_pde({"u": "0.05 * laplace(u) + u - u**3"}), [(64, 1e-5), (128, 1e-5), (256, 1e-5)])},
        ),
        spectral_case(
            "Swift-Hohenberg, 2D", "u", ["u_t = 0.7*u - lap(lap(u)) - 2*lap(u) - u + u**2 - u**3"], [4 * np.pi, 4 * np.pi], 5.0,
            {"u": "0.2*cos(x) + 0.1*cos(x/2 + y)"}, lambda x, y: np.array([0.2 * np.cos(x) + 0.1 * np.cos(x / 2 + y)]),
            lambda *k: np.array([0.7 - (1 + _laplacian(k)) ** 2]), lambda m, k, back: back(m) ** 2 - back(m) ** 3, 96, 1e-4, 32,
            {"exponax": (_exponax(lambda ex, n, dt: ex.stepper.reaction.SwiftHohenberg(2, 4 * np.pi, n, dt, order=4)), [(32, 25), (64, 50), (64, 100), (64, 200)]),
             "py-pde": (_py_pde({"u": "-0.3 * u - laplace(laplace(u)) - 2 * laplace(u) + u**2 - u**3"}), [(64, 1e-5), (128, 1e-5)])},
        ),
    ]  # fmt: skip


def _wave() -> Case:
    """Return a wave on a circle, whose solution is d'Alembert's."""
    end, count = 2.5, 64
    points = grid_points(count, (0.0, TAU))
    start = lambda x: np.array([np.exp(np.cos(x)), np.zeros_like(x)])
    slope = lambda x: -np.sin(x) * np.exp(np.cos(x))

    def exact() -> Array:
        left, right = points[:, 0] + end, points[:, 0] - end
        return np.array([(start(left)[0] + start(right)[0]) / 2, (slope(left) - slope(right)) / 2])

    text = specification(
        "u, v", ["u_t = v", "v_t = u_xx"], {"x": ("0", repr(TAU))}, end, {"u": "exp(cos(x))", "v": "0"}
    )
    peers = {
        "exponax": (
            exponax(lambda ex, n, dt: ex.stepper.Wave(1, TAU, n, dt), start, [TAU], end, count),
            [(64, 1), (128, 1)],
        ),
        "py-pde": (
            py_pde({"u": "v", "v": "laplace(u)"}, start, [TAU], end, count),
            [(256, 1e-6), (1024, 1e-7)],
        ),
    }
    return Case("wave, 1D", text, 1e-5, points, exact, peers)  # fmt: skip


def _carried(modes: Array, waves: Sequence[Array], back: Callable[[Array], Array]) -> Array:
    """Return -u . grad w for the flow of a vorticity."""
    kx, ky = waves
    squares = kx**2 + ky**2
    psi = modes / np.where(squares == 0, 1.0, squares)
    return -back(1j * ky * psi) * back(1j * kx * modes) + back(1j * kx * psi) * back(1j * ky * modes)


def bounded_cases() -> list[Case]:
    """Return the problems with boundaries."""
    zero = [{"where": "all", "type": "dirichlet", "field": "u", "value": "0"}]
    square = grid_points(16, (0.03, 0.97), (0.03, 0.97))
    rod = np.linspace(0.02, 0.98, 49)[:, None]

    def poisson(x: Array, y: Array) -> Array:
        return 2 * np.pi**2 * np.sin(np.pi * x) * np.sin(np.pi * y) * np.exp(x) - np.exp(x) * np.sin(
            np.pi * y
        ) * (2 * np.pi * np.cos(np.pi * x) + np.sin(np.pi * x))

    def exact_poisson() -> Array:
        return (np.exp(square[:, 0]) * np.sin(np.pi * square[:, 0]) * np.sin(np.pi * square[:, 1]))[None]

    conductivity = lambda x: 1 + 0.5 * np.sin(6 * x)
    start = lambda x: np.sin(np.pi * x) + 0.5 * np.sin(3 * np.pi * x)
    source = "2*pi**2*sin(pi*x)*sin(pi*y)*exp(x) - exp(x)*sin(pi*y)*(2*pi*cos(pi*x) + sin(pi*x))"
    unit = {"x": ("0", "1"), "y": ("0", "1")}
    return [
        Case(
            "heat, variable conductivity", specification("u", ["u_t = ((1 + 0.5*sin(6*x))*u_x)_x"], {"x": ("0", "1")}, 0.1, {"u": "sin(pi*x) + 0.5*sin(3*pi*x)"}, zero),
            1e-5, rod, lambda: _rod_reference(conductivity, start, 0.1, rod),
            {"fipy": (fipy_heat(conductivity, start, 0.1, rod), [(200, 400), (400, 4000), (800, 20000)]),
             "scikit-fem": (skfem_heat(conductivity, start, 0.1, rod), [(20, 50), (40, 100), (80, 200), (80, 400)])},
        ),
        Case(
            "Poisson, square, 1e-4", specification("u", [f"-lap(u) = {source}"], unit, boundary=zero), 1e-4, square, exact_poisson,
            {"fipy": (fipy_poisson(poisson, square), [(32,), (64,), (128,), (256,)]),
             "scikit-fem": (skfem_poisson(poisson, square), [(2, 2), (3, 2), (4, 2), (5, 2)]),
             "findiff": (findiff_poisson(poisson, square), [(17, 4), (33, 4), (65, 4)])},
        ),
        Case(
            "Poisson, square, 1e-8", specification("u", [f"-lap(u) = {source}"], unit, boundary=zero), 1e-8, square, exact_poisson,
            {"scikit-fem": (skfem_poisson(poisson, square), [(2, 4), (3, 4), (4, 4), (5, 4)]),
             "findiff": (findiff_poisson(poisson, square), [(33, 8), (65, 8)])},
        ),
        _heat_in_a_square(zero),
        _corner(),
        _elasticity(),
    ]  # fmt: skip


def _corner() -> Case:
    """Return a harmonic function on an L whose slope at the corner is infinite."""
    points = grid_points(16, (-0.97, -0.03), (0.03, 0.97))
    exact = lambda x, y: np.cbrt(x**2 + y**2) * np.cos(2 / 3 * np.arctan2(-x - y, y - x))
    held = {
        "where": "all",
        "type": "dirichlet",
        "field": "u",
        "value": "(x**2 + y**2)**(1/3)*cos(2*atan2(-x - y, y - x)/3)",
    }
    text = specification(
        "u", ["lap(u) = 0"], {"x": ("-1", "1"), "y": ("-1", "1")}, boundary=[held],
        domain="{type: polygon, vertices: [[0, 0], [1, 0], [1, 1], [-1, 1], [-1, -1], [0, -1]]}",
    )  # fmt: skip
    peers = {"scikit-fem": (skfem_corner(exact, points), [(2, 2), (2, 4), (3, 6), (3, 8), (4, 10)])}
    return Case("Laplace, L", text, 1e-5, points, lambda: exact(*points.T)[None], peers)


def _elasticity() -> Case:
    """Return a square of Lamé's constants 1 that is held on all sides and bent by a force."""
    points = grid_points(16, (0.03, 0.97), (0.03, 0.97))
    s, c = (lambda k, x: np.sin(k * np.pi * x)), (lambda k, x: np.cos(k * np.pi * x))
    exact = lambda x, y: np.array([s(1, x) * s(2, y), s(2, x) * s(1, y)])
    force = lambda x, y: np.pi**2 * (7 * exact(x, y) - 4 * np.array([c(2, x) * c(1, y), c(1, x) * c(2, y)]))
    equations = [
        "-(3*u_xx + u_yy + 2*v_xy) = pi**2*(7*sin(pi*x)*sin(2*pi*y) - 4*cos(2*pi*x)*cos(pi*y))",
        "-(v_xx + 3*v_yy + 2*u_xy) = pi**2*(7*sin(2*pi*x)*sin(pi*y) - 4*cos(pi*x)*cos(2*pi*y))",
    ]
    zero = [{"where": "all", "type": "dirichlet", "field": field, "value": "0"} for field in "uv"]
    text = specification("u, v", equations, {"x": ("0", "1"), "y": ("0", "1")}, boundary=zero)
    peers = {"scikit-fem": (skfem_elasticity(force, points), [(2, 2), (3, 2), (4, 2), (5, 2)])}
    return Case("elasticity, square", text, 1e-4, points, lambda: exact(*points.T), peers)


def _heat_in_a_square(zero: Sequence[Mapping[str, Any]]) -> Case:
    points = grid_points(16, (0.0, 1.0), (0.0, 1.0))
    bounds = {"x": ("0", "1"), "y": ("0", "1")}
    text = specification("u", ["u_t = lap(u)"], bounds, 0.05, {"u": "sin(pi*x)*sin(2*pi*y)"}, zero)
    start = lambda x, y: np.array([np.sin(np.pi * x) * np.sin(2 * np.pi * y)])
    exact = lambda: start(*points.T)[:, :] * np.exp(-5 * np.pi**2 * 0.05)
    peers = {
        "py-pde": (
            py_pde({"u": "laplace(u)"}, start, [1.0, 1.0], 0.05, 16, {"value": 0}),
            [(64, 1e-6), (128, 1e-6)],
        )
    }
    return Case("heat, square", text, 2e-3, points, exact, peers)


def _rod_reference(
    conductivity: Callable[[Array], Array], start: Callable[[Array], Array], end: float, points: Array
) -> Array:
    """Return the state of the rod by Legendre polynomials (Galerkin), exact in time by the matrix exponential."""
    from scipy.linalg import expm

    degree = 40
    nodes, weights = np.polynomial.legendre.leggauss(2 * degree)
    x, w = (nodes + 1) / 2, weights / 2
    basis = lambda t: np.stack(
        [np.polynomial.Legendre.basis(k)(t) - np.polynomial.Legendre.basis(k + 2)(t) for k in range(degree)]
    )
    slopes = 2 * np.stack(
        [
            (np.polynomial.Legendre.basis(k) - np.polynomial.Legendre.basis(k + 2)).deriv()(nodes)
            for k in range(degree)
        ]
    )
    values = basis(nodes)
    mass, stiffness = (values * w) @ values.T, (slopes * w * conductivity(x)) @ slopes.T
    first = np.linalg.solve(mass, (values * w) @ start(x))
    last = expm(-end * np.linalg.solve(mass, stiffness)) @ first
    return (last @ basis(2 * points[:, 0] - 1))[None]


WARM_UP = specification(
    "u", ["u_t = lap(u) - u**3"], {"x": ("0", "1"), "y": ("0", "1")}, 1, {"u": "sin(2*pi*x)"}
)


# --- running -----------------------------------------------------------------------------------------------------


def distance(values: Array, reference: Array) -> float:
    """Return the relative L2 distance over all fields that the reference has."""
    found = values[: len(reference)]
    return float(np.linalg.norm(found - reference) / np.linalg.norm(reference))


def ours(case: Case, reference: Array) -> Row:
    """Solve by the specification and the wanted error alone; no second method is asked, and all other checks are made."""
    problem = parse_problem(case.specification, "peer.yaml")
    accuracy = case.wanted
    # What the estimate promises is the whole interval's error; where the last moment's is larger, a third is asked for.
    spent = 0.0
    for _ in range(3):
        began = time.process_time()
        found = solve_problem(problem, SolveOptions(accuracy=accuracy, time_limit=120, cross_check=False))
        everything = time.process_time() - began
        spent += everything
        if found.trial is None or found.discrete is None:
            return Row(case.name, "sharp", found.verdict.status, np.inf, np.nan, everything)
        end = problem.time[1] if problem.time else 0.0
        error = distance(found.discrete.at(case.points, end), reference)
        if error <= case.wanted:
            break
        accuracy /= 3
    setting, error, alone = _first_that_keeps(case, problem, found.trial.refinement, reference, accuracy)
    return Row(case.name, "sharp", f"{setting}, {found.verdict.status}", error, alone, spent)


def _first_that_keeps(
    case: Case, problem: Any, done: Any, reference: Array, accuracy: float
) -> tuple[str, float, float]:
    """Return our first setting that keeps the wanted error, that error, and its processor seconds by itself.

    Settings are the resolutions that were tried, each with ever smaller tolerances of the steps in time: a peer's are
    tried in the same way.
    """
    from sharp.solvers import system_of
    from sharp.solvers.method import NEVER, SolverFailed, load_method

    method, system = load_method(done.method), system_of(problem)
    end = problem.time[1] if problem.time else 0.0
    setting, error, seconds = "", np.inf, np.nan
    resolutions = [attempt.resolution for attempt in done.attempts if attempt.unknowns is not None]
    for resolution, looser in product(resolutions, LOOSER if problem.time else (1,)):
        began = time.process_time()
        try:
            solution = method.solve(system, resolution, looser * accuracy, NEVER)
        except SolverFailed:
            continue
        values = solution.at(case.points, end)
        seconds = time.process_time() - began
        setting, error = f"{done.method} {resolution} {looser * accuracy:.0e}", distance(values, reference)
        if error <= case.wanted:
            break
    return setting, error, seconds


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` after so many processor seconds."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"longer than {seconds:g} s")

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def theirs(case: Case, who: str, reference: Array, patience: float) -> Row:
    """Try a peer's settings one after the other until the wanted error is kept."""
    prepare, settings = case.peers[who]
    best = Row(case.name, who, "none in time", np.inf, np.nan)
    for setting in settings:
        try:
            first = time.process_time()
            run = prepare(*setting)
            began = time.process_time()
            with limited(patience):
                error = distance(run(), reference)
        except Exception as failure:  # noqa: BLE001  what a peer raises is a result, and is told
            return Row(case.name, who, f"{type(failure).__name__}: {str(failure)[:60]}", np.inf, np.nan)
        now = time.process_time()
        best = Row(case.name, who, " ".join(map(str, setting)), error, now - began, now - first)
        if error <= case.wanted:
            break
    return best


def main(only: list[str] = [""], patience: float = 40.0, json: Path | None = None) -> None:  # noqa: B006  the command line reads the default's type
    """Print a table of all problems, or of those whose name holds one of the words given."""
    # Imports are nobody's business here.
    solve_problem(parse_problem(WARM_UP, "warm-up.yaml"))
    warnings.simplefilter("ignore")
    table = Table(
        "problem",
        "who",
        "setting",
        "error",
        "wanted",
        "seconds",
        "everything",
        "times ours",
        "times everything",
    )
    rows: list[Row] = []
    for case in (*periodic_cases(), _wave(), *bounded_cases()):
        if not any(word in case.name for word in only):
            continue
        reference = case.reference()
        mine = ours(case, reference)
        for row in (mine, *(theirs(case, who, reference, patience) for who in case.peers)):
            kept = row.error <= case.wanted
            alone, all_of_it = (
                f"{ratio:.2g}" if kept else "not reached"
                for ratio in (row.seconds / mine.seconds, row.everything / mine.everything)
            )
            rows.append(row)
            table.row(
                row.problem,
                row.who,
                row.setting,
                f"{row.error:.1e}",
                f"{case.wanted:.0e}",
                f"{row.seconds:.2f}",
                f"{row.everything:.2f}",
                alone,
                all_of_it,
            )
    if json:
        write_rows(json, rows)


if __name__ == "__main__":
    command_line(main)
