"""Score solver programs of one's own on the same samples: errors, residual and run time, measured in the sandbox.

python examples/compare_your_programs.py
"""

import sharp

UPWIND = """
import numpy as np

def solver(u0_batch, t_coordinate, beta):
    n = u0_batch.shape[1]
    u, now, out = u0_batch.copy(), 0.0, []
    for t in t_coordinate:
        steps = max(1, int(np.ceil((t - now) * beta * n / 0.9)))
        for _ in range(steps):
            u = u - beta * (t - now) / steps * n * (u - np.roll(u, 1, axis=1))
        now = t
        out.append(u)
    return np.stack(out, axis=1)
"""
SPECTRAL = """
import numpy as np

def solver(u0_batch, t_coordinate, beta):
    k = 2 * np.pi * np.fft.rfftfreq(u0_batch.shape[1], 1 / u0_batch.shape[1])
    shift = np.exp(-1j * k * beta * t_coordinate[:, None])
    return np.fft.irfft(np.fft.rfft(u0_batch)[:, None] * shift, u0_batch.shape[1])
"""
BROKEN = """
def solver(u0_batch, t_coordinate, beta):
    return u0_batch
"""

problem = sharp.load_problem("advection", coarsen=8)
for name, program in {"upwind": UPWIND, "spectral": SPECTRAL, "broken": BROKEN}.items():
    found = sharp.evaluate(problem, program, samples=2)
    if found.scores is None:
        print(f"{name:10} failed: {found.failure.message if found.failure else ''}")
    else:
        print(f"{name:10} error {found.scores.nrmse_reference:.1e} in {found.run_time_s:.3f} s")
