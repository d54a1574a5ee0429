"""The solvers of programs made at run time: equal steps between outputs, or SciPy's integrators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sharp.llm.playbook.library.blocks import HOST, Block

STEPPING = ("equal-steps", "preallocated")
_SUMMARIES = {
    "equal-steps": "each output interval divided into equal steps",
    "preallocated": "equal steps between outputs, written into a preallocated array",
    "solve-ivp": "SciPy's adaptive solve_ivp, sample by sample",
    "solve-ivp-together": "SciPy's adaptive solve_ivp on all samples at once",
}

_EACH = "[slice(each, each + 1) for each in range(state.shape[1])]"
_SLOPE = """
    def slope(now, values):
        return rates(now, values, ALL_ARGS)
"""
_REPORT = 'print(f"dt={(times[-1] - times[0]) / max(total, 1):.3e} steps={total}")'
_INTERVAL = """
        steps = max(1, math.ceil((stop - start) / stable_step(start, state, slope, times[-1] - times[0])))
        dt = (stop - start) / steps
        advance = stepper(start, state, dt, slope)
        for number in range(steps):
            state = advance(start + number * dt, state)
        state = closed(stop, state, ALL_ARGS)
        total += steps
"""
_SOLVERS = {
    "equal-steps": f'''
def solver(SIGNATURE):
    """RETURNS"""
    INITIAL
{_SLOPE}
    frames, total = [initial], 0
    for start, stop in zip(times[:-1], times[1:]):
{_INTERVAL.strip(chr(10))}
        frames.append(from_mesh(state, axes, initial.shape[2:]))
    {_REPORT}
    solution = np.stack(frames, axis=FRAME_AXIS)
    RESULT
''',
    "preallocated": f'''
def solver(SIGNATURE):
    """RETURNS"""
    INITIAL
{_SLOPE}
    solution = np.empty(initial.shape[:2] + (len(times),) + initial.shape[2:], dtype=initial.dtype)
    solution[:, :, 0] = initial
    total = 0
    for sample in range(1, len(times)):
        start, stop = times[sample - 1], times[sample]
{_INTERVAL.strip(chr(10))}
        solution[:, :, sample] = from_mesh(state, axes, initial.shape[2:])
    {_REPORT}
    RESULT
''',
    "solve-ivp": '''
def solver(SIGNATURE):
    """RETURNS"""
    INITIAL
    samples, evaluations = [], 0
    scale = float(np.abs(state).max()) or 1.0
    for group in GROUPS:
        one = state[:, group]

        def slope(now, flat):
            return rates(now, flat.reshape(one.shape), ONE_ARGS).ravel()

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
        states = [closed(now, flat.reshape(one.shape), ONE_ARGS) for now, flat in zip(run.t, run.y.T)]
        frames = [from_mesh(values, axes, initial.shape[2:]) for values in states]
        samples.append(np.stack([initial[:, group]] + frames[1:], axis=FRAME_AXIS))
    print(f"dt={(times[-1] - times[0]) / max(evaluations, 1):.3e} steps={evaluations}")
    solution = np.concatenate(samples, axis=1)
    RESULT
''',
}


def solvers(arguments: Sequence[str], arrays: Sequence[str], dimension: int) -> Iterator[Block]:
    """Yield the solvers of a problem that pass these arguments on, of which `arrays` differ from sample to sample."""
    one = [f"{name}[group]" if name in arrays else name for name in arguments]
    filled = {
        "ONE_ARGS": ", ".join(["axes", *one]),
        "ALL_ARGS": ", ".join(["axes", *arguments]),
        "FRAME_AXIS": str(-1 - dimension),
    }
    for name, summary in _SUMMARIES.items():
        text = _SOLVERS[name.removesuffix("-together")]
        text = text.replace("GROUPS", "[slice(None)]" if name.endswith("together") else _EACH)
        for token, words in filled.items():
            text = text.replace(token, words)
        yield Block("solver", name, 2, summary, text, HOST)
