"""Blocks that solve u_t = coefficient u_xx alone on a periodic grid, as one part of a splitting."""

from __future__ import annotations

from sharp.llm.playbook.library.blocks import HOST, Block

HEAT: tuple[Block, ...] = (
    Block(
        "heat",
        "fourier-exact",
        4,
        "exact diffusion of every Fourier mode",
        '''
def heat(u, dt, dx, coefficient):
    """Diffuse u over dt exactly: every Fourier mode decays by its own factor."""
    k = 2.0 * np.pi * xp.fft.rfftfreq(u.shape[-1], d=dx)
    decay = xp.exp(-coefficient * k**2 * dt)
    return xp.fft.irfft(decay * xp.fft.rfft(u, axis=-1), n=u.shape[-1], axis=-1).astype(u.dtype)
''',
    ),
    Block(
        "heat",
        "difference-exact",
        3,
        "exact exponential of the second-order difference operator",
        '''
def heat(u, dt, dx, coefficient):
    """Diffuse u over dt by the exact exponential of the three-point Laplacian (circulant)."""
    angle = 2.0 * np.pi * xp.arange(u.shape[-1] // 2 + 1) / u.shape[-1]
    decay = xp.exp(-2.0 * coefficient * dt * (1.0 - xp.cos(angle)) / dx**2)
    return xp.fft.irfft(decay * xp.fft.rfft(u, axis=-1), n=u.shape[-1], axis=-1).astype(u.dtype)
''',
    ),
    Block(
        "heat",
        "crank-nicolson",
        2,
        "Crank-Nicolson diffusion solved by FFT",
        '''
def heat(u, dt, dx, coefficient):
    """Diffuse u over dt by Crank-Nicolson with the three-point Laplacian, diagonal in Fourier space."""
    angle = 2.0 * np.pi * xp.arange(u.shape[-1] // 2 + 1) / u.shape[-1]
    rate = coefficient * dt * (1.0 - xp.cos(angle)) / dx**2
    growth = (1.0 - rate) / (1.0 + rate)
    return xp.fft.irfft(growth * xp.fft.rfft(u, axis=-1), n=u.shape[-1], axis=-1).astype(u.dtype)
''',
    ),
    Block(
        "heat",
        "implicit-euler",
        1,
        "implicit Euler diffusion solved by FFT",
        '''
def heat(u, dt, dx, coefficient):
    """Diffuse u over dt by implicit Euler with the three-point Laplacian, diagonal in Fourier space."""
    angle = 2.0 * np.pi * xp.arange(u.shape[-1] // 2 + 1) / u.shape[-1]
    rate = 2.0 * coefficient * dt * (1.0 - xp.cos(angle)) / dx**2
    spectrum = xp.fft.rfft(u, axis=-1) / (1.0 + rate)
    return xp.fft.irfft(spectrum, n=u.shape[-1], axis=-1).astype(u.dtype)
''',
    ),
    Block(
        "heat",
        "explicit",
        1,
        "explicit Euler diffusion",
        '''
def heat(u, dt, dx, coefficient):
    """Diffuse u over dt by forward Euler with the three-point Laplacian; needs dt <= dx^2 / (2 coefficient)."""
    return u + coefficient * dt / dx**2 * (xp.roll(u, -1, axis=-1) - 2.0 * u + xp.roll(u, 1, axis=-1))
''',
    ),
    Block(
        "heat",
        "banded-crank-nicolson",
        2,
        "Crank-Nicolson diffusion by a cyclic tridiagonal solve (Sherman-Morrison)",
        '''
def cyclic_solve(diagonal, off_diagonal, right_hand_side):
    """Solve the constant cyclic tridiagonal system for every row, by Sherman and Morrison's formula."""
    cells = right_hand_side.shape[-1]
    bands = np.empty((3, cells))
    bands[0], bands[1], bands[2] = off_diagonal, diagonal, off_diagonal
    bands[1, 0] -= off_diagonal
    bands[1, -1] -= off_diagonal
    corner = np.zeros(cells)
    corner[[0, -1]] = 1.0
    columns = np.column_stack([right_hand_side.T, corner])
    solved = solve_banded((1, 1), bands, columns)
    plain, correction = solved[:, :-1], solved[:, -1]
    factor = off_diagonal * (plain[0] + plain[-1])
    factor = factor / (1.0 + off_diagonal * (correction[0] + correction[-1]))
    return (plain - correction[:, None] * factor).T


def heat(u, dt, dx, coefficient):
    """Diffuse u over dt by Crank-Nicolson with the three-point Laplacian."""
    ratio = 0.5 * coefficient * dt / dx**2
    laplacian = np.roll(u, 1, axis=-1) - 2.0 * u + np.roll(u, -1, axis=-1)
    return cyclic_solve(1.0 + 2.0 * ratio, -ratio, u + ratio * laplacian).astype(u.dtype)
''',
        HOST,
    ),
    Block(
        "heat",
        "legendre",
        3,
        "explicit stabilized (Runge-Kutta-Legendre) diffusion",
        '''
def heat(u, dt, dx, coefficient):
    """Diffuse u over dt by the second-order Runge-Kutta-Legendre super time step (Meyer and others 2014)."""

    def laplacian(v):
        return coefficient * (np.roll(v, -1, axis=-1) - 2.0 * v + np.roll(v, 1, axis=-1)) / dx**2

    ratio = 2.0 * coefficient * dt / dx**2
    stages = max(3, math.ceil(0.5 * (math.sqrt(9.0 + 16.0 * ratio) - 1.0)) + 1)
    w = 4.0 / (stages**2 + stages - 2.0)
    b = [1.0 / 3.0, 1.0 / 3.0] + [(j * j + j - 2.0) / (2.0 * j * (j + 1.0)) for j in range(2, stages + 1)]
    start = laplacian(u)
    older, old = u, u + b[1] * w * dt * start
    for j in range(2, stages + 1):
        mu = (2.0 * j - 1.0) / j * b[j] / b[j - 1]
        nu = -(j - 1.0) / j * b[j] / b[j - 2]
        gamma = -(1.0 - b[j - 1]) * mu * w
        new = mu * old + nu * older + (1.0 - mu - nu) * u
        older, old = old, new + mu * w * dt * laplacian(old) + gamma * dt * start
    return old
''',
        HOST,
    ),
)
