from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from sharp.problems import Problem, load_problem
from sharp.reference.pdebench_schemes import saving_times
from sharp.reference.reaction_diffusion import FAMILY
from sharp.reference.spectral import relative_l2
from tests.helpers import finding_helpers
from tests.helpers.problems.small_problems import small

T = np.linspace(0, 0.05, 6)


def step_by_step(problem: Problem, u: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Run the published scheme in plain float32 numpy, one operation and one rounding at a time."""
    f = np.float32
    nu, rho, dx = problem.parameters["nu"], problem.parameters["rho"], 1 / u.shape[-1]
    longest, clock, frames = f(0.125 * dx**2 / nu), f(t[0]), [u]

    def update(u: np.ndarray, at: np.ndarray, dt: np.float32) -> np.ndarray:
        grown = f(1) / (f(1) + f(np.exp(-rho * float(dt))) * ((f(1) - u) / u))
        jumps = np.roll(at, -1) - at
        return grown + f(nu * float(dt) / dx**2) * (jumps - np.roll(jumps, 1))

    for due in saving_times(t)[1:]:
        while clock < due:
            dt = min(longest, due - clock)
            if dt > 1e-8:
                u = update(u, update(u, u, f(0.5) * dt), dt)
            clock += dt
        frames.append(u)
    return np.stack(frames)


def test_uniform_state_grows_logistically() -> None:
    problem = small("reaction-diffusion", times=11, end=1.0, rho=2)
    t, begin = np.linspace(0, 1, 11), np.array([[0.1], [0.5]])
    truth = FAMILY.solve_reference(problem, {"u0_batch": np.repeat(begin, 64, 1)}, t)
    growth = begin * np.exp(2 * t) / (1 - begin + begin * np.exp(2 * t))
    np.testing.assert_allclose(truth.arrays["u"], np.repeat(growth[..., None], 64, 2), rtol=1e-8)


def test_without_reaction_sines_decay() -> None:
    problem = small("reaction-diffusion", rho=0)
    x = (np.arange(64) + 0.5) / 64
    initial = {"u0_batch": (0.5 + 0.4 * np.sin(2 * np.pi * x))[None]}
    truth = FAMILY.solve_reference(problem, initial, T)
    decay = np.exp(-0.5 * 4 * np.pi**2 * T)[:, None]
    np.testing.assert_allclose(truth.arrays["u"][0], 0.5 + 0.4 * decay * np.sin(2 * np.pi * x), atol=1e-12)
    data = FAMILY.solve_pdebench(problem, initial, T)["u"]
    assert relative_l2(data.astype(float), truth.arrays["u"])[0] < 1e-3


def test_truth_is_independent_of_the_grid() -> None:
    problems = [small("reaction-diffusion", points=points) for points in (64, 192)]
    coarse, fine = (FAMILY.sample_initial(problems[0], 6, 2) for _ in range(2))
    on_fine = {"u0_batch": fine.evaluate((np.arange(192) + 0.5) / 192)["u0_batch"]}
    truths = [
        FAMILY.solve_reference(problem, initial, T, evaluate=coarse.evaluate).arrays["u"]
        for problem, initial in zip(problems, (coarse.arrays, on_fine), strict=True)
    ]
    assert relative_l2(truths[0][:, 1:], truths[1][:, 1:, 1::3]).max() < 1e-7


def test_published_scheme_rounds_like_its_definition() -> None:
    problem = small("reaction-diffusion", points=32, times=11, end=0.1)
    drawn = FAMILY.sample_initial(problem, 3, 4)
    t = np.linspace(0, 0.1, 11)
    data = FAMILY.solve_pdebench(problem, drawn.arrays, t)["u"]
    assert data.dtype == np.float32
    with np.errstate(divide="ignore"):
        plain = np.stack([step_by_step(problem, u, t) for u in drawn.arrays["u0_batch"]])
    assert (data == plain).all()


def test_leaving_a_settled_state_alone_changes_nothing() -> None:
    problem = small("reaction-diffusion", points=8, times=3, end=4.0)
    t = np.array([0.0, 2.0, 4.0])
    u0 = np.full(8, 1 - 1e-7, np.float32)
    data = FAMILY.solve_pdebench(problem, {"u0_batch": u0[None]}, t)["u"][0]
    assert (data == step_by_step(problem, u0, t)).all()


def test_growth_stalls_in_single_precision_only() -> None:
    problem = load_problem("reaction-diffusion")
    t = np.linspace(0, 1, 101)
    initial = {"u0_batch": np.full((1, 1024), 0.5, np.float32)}
    data = FAMILY.solve_pdebench(problem, initial, t)["u"]
    truth = FAMILY.solve_reference(problem, initial, t).arrays["u"]
    assert abs(truth[0, -1].mean() - 1 / (1 + np.exp(-1))) < 1e-8
    assert 0.5 < data[0, -1].mean() < 0.6
    assert (data[0, -1] == data[0, -10]).all()


def test_double_precision_switch_of_jax_does_not_reach_the_published_scheme(tmp_path: Path) -> None:
    script = (
        "import sys, numpy as np; from tests.helpers.problems.small_problems import small\n"
        "from sharp.reference import advection, reaction_diffusion as rd\n"
        "p, q = small('reaction-diffusion'), small('advection'); t = np.linspace(0, 0.05, 6)\n"
        "u = rd.FAMILY.solve_pdebench(p, rd.FAMILY.sample_initial(p, 2, 0).arrays, t)['u']\n"
        "v = advection.FAMILY.solve_pdebench(q, advection.FAMILY.sample_initial(q, 2, 0).arrays, t)['u']\n"
        "np.save(sys.argv[1], np.stack([u, v]))\n"
    )
    found = []
    for switch in ("0", "1"):
        file = tmp_path / f"{switch}.npy"
        environment = finding_helpers(JAX_ENABLE_X64=switch)
        subprocess.run([sys.executable, "-c", script, str(file)], env=environment, check=True)
        found.append(np.load(file))
    assert found[1].dtype == np.float32
    assert (found[0] == found[1]).all()
