"""Reaction-diffusion u_t = nu u_xx + rho u (1 - u)."""

from sharp.rule_based.vocabulary import *


@block("react", 4, "exact logistic step u / (u + (1 - u) e^{-rho dt})")
def react__fraction(u, dt, rho):
    """Solve u_t = rho u (1 - u) over dt exactly."""
    return u / (u + (1.0 - u) * xp.exp(-rho * dt))


@block("react", 3, "exact logistic step 1 / (1 + e^{-rho dt} (1 - u) / u)")
def react__odds(u, dt, rho):
    """Solve u_t = rho u (1 - u) over dt exactly, written with the odds (1 - u) / u."""
    return 1.0 / (1.0 + xp.exp(-rho * dt) * ((1.0 - u) / (u + TINY)))


@block("react", 4, "exact logistic step in increment form")
def react__increment(u, dt, rho):
    """Solve u_t = rho u (1 - u) over dt exactly, as an increment that does not lose small steps to rounding."""
    growth = xp.expm1(rho * dt)
    return u + growth * u * (1.0 - u) / (1.0 + growth * u)


@block("react", 1, "forward Euler for the reaction")
def react__euler(u, dt, rho):
    """Step u_t = rho u (1 - u) over dt by forward Euler."""
    return u + dt * rho * u * (1.0 - u)


@block("react", 2, "Heun's method for the reaction")
def react__heun(u, dt, rho):
    """Step u_t = rho u (1 - u) over dt by Heun's method."""
    slope = rho * u * (1.0 - u)
    predicted = u + dt * slope
    return u + 0.5 * dt * (slope + rho * predicted * (1.0 - predicted))


@block("reaction", 2, "logistic reaction")
def reaction__logistic(u, rho):
    """Return the logistic growth rate rho u (1 - u)."""
    return rho * u * (1.0 - u)


@block("space", 2, "second-order central differences")
def spatial_operator__central_2(u, dx, nu, rho):
    """Return du/dt of the semi-discrete equation with the three-point Laplacian."""
    laplacian = (xp.roll(u, -1, axis=-1) - 2.0 * u + xp.roll(u, 1, axis=-1)) / dx**2
    return nu * laplacian + reaction(u, rho)


@block("space", 3, "fourth-order central differences")
def spatial_operator__central_4(u, dx, nu, rho):
    """Return du/dt of the semi-discrete equation with the five-point Laplacian."""
    near = xp.roll(u, -1, axis=-1) + xp.roll(u, 1, axis=-1)
    far = xp.roll(u, -2, axis=-1) + xp.roll(u, 2, axis=-1)
    return nu * (16.0 * near - far - 30.0 * u) / (12.0 * dx**2) + reaction(u, rho)


@block("advance", 3, "Strang splitting with half steps of diffusion (second order)")
def advance__strang_diffusion_first(u, dt, dx, nu, rho):
    """Take one Strang step: half a step of diffusion, a step of reaction, half a step of diffusion."""
    u = heat(u, 0.5 * dt, dx, nu)
    u = react(u, dt, rho)
    return heat(u, 0.5 * dt, dx, nu)


@block("advance", 3, "Strang splitting with half steps of reaction (second order)")
def advance__strang_reaction_first(u, dt, dx, nu, rho):
    """Take one Strang step: half a step of reaction, a step of diffusion, half a step of reaction."""
    u = react(u, 0.5 * dt, rho)
    u = heat(u, dt, dx, nu)
    return react(u, 0.5 * dt, rho)


@block("advance", 1, "Lie splitting of reaction and diffusion (first order)")
def advance__lie(u, dt, dx, nu, rho):
    """Take one Lie step: reaction, then diffusion."""
    return heat(react(u, dt, rho), dt, dx, nu)


@block("advance", 1, "IMEX Euler: implicit diffusion, explicit reaction (first order)")
def advance__imex_euler(u, dt, dx, nu, rho):
    """Take one IMEX Euler step; the implicit diffusion is diagonal in Fourier space."""
    k = 2.0 * np.pi * xp.fft.rfftfreq(u.shape[-1], d=dx)
    forced = xp.fft.rfft(u + dt * reaction(u, rho), axis=-1)
    return xp.fft.irfft(forced / (1.0 + dt * nu * k**2), n=u.shape[-1], axis=-1).astype(u.dtype)


@block("advance", 2, "IMEX: Crank-Nicolson diffusion with Heun's method for the reaction (second order)")
def advance__imex_heun(u, dt, dx, nu, rho):
    """Take one IMEX step: diffusion by Crank-Nicolson in Fourier space, reaction by Heun's method."""
    k = 2.0 * np.pi * xp.fft.rfftfreq(u.shape[-1], d=dx)
    decay = 0.5 * dt * nu * k**2

    def implicit_solve(forcing):
        spectrum = (1.0 - decay) * xp.fft.rfft(u, axis=-1) + dt * xp.fft.rfft(forcing, axis=-1)
        return xp.fft.irfft(spectrum / (1.0 + decay), n=u.shape[-1], axis=-1).astype(u.dtype)

    slope = reaction(u, rho)
    predicted = implicit_solve(slope)
    return implicit_solve(0.5 * (slope + reaction(predicted, rho)))


@block("advance", 3, "exponential time differencing ETD-RK2 in Fourier space (second order)")
def advance__etd_rk2(u, dt, dx, nu, rho):
    """Take one ETD-RK2 step: diffusion exactly in Fourier space, reaction by a two-stage quadrature."""
    cells = u.shape[-1]
    k = 2.0 * np.pi * xp.fft.rfftfreq(cells, d=dx)
    z = -dt * nu * k**2
    safe = xp.where(xp.abs(z) > 1e-3, z, -1.0)
    phi1 = xp.where(xp.abs(z) > 1e-3, xp.expm1(safe) / safe, 1.0 + 0.5 * z)
    phi2 = xp.where(xp.abs(z) > 1e-3, (phi1 - 1.0) / safe, 0.5 + z / 6.0)
    slope = xp.fft.rfft(reaction(u, rho), axis=-1)
    spectrum = xp.exp(z) * xp.fft.rfft(u, axis=-1) + dt * phi1 * slope
    predicted = xp.fft.irfft(spectrum, n=cells, axis=-1)
    spectrum = spectrum + dt * phi2 * (xp.fft.rfft(reaction(predicted, rho), axis=-1) - slope)
    return xp.fft.irfft(spectrum, n=cells, axis=-1).astype(u.dtype)


@block("advance", 3, "integrating-factor RK4 in Fourier space (fourth order for smooth data)")
def advance__integrating_factor_rk4(u, dt, dx, nu, rho):
    """Take one RK4 step of the Fourier coefficients with the diffusion integrated exactly."""
    cells = u.shape[-1]
    k = 2.0 * np.pi * xp.fft.rfftfreq(cells, d=dx)
    half = xp.exp(-0.5 * dt * nu * k**2)

    def slope(spectrum):
        return xp.fft.rfft(reaction(xp.fft.irfft(spectrum, n=cells, axis=-1), rho), axis=-1)

    v = xp.fft.rfft(u, axis=-1)
    k1 = slope(v)
    k2 = slope(half * (v + 0.5 * dt * k1))
    k3 = slope(half * v + 0.5 * dt * k2)
    k4 = slope(half**2 * v + dt * half * k3)
    v = half**2 * v + dt / 6.0 * (half**2 * k1 + 2.0 * half * (k2 + k3) + k4)
    return xp.fft.irfft(v, n=cells, axis=-1).astype(u.dtype)


@block("step", 2, "time step chosen for accuracy")
def stable_step__accuracy(u, dx, nu, rho):
    """Return the time step chosen for accuracy; the scheme itself has no stability bound from diffusion."""
    return MAX_STEP / max(rho, 1.0)


@block("step", 2, "time step from the diffusive stability bound")
def stable_step__diffusive(u, dx, nu, rho):
    """Return the explicit diffusive bound: the fraction DIFFUSION_NUMBER of dx^2 / nu."""
    return DIFFUSION_NUMBER * dx**2 / nu


def periodic_laplacian(cells, dx):
    """Return the three-point Laplacian with periodic ends as a sparse matrix."""
    bands = [np.ones(cells - 1), -2.0 * np.ones(cells), np.ones(cells - 1), [1.0], [1.0]]
    return sparse.diags(bands, [-1, 0, 1, cells - 1, 1 - cells], format="csc") / dx**2


@block("solver", 3, "SciPy's implicit BDF solve_ivp for each sample with a sparse Jacobian", "host")
def solver__sparse_bdf(*inputs):
    """Return the solution."""
    times, initial = read_inputs(*inputs)
    dx = LENGTH / initial.shape[-1]
    diffusion = nu * periodic_laplacian(initial.shape[-1], dx)

    def right_hand_side(t, u):
        return diffusion @ u + reaction(u, rho)

    def jacobian(t, u):
        return diffusion + sparse.diags(rho * (1.0 - 2.0 * u), format="csc")

    samples, evaluations = [], 0
    for row in initial:
        run = solve_ivp(
            right_hand_side,
            (times[0], times[-1]),
            row,
            method="BDF",
            jac=jacobian,
            t_eval=times,
            rtol=RTOL,
            atol=ATOL,
        )
        samples.append(run.y.T)
        evaluations = max(evaluations, run.nfev)
    print(f"dt={(times[-1] - times[0]) / evaluations:.3e} steps={evaluations}")
    solution = np.stack(samples)
    return write_outputs(solution)
