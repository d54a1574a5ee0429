"""Viscous Burgers' equation u_t + (u^2/2)_x = viscosity u_xx."""

from sharp.rule_based.vocabulary import *


@block("flux", 2, "Rusanov flux")
def numerical_flux__rusanov(left, right):
    """Return the Rusanov flux of u^2/2 with the larger local wave speed."""
    speed = xp.maximum(xp.abs(left), xp.abs(right))
    return 0.25 * (left**2 + right**2) - 0.5 * speed * (right - left)


@block("flux", 3, "Godunov flux (exact Riemann solver)")
def numerical_flux__godunov(left, right):
    """Return Godunov's flux: the exact Riemann solution of the convex flux u^2/2 at the face."""
    return 0.5 * xp.maximum(xp.maximum(left, 0.0) ** 2, xp.minimum(right, 0.0) ** 2)


@block("flux", 3, "Engquist-Osher flux")
def numerical_flux__engquist_osher(left, right):
    """Return the Engquist-Osher flux: right-going waves from the left, left-going ones from the right."""
    return 0.5 * (xp.maximum(left, 0.0) ** 2 + xp.minimum(right, 0.0) ** 2)


@block("flux", 1, "global Lax-Friedrichs flux")
def numerical_flux__lax_friedrichs(left, right):
    """Return the Lax-Friedrichs flux with the largest wave speed of the whole batch."""
    speed = xp.max(xp.abs(left))
    return 0.25 * (left**2 + right**2) - 0.5 * speed * (right - left)


@block("convection", 3, "conservative finite volumes")
def convection__finite_volume(u, dx):
    """Return -(u^2/2)_x of the cell averages from the fluxes through the faces i+1/2."""
    left, right = reconstruct(u)
    flux = numerical_flux(left, right)
    return -(flux - xp.roll(flux, 1, axis=-1)) / dx


@block("convection", 2, "second-order central differences of u^2/2")
def convection__central(u, dx):
    """Return -(u^2/2)_x by central differences; the viscosity has to damp the grid oscillations."""
    flux = 0.5 * u**2
    return -(xp.roll(flux, -1, axis=-1) - xp.roll(flux, 1, axis=-1)) / (2.0 * dx)


@block("convection", 2, "energy-conserving skew-symmetric central differences")
def convection__skew_symmetric(u, dx):
    """Return -(2/3) (u^2/2)_x - (1/3) u u_x by central differences, which conserves the discrete energy."""
    left, right = xp.roll(u, 1, axis=-1), xp.roll(u, -1, axis=-1)
    return -(right**2 - left**2 + u * (right - left)) / (6.0 * dx)


@block("convection", 3, "pseudo-spectral derivative of u^2/2")
def convection__pseudo_spectral(u, dx):
    """Return -(u^2/2)_x, differentiated in Fourier space."""
    k = 2.0 * np.pi * xp.fft.rfftfreq(u.shape[-1], d=dx)
    flux = xp.fft.rfft(0.5 * u**2, axis=-1)
    return -xp.fft.irfft(1j * k * flux, n=u.shape[-1], axis=-1).astype(u.dtype)


@block("diffusion", 2, "second-order central diffusion")
def diffusion__central_2(u, dx, viscosity):
    """Return viscosity u_xx by second-order central differences."""
    return viscosity * (xp.roll(u, -1, axis=-1) - 2.0 * u + xp.roll(u, 1, axis=-1)) / dx**2


@block("diffusion", 3, "fourth-order central diffusion")
def diffusion__central_4(u, dx, viscosity):
    """Return viscosity u_xx by fourth-order central differences."""
    near = xp.roll(u, -1, axis=-1) + xp.roll(u, 1, axis=-1)
    far = xp.roll(u, -2, axis=-1) + xp.roll(u, 2, axis=-1)
    return viscosity * (16.0 * near - far - 30.0 * u) / (12.0 * dx**2)


@block("space", 2, "method of lines")
def spatial_operator__method_of_lines(u, dx, viscosity):
    """Return du/dt of the semi-discrete equation."""
    return convection(u, dx) + diffusion(u, dx, viscosity)


@block("nonlinear", 3, "two-thirds dealiasing")
def nonlinear_term__dealiased(spectrum, k, cells):
    """Return the spectrum of -(u^2/2)_x with the upper third of the modes removed (Orszag's rule)."""
    kept = xp.where(k <= 2.0 / 3.0 * k[-1], spectrum, 0.0)
    square = xp.fft.rfft(xp.fft.irfft(kept, n=cells, axis=-1) ** 2, axis=-1)
    return xp.where(k <= 2.0 / 3.0 * k[-1], -0.5j * k * square, 0.0)


@block("nonlinear", 2, "no dealiasing")
def nonlinear_term__aliased(spectrum, k, cells):
    """Return the spectrum of -(u^2/2)_x, the square taken on the grid."""
    square = xp.fft.rfft(xp.fft.irfft(spectrum, n=cells, axis=-1) ** 2, axis=-1)
    return -0.5j * k * square


@block("advance", 3, "Strang splitting of diffusion and convection (second order)")
def advance__strang(u, dt, dx, viscosity):
    """Take one Strang step: half a step of diffusion, a step of convection, half a step of diffusion."""
    u = heat(u, 0.5 * dt, dx, viscosity)
    u = transport(u, dt, dx)
    return heat(u, 0.5 * dt, dx, viscosity)


@block("advance", 1, "Lie splitting of diffusion and convection (first order)")
def advance__lie(u, dt, dx, viscosity):
    """Take one Lie step: convection, then diffusion."""
    return heat(transport(u, dt, dx), dt, dx, viscosity)


@block("advance", 2, "IMEX: Crank-Nicolson diffusion with a Heun corrector for convection (second order)")
def advance__imex(u, dt, dx, viscosity):
    """Take one IMEX step: diffusion by Crank-Nicolson in Fourier space, convection by Heun's method."""
    k = 2.0 * np.pi * xp.fft.rfftfreq(u.shape[-1], d=dx)
    decay = 0.5 * dt * viscosity * k**2

    def implicit_solve(forcing):
        spectrum = (1.0 - decay) * xp.fft.rfft(u, axis=-1) + dt * xp.fft.rfft(forcing, axis=-1)
        return xp.fft.irfft(spectrum / (1.0 + decay), n=u.shape[-1], axis=-1).astype(u.dtype)

    slope = convection(u, dx)
    predicted = implicit_solve(slope)
    return implicit_solve(0.5 * (slope + convection(predicted, dx)))


@block("advance", 4, "integrating-factor RK4 in Fourier space (fourth order)")
def advance__integrating_factor_rk4(u, dt, dx, viscosity):
    """Take one RK4 step of the Fourier coefficients with the diffusion integrated exactly."""
    cells = u.shape[-1]
    k = 2.0 * np.pi * xp.fft.rfftfreq(cells, d=dx)
    half = xp.exp(-0.5 * dt * viscosity * k**2)
    v = xp.fft.rfft(u, axis=-1)
    k1 = nonlinear_term(v, k, cells)
    k2 = nonlinear_term(half * (v + 0.5 * dt * k1), k, cells)
    k3 = nonlinear_term(half * v + 0.5 * dt * k2, k, cells)
    k4 = nonlinear_term(half**2 * v + dt * half * k3, k, cells)
    v = half**2 * v + dt / 6.0 * (half**2 * k1 + 2.0 * half * (k2 + k3) + k4)
    return xp.fft.irfft(v, n=cells, axis=-1).astype(u.dtype)


def phi_functions(z):
    """Return exp(z) and phi_1, phi_2, phi_3 of real z by averages over a circle (Kassam-Trefethen)."""
    points = z[:, None] + xp.exp(2j * np.pi * (xp.arange(32) + 0.5) / 32)
    growth = xp.exp(points)
    phi1 = (growth - 1.0) / points
    phi2 = (phi1 - 1.0) / points
    phi3 = (phi2 - 0.5) / points
    return (xp.exp(z), *(xp.mean(phi, axis=-1).real for phi in (phi1, phi2, phi3)))


@block("advance", 4, "exponential time differencing ETD-RK4 in Fourier space (fourth order)")
def advance__etd_rk4(u, dt, dx, viscosity):
    """Take one ETD-RK4 step (Cox-Matthews) of the Fourier coefficients."""
    cells = u.shape[-1]
    k = 2.0 * np.pi * xp.fft.rfftfreq(cells, d=dx)
    full, phi1, phi2, phi3 = phi_functions(-dt * viscosity * k**2)
    half, half_phi1, _, _ = phi_functions(-0.5 * dt * viscosity * k**2)
    v = xp.fft.rfft(u, axis=-1)
    n0 = nonlinear_term(v, k, cells)
    a = half * v + 0.5 * dt * half_phi1 * n0
    na = nonlinear_term(a, k, cells)
    b = half * v + 0.5 * dt * half_phi1 * na
    nb = nonlinear_term(b, k, cells)
    c = half * a + 0.5 * dt * half_phi1 * (2.0 * nb - n0)
    nc = nonlinear_term(c, k, cells)
    weights = phi1 - 3.0 * phi2 + 4.0 * phi3, 2.0 * phi2 - 4.0 * phi3, 4.0 * phi3 - phi2
    v = full * v + dt * (weights[0] * n0 + weights[1] * (na + nb) + weights[2] * nc)
    return xp.fft.irfft(v, n=cells, axis=-1).astype(u.dtype)


def potential(u, refinement):
    """Return the integral of u less its mean, on a grid `refinement` times finer, by Fourier series."""
    cells = u.shape[-1]
    k = 2.0 * np.pi * np.arange(cells // 2 + 1)
    spectrum = np.fft.rfft(u, axis=-1)
    spectrum[..., 1:] /= 1j * k[1:]
    spectrum[..., 0] = 0.0
    spectrum[..., -1] = 0.0
    return np.fft.irfft(spectrum * refinement, n=cells * refinement, axis=-1)


@block("advance", 3, "Cole-Hopf transformation, the heat kernel summed over a window", "host")
def advance__cole_hopf(u, dt, dx, viscosity):
    """Return u after dt from the Cole-Hopf formula, with Laplace-type weights scaled by their largest."""
    width = math.sqrt(2.0 * viscosity * dt)
    refinement = max(1, math.ceil(3.0 * dx / width))
    spacing = dx / refinement
    reach = math.ceil((float(np.max(np.abs(u))) * dt + WINDOW * width) / spacing)
    phi = potential(u, refinement)
    mean = np.mean(u, axis=-1, keepdims=True)

    def action(j):
        distance = j * spacing
        value = np.roll(phi, j, axis=-1)[..., ::refinement] - mean * distance
        return (value + 0.5 * distance**2 / dt) / (2.0 * viscosity)

    lowest = action(0)
    for j in range(-reach, reach + 1):
        lowest = np.minimum(lowest, action(j))
    total, moment = np.zeros_like(u), np.zeros_like(u)
    for j in range(-reach, reach + 1):
        weight = np.exp(lowest - action(j))
        total += weight
        moment += weight * (j * spacing / dt)
    return moment / total


@block("step", 2, "time step from the convective and the diffusive stability bound")
def stable_step__explicit(u, dx, viscosity):
    """Return the step that respects the convective and the diffusive bound of explicit steps together."""
    speed = xp.max(xp.abs(u))
    return 1.0 / (speed / (CFL * dx) + viscosity / (DIFFUSION_NUMBER * dx**2))


@block("step", 2, "time step from the smaller of the convective and the diffusive bound")
def stable_step__explicit_minimum(u, dx, viscosity):
    """Return the fraction CFL of the smaller of the convective and the diffusive bound of explicit steps."""
    speed = xp.max(xp.abs(u)) + 1e-12
    return CFL * xp.minimum(dx / speed, 0.5 * dx**2 / viscosity)


@block("step", 2, "time step from the convective CFL condition alone")
def stable_step__convective(u, dx, viscosity):
    """Return the convective bound CFL dx/|u|; diffusion is treated without a bound."""
    speed = xp.max(xp.abs(u)) + 1e-12
    return CFL * dx / speed
