"""The outer loop of time-dependent programs: `solver` in every form a program may have it."""

from __future__ import annotations

from sharp.llm.playbook.library.blocks import HOST, JAX, Block

_REPORT = 'print(f"dt={(times[-1] - times[0]) / max(total, 1):.3e} steps={total}")'

DRIVERS: tuple[Block, ...] = (
    Block(
        "solver",
        "equal-steps",
        2,
        "each output interval divided into equal steps",
        f'''
def solver(SIGNATURE):
    """RETURNS"""
    times = [float(t) for t in t_coordinate]
    INITIAL
    u = FIELD(initial)
    dx = LENGTH / u.shape[-1]
    frames, total = [initial], 0
    for start, stop in zip(times[:-1], times[1:]):
        steps = max(1, math.ceil((stop - start) / float(stable_step(u, dx, ARGS))))
        dt = (stop - start) / steps
        for _ in range(steps):
            u = advance(u, dt, dx, ARGS)
        total += steps
        frames.append(FRAME(u))
    {_REPORT}
    solution = np.stack(frames, axis=-2)
    RESULT
''',
        HOST,
    ),
    Block(
        "solver",
        "clipped-steps",
        2,
        "full stable steps, the last one of an output interval shortened",
        f'''
def solver(SIGNATURE):
    """RETURNS"""
    times = [float(t) for t in t_coordinate]
    INITIAL
    u = FIELD(initial)
    dx = LENGTH / u.shape[-1]
    frames, total = [initial], 0
    for start, stop in zip(times[:-1], times[1:]):
        t = start
        while stop - t > 1e-12:
            dt = min(float(stable_step(u, dx, ARGS)), stop - t)
            u = advance(u, dt, dx, ARGS)
            t += dt
            total += 1
        frames.append(FRAME(u))
    {_REPORT}
    solution = np.stack(frames, axis=-2)
    RESULT
''',
        HOST,
    ),
    Block(
        "solver",
        "preallocated",
        2,
        "equal steps between outputs, written into a preallocated array",
        f'''
def solver(SIGNATURE):
    """RETURNS"""
    times = [float(t) for t in t_coordinate]
    INITIAL
    u = FIELD(initial)
    dx = LENGTH / u.shape[-1]
    solution = np.empty(initial.shape[:-1] + (len(times), initial.shape[-1]), dtype=initial.dtype)
    solution[..., 0, :] = initial
    total = 0
    for k in range(1, len(times)):
        interval = times[k] - times[k - 1]
        steps = max(1, math.ceil(interval / float(stable_step(u, dx, ARGS))))
        for _ in range(steps):
            u = advance(u, interval / steps, dx, ARGS)
        total += steps
        solution[..., k, :] = FRAME(u)
    {_REPORT}
    RESULT
''',
        HOST,
    ),
    Block(
        "solver",
        "direct",
        3,
        "every output computed from the initial condition in one step",
        f'''
def solver(SIGNATURE):
    """RETURNS"""
    times = [float(t) for t in t_coordinate]
    INITIAL
    dx = LENGTH / initial.shape[-1]
    total = len(times) - 1
    frames = [initial] + [advance(initial, t - times[0], dx, ARGS) for t in times[1:]]
    {_REPORT}
    solution = xp.stack(frames, axis=-2)
    RESULT
''',
    ),
    Block(
        "solver",
        "compiled-intervals",
        2,
        "a compiled fori_loop over the equal steps of each output interval",
        f'''
@jax.jit
def march(u, steps, dt, dx, ARGS):
    """Take `steps` steps of length dt in one compiled loop."""
    return lax.fori_loop(0, steps, lambda _, v: advance(v, dt, dx, ARGS), u)


def solver(SIGNATURE):
    """RETURNS"""
    times = [float(t) for t in t_coordinate]
    INITIAL
    u = FIELD(initial)
    dx = LENGTH / u.shape[-1]
    frames, total = [initial], 0
    for start, stop in zip(times[:-1], times[1:]):
        steps = max(1, math.ceil((stop - start) / float(stable_step(u, dx, ARGS))))
        u = march(u, steps, (stop - start) / steps, dx, ARGS)
        total += steps
        frames.append(FRAME(u))
    {_REPORT}
    solution = jnp.stack(frames, axis=-2)
    RESULT
''',
        JAX,
    ),
    Block(
        "solver",
        "compiled-at",
        2,
        "a compiled fori_loop for each output interval, written into a preallocated array",
        f'''
@jax.jit
def march(u, steps, dt, dx, ARGS):
    """Take `steps` steps of length dt in one compiled loop."""
    return lax.fori_loop(0, steps, lambda _, v: advance(v, dt, dx, ARGS), u)


def solver(SIGNATURE):
    """RETURNS"""
    times = [float(t) for t in t_coordinate]
    INITIAL
    u = FIELD(initial)
    dx = LENGTH / u.shape[-1]
    solution = jnp.zeros(initial.shape[:-1] + (len(times), initial.shape[-1]), dtype=initial.dtype)
    solution = solution.at[..., 0, :].set(initial)
    total = 0
    for k in range(1, len(times)):
        interval = times[k] - times[k - 1]
        steps = max(1, math.ceil(interval / float(stable_step(u, dx, ARGS))))
        u = march(u, steps, interval / steps, dx, ARGS)
        total += steps
        solution = solution.at[..., k, :].set(FRAME(u))
    {_REPORT}
    RESULT
''',
        JAX,
    ),
    Block(
        "solver",
        "compiled-scan",
        2,
        "one compiled scan over the outputs with the same number of steps in each",
        f'''
def solver(SIGNATURE):
    """RETURNS"""
    times = [float(t) for t in t_coordinate]
    INITIAL
    u = FIELD(initial)
    dx = LENGTH / u.shape[-1]
    intervals = np.diff(times)
    steps = max(1, math.ceil(max(intervals) / float(stable_step(u, dx, ARGS))))

    def to_next_output(v, dt):
        v = lax.fori_loop(0, steps, lambda _, w: advance(w, dt, dx, ARGS), v)
        return v, FRAME(v)

    _, frames = lax.scan(to_next_output, u, jnp.asarray(intervals / steps, dtype=u.dtype))
    total = steps * len(intervals)
    {_REPORT}
    solution = jnp.concatenate([initial[..., None, :], jnp.moveaxis(frames, 0, -2)], axis=-2)
    RESULT
''',
        JAX,
    ),
    Block(
        "solver",
        "compiled-while",
        2,
        "a compiled while_loop of full stable steps, the last one before an output shortened",
        f'''
def solver(SIGNATURE):
    """RETURNS"""
    times = [float(t) for t in t_coordinate]
    INITIAL
    u = FIELD(initial)
    dx = LENGTH / u.shape[-1]

    @jax.jit
    def march(u, now, stop):
        """Step from `now` to `stop`; return the state, the time reached and the number of steps."""

        def step(carry):
            v, t, count = carry
            dt = jnp.minimum(stable_step(v, dx, ARGS), stop - t)
            return advance(v, dt, dx, ARGS), t + dt, count + 1

        return lax.while_loop(lambda carry: carry[1] < stop, step, (u, now, 0))

    frames, total = [initial], 0
    now = jnp.asarray(times[0], dtype=u.dtype)
    for stop in times[1:]:
        u, now, steps = march(u, now, jnp.asarray(stop, dtype=u.dtype))
        total += int(steps)
        frames.append(FRAME(u))
    {_REPORT}
    solution = jnp.stack(frames, axis=-2)
    RESULT
''',
        JAX,
    ),
    Block(
        "solver",
        "jitted-step",
        2,
        "a Python loop over single compiled steps",
        f'''
def solver(SIGNATURE):
    """RETURNS"""
    times = [float(t) for t in t_coordinate]
    INITIAL
    u = FIELD(initial)
    dx = LENGTH / u.shape[-1]
    step = jax.jit(advance)
    frames, total = [initial], 0
    for start, stop in zip(times[:-1], times[1:]):
        steps = max(1, math.ceil((stop - start) / float(stable_step(u, dx, ARGS))))
        for _ in range(steps):
            u = step(u, (stop - start) / steps, dx, ARGS)
        total += steps
        frames.append(FRAME(u))
    {_REPORT}
    solution = jnp.stack(frames, axis=-2)
    RESULT
''',
        JAX,
    ),
    Block(
        "solver",
        "solve-ivp",
        2,
        "SciPy's adaptive Runge-Kutta solve_ivp on the semi-discrete system of the whole batch",
        '''
def solver(SIGNATURE):
    """RETURNS"""
    times = [float(t) for t in t_coordinate]
    INITIAL
    u = FIELD(initial)
    dx = LENGTH / u.shape[-1]

    def right_hand_side(t, flat):
        return spatial_operator(flat.reshape(u.shape), dx, ARGS).ravel()

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
    solution = np.stack([initial] + [FRAME(state) for state in states[1:]], axis=-2)
    RESULT
''',
        HOST,
    ),
)

HOST_STEPPING = ("equal-steps", "clipped-steps", "preallocated")
JAX_STEPPING = ("compiled-intervals", "compiled-at", "compiled-scan", "compiled-while")
STEPPING = (*HOST_STEPPING, *JAX_STEPPING)
