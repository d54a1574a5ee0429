"""Linear advection u_t + beta u_x = 0."""

from sharp.rule_based.vocabulary import *


@block("flux", 3, "upwind flux")
def numerical_flux__upwind(left, right, beta):
    """Return the flux of the state on the side the wave comes from."""
    return xp.where(beta > 0.0, beta * left, beta * right)


@block("flux", 3, "Rusanov flux")
def numerical_flux__rusanov(left, right, beta):
    """Return the Rusanov flux: the mean flux minus the wave speed times half the jump."""
    return 0.5 * beta * (left + right) - 0.5 * abs(beta) * (right - left)


@block("space", 3, "conservative finite volumes")
def spatial_operator__finite_volume(u, dx, beta):
    """Return du/dt of the cell averages from the fluxes through the faces i+1/2."""
    left, right = reconstruct(u)
    flux = numerical_flux(left, right, beta)
    return -(flux - xp.roll(flux, 1, axis=-1)) / dx


@block("space", 1, "first-order upwind differences", "host")
def spatial_operator__upwind_difference(u, dx, beta):
    """Return -beta u_x by one-sided differences against the wind."""
    backward = (u - xp.roll(u, 1, axis=-1)) / dx
    forward = (xp.roll(u, -1, axis=-1) - u) / dx
    return -(max(beta, 0.0) * backward + min(beta, 0.0) * forward)


@block("space", 2, "second-order central differences")
def spatial_operator__central_2(u, dx, beta):
    """Return -beta u_x by second-order central differences."""
    return -beta * (xp.roll(u, -1, axis=-1) - xp.roll(u, 1, axis=-1)) / (2.0 * dx)


@block("space", 3, "fourth-order central differences")
def spatial_operator__central_4(u, dx, beta):
    """Return -beta u_x by fourth-order central differences."""
    near = xp.roll(u, -1, axis=-1) - xp.roll(u, 1, axis=-1)
    far = xp.roll(u, -2, axis=-1) - xp.roll(u, 2, axis=-1)
    return -beta * (8.0 * near - far) / (12.0 * dx)


@block("space", 4, "Fourier pseudo-spectral derivative")
def spatial_operator__fourier(u, dx, beta):
    """Return -beta u_x, differentiated in Fourier space."""
    k = 2.0 * np.pi * xp.fft.rfftfreq(u.shape[-1], d=dx)
    derivative = xp.fft.irfft(1j * k * xp.fft.rfft(u, axis=-1), n=u.shape[-1], axis=-1)
    return -beta * derivative.astype(u.dtype)


@block("advance", 0, "Lax-Friedrichs (first order, very diffusive)")
def advance__lax_friedrichs(u, dt, dx, beta):
    """Take one Lax-Friedrichs step."""
    left, right = xp.roll(u, 1, axis=-1), xp.roll(u, -1, axis=-1)
    return 0.5 * (left + right) - 0.5 * beta * dt / dx * (right - left)


@block("advance", 2, "Lax-Wendroff (second order in space and time)")
def advance__lax_wendroff(u, dt, dx, beta):
    """Take one Lax-Wendroff step."""
    courant = beta * dt / dx
    left, right = xp.roll(u, 1, axis=-1), xp.roll(u, -1, axis=-1)
    return u - 0.5 * courant * (right - left) + 0.5 * courant**2 * (right - 2.0 * u + left)


@block("advance", 2, "Crank-Nicolson with central differences, solved exactly by FFT")
def advance__crank_nicolson(u, dt, dx, beta):
    """Take one Crank-Nicolson step; the circulant system is diagonal in Fourier space."""
    angle = 2.0 * np.pi * xp.arange(u.shape[-1] // 2 + 1) / u.shape[-1]
    symbol = -1j * beta * xp.sin(angle) / dx
    growth = (1.0 + 0.5 * dt * symbol) / (1.0 - 0.5 * dt * symbol)
    return xp.fft.irfft(growth * xp.fft.rfft(u, axis=-1), n=u.shape[-1], axis=-1).astype(u.dtype)


@block("advance", 4, "exact shift of every Fourier mode")
def advance__fourier_shift(u, dt, dx, beta):
    """Return u moved by beta dt: every Fourier mode is multiplied by its phase factor."""
    k = 2.0 * np.pi * xp.fft.rfftfreq(u.shape[-1], d=dx)
    spectrum = xp.fft.rfft(u, axis=-1) * xp.exp(-1j * k * beta * dt)
    return xp.fft.irfft(spectrum, n=u.shape[-1], axis=-1).astype(u.dtype)


@block("advance", 3, "four-point Lagrange interpolation at the feet of the characteristics", "host")
def advance__cubic_characteristics(u, dt, dx, beta):
    """Return u at the feet x - beta dt of the characteristics by cubic Lagrange interpolation."""
    shift = beta * dt / dx
    cells = math.floor(shift)
    s = shift - cells
    ahead, here = xp.roll(u, cells - 1, axis=-1), xp.roll(u, cells, axis=-1)
    behind, far = xp.roll(u, cells + 1, axis=-1), xp.roll(u, cells + 2, axis=-1)
    return (
        -s * (1.0 - s) * (2.0 - s) / 6.0 * ahead
        + (1.0 + s) * (1.0 - s) * (2.0 - s) / 2.0 * here
        + (1.0 + s) * s * (2.0 - s) / 2.0 * behind
        - (1.0 + s) * s * (1.0 - s) / 6.0 * far
    )


@block("advance", 3, "periodic cubic spline evaluated at the feet of the characteristics", "host")
def advance__spline_characteristics(u, dt, dx, beta):
    """Return u at the feet x - beta dt of the characteristics from a periodic cubic spline."""
    cells = u.shape[-1]
    centres = (np.arange(cells + 1) + 0.5) * dx
    spline = CubicSpline(centres, np.concatenate([u, u[..., :1]], axis=-1), axis=-1, bc_type="periodic")
    feet = centres[0] + np.mod(centres[:-1] - beta * dt - centres[0], cells * dx)
    return spline(feet).astype(u.dtype)


@block("step", 2, "time step from the CFL condition")
def stable_step__cfl(u, dx, beta):
    """Return the time step that moves the wave by the fraction CFL of a cell."""
    return CFL * dx / max(abs(beta), 1e-12)
