"""Steps of u_t = coefficient u_xx alone on a periodic grid, as one part of a splitting."""

from sharp.rule_based.vocabulary import *


@block("heat", 4, "exact diffusion of every Fourier mode")
def heat__fourier_exact(u, dt, dx, coefficient):
    """Diffuse u over dt exactly: every Fourier mode decays by its own factor."""
    k = 2.0 * np.pi * xp.fft.rfftfreq(u.shape[-1], d=dx)
    decay = xp.exp(-coefficient * k**2 * dt)
    return xp.fft.irfft(decay * xp.fft.rfft(u, axis=-1), n=u.shape[-1], axis=-1).astype(u.dtype)


@block("heat", 3, "exact exponential of the second-order difference operator")
def heat__difference_exact(u, dt, dx, coefficient):
    """Diffuse u over dt by the exact exponential of the three-point Laplacian (circulant)."""
    angle = 2.0 * np.pi * xp.arange(u.shape[-1] // 2 + 1) / u.shape[-1]
    decay = xp.exp(-2.0 * coefficient * dt * (1.0 - xp.cos(angle)) / dx**2)
    return xp.fft.irfft(decay * xp.fft.rfft(u, axis=-1), n=u.shape[-1], axis=-1).astype(u.dtype)


@block("heat", 2, "Crank-Nicolson diffusion solved by FFT")
def heat__crank_nicolson(u, dt, dx, coefficient):
    """Diffuse u over dt by Crank-Nicolson with the three-point Laplacian, diagonal in Fourier space."""
    angle = 2.0 * np.pi * xp.arange(u.shape[-1] // 2 + 1) / u.shape[-1]
    rate = coefficient * dt * (1.0 - xp.cos(angle)) / dx**2
    growth = (1.0 - rate) / (1.0 + rate)
    return xp.fft.irfft(growth * xp.fft.rfft(u, axis=-1), n=u.shape[-1], axis=-1).astype(u.dtype)


@block("heat", 1, "implicit Euler diffusion solved by FFT")
def heat__implicit_euler(u, dt, dx, coefficient):
    """Diffuse u over dt by implicit Euler with the three-point Laplacian, diagonal in Fourier space."""
    angle = 2.0 * np.pi * xp.arange(u.shape[-1] // 2 + 1) / u.shape[-1]
    rate = 2.0 * coefficient * dt * (1.0 - xp.cos(angle)) / dx**2
    spectrum = xp.fft.rfft(u, axis=-1) / (1.0 + rate)
    return xp.fft.irfft(spectrum, n=u.shape[-1], axis=-1).astype(u.dtype)


@block("heat", 1, "explicit Euler diffusion")
def heat__explicit(u, dt, dx, coefficient):
    """Diffuse u over dt by forward Euler with the three-point Laplacian; needs dt <= dx^2 / (2 coefficient)."""
    return u + coefficient * dt / dx**2 * (xp.roll(u, -1, axis=-1) - 2.0 * u + xp.roll(u, 1, axis=-1))


@block("heat", 3, "explicit stabilized (Runge-Kutta-Legendre) diffusion", "host")
def heat__legendre(u, dt, dx, coefficient):
    """Diffuse u over dt by the second-order Runge-Kutta-Legendre super time step (Meyer and others 2014)."""

    def laplacian(v):
        return coefficient * (np.roll(v, -1, axis=-1) - 2.0 * v + np.roll(v, 1, axis=-1)) / dx**2

    ratio = 2.0 * coefficient * dt / dx**2
    stages = max(3, math.ceil(0.5 * (math.sqrt(9.0 + 16.0 * ratio) - 1.0)) + 1)
    return legendre_stages(u, dt, stages, laplacian)
