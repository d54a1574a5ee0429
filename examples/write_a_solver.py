"""Have programs written for a problem, score one of one's own beside them, and compare two runs.

    python examples/write_a_solver.py [FOLDER]

The embedded rule-based model answers here: it shows the machinery at work, and says nothing of language models. Name a
model (`model="qwen3-32b", base_url="http://127.0.0.1:8000/v1"`) for real programs.
"""

import sys
from pathlib import Path

import sharp

OWN = """
import numpy as np

def solver(u0_batch, t_coordinate, beta):
    waves = 2 * np.pi * np.fft.rfftfreq(u0_batch.shape[1], 1 / u0_batch.shape[1])
    shift = np.exp(-1j * waves * beta * t_coordinate[:, None])
    return np.fft.irfft(np.fft.rfft(u0_batch)[:, None] * shift, u0_batch.shape[1])
"""

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs")
few = {"genesis": {"candidates": 4}, "evaluation": {"validation": 4, "test": 4, "coarsen": 8}}
runs = [sharp.run("advection", folder / name, method=name, **few) for name in ("pde-sharp", "codepde")]
for run in runs:
    print(run, run.report)

own = sharp.evaluate(sharp.load_problem("advection", coarsen=8), OWN, samples=4)
assert own.scores is not None, own.failure
# The published data are far from the solution of their equation: a lower error against them than `data_error` would be
# agreement with their errors.
print("a program of one's own, against the data:", own.scores.nrmse)
print(
    "against the reference solution:",
    own.scores.nrmse_reference,
    "the data themselves:",
    own.scores.data_error,
)
print(sharp.compare(runs).rows[["name", "method", "nrmse", "evaluations", "calls"]])
