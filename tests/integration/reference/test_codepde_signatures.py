"""Programs that were written for CodePDE's signatures run unchanged, and get the coefficients that they expect."""

from __future__ import annotations

import pytest

from sharp.api import evaluate
from sharp.problems import Problem
from tests.helpers.problems.small_problems import gas_problem, small

# What CodePDE's templates fix: names and order of arguments, shapes, and a tuple of three arrays for the gas.
MARCH = """
import numpy as np

def waves(n, length=1.0):
    return 2j * np.pi * np.fft.rfftfreq(n, length / n)

def along(u, k):
    return np.fft.irfft(k * np.fft.rfft(u), u.shape[-1])

def march(state, times, largest, slope):
    frames = [state]
    for span in np.diff(times):
        count = int(np.ceil(span / largest))
        h = span / count
        for _ in range(count):
            a = slope(state)
            b = slope(state + h / 2 * a)
            c = slope(state + h / 2 * b)
            state = state + h / 6 * (a + 2 * b + 2 * c + slope(state + h * c))
        frames.append(state)
    return np.stack(frames)
"""
ADVECTION = """
def solver(u0_batch, t_coordinate, beta):
    u, k = np.asarray(u0_batch, float), waves(u0_batch.shape[1])
    shifted = np.fft.rfft(u)[:, None] * np.exp(-beta * k * np.asarray(t_coordinate)[:, None])
    return np.fft.irfft(shifted, u.shape[1])
"""
BURGERS = """
def solver(u0_batch, t_coordinate, nu):
    u, k = np.asarray(u0_batch, float), waves(u0_batch.shape[1])
    slope = lambda v: -along(v**2 / 2, k) + nu * along(v, k**2)
    return march(u, t_coordinate, 2e-4, slope).swapaxes(0, 1)
"""
REACTION_DIFFUSION = """
def solver(u0_batch, t_coordinate, nu, rho):
    u, k = np.asarray(u0_batch, float), waves(u0_batch.shape[1])
    slope = lambda v: nu * along(v, k**2) + rho * v * (1 - v)
    return march(u, t_coordinate, 1e-4, slope).swapaxes(0, 1)
"""
NAVIER_STOKES = """
def solver(Vx0, density0, pressure0, t_coordinate, eta, zeta):
    v, rho, p = (np.asarray(each, float) for each in (Vx0, density0, pressure0))
    k, gamma = waves(v.shape[1], 2.0), 5 / 3

    def parts(state):
        v = state[1] / state[0]
        return v, (gamma - 1) * (state[2] - state[0] * v**2 / 2)

    def slope(state):
        v, p = parts(state)
        stress = (zeta + 4 / 3 * eta) * state[0] * along(v, k)
        flux = np.stack([state[1], state[1] * v + p - stress, (state[2] + p - stress) * v])
        return -along(flux, k)

    start = np.stack([rho, rho * v, p / (gamma - 1) + rho * v**2 / 2])
    found = march(start, t_coordinate, 1e-4, slope).transpose(1, 2, 0, 3)
    v, p = parts(found)
    return v, found[0], p
"""
DARCY = """
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import spsolve

def solver(a):
    return np.stack([one(np.asarray(each, float)) for each in a])

def one(a):
    n = len(a)
    at = np.arange(n * n).reshape(n, n)
    left = np.concatenate([at[:-1].ravel(), at[:, :-1].ravel()])
    right = np.concatenate([at[1:].ravel(), at[:, 1:].ravel()])
    w = 2 / (1 / a.ravel()[left] + 1 / a.ravel()[right])
    rows, columns = np.r_[left, right, left, right], np.r_[left, right, right, left]
    matrix = coo_matrix((np.r_[w, w, -w, -w] * (n - 1) ** 2, (rows, columns))).tocsr()
    inner, u = at[1:-1, 1:-1].ravel(), np.zeros(n * n)
    u[inner] = spsolve(matrix[inner][:, inner].tocsc(), np.ones(len(inner)))
    return u.reshape(n, n)
"""


CASES = {
    "advection": (small("advection", end=0.2), ADVECTION, "beta *", 1e-6),
    "burgers": (small("burgers", points=256, end=0.05), BURGERS, "nu *", 1e-5),
    "reaction-diffusion": (small("reaction-diffusion", end=0.1), REACTION_DIFFUSION, "rho *", 1e-3),
    "navier-stokes": (gas_problem(kinematic=True), NAVIER_STOKES, "3 *", 6e-3),
    "darcy": (small("darcy", points=33), DARCY, "np.ones", 0.01),
}


@pytest.mark.parametrize("name", CASES)
def test_a_program_for_codepdes_signature_runs_unchanged_and_its_coefficients_are_those(name: str) -> None:
    problem, program, coefficient, error = CASES[name]
    assert error_of(problem, program) < error
    # CodePDE's Burgers solvers have the coefficient of u_xx: with another factor, such as pi, nothing would fit.
    before, found, after = program.partition(coefficient)
    assert found
    times_pi = f"{before}np.pi * {found}{after}" if "3" not in found else f"{before}{found} np.pi *{after}"
    assert error_of(problem, times_pi) > 2 * error


def error_of(problem: Problem, program: str) -> float:
    """Return the error of a program on two samples against the solution of the equations."""
    found = evaluate(problem, MARCH + program, samples=2)
    assert found.failure is None, found.failure
    assert found.scores is not None
    assert found.scores.nrmse_reference is not None
    return found.scores.nrmse_reference


def test_a_program_may_start_processes_of_its_own() -> None:
    pool = "from concurrent.futures import ProcessPoolExecutor\n" + DARCY.replace(
        "[one(np.asarray(each, float)) for each in a]",
        "list(ProcessPoolExecutor(2).map(one, np.asarray(a, float)))",
    )
    problem, _, _, error = CASES["darcy"]
    assert error_of(problem, pool) < error
