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
    "Runge-Kutta by stages": (
        "numerical",
        "def solver(u0, t, nu):\n    u = u0\n    for i in range(9):\n        h = (t[i + 1] - t[i]) / 9\n"
        "        k1 = f(u)\n        k2 = f(u + h / 2 * k1)\n        u = u + h * k2\n    return u",
    ),
    "conjugate gradients": (
        "numerical",
        "def solver(a):\n    x = r = p = 1 - a\n    for _ in range(99):\n        q = apply(a, p)\n"
        "        x = x + (r * r) / (p * q) * p\n        r = r - q\n        p = r + p / q\n    return x",
    ),
    "exponential steps of any name": (
        "hybrid",
        "def solver(u0, t, nu):\n    v = u0\n    for i in range(9):\n        h = (t[i + 1] - t[i]) / 50\n"
        "        E = np.exp(L * h)\n        for _ in range(50):\n            v = E * v + h * E * slope(v)\n"
        "    return v",
    ),
    "two exact parts, one after the other": (
        "hybrid",
        "def advance(u, nu, rho, gap):\n    heat, e = np.exp(-nu * k**2 * gap), np.exp(-rho * gap)\n"
        "    def body(_, w):\n        w = np.fft.irfft(heat * np.fft.rfft(w))\n        return w / (w + (1 - w) * e)\n"
        "    return lax.fori_loop(0, 8, body, u)\n"
        "def solver(u0, t, nu, rho):\n    out = [u0]\n    for i in range(9):\n"
        "        out.append(advance(out[-1], nu, rho, (t[i + 1] - t[i]) / 8))\n    return out",
    ),
    "a linear step that is implicit": (
        "numerical",
        "def solver(u0, t, nu, rho):\n    out = [u0]\n    for gap in np.diff(t):\n        h = gap / 64\n"
        "        right = np.fft.rfft(out[-1] + h * rho * out[-1])\n"
        "        out.append(np.fft.irfft(right / (1 - h * lam)))\n    return out",
    ),
    "a state in an object": (
        "numerical",
        "class March:\n    def step(self, h):\n        self.u = self.u - h * self.flux(self.u)\n"
        "def solver(u0, t, nu):\n    march = March(u0)\n    for h in np.diff(t):\n        march.step(h)\n"
        "    return march.u",
    ),
    "a result that is made anew for each time": (
        "analytical",
        "def solver(u0, t, beta):\n    out = []\n    for now in t:\n        v = np.fft.rfft(u0)\n"
        "        v = v * np.exp(-2j * np.pi * k * beta * now)\n        v = np.fft.irfft(v)\n        out.append(v)\n"
        "    return out",
    ),
    "Cole-Hopf in other factors": (
        "transformed",
        "def solver(u0, t, nu):\n    theta = np.exp(-0.5 * np.cumsum(u0) * dx / nu)\n    return spread(theta, t)",
    ),
    "a kernel of heat is no transformation": (
        "analytical",
        "def solver(u0, t, nu):\n    return [np.exp(-(x - y)**2 / (4 * nu * s)) @ u0 for s in t]",
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
