"""Runge-Kutta steps, transfer between grids, and the loop over steps of programs in one space dimension."""

from sharp.rule_based.vocabulary import *


@block("advance", 1, "forward Euler (first order)")
def advance__euler(u, dt, dx, *args):
    """Take one forward Euler step."""
    return u + dt * spatial_operator(u, dx, *args)


@block("advance", 2, "two-stage SSP Runge-Kutta (second order)")
def advance__ssp_rk2(u, dt, dx, *args):
    """Take one step of the two-stage strong-stability-preserving Runge-Kutta method."""
    predicted = u + dt * spatial_operator(u, dx, *args)
    return 0.5 * (u + predicted + dt * spatial_operator(predicted, dx, *args))


@block("advance", 2, "two-stage midpoint rule (second order)")
def advance__midpoint(u, dt, dx, *args):
    """Take one step of the two-stage midpoint rule."""
    middle = u + 0.5 * dt * spatial_operator(u, dx, *args)
    return u + dt * spatial_operator(middle, dx, *args)


@block("advance", 3, "three-stage SSP Runge-Kutta (third order)")
def advance__ssp_rk3(u, dt, dx, *args):
    """Take one step of the three-stage strong-stability-preserving Runge-Kutta method (Shu-Osher)."""
    first = u + dt * spatial_operator(u, dx, *args)
    second = 0.75 * u + 0.25 * (first + dt * spatial_operator(first, dx, *args))
    return (u + 2.0 * (second + dt * spatial_operator(second, dx, *args))) / 3.0


@block("advance", 3, "classical Runge-Kutta (fourth order)")
def advance__rk4(u, dt, dx, *args):
    """Take one step of the classical fourth-order Runge-Kutta method."""
    k1 = spatial_operator(u, dx, *args)
    k2 = spatial_operator(u + 0.5 * dt * k1, dx, *args)
    k3 = spatial_operator(u + 0.5 * dt * k2, dx, *args)
    k4 = spatial_operator(u + dt * k3, dx, *args)
    return u + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def legendre_stages(u, dt, stages, rate):
    """Take one second-order Runge-Kutta-Legendre super time step (Meyer and others 2014) with so many stages."""
    w = 4.0 / (stages**2 + stages - 2.0)
    b = [1.0 / 3.0, 1.0 / 3.0] + [(j * j + j - 2.0) / (2.0 * j * (j + 1.0)) for j in range(2, stages + 1)]
    start = rate(u)
    older, old = u, u + b[1] * w * dt * start
    for j in range(2, stages + 1):
        mu = (2.0 * j - 1.0) / j * b[j] / b[j - 1]
        nu = -(j - 1.0) / j * b[j] / b[j - 2]
        gamma = -(1.0 - b[j - 1]) * mu * w
        new = mu * old + nu * older + (1.0 - mu - nu) * u
        older, old = old, new + mu * w * dt * rate(old) + gamma * dt * start
    return old


@block("step", 3, "one step per output interval")
def stable_step__output_interval(u, dx, *args):
    """Return no bound: the step is exact, whatever its length."""
    return math.inf


@block("grid", 1, "linear interpolation between the grids")
def resample__linear(u, cells):
    """Move periodic cell-centre values to a grid of `cells` cells by linear interpolation."""
    position = (np.arange(cells) + 0.5) * u.shape[-1] / cells - 0.5
    index = np.floor(position).astype(int)
    weight = xp.asarray(position - index, dtype=u.dtype)
    left, right = u[..., index % u.shape[-1]], u[..., (index + 1) % u.shape[-1]]
    return (1.0 - weight) * left + weight * right


@block("grid", 2, "four-point Lagrange interpolation between the grids")
def resample__cubic(u, cells):
    """Move periodic cell-centre values to a grid of `cells` cells by cubic Lagrange interpolation."""
    position = (np.arange(cells) + 0.5) * u.shape[-1] / cells - 0.5
    index = np.floor(position).astype(int)
    s = xp.asarray(position - index, dtype=u.dtype)
    a, b, c, d = (u[..., (index + shift) % u.shape[-1]] for shift in (-1, 0, 1, 2))
    return (
        -s * (s - 1.0) * (s - 2.0) / 6.0 * a
        + (s + 1.0) * (s - 1.0) * (s - 2.0) / 2.0 * b
        - (s + 1.0) * s * (s - 2.0) / 2.0 * c
        + (s + 1.0) * s * (s - 1.0) / 6.0 * d
    )


@block("grid", 3, "conservative transfer of cell averages between the grids")
def resample__conservative(u, cells):
    """Move cell averages to a grid of `cells` cells: differences of a spline through their running integral."""
    average = np.mean(np.asarray(u), axis=-1, keepdims=True)
    fluctuation = np.asarray(u) - average
    integral = np.concatenate([0.0 * average, np.cumsum(fluctuation, axis=-1)], axis=-1) / u.shape[-1]
    integral[..., -1] = integral[..., 0]
    spline = CubicSpline(np.linspace(0.0, 1.0, u.shape[-1] + 1), integral, axis=-1, bc_type="periodic")
    faces = spline(np.linspace(0.0, 1.0, cells + 1))
    return xp.asarray(average + cells * np.diff(faces, axis=-1), dtype=u.dtype)


@block("grid", 3, "trigonometric interpolation between the grids")
def resample__fourier(u, cells):
    """Move periodic cell-centre values to a grid of `cells` cells by trigonometric interpolation."""
    modes = min(u.shape[-1], cells) // 2
    offset = 0.5 / cells - 0.5 / u.shape[-1]
    shift = xp.exp(2j * np.pi * xp.arange(modes) * offset)
    spectrum = xp.fft.rfft(u, axis=-1)[..., :modes] * shift
    return xp.fft.irfft(spectrum * (cells / u.shape[-1]), n=cells, axis=-1).astype(u.dtype)


@block("solver", 2, "each output interval divided into equal steps", "host")
def solver__equal_steps(*inputs):
    """Return the solution."""
    times, initial = read_inputs(*inputs)
    u = to_solver_grid(initial)
    dx = LENGTH / u.shape[-1]
    frames, total = [initial], 0
    for start, stop in zip(times[:-1], times[1:]):
        steps = max(1, math.ceil((stop - start) / float(stable_step(u, dx, *args))))
        dt = (stop - start) / steps
        for _ in range(steps):
            u = advance(u, dt, dx, *args)
        total += steps
        frames.append(to_output_grid(u))
    print(f"dt={(times[-1] - times[0]) / max(total, 1):.3e} steps={total}")
    solution = np.stack(frames, axis=-2)
    return write_outputs(solution)


@block("solver", 2, "full stable steps, the last one of an output interval shortened", "host")
def solver__clipped_steps(*inputs):
    """Return the solution."""
    times, initial = read_inputs(*inputs)
    u = to_solver_grid(initial)
    dx = LENGTH / u.shape[-1]
    frames, total = [initial], 0
    for start, stop in zip(times[:-1], times[1:]):
        t = start
        while stop - t > 1e-12:
            dt = min(float(stable_step(u, dx, *args)), stop - t)
            u = advance(u, dt, dx, *args)
            t += dt
            total += 1
        frames.append(to_output_grid(u))
    print(f"dt={(times[-1] - times[0]) / max(total, 1):.3e} steps={total}")
    solution = np.stack(frames, axis=-2)
    return write_outputs(solution)


@block("solver", 2, "equal steps between outputs, written into a preallocated array", "host")
def solver__preallocated(*inputs):
    """Return the solution."""
    times, initial = read_inputs(*inputs)
    u = to_solver_grid(initial)
    dx = LENGTH / u.shape[-1]
    solution = np.empty(initial.shape[:-1] + (len(times), initial.shape[-1]), dtype=initial.dtype)
    solution[..., 0, :] = initial
    total = 0
    for k in range(1, len(times)):
        interval = times[k] - times[k - 1]
        steps = max(1, math.ceil(interval / float(stable_step(u, dx, *args))))
        for _ in range(steps):
            u = advance(u, interval / steps, dx, *args)
        total += steps
        solution[..., k, :] = to_output_grid(u)
    print(f"dt={(times[-1] - times[0]) / max(total, 1):.3e} steps={total}")
    return write_outputs(solution)


@block("solver", 3, "every output computed from the initial condition in one step")
def solver__direct(*inputs):
    """Return the solution."""
    times, initial = read_inputs(*inputs)
    dx = LENGTH / initial.shape[-1]
    total = len(times) - 1
    frames = [initial] + [advance(initial, t - times[0], dx, *args) for t in times[1:]]
    print(f"dt={(times[-1] - times[0]) / max(total, 1):.3e} steps={total}")
    solution = xp.stack(frames, axis=-2)
    return write_outputs(solution)


def march(u, steps, dt, dx, *args):
    """Take `steps` steps of length dt in one compiled loop."""
    return lax.fori_loop(0, steps, lambda _, v: advance(v, dt, dx, *args), u)


@block("solver", 2, "a compiled fori_loop over the equal steps of each output interval", "jax")
def solver__compiled_intervals(*inputs):
    """Return the solution."""
    times, initial = read_inputs(*inputs)
    u = to_solver_grid(initial)
    compiled = jax.jit(march)
    dx = LENGTH / u.shape[-1]
    frames, total = [initial], 0
    for start, stop in zip(times[:-1], times[1:]):
        steps = max(1, math.ceil((stop - start) / float(stable_step(u, dx, *args))))
        u = compiled(u, steps, (stop - start) / steps, dx, *args)
        total += steps
        frames.append(to_output_grid(u))
    print(f"dt={(times[-1] - times[0]) / max(total, 1):.3e} steps={total}")
    solution = jnp.stack(frames, axis=-2)
    return write_outputs(solution)


@block("solver", 2, "a compiled fori_loop for each output interval, written into a preallocated array", "jax")
def solver__compiled_at(*inputs):
    """Return the solution."""
    times, initial = read_inputs(*inputs)
    u = to_solver_grid(initial)
    compiled = jax.jit(march)
    dx = LENGTH / u.shape[-1]
    solution = jnp.zeros(initial.shape[:-1] + (len(times), initial.shape[-1]), dtype=initial.dtype)
    solution = solution.at[..., 0, :].set(initial)
    total = 0
    for k in range(1, len(times)):
        interval = times[k] - times[k - 1]
        steps = max(1, math.ceil(interval / float(stable_step(u, dx, *args))))
        u = compiled(u, steps, interval / steps, dx, *args)
        total += steps
        solution = solution.at[..., k, :].set(to_output_grid(u))
    print(f"dt={(times[-1] - times[0]) / max(total, 1):.3e} steps={total}")
    return write_outputs(solution)


@block("solver", 2, "one compiled scan over the outputs with the same number of steps in each", "jax")
def solver__compiled_scan(*inputs):
    """Return the solution."""
    times, initial = read_inputs(*inputs)
    u = to_solver_grid(initial)
    dx = LENGTH / u.shape[-1]
    intervals = np.diff(times)
    steps = max(1, math.ceil(max(intervals) / float(stable_step(u, dx, *args))))

    def to_next_output(v, dt):
        v = lax.fori_loop(0, steps, lambda _, w: advance(w, dt, dx, *args), v)
        return v, to_output_grid(v)

    _, frames = lax.scan(to_next_output, u, jnp.asarray(intervals / steps, dtype=u.dtype))
    total = steps * len(intervals)
    print(f"dt={(times[-1] - times[0]) / max(total, 1):.3e} steps={total}")
    solution = jnp.concatenate([initial[..., None, :], jnp.moveaxis(frames, 0, -2)], axis=-2)
    return write_outputs(solution)


@block(
    "solver",
    2,
    "SciPy's adaptive Runge-Kutta solve_ivp on the semi-discrete system of the whole batch",
    "host",
)
def solver__solve_ivp(*inputs):
    """Return the solution."""
    times, initial = read_inputs(*inputs)
    u = to_solver_grid(initial)
    dx = LENGTH / u.shape[-1]

    def right_hand_side(t, flat):
        return spatial_operator(flat.reshape(u.shape), dx, *args).ravel()

    run = solve_ivp(
        right_hand_side,
        (times[0], times[-1]),
        u.ravel(),
        method=METHOD,
        t_eval=times,
        rtol=RTOL,
        atol=ATOL,
    )
    print(f"dt={(times[-1] - times[0]) / max(run.nfev, 1):.3e} steps={run.nfev}")
    states = run.y.T.reshape((-1,) + u.shape)
    solution = np.stack([initial] + [to_output_grid(state) for state in states[1:]], axis=-2)
    return write_outputs(solution)
