"""Judge a finite-difference solution of one's own: how large is its error, and is it small enough?

python examples/verify_your_own.py
"""

from pathlib import Path

import numpy as np

import sharp

problem = sharp.load_problem(Path(__file__).with_name("rod.yaml"))
alpha, length = problem.parameters["alpha"], problem.parameters["L"]


def crank_nicolson(cells: int, steps: int) -> dict[str, np.ndarray]:
    """Return the temperatures [steps + 1, cells + 1] by central differences and the trapezoidal rule."""
    x, t = np.linspace(0, length, cells + 1), np.linspace(0, problem.time[1], steps + 1)
    second = np.diag(np.full(cells, 1.0), 1) + np.diag(np.full(cells, 1.0), -1) - 2 * np.eye(cells + 1)
    second[[0, -1]] = 0  # the ends keep their temperatures
    half = alpha * (t[1] - t[0]) / 2 / (x[1] - x[0]) ** 2 * second
    advance = np.linalg.solve(np.eye(cells + 1) - half, np.eye(cells + 1) + half)
    u = [293 + 60 * x / length + 45 * np.sin(np.pi * x / length)]
    for _ in range(steps):
        u.append(advance @ u[-1])
    return {"x": x, "t": t, "u": np.array(u)}


for size in (8, 32, 128):
    verdict = sharp.verify(problem, crank_nicolson(size, size), accuracy=1e-5)
    print(f"{size:4} cells: {verdict.status}, error at most {verdict.error:.1e}")
