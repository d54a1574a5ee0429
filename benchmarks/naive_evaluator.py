"""The usual way to score a generated solver, to measure ours against: one fresh Python process for each candidate.

    python benchmarks/naive_evaluator.py DATA.hdf5 SOLVER.py --samples 100 --beta 0.1

It follows published practice for the 1D advection problem: everything is imported anew, the candidate is imported into
the scorer's own process, all samples are solved in one call, convergence is estimated from four resolutions and five
initial conditions, and a picture of three panels is saved. The last line of its output holds the scores. It isolates
nothing and believes what the process prints; it exists for `bench_evaluation.py` alone.
"""

import argparse
import importlib.util
import time

import h5py
import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.interpolate import interp1d

RESOLUTIONS = (256, 512, 1024, 2048)
SHAPES = (
    lambda x: np.sin(2 * np.pi * x),
    lambda x: np.sin(2 * np.pi * x) + 0.5 * np.sin(4 * np.pi * x),
    lambda x: np.cos(2 * np.pi * x) + 0.3 * np.sin(8 * np.pi * x),
    lambda x: np.exp(-100 * (x - 0.5) ** 2),
    lambda x: np.sin(2 * np.pi * x) ** 3,
)


def main():
    """Evaluate one candidate and print its scores."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("solver")
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--beta", type=float, default=0.1)
    arguments = parser.parse_args()
    solver = load_solver(arguments.solver)
    with h5py.File(arguments.data) as file:
        reference = file["tensor"][-arguments.samples :]
        t = file["t-coordinate"][: reference.shape[1]]
    started = time.time()
    computed = np.asarray(solver(reference[:, 0], t, arguments.beta))
    seconds = time.time() - started
    errors = rms(computed - reference) / rms(reference)
    rate = convergence_rate(solver, arguments.beta)
    draw(computed[min(2, len(computed) - 1)], reference[min(2, len(reference) - 1)])
    print(f"nRMSE: {errors.mean():.3e}, time: {seconds:.3f} s, convergence rate: {rate:.2f}")


def load_solver(path):
    """Import the candidate into this process."""
    specification = importlib.util.spec_from_file_location("solver", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.solver


def rms(values):
    """Return the root mean square of each sample."""
    return np.sqrt(np.mean(values**2, axis=(1, 2)))


def convergence_rate(solver, beta):
    """Return the mean order from successive resolutions against the finest one."""
    t = np.arange(21) * 0.01
    grids = [(np.arange(n) + 0.5) / n for n in RESOLUTIONS]
    solutions = [np.asarray(solver(np.stack([shape(x) for shape in SHAPES]), t, beta)) for x in grids]
    finest = interp1d(grids[-1], solutions[-1], axis=-1, fill_value="extrapolate")
    errors = [np.sqrt(np.mean((u - finest(x)) ** 2)) for u, x in zip(solutions[:-1], grids[:-1], strict=True)]
    return np.mean(np.log2(np.maximum(errors[:-1], 1e-300) / np.maximum(errors[1:], 1e-300)))


def draw(computed, reference):
    """Save a picture of the computed and the reference solution and of their difference."""
    figure, panels = plt.subplots(1, 3, figsize=(15, 4))
    for panel, values in zip(panels, (computed, reference, computed - reference), strict=True):
        figure.colorbar(panel.imshow(values, aspect="auto", origin="lower"), ax=panel)
    figure.savefig("result.png")


if __name__ == "__main__":
    main()
