"""One-dimensional compressible flow of an ideal gas, in conserved variables (density, momentum, energy)."""

from sharp.rule_based.vocabulary import *


@block("state", 2, "conserved variables density, momentum, energy")
def primitive__plain(u):
    """Return (density, velocity, pressure) of the conserved variables."""
    velocity = u[1] / u[0]
    return u[0], velocity, (GAMMA - 1.0) * (u[2] - 0.5 * u[1] * velocity)


def conserved(density, velocity, pressure):
    """Return the stack (density, momentum, total energy) of an ideal gas."""
    energy = pressure / (GAMMA - 1.0) + 0.5 * density * velocity**2
    return xp.stack([density, density * velocity, energy])


@block("state", 3, "conserved variables with floors of density and pressure")
def primitive__floored(u):
    """Return (density, velocity, pressure) of the conserved variables, density and pressure kept positive."""
    density = xp.maximum(u[0], FLOOR)
    velocity = u[1] / density
    pressure = (GAMMA - 1.0) * (u[2] - 0.5 * u[1] * velocity)
    return density, velocity, xp.maximum(pressure, FLOOR)


@block("inviscid", 2, "Euler fluxes")
def inviscid_flux__euler(w):
    """Return the inviscid flux of the primitive variables (density, velocity, pressure)."""
    density, velocity, pressure = w
    momentum = density * velocity
    energy = pressure / (GAMMA - 1.0) + 0.5 * momentum * velocity
    return xp.stack([momentum, momentum * velocity + pressure, (energy + pressure) * velocity])


@block("flux", 2, "Rusanov flux")
def numerical_flux__rusanov(left, right):
    """Return the Rusanov flux between two primitive states, with the larger of their wave speeds."""
    speed = xp.maximum(
        xp.abs(left[1]) + xp.sqrt(GAMMA * left[2] / left[0]),
        xp.abs(right[1]) + xp.sqrt(GAMMA * right[2] / right[0]),
    )
    jump = conserved(*right) - conserved(*left)
    return 0.5 * (inviscid_flux(left) + inviscid_flux(right)) - 0.5 * speed * jump


def star_state(w, side_speed, contact_speed):
    """Return the conserved state between an outer wave and the contact (Toro, section 10.4)."""
    density, velocity, pressure = w
    compressed = density * (side_speed - velocity) / (side_speed - contact_speed)
    specific_energy = pressure / ((GAMMA - 1.0) * density) + 0.5 * velocity**2
    push = contact_speed + pressure / (density * (side_speed - velocity))
    energy = specific_energy + (contact_speed - velocity) * push
    return compressed * xp.stack([xp.ones_like(density), contact_speed, energy])


@block("flux", 3, "HLLC flux")
def numerical_flux__hllc(left, right):
    """Return the HLLC flux between two primitive states."""
    sound_left = xp.sqrt(GAMMA * left[2] / left[0])
    sound_right = xp.sqrt(GAMMA * right[2] / right[0])
    slow = xp.minimum(left[1] - sound_left, right[1] - sound_right)
    fast = xp.maximum(left[1] + sound_left, right[1] + sound_right)
    inflow, outflow = left[0] * (slow - left[1]), right[0] * (fast - right[1])
    contact = (right[2] - left[2] + inflow * left[1] - outflow * right[1]) / (inflow - outflow)
    flux_left, flux_right = inviscid_flux(left), inviscid_flux(right)
    star_left = flux_left + slow * (star_state(left, slow, contact) - conserved(*left))
    star_right = flux_right + fast * (star_state(right, fast, contact) - conserved(*right))
    middle = xp.where(contact >= 0.0, star_left, star_right)
    return xp.where(slow >= 0.0, flux_left, xp.where(fast <= 0.0, flux_right, middle))


@block("convection", 3, "conservative finite volumes in primitive variables")
def convection__finite_volume(u, dx):
    """Return the rate of change of the conserved variables by the inviscid fluxes."""
    left, right = reconstruct(xp.stack(primitive(u)))
    flux = numerical_flux(left, right)
    return -(flux - xp.roll(flux, 1, axis=-1)) / dx


@block("convection", 2, "pseudo-spectral derivatives of the fluxes")
def convection__pseudo_spectral(u, dx):
    """Return the rate of change by the inviscid fluxes, differentiated in Fourier space."""
    k = 2.0 * np.pi * xp.fft.rfftfreq(u.shape[-1], d=dx)
    flux = xp.fft.rfft(inviscid_flux(xp.stack(primitive(u))), axis=-1)
    return -xp.fft.irfft(1j * k * flux, n=u.shape[-1], axis=-1).astype(u.dtype)


@block("closure", 3, "kinematic viscosities")
def face_viscosity__kinematic(density, eta, zeta):
    """Return the factor (zeta + 4/3 eta) density of the viscous stress at the faces i+1/2."""
    return (zeta + 4.0 / 3.0 * eta) * 0.5 * (density + xp.roll(density, -1, axis=-1))


@block("closure", 0, "viscosities read as dynamic ones (no density in the stress)")
def face_viscosity__dynamic(density, eta, zeta):
    """Return the factor zeta + 4/3 eta of the viscous stress at the faces i+1/2."""
    return (zeta + 4.0 / 3.0 * eta) * xp.ones_like(density)


@block("viscosity", 2, "central viscous stress at the faces")
def viscous_terms__face_stress(u, dx, eta, zeta):
    """Return the rate of change by the viscous stress sigma = mu v_x and its work v sigma."""
    velocity = u[1] / u[0]
    ahead = xp.roll(velocity, -1, axis=-1)
    stress = face_viscosity(u[0], eta, zeta) * (ahead - velocity) / dx
    flux = xp.stack([xp.zeros_like(stress), stress, 0.5 * (velocity + ahead) * stress])
    return (flux - xp.roll(flux, 1, axis=-1)) / dx


@block("space", 2, "method of lines")
def spatial_operator__method_of_lines(u, dx, eta, zeta):
    """Return du/dt of the conserved variables."""
    return convection(u, dx) + viscous_terms(u, dx, eta, zeta)


@block("space", 0, "viscous force without viscous heating")
def spatial_operator__no_heating(u, dx, eta, zeta):
    """Return du/dt of the conserved variables; the small work of the viscous stress is neglected."""
    velocity = u[1] / u[0]
    stress = face_viscosity(u[0], eta, zeta) * (xp.roll(velocity, -1, axis=-1) - velocity) / dx
    force = (stress - xp.roll(stress, 1, axis=-1)) / dx
    return convection(u, dx) + xp.stack([xp.zeros_like(force), force, velocity * force])


def cyclic_solve(diagonal, coupling, right_hand_side):
    """Solve one symmetric cyclic tridiagonal system per row; coupling[:, i] joins the cells i and i+1."""
    rows, cells = right_hand_side.shape
    bands = np.zeros((3, rows, cells))
    bands[0, :, 1:] = coupling[:, :-1]
    bands[1] = diagonal
    bands[1, :, 0] -= coupling[:, -1]
    bands[1, :, -1] -= coupling[:, -1]
    bands[2, :, :-1] = coupling[:, :-1]
    corner = np.zeros((rows, cells))
    corner[:, [0, -1]] = 1.0
    columns = np.stack([right_hand_side.ravel(), corner.ravel()], axis=1)
    solved = solve_banded((1, 1), bands.reshape(3, -1), columns)
    plain, correction = solved.T.reshape(2, rows, cells)
    factor = coupling[:, -1] * (plain[:, 0] + plain[:, -1])
    factor = factor / (1.0 + coupling[:, -1] * (correction[:, 0] + correction[:, -1]))
    return plain - factor[:, None] * correction


@block("viscous", 3, "Crank-Nicolson viscosity by cyclic tridiagonal solves", "host")
def viscous_step__implicit(u, dt, dx, eta, zeta):
    """Apply the viscous stress over dt with the density frozen: momentum by Crank-Nicolson, then its work."""
    velocity = u[1] / u[0]
    mu = face_viscosity(u[0], eta, zeta)
    coupling = -0.5 * dt * mu / dx**2
    behind = np.roll(coupling, 1, axis=-1)
    stress = mu * (np.roll(velocity, -1, axis=-1) - velocity) / dx
    momentum = u[1] + 0.5 * dt * (stress - np.roll(stress, 1, axis=-1)) / dx
    new = cyclic_solve(u[0] - coupling - behind, coupling, momentum)
    middle = 0.5 * (velocity + new)
    ahead = np.roll(middle, -1, axis=-1)
    work = mu * (ahead - middle) / dx * 0.5 * (ahead + middle)
    energy = u[2] + dt * (work - np.roll(work, 1, axis=-1)) / dx
    return np.stack([u[0], u[0] * new, energy]).astype(u.dtype)


@block("viscous", 3, "explicit stabilized (Runge-Kutta-Legendre) viscosity")
def viscous_step__legendre(u, dt, dx, eta, zeta):
    """Apply the viscous stress over dt by the second-order Runge-Kutta-Legendre step with STAGES stages."""
    return legendre_stages(u, dt, STAGES, lambda v: viscous_terms(v, dx, eta, zeta))


@block("transport", 2, "MacCormack predictor-corrector for the inviscid part")
def transport__maccormack(u, dt, dx):
    """Advance the inviscid equations over dt by MacCormack's forward predictor and backward corrector."""
    flux = inviscid_flux(xp.stack(primitive(u)))
    predicted = u - dt / dx * (xp.roll(flux, -1, axis=-1) - flux)
    flux = inviscid_flux(xp.stack(primitive(predicted)))
    return 0.5 * (u + predicted - dt / dx * (flux - xp.roll(flux, 1, axis=-1)))


@block("advance", 3, "Strang splitting of inviscid and viscous parts (second order)")
def advance__strang(u, dt, dx, eta, zeta):
    """Take one Strang step: half a viscous step, an inviscid step, half a viscous step."""
    u = viscous_step(u, 0.5 * dt, dx, eta, zeta)
    u = transport(u, dt, dx)
    return viscous_step(u, 0.5 * dt, dx, eta, zeta)


@block("advance", 1, "Lie splitting of inviscid and viscous parts (first order)")
def advance__lie(u, dt, dx, eta, zeta):
    """Take one Lie step: an inviscid step, then a viscous step."""
    return viscous_step(transport(u, dt, dx), dt, dx, eta, zeta)


def smooth(u):
    """Damp the highest Fourier modes with an exponential filter of order 16."""
    modes = u.shape[-1] // 2 + 1
    damping = xp.exp(-36.0 * (xp.arange(modes) / (modes - 1.0)) ** 16)
    return xp.fft.irfft(damping * xp.fft.rfft(u, axis=-1), n=u.shape[-1], axis=-1).astype(u.dtype)


@block("advance", 2, "RK4 with an exponential filter of the highest Fourier modes")
def advance__filtered_rk4(u, dt, dx, eta, zeta):
    """Take one classical Runge-Kutta step and filter the result."""
    k1 = spatial_operator(u, dx, eta, zeta)
    k2 = spatial_operator(u + 0.5 * dt * k1, dx, eta, zeta)
    k3 = spatial_operator(u + 0.5 * dt * k2, dx, eta, zeta)
    k4 = spatial_operator(u + dt * k3, dx, eta, zeta)
    return smooth(u + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4))


def wave_speed(u):
    """Return the largest speed |v| + c of the whole batch."""
    density, velocity, pressure = primitive(u)
    return xp.max(xp.abs(velocity) + xp.sqrt(GAMMA * pressure / density))


@block("step", 2, "time step from the acoustic and the viscous stability bound")
def stable_step__explicit(u, dx, eta, zeta):
    """Return the step that respects the acoustic and the viscous bound of explicit steps together."""
    lightest = xp.minimum(u[0], xp.roll(u[0], -1, axis=-1))
    kinematic = xp.max(face_viscosity(u[0], eta, zeta) / lightest)
    return 1.0 / (wave_speed(u) / (CFL * dx) + kinematic / (DIFFUSION_NUMBER * dx**2))


@block("step", 2, "time step from the acoustic CFL condition")
def stable_step__acoustic(u, dx, eta, zeta):
    """Return the acoustic bound CFL dx / (|v| + c); the viscous part has no bound."""
    return CFL * dx / wave_speed(u)


@block("step", 2, "time step from the acoustic bound and the extended viscous bound")
def stable_step__stabilized(u, dx, eta, zeta):
    """Return the smaller of the acoustic bound and the viscous bound of STAGES Legendre stages."""
    lightest = xp.minimum(u[0], xp.roll(u[0], -1, axis=-1))
    kinematic = xp.max(face_viscosity(u[0], eta, zeta) / lightest)
    viscous = 0.5 * dx**2 / kinematic * (STAGES**2 + STAGES - 2.0) / 4.0
    return xp.minimum(CFL * dx / wave_speed(u), viscous)
