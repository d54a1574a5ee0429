"""Blocks for equations that are read in a prompt: the method of lines on an interval or a rectangle.

The state is an array [component, batch, N] or [component, batch, Nx, Ny]: the fields, and the velocities of those of
second order in time. An axis of the mesh is its nodes with the matrices of the first and the second derivative; what
conditions hold at its ends follows from the other values. `sharp.llm.playbook.library.made` writes what depends on the
equation: `mesh`, `rates`, `closed`, the moves between data and mesh, and `solver`.
"""

from __future__ import annotations

from collections.abc import Iterable

from sharp.llm.playbook.library.blocks import HOST, Block

_STENCILS = '''
def stencils(count, order, spacing, wraps):
    """Return the matrix of a derivative by WIDTH neighbours, one-sided ones at ends unless the grid wraps."""
    matrix = np.zeros((count, count))
    for row in range(count):
        first = row - HALF if wraps else min(max(row - HALF, 0), count - WIDTH)
        places = np.arange(first, first + WIDTH)
        powers = np.vander(1.0 * (places - row), increasing=True).T
        wanted = math.factorial(order) * (np.arange(WIDTH) == order)
        matrix[row, places % count] += np.linalg.solve(powers, wanted) / spacing**order
    return matrix
'''
_EVEN = {
    "bounded": '''
def bounded(low, high, intervals):
    """Return the nodes of an axis with two ends and the matrices of the first and the second derivative."""
    spacing = (high - low) / intervals
    first, second = (stencils(intervals + 1, order, spacing, False) for order in (1, 2))
    return np.linspace(low, high, intervals + 1), first, second
''',
    "periodic": '''
def periodic(low, high, intervals):
    """Return the nodes of a periodic axis and the matrices of the first and the second derivative."""
    spacing = (high - low) / intervals
    first, second = (stencils(intervals, order, spacing, True) for order in (1, 2))
    return low + spacing * np.arange(intervals), first, second
''',
}
_SPECTRAL = {
    "bounded": '''
def bounded(low, high, intervals):
    """Return Chebyshev nodes and the matrices of the first and the second derivative of their polynomial."""
    nodes = -np.cos(np.pi * np.arange(intervals + 1) / intervals)
    weights = (-1.0) ** np.arange(intervals + 1)
    weights[[0, -1]] /= 2.0
    first = weights / weights[:, None] / (nodes[:, None] - nodes + np.eye(intervals + 1))
    first = 2.0 / (high - low) * (first - np.diag(first.sum(axis=1)))
    return low + (high - low) * (nodes + 1.0) / 2.0, first, first @ first
''',
    "periodic": '''
def periodic(low, high, intervals):
    """Return the nodes of a period and the matrices that differentiate in Fourier space."""
    spacing = (high - low) / intervals
    wave = 2j * np.pi * np.fft.rfftfreq(intervals, d=spacing)[:, None]
    unit = np.fft.rfft(np.eye(intervals), axis=0)
    first, second = (np.fft.irfft(wave**order * unit, n=intervals, axis=0) for order in (1, 2))
    return low + spacing * np.arange(intervals), first, second
''',
}
_DIFFERENTIATE = '''
def differentiate(axes, values, along):
    """Return the derivative of values on the mesh, once along each of the axes that `along` numbers."""
    for number, (_, first, second) in enumerate(axes):
        order = along.count(number)
        for matrix in [second] * (order // 2) + [first] * (order % 2):
            values = values @ matrix.T if number == len(axes) - 1 else matrix @ values
    return values
'''


def spaces(kinds: Iterable[str]) -> tuple[Block, ...]:
    """Return the discretisations in space for axes of these kinds, `bounded` or `periodic`."""
    return (
        _space(kinds, "central-2", 2, "second-order central differences", 1),
        _space(kinds, "central-4", 3, "fourth-order central differences", 2),
        _space(kinds, "central-6", 4, "sixth-order central differences", 3),
        _space(kinds, "spectral", 4, "spectral collocation"),
    )


def _space(kinds: Iterable[str], name: str, rank: int, summary: str, half: int = 0) -> Block:
    stencils = _STENCILS.replace("HALF", str(half)).replace("WIDTH", str(2 * half + 1))
    axes = [(_EVEN if half else _SPECTRAL)[kind] for kind in sorted(set(kinds))]
    parts = [*([stencils] if half else []), *axes, _DIFFERENTIATE]
    return Block("space", name, rank, summary, "\n\n".join(parts), HOST)


_HELD = '''
def held(values, axes, number, ends):
    """Return values with those at the ends of an axis such that a*u + b*(outward derivative of u) = g at them."""
    axis = number - len(axes)
    lines = np.swapaxes(values, axis, -1).copy()
    places = [place for place, _, _, _ in ends]
    rows = np.array([b * outward(axes[number], place) for place, _, b, _ in ends])
    for row, (place, a, _, _) in enumerate(ends):
        rows[row, place] += a
        lines[..., place] = 0.0
    missing = -lines @ rows.T
    for row, (_, _, _, g) in enumerate(ends):
        missing[..., row] += g
    lines[..., places] = missing @ np.linalg.inv(rows[:, places]).T
    return np.swapaxes(lines, axis, -1)
'''

CLOSURES = (
    Block(
        "closure",
        "as-inside",
        4,
        "end values from the conditions by the differences used inside",
        '''
def outward(axis, place):
    """Return the weights of the outward derivative at an end: those of the first derivative."""
    return axis[1][place] if place else -axis[1][place]


'''
        + _HELD.lstrip(),
        HOST,
    ),
    Block(
        "closure",
        "two-point",
        1,
        "end values from the conditions by two-point differences",
        '''
def outward(axis, place):
    """Return the weights of the outward derivative at an end: a difference of two nodes."""
    inner = -2 if place else 1
    weights = np.zeros(len(axis[0]))
    weights[[place, inner]] = np.array([1.0, -1.0]) / abs(axis[0][place] - axis[0][inner])
    return weights


'''
        + _HELD.lstrip(),
        HOST,
    ),
)

INTERPOLATIONS = (
    Block(
        "interpolate",
        "spline",
        4,
        "splines of degree 7 between the grids",
        '''
def between(values, start, stop, axis):
    """Interpolate along an axis by a spline of degree 7, of degree 3 where there are few points."""
    return make_interp_spline(start, values, k=7 if len(start) > 15 else 3, axis=axis)(stop)
''',
        HOST,
    ),
    Block(
        "interpolate",
        "cubic",
        2,
        "cubic splines between the grids",
        '''
def between(values, start, stop, axis):
    """Interpolate along an axis by a cubic spline."""
    return CubicSpline(start, values, axis=axis)(stop)
''',
        HOST,
    ),
)

AROUND = '''
def around(values, start, stop, period, axis):
    """Interpolate along a periodic axis by trigonometric polynomials."""
    count = len(start)
    half = np.pi * (stop[:, None] - start) / period
    same = np.abs(np.sin(half)) < 1e-12
    slope = np.sin(half) if count % 2 else np.tan(half)
    weights = np.where(same, 1.0, np.sin(count * half) / (count * np.where(same, 1.0, slope)))
    return np.moveaxis(np.moveaxis(values, axis, -1) @ weights.T, -1, axis)
'''

_LINEARISED = '''
def jacobian(now, values, slope):
    """Return the matrices [batch, n, n] of the linearised rates of every sample, by differences."""
    base = slope(now, values)
    gap = 1e-7 * (np.abs(values).max() or 1.0)
    columns = []
    for place in np.ndindex(values.shape[:1] + values.shape[2:]):
        moved = values.copy()
        moved[(place[0], slice(None)) + place[1:]] += gap
        columns.append(np.moveaxis(slope(now, moved) - base, 1, 0).reshape(values.shape[1], -1) / gap)
    return np.stack(columns, axis=-1)


def solver_of(matrices, shape):
    """Return the function that solves the systems of all samples for a right-hand side of the state's shape."""
    inverse = np.linalg.inv(matrices)

    def solve(right):
        lines = np.moveaxis(right, 1, 0).reshape(shape[1], -1, 1)
        return np.moveaxis((inverse @ lines).reshape(shape[1], shape[0], *shape[2:]), 0, 1)

    return solve
'''

INTEGRATORS = (
    Block(
        "advance",
        "euler",
        1,
        "forward Euler (first order)",
        '''
def stepper(now, values, dt, slope):
    """Return the function that takes one forward Euler step from a time and a state."""

    def advance(t, v):
        return v + dt * slope(t, v)

    return advance
''',
        HOST,
    ),
    Block(
        "advance",
        "ssp-rk2",
        2,
        "two-stage SSP Runge-Kutta (second order)",
        '''
def stepper(now, values, dt, slope):
    """Return the function that takes one step of the two-stage SSP Runge-Kutta method."""

    def advance(t, v):
        predicted = v + dt * slope(t, v)
        return 0.5 * (v + predicted + dt * slope(t + dt, predicted))

    return advance
''',
        HOST,
    ),
    Block(
        "advance",
        "ssp-rk3",
        3,
        "three-stage SSP Runge-Kutta (third order)",
        '''
def stepper(now, values, dt, slope):
    """Return the function that takes one step of the three-stage SSP Runge-Kutta method (Shu-Osher)."""

    def advance(t, v):
        first = v + dt * slope(t, v)
        second = 0.75 * v + 0.25 * (first + dt * slope(t + dt, first))
        return (v + 2.0 * (second + dt * slope(t + 0.5 * dt, second))) / 3.0

    return advance
''',
        HOST,
    ),
    Block(
        "advance",
        "rk4",
        3,
        "classical Runge-Kutta (fourth order)",
        '''
def stepper(now, values, dt, slope):
    """Return the function that takes one step of the classical fourth-order Runge-Kutta method."""

    def advance(t, v):
        k1 = slope(t, v)
        k2 = slope(t + 0.5 * dt, v + 0.5 * dt * k1)
        k3 = slope(t + 0.5 * dt, v + 0.5 * dt * k2)
        k4 = slope(t + dt, v + dt * k3)
        return v + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    return advance
''',
        HOST,
    ),
    Block(
        "advance",
        "implicit-euler",
        1,
        "linearly implicit Euler (first order)",
        _LINEARISED.rstrip()
        + '''


def stepper(now, values, dt, slope):
    """Return the function that takes one linearly implicit Euler step; the Jacobian is that of `now`."""
    matrices = jacobian(now, values, slope)
    solve = solver_of(np.eye(matrices.shape[-1]) - dt * matrices, values.shape)

    def advance(t, v):
        return v + dt * solve(slope(t + dt, v))

    return advance
''',
        HOST,
    ),
    Block(
        "advance",
        "rosenbrock-2",
        2,
        "the two-stage Rosenbrock method ROS2 (second order, L-stable)",
        _LINEARISED.rstrip()
        + '''


def stepper(now, values, dt, slope):
    """Return the function that takes one step of ROS2, which keeps its order with the Jacobian of `now`."""
    gamma = 1.0 - 1.0 / math.sqrt(2.0)
    matrices = jacobian(now, values, slope)
    solve = solver_of(np.eye(matrices.shape[-1]) - gamma * dt * matrices, values.shape)

    def advance(t, v):
        first = solve(slope(t, v))
        second = solve(slope(t + dt, v + dt * first) - 2.0 * first)
        return v + dt * (1.5 * first + 0.5 * second)

    return advance
''',
        HOST,
    ),
)

STEP_SIZES = (
    Block(
        "step",
        "spectral-radius",
        2,
        "time step from the spectral radius of the linearised rates",
        '''
def stable_step(now, values, slope, span):
    """Return the fraction CFL of what explicit methods allow: 1.7 over the fastest rate, by power iteration."""
    values = values.astype(float)
    base, size = slope(now, values), np.abs(values).max() or 1.0
    direction = np.random.default_rng(0).standard_normal(values.shape)
    growth = []
    for _ in range(40):
        direction *= 1e-6 * size / np.abs(direction).max()
        image = slope(now, values + direction) - base
        growth.append(np.linalg.norm(image) / np.linalg.norm(direction))
        direction = image
    fastest = math.exp(np.mean(np.log(growth[-20:]))) if min(growth) > 0.0 else 0.0
    return min(CFL * 1.7 / max(fastest, 1e-12), span)
''',
        HOST,
    ),
    Block(
        "step",
        "accuracy",
        3,
        "equal steps, short enough for accuracy",
        '''
def stable_step(now, values, slope, span):
    """Return the fraction MAX_STEP of the whole time; the method is stable for any step."""
    return MAX_STEP * span
''',
        HOST,
    ),
)
