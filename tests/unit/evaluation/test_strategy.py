"""The strategy of a program by its syntax tree, whatever it says of itself."""

from __future__ import annotations

from collections import Counter

import pytest

from sharp.evaluation.strategy import strategy_of
from sharp.rule_based.composer import compose

HEAD = '"""Strategy: analytical"""\nimport jax.numpy as np\nfrom jax import lax\n# Cole-Hopf\n'
PROGRAMS = {
    # The paper's Round 1 and 4 (appendix E): explicit diffusion, the logistic equation solved exactly.
    "logistic by its formula": (
        "hybrid",
        "def react(u, s, rho):\n    return 1 / (1 + np.exp(-rho * s) * (1 - u) / (u + 1e-9))\n"
        "def solver(u0, t, nu, rho):\n"
        "    u = u0\n    out = [u]\n    for k in range(len(t) - 1):\n        dt = (t[k + 1] - t[k]) / 100\n"
        "        grow = -rho * dt\n        for _ in range(100):\n"
        "            u = 1 / (1 + np.exp(grow) * (1 - u) / (u + 1e-9))\n"
        "            u = u + nu * dt * (np.roll(u, 1) - 2 * u + np.roll(u, -1))\n        out.append(u)\n    return out",
    ),
    "explicit differences": (
        "numerical",
        "def solver(u0, t, nu, rho):\n    u = u0\n    while t0 < t[-1]:\n        dt = 0.1\n        t0 = t0 + dt\n"
        "        u = u + dt * (nu * (np.roll(u, 1) - 2 * u + np.roll(u, -1)) + rho * u * (1 - u))\n    return u",
    ),
    "a scan of steps": (
        "numerical",
        "def step(u, _):\n    return u - 0.5 * (u - np.roll(u, 1)), u\n"
        "def solver(u0, t, beta):\n    return lax.scan(step, u0, None, length=10)[1]",
    ),
    "an integrator of SciPy": (
        "numerical",
        "from scipy.integrate import solve_ivp\ndef solver(u0, t, nu):\n"
        "    return solve_ivp(lambda t, u: nu * (np.roll(u, 1) - u), (0, t[-1]), u0, t_eval=t).y",
    ),
    "an integrating factor": (
        "hybrid",
        "def solver(u0, t, nu):\n    v = np.fft.fft(u0)\n    E = np.exp(-nu * k**2 * dt)\n    for n in range(100):\n"
        "        v = E * (v + dt * nonlinear(v))\n    return v",
    ),
    "a Fourier shift of the initial state": (
        "analytical",
        "def solver(u0, t, beta):\n    k = np.fft.fftfreq(u0.shape[-1])\n    out = []\n    for s in t:\n"
        "        out.append(np.fft.ifft(np.fft.fft(u0) * np.exp(-2j * np.pi * k * beta * s)))\n    return out",
    ),
    "a Fourier shift from output to output": (
        "analytical",
        "def solver(u0, t, beta):\n    u = np.fft.fft(u0)\n    for n in range(9):\n        dt = t[n + 1] - t[n]\n"
        "        u = u * np.exp(-2j * np.pi * k * beta * dt)\n    return u",
    ),
    "interpolation at the feet of characteristics": (
        "analytical",
        "def solver(u0, t, beta):\n    out = np.zeros(9)\n    for i, s in enumerate(t):\n"
        "        out[i] = np.interp((x - beta * s) % 1.0, x, u0)\n    return out",
    ),
    "Cole-Hopf by name": ("transformed", "def cole_hopf(u, nu):\n    ...\ndef solver(u, t, nu): ..."),
    "Cole-Hopf by its formula": (
        "transformed",
        "def solver(u0, t, viscosity):\n    phi = np.exp(-np.cumsum(u0) * dx / (2 * viscosity))\n    return phi",
    ),
    "central differences over 2 dx are no transformation": (
        "numerical",
        "def solver(u0, t, nu):\n    u = u0\n    for n in range(9):\n"
        "        u = u - dt * u * (np.roll(u, -1) - np.roll(u, 1)) / (2 * dx)\n    return u * np.exp(0.0)",
    ),
    "a sparse system": (
        "numerical",
        "from scipy.sparse.linalg import spsolve\ndef solver(a):\n    return [spsolve(b, f) for b in a]",
    ),
    "no program": ("numerical", "def solver("),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_known_by_what_they_do(name: str) -> None:
    strategy, code = PROGRAMS[name]
    assert strategy_of(HEAD + code) == strategy


@pytest.mark.parametrize(
    ("family", "recipe", "strategy"),
    [
        ("advection", "muscl", "numerical"),
        ("advection", "characteristics", "analytical"),
        ("burgers", "cole-hopf", "transformed"),
        ("burgers", "weno", "numerical"),
        ("reaction-diffusion", "strang", "hybrid"),
        ("reaction-diffusion", "explicit", "numerical"),
        ("reaction-diffusion", "exponential", "hybrid"),
        ("darcy-2d", "sparse-direct", "numerical"),
    ],
)
def test_programs_of_the_library_are_known_in_every_variant(family: str, recipe: str, strategy: str) -> None:
    programs = [compose(family, seed, recipes=(recipe,)) for seed in range(12)]
    assert Counter(strategy_of(each.code) for each in programs) == {strategy: 12}
