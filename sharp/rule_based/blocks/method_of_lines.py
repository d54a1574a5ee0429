"""The method of lines on an interval or a rectangle, for equations that are read in a prompt.

The state is an array [component, batch, N] or [component, batch, Nx, Ny]: the fields, and the velocities of those of
second order in time. An axis of the mesh is its nodes with the matrices of the first and the second derivative; what
conditions hold at its ends follows from the other values. `derived_family` writes what depends on the equation: `mesh`,
`rates`, `closed`, and the moves between data and mesh.

Matrices of collocation are those of L. N. Trefethen, Spectral Methods in MATLAB (2000), chs. 3 and 6.
"""

from sharp.rule_based.vocabulary import *


def stencils(count, order, spacing, half, wraps):
    """Return the matrix of a derivative by `half` neighbours on each side, one-sided at ends unless the grid wraps."""
    width = 2 * half + 1
    matrix = np.zeros((count, count))
    for row in range(count):
        first = row - half if wraps else min(max(row - half, 0), count - width)
        places = np.arange(first, first + width)
        powers = np.vander(1.0 * (places - row), increasing=True).T
        wanted = math.factorial(order) * (np.arange(width) == order)
        matrix[row, places % count] += np.linalg.solve(powers, wanted) / spacing**order
    return matrix


def differences(low, high, intervals, half, wraps):
    """Return the evenly spaced nodes of an axis and the matrices of the first and the second derivative."""
    count = intervals if wraps else intervals + 1
    spacing = (high - low) / intervals
    first, second = (stencils(count, order, spacing, half, wraps) for order in (1, 2))
    return low + spacing * np.arange(count), first, second


@block("space", 2, "second-order central differences", "host")
def bounded__central_2(low, high, intervals):
    """Return an axis with two ends, differentiated by three neighbours."""
    return differences(low, high, intervals, 1, wraps=False)


def periodic__central_2(low, high, intervals):
    """Return a periodic axis, differentiated by three neighbours."""
    return differences(low, high, intervals, 1, wraps=True)


@block("space", 3, "fourth-order central differences", "host")
def bounded__central_4(low, high, intervals):
    """Return an axis with two ends, differentiated by five neighbours."""
    return differences(low, high, intervals, 2, wraps=False)


def periodic__central_4(low, high, intervals):
    """Return a periodic axis, differentiated by five neighbours."""
    return differences(low, high, intervals, 2, wraps=True)


@block("space", 4, "sixth-order central differences", "host")
def bounded__central_6(low, high, intervals):
    """Return an axis with two ends, differentiated by seven neighbours."""
    return differences(low, high, intervals, 3, wraps=False)


def periodic__central_6(low, high, intervals):
    """Return a periodic axis, differentiated by seven neighbours."""
    return differences(low, high, intervals, 3, wraps=True)


@block("space", 4, "spectral collocation", "host")
def bounded__spectral(low, high, intervals):
    """Return Chebyshev nodes and the matrices of the first and the second derivative of their polynomial."""
    nodes = -np.cos(np.pi * np.arange(intervals + 1) / intervals)
    weights = (-1.0) ** np.arange(intervals + 1)
    weights[[0, -1]] /= 2.0
    first = weights / weights[:, None] / (nodes[:, None] - nodes + np.eye(intervals + 1))
    first = 2.0 / (high - low) * (first - np.diag(first.sum(axis=1)))
    return low + (high - low) * (nodes + 1.0) / 2.0, first, first @ first


def periodic__spectral(low, high, intervals):
    """Return the nodes of a period and the matrices that differentiate in Fourier space."""
    spacing = (high - low) / intervals
    wave = 2j * np.pi * np.fft.rfftfreq(intervals, d=spacing)[:, None]
    unit = np.fft.rfft(np.eye(intervals), axis=0)
    first, second = (np.fft.irfft(wave**order * unit, n=intervals, axis=0) for order in (1, 2))
    return low + spacing * np.arange(intervals), first, second


def differentiate(axes, values, along):
    """Return the derivative of values on the mesh, once along each of the axes that `along` numbers."""
    for number, (_, first, second) in enumerate(axes):
        order = along.count(number)
        for matrix in [second] * (order // 2) + [first] * (order % 2):
            values = values @ matrix.T if number == len(axes) - 1 else matrix @ values
    return values


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


@block("closure", 4, "end values from the conditions by the differences used inside", "host")
def outward__as_inside(axis, place):
    """Return the weights of the outward derivative at an end: those of the first derivative."""
    return axis[1][place] if place else -axis[1][place]


@block("closure", 1, "end values from the conditions by two-point differences", "host")
def outward__two_point(axis, place):
    """Return the weights of the outward derivative at an end: a difference of two nodes."""
    inner = -2 if place else 1
    weights = np.zeros(len(axis[0]))
    weights[[place, inner]] = np.array([1.0, -1.0]) / abs(axis[0][place] - axis[0][inner])
    return weights


@block("interpolate", 4, "splines of degree 7 between the grids", "host")
def between__spline(values, start, stop, axis):
    """Interpolate along an axis by a spline of degree 7, of degree 3 where there are few points."""
    return make_interp_spline(start, values, k=7 if len(start) > 15 else 3, axis=axis)(stop)


@block("interpolate", 2, "cubic splines between the grids", "host")
def between__cubic(values, start, stop, axis):
    """Interpolate along an axis by a cubic spline."""
    return CubicSpline(start, values, axis=axis)(stop)


def around(values, start, stop, period, axis):
    """Interpolate along a periodic axis by trigonometric polynomials; an end that repeats the beginning is left out."""
    count = len(start) - int(start[-1] - start[0] > period * (1.0 - 0.5 / len(start)))
    start, values = start[:count], np.take(values, np.arange(count), axis)
    half = np.pi * (stop[:, None] - start) / period
    same = np.abs(np.sin(half)) < 1e-12
    slope = np.sin(half) if count % 2 else np.tan(half)
    weights = np.where(same, 1.0, np.sin(count * half) / (count * np.where(same, 1.0, slope)))
    return np.moveaxis(np.moveaxis(values, axis, -1) @ weights.T, -1, axis)


@block("grid", 4, "the grid of the data", "host")
def size__given(count):
    """Return the number of intervals of an axis of the mesh: those of the data."""
    return cells_of(count)


def to_mesh__given(values, axes):
    """Return values at the nodes of the mesh, from those at the points of the data; the end of a period is no node."""
    for axis, (nodes, _, _) in enumerate(axes, -len(axes)):
        values = np.take(values, np.arange(len(nodes)), axis)
    return values


def from_mesh__given(values, axes, shape):
    """Return values at the points of the data, from those at the nodes of the mesh."""
    for axis, count in enumerate(shape, -len(shape)):
        values = np.take(values, np.arange(count), axis, mode="wrap")
    return values


@block("grid", 4, "a grid of its own", "host")
def size__own(count):
    """Return the number of intervals of an axis of the mesh: GRID_FACTOR times those of the data."""
    return round(GRID_FACTOR * cells_of(count))


@block("grid", 4, "nodes of its own", "host")
def size__nodes(count):
    """Return the number of intervals of an axis of the mesh: one less than NODES."""
    return NODES - 1


def to_mesh(values, axes):
    """Return values at the nodes of the mesh, from those at the points of the data."""
    for axis, ((low, high), (nodes, _, _)) in enumerate(zip(BOUNDS, axes), -len(axes)):
        values = moved(values, points(low, high, values.shape[axis]), nodes, low, high, axis)
    return values


def from_mesh(values, axes, shape):
    """Return values at the points of the data, from those at the nodes of the mesh."""
    for axis, ((low, high), (nodes, _, _)) in enumerate(zip(BOUNDS, axes), -len(axes)):
        values = moved(values, nodes, points(low, high, shape[axis]), low, high, axis)
    return values


@block("advance", 1, "forward Euler (first order)", "host")
def stepper__euler(now, values, dt, slope):
    """Return the function that takes one forward Euler step from a time and a state."""

    def advance(t, v):
        return v + dt * slope(t, v)

    return advance


@block("advance", 2, "two-stage SSP Runge-Kutta (second order)", "host")
def stepper__ssp_rk2(now, values, dt, slope):
    """Return the function that takes one step of the two-stage SSP Runge-Kutta method."""

    def advance(t, v):
        predicted = v + dt * slope(t, v)
        return 0.5 * (v + predicted + dt * slope(t + dt, predicted))

    return advance


@block("advance", 3, "three-stage SSP Runge-Kutta (third order)", "host")
def stepper__ssp_rk3(now, values, dt, slope):
    """Return the function that takes one step of the three-stage SSP Runge-Kutta method (Shu-Osher)."""

    def advance(t, v):
        first = v + dt * slope(t, v)
        second = 0.75 * v + 0.25 * (first + dt * slope(t + dt, first))
        return (v + 2.0 * (second + dt * slope(t + 0.5 * dt, second))) / 3.0

    return advance


@block("advance", 3, "classical Runge-Kutta (fourth order)", "host")
def stepper__rk4(now, values, dt, slope):
    """Return the function that takes one step of the classical fourth-order Runge-Kutta method."""

    def advance(t, v):
        k1 = slope(t, v)
        k2 = slope(t + 0.5 * dt, v + 0.5 * dt * k1)
        k3 = slope(t + 0.5 * dt, v + 0.5 * dt * k2)
        k4 = slope(t + dt, v + dt * k3)
        return v + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    return advance


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


@block("advance", 1, "linearly implicit Euler (first order)", "host")
def stepper__implicit_euler(now, values, dt, slope):
    """Return the function that takes one linearly implicit Euler step; the Jacobian is that of `now`."""
    matrices = jacobian(now, values, slope)
    solve = solver_of(np.eye(matrices.shape[-1]) - dt * matrices, values.shape)

    def advance(t, v):
        return v + dt * solve(slope(t + dt, v))

    return advance


@block("advance", 2, "the two-stage Rosenbrock method ROS2 (second order, L-stable)", "host")
def stepper__rosenbrock_2(now, values, dt, slope):
    """Return the function that takes one step of ROS2, which keeps its order with the Jacobian of `now`."""
    gamma = 1.0 - 1.0 / math.sqrt(2.0)
    matrices = jacobian(now, values, slope)
    solve = solver_of(np.eye(matrices.shape[-1]) - gamma * dt * matrices, values.shape)

    def advance(t, v):
        first = solve(slope(t, v))
        second = solve(slope(t + dt, v + dt * first) - 2.0 * first)
        return v + dt * (1.5 * first + 0.5 * second)

    return advance


@block("step", 2, "time step from the spectral radius of the linearised rates", "host")
def stable_step__spectral_radius(now, values, slope, span):
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


@block("step", 3, "equal steps, short enough for accuracy", "host")
def stable_step__accuracy(now, values, slope, span):
    """Return the fraction MAX_STEP of the whole time; the method is stable for any step."""
    return MAX_STEP * span


@block("solver", 2, "each output interval divided into equal steps", "host")
def solver__equal_steps(*inputs):
    """Return the solution."""
    times, initial, axes, state = read_inputs(*inputs)

    def slope(now, values):
        return rates(now, values, axes, *args)

    frames, total = [initial], 0
    for start, stop in zip(times[:-1], times[1:]):
        steps = max(1, math.ceil((stop - start) / stable_step(start, state, slope, times[-1] - times[0])))
        dt = (stop - start) / steps
        advance = stepper(start, state, dt, slope)
        for number in range(steps):
            state = advance(start + number * dt, state)
        state = closed(stop, state, axes, *args)
        total += steps
        frames.append(from_mesh(state, axes, initial.shape[2:]))
    print(f"dt={(times[-1] - times[0]) / max(total, 1):.3e} steps={total}")
    solution = np.stack(frames, axis=2)
    return write_outputs(solution)


@block("solver", 2, "equal steps between outputs, written into a preallocated array", "host")
def solver__preallocated(*inputs):
    """Return the solution."""
    times, initial, axes, state = read_inputs(*inputs)

    def slope(now, values):
        return rates(now, values, axes, *args)

    solution = np.empty(initial.shape[:2] + (len(times),) + initial.shape[2:], dtype=initial.dtype)
    solution[:, :, 0] = initial
    total = 0
    for sample in range(1, len(times)):
        start, stop = times[sample - 1], times[sample]
        steps = max(1, math.ceil((stop - start) / stable_step(start, state, slope, times[-1] - times[0])))
        dt = (stop - start) / steps
        advance = stepper(start, state, dt, slope)
        for number in range(steps):
            state = advance(start + number * dt, state)
        state = closed(stop, state, axes, *args)
        total += steps
        solution[:, :, sample] = from_mesh(state, axes, initial.shape[2:])
    print(f"dt={(times[-1] - times[0]) / max(total, 1):.3e} steps={total}")
    return write_outputs(solution)


@block("groups", 2, "sample by sample", "host")
def groups__each(count):
    """Return the samples that are integrated together: each by itself."""
    return [slice(each, each + 1) for each in range(count)]


@block("groups", 2, "all samples at once", "host")
def groups__together(count):
    """Return the samples that are integrated together: all of them."""
    return [slice(count)]


@block("solver", 2, "SciPy's adaptive solve_ivp", "host")
def solver__solve_ivp(*inputs):
    """Return the solution."""
    times, initial, axes, state = read_inputs(*inputs)
    samples, evaluations = [], 0
    scale = float(np.abs(state).max()) or 1.0
    for group in groups(state.shape[1]):
        one = state[:, group]

        def slope(now, flat):
            return rates(now, flat.reshape(one.shape), axes, *group_args).ravel()

        run = solve_ivp(
            slope,
            (times[0], times[-1]),
            one.ravel(),
            method=METHOD,
            t_eval=times,
            rtol=RTOL,
            atol=0.1 * RTOL * scale,
        )
        if not run.success:
            raise RuntimeError(run.message)
        evaluations += run.nfev
        states = [
            closed(now, flat.reshape(one.shape), axes, *group_args) for now, flat in zip(run.t, run.y.T)
        ]
        frames = [from_mesh(values, axes, initial.shape[2:]) for values in states]
        samples.append(np.stack([initial[:, group]] + frames[1:], axis=2))
    print(f"dt={(times[-1] - times[0]) / max(evaluations, 1):.3e} steps={evaluations}")
    solution = np.concatenate(samples, axis=1)
    return write_outputs(solution)
