"""Viscous Burgers' equation u_t + (u^2/2)_x = (nu/pi) u_xx on the periodic interval (0, 1)."""

from __future__ import annotations

from sharp.llm.playbook.library.blocks import HOST, Block, Family, Recipe
from sharp.llm.playbook.library.drivers import DRIVERS, HOST_STEPPING, STEPPING
from sharp.llm.playbook.library.heat import HEAT
from sharp.llm.playbook.library.shared import GRID_TRANSFER, INTEGRATORS, LIMITERS, RECONSTRUCTIONS

_FLUXES = (
    Block(
        "flux",
        "rusanov",
        2,
        "Rusanov flux",
        '''
def numerical_flux(left, right):
    """Return the Rusanov flux of u^2/2 with the larger local wave speed."""
    speed = xp.maximum(xp.abs(left), xp.abs(right))
    return 0.25 * (left**2 + right**2) - 0.5 * speed * (right - left)
''',
    ),
    Block(
        "flux",
        "godunov",
        3,
        "Godunov flux (exact Riemann solver)",
        '''
def numerical_flux(left, right):
    """Return Godunov's flux: the exact Riemann solution of the convex flux u^2/2 at the face."""
    return 0.5 * xp.maximum(xp.maximum(left, 0.0) ** 2, xp.minimum(right, 0.0) ** 2)
''',
    ),
    Block(
        "flux",
        "engquist-osher",
        3,
        "Engquist-Osher flux",
        '''
def numerical_flux(left, right):
    """Return the Engquist-Osher flux: right-going waves from the left, left-going ones from the right."""
    return 0.5 * (xp.maximum(left, 0.0) ** 2 + xp.minimum(right, 0.0) ** 2)
''',
    ),
    Block(
        "flux",
        "lax-friedrichs",
        1,
        "global Lax-Friedrichs flux",
        '''
def numerical_flux(left, right):
    """Return the Lax-Friedrichs flux with the largest wave speed of the whole batch."""
    speed = xp.max(xp.abs(left))
    return 0.25 * (left**2 + right**2) - 0.5 * speed * (right - left)
''',
    ),
)

_CONVECTION = (
    Block(
        "convection",
        "finite-volume",
        3,
        "conservative finite volumes",
        '''
def convection(u, dx):
    """Return -(u^2/2)_x of the cell averages from the fluxes through the faces i+1/2."""
    left, right = reconstruct(u)
    flux = numerical_flux(left, right)
    return -(flux - xp.roll(flux, 1, axis=-1)) / dx
''',
    ),
    Block(
        "convection",
        "upwind-advective",
        0,
        "first-order upwind differences of the advective form u u_x",
        '''
def convection(u, dx):
    """Return -u u_x by one-sided differences against the wind (not conservative)."""
    backward = (u - xp.roll(u, 1, axis=-1)) / dx
    forward = (xp.roll(u, -1, axis=-1) - u) / dx
    return -(xp.maximum(u, 0.0) * backward + xp.minimum(u, 0.0) * forward)
''',
    ),
    Block(
        "convection",
        "central",
        2,
        "second-order central differences of u^2/2",
        '''
def convection(u, dx):
    """Return -(u^2/2)_x by central differences; the viscosity has to damp the grid oscillations."""
    flux = 0.5 * u**2
    return -(xp.roll(flux, -1, axis=-1) - xp.roll(flux, 1, axis=-1)) / (2.0 * dx)
''',
    ),
    Block(
        "convection",
        "skew-symmetric",
        2,
        "energy-conserving skew-symmetric central differences",
        '''
def convection(u, dx):
    """Return -(2/3) (u^2/2)_x - (1/3) u u_x by central differences, which conserves the discrete energy."""
    left, right = xp.roll(u, 1, axis=-1), xp.roll(u, -1, axis=-1)
    return -(right**2 - left**2 + u * (right - left)) / (6.0 * dx)
''',
    ),
    Block(
        "convection",
        "pseudo-spectral",
        3,
        "pseudo-spectral derivative of u^2/2",
        '''
def convection(u, dx):
    """Return -(u^2/2)_x, differentiated in Fourier space."""
    k = 2.0 * np.pi * xp.fft.rfftfreq(u.shape[-1], d=dx)
    flux = xp.fft.rfft(0.5 * u**2, axis=-1)
    return -xp.fft.irfft(1j * k * flux, n=u.shape[-1], axis=-1).astype(u.dtype)
''',
    ),
)

_DIFFUSION = (
    Block(
        "diffusion",
        "central-2",
        2,
        "second-order central diffusion",
        '''
def diffusion(u, dx, viscosity):
    """Return viscosity u_xx by second-order central differences."""
    return viscosity * (xp.roll(u, -1, axis=-1) - 2.0 * u + xp.roll(u, 1, axis=-1)) / dx**2
''',
    ),
    Block(
        "diffusion",
        "central-4",
        3,
        "fourth-order central diffusion",
        '''
def diffusion(u, dx, viscosity):
    """Return viscosity u_xx by fourth-order central differences."""
    near = xp.roll(u, -1, axis=-1) + xp.roll(u, 1, axis=-1)
    far = xp.roll(u, -2, axis=-1) + xp.roll(u, 2, axis=-1)
    return viscosity * (16.0 * near - far - 30.0 * u) / (12.0 * dx**2)
''',
    ),
)

_OPERATORS = (
    Block(
        "space",
        "method-of-lines",
        2,
        "method of lines",
        '''
def spatial_operator(u, dx, viscosity):
    """Return du/dt of the semi-discrete equation."""
    return convection(u, dx) + diffusion(u, dx, viscosity)
''',
    ),
)

_TRANSPORT = (
    Block(
        "transport",
        "euler",
        1,
        "forward Euler for convection",
        '''
def transport(u, dt, dx):
    """Convect u over dt by one forward Euler step."""
    return u + dt * convection(u, dx)
''',
    ),
    Block(
        "transport",
        "ssp-rk2",
        2,
        "SSP-RK2 for convection",
        '''
def transport(u, dt, dx):
    """Convect u over dt by one step of the two-stage SSP Runge-Kutta method."""
    predicted = u + dt * convection(u, dx)
    return 0.5 * (u + predicted + dt * convection(predicted, dx))
''',
    ),
    Block(
        "transport",
        "ssp-rk3",
        3,
        "SSP-RK3 for convection",
        '''
def transport(u, dt, dx):
    """Convect u over dt by one step of the three-stage SSP Runge-Kutta method."""
    first = u + dt * convection(u, dx)
    second = 0.75 * u + 0.25 * (first + dt * convection(first, dx))
    return (u + 2.0 * (second + dt * convection(second, dx))) / 3.0
''',
    ),
)

_NONLINEAR = (
    Block(
        "nonlinear",
        "dealiased",
        3,
        "two-thirds dealiasing",
        '''
def nonlinear_term(spectrum, k, cells):
    """Return the spectrum of -(u^2/2)_x with the upper third of the modes removed (Orszag's rule)."""
    kept = xp.where(k <= 2.0 / 3.0 * k[-1], spectrum, 0.0)
    square = xp.fft.rfft(xp.fft.irfft(kept, n=cells, axis=-1) ** 2, axis=-1)
    return xp.where(k <= 2.0 / 3.0 * k[-1], -0.5j * k * square, 0.0)
''',
    ),
    Block(
        "nonlinear",
        "aliased",
        2,
        "no dealiasing",
        '''
def nonlinear_term(spectrum, k, cells):
    """Return the spectrum of -(u^2/2)_x, the square taken on the grid."""
    square = xp.fft.rfft(xp.fft.irfft(spectrum, n=cells, axis=-1) ** 2, axis=-1)
    return -0.5j * k * square
''',
    ),
)

_STEPS = (
    Block(
        "advance",
        "strang",
        3,
        "Strang splitting of diffusion and convection (second order)",
        '''
def advance(u, dt, dx, viscosity):
    """Take one Strang step: half a step of diffusion, a step of convection, half a step of diffusion."""
    u = heat(u, 0.5 * dt, dx, viscosity)
    u = transport(u, dt, dx)
    return heat(u, 0.5 * dt, dx, viscosity)
''',
    ),
    Block(
        "advance",
        "lie",
        1,
        "Lie splitting of diffusion and convection (first order)",
        '''
def advance(u, dt, dx, viscosity):
    """Take one Lie step: convection, then diffusion."""
    return heat(transport(u, dt, dx), dt, dx, viscosity)
''',
    ),
    Block(
        "advance",
        "imex",
        2,
        "IMEX: Crank-Nicolson diffusion with a Heun corrector for convection (second order)",
        '''
def advance(u, dt, dx, viscosity):
    """Take one IMEX step: diffusion by Crank-Nicolson in Fourier space, convection by Heun's method."""
    k = 2.0 * np.pi * xp.fft.rfftfreq(u.shape[-1], d=dx)
    decay = 0.5 * dt * viscosity * k**2

    def implicit_solve(forcing):
        spectrum = (1.0 - decay) * xp.fft.rfft(u, axis=-1) + dt * xp.fft.rfft(forcing, axis=-1)
        return xp.fft.irfft(spectrum / (1.0 + decay), n=u.shape[-1], axis=-1).astype(u.dtype)

    slope = convection(u, dx)
    predicted = implicit_solve(slope)
    return implicit_solve(0.5 * (slope + convection(predicted, dx)))
''',
    ),
    Block(
        "advance",
        "integrating-factor-rk4",
        4,
        "integrating-factor RK4 in Fourier space (fourth order)",
        '''
def advance(u, dt, dx, viscosity):
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
''',
    ),
    Block(
        "advance",
        "etd-rk4",
        4,
        "exponential time differencing ETD-RK4 in Fourier space (fourth order)",
        '''
def phi_functions(z):
    """Return exp(z) and phi_1, phi_2, phi_3 of real z by averages over a circle (Kassam-Trefethen)."""
    points = z[:, None] + xp.exp(2j * np.pi * (xp.arange(32) + 0.5) / 32)
    growth = xp.exp(points)
    phi1 = (growth - 1.0) / points
    phi2 = (phi1 - 1.0) / points
    phi3 = (phi2 - 0.5) / points
    return (xp.exp(z), *(xp.mean(phi, axis=-1).real for phi in (phi1, phi2, phi3)))


def advance(u, dt, dx, viscosity):
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
''',
    ),
    Block(
        "advance",
        "etd-rk2",
        3,
        "exponential time differencing ETD-RK2 in Fourier space (second order)",
        '''
def advance(u, dt, dx, viscosity):
    """Take one ETD-RK2 step of the Fourier coefficients."""
    cells = u.shape[-1]
    k = 2.0 * np.pi * xp.fft.rfftfreq(cells, d=dx)
    z = -dt * viscosity * k**2
    safe = xp.where(xp.abs(z) > 1e-4, z, -1.0)
    phi1 = xp.where(xp.abs(z) > 1e-4, xp.expm1(safe) / safe, 1.0 + 0.5 * z)
    phi2 = xp.where(xp.abs(z) > 1e-4, (phi1 - 1.0) / safe, 0.5 + z / 6.0)
    v = xp.fft.rfft(u, axis=-1)
    slope = nonlinear_term(v, k, cells)
    predicted = xp.exp(z) * v + dt * phi1 * slope
    v = predicted + dt * phi2 * (nonlinear_term(predicted, k, cells) - slope)
    return xp.fft.irfft(v, n=cells, axis=-1).astype(u.dtype)
''',
    ),
    Block(
        "advance",
        "cole-hopf",
        3,
        "Cole-Hopf transformation, the heat kernel summed over a window",
        '''
def potential(u, refinement):
    """Return the integral of u less its mean, on a grid `refinement` times finer, by Fourier series."""
    cells = u.shape[-1]
    k = 2.0 * np.pi * np.arange(cells // 2 + 1)
    spectrum = np.fft.rfft(u, axis=-1)
    spectrum[..., 1:] /= 1j * k[1:]
    spectrum[..., 0] = 0.0
    spectrum[..., -1] = 0.0
    return np.fft.irfft(spectrum * refinement, n=cells * refinement, axis=-1)


def advance(u, dt, dx, viscosity):
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
''',
        HOST,
    ),
)

_STEP_SIZES = (
    Block(
        "step",
        "explicit",
        2,
        "time step from the convective and the diffusive stability bound",
        '''
def stable_step(u, dx, viscosity):
    """Return the step that respects the convective and the diffusive bound of explicit steps together."""
    speed = xp.max(xp.abs(u))
    return 1.0 / (speed / (CFL * dx) + viscosity / (DIFFUSION_NUMBER * dx**2))
''',
    ),
    Block(
        "step",
        "explicit-minimum",
        2,
        "time step from the smaller of the convective and the diffusive bound",
        '''
def stable_step(u, dx, viscosity):
    """Return the fraction CFL of the smaller of the convective and the diffusive bound of explicit steps."""
    speed = xp.max(xp.abs(u)) + 1e-12
    return CFL * xp.minimum(dx / speed, 0.5 * dx**2 / viscosity)
''',
    ),
    Block(
        "step",
        "convective",
        2,
        "time step from the convective CFL condition alone",
        '''
def stable_step(u, dx, viscosity):
    """Return the convective bound CFL dx/|u|; diffusion is treated without a bound."""
    speed = xp.max(xp.abs(u)) + 1e-12
    return CFL * dx / speed
''',
    ),
    Block(
        "step",
        "output-interval",
        3,
        "one step per output interval",
        '''
def stable_step(u, dx, viscosity):
    """Return no bound: the step is exact, whatever its length."""
    return math.inf
''',
    ),
)

_LIMITED = {
    "convection": ("finite-volume",),
    "reconstruct": ("muscl",),
    "limiter": ("minmod", "van-leer", "mc", "superbee", "van-albada"),
    "flux": ("rusanov", "godunov", "engquist-osher", "lax-friedrichs"),
}
_EXPLICIT = {
    "space": ("method-of-lines",),
    "diffusion": ("central-2", "central-4"),
    "step": ("explicit", "explicit-minimum"),
}
_SPECTRAL = {"nonlinear": ("dealiased", "aliased"), "step": ("convective",), "solver": STEPPING}

_RECIPES = (
    Recipe(
        "muscl",
        "numerical",
        "Steep fronts form before viscosity smooths them, so conservative limited finite volumes with an explicit "
        "strong-stability-preserving integrator are the safe second-order choice.",
        {
            **_LIMITED,
            **_EXPLICIT,
            "advance": ("ssp-rk2", "ssp-rk2", "midpoint", "ssp-rk3"),
            "solver": STEPPING,
        },
        weight=3.5,
    ),
    Recipe(
        "weno",
        "numerical",
        "WENO reconstruction resolves the viscous fronts, a few cells wide, with less numerical diffusion than "
        "limited slopes.",
        {
            **_EXPLICIT,
            "convection": ("finite-volume",),
            "reconstruct": ("weno5", "third-order"),
            "flux": ("rusanov", "godunov", "lax-friedrichs"),
            "advance": ("ssp-rk3",),
            "solver": STEPPING,
        },
        weight=1.2,
    ),
    Recipe(
        "central",
        "numerical",
        "The viscous fronts are resolved on the grid, so central differences need no upwinding.",
        {
            **_EXPLICIT,
            "convection": ("central", "skew-symmetric"),
            "advance": ("rk4", "ssp-rk3"),
            "solver": STEPPING,
        },
    ),
    Recipe(
        "first-order",
        "numerical",
        "First-order upwind fluxes with forward Euler are monotone and simple.",
        {
            **_EXPLICIT,
            "convection": ("finite-volume", "finite-volume", "upwind-advective"),
            "reconstruct": ("constant",),
            "flux": ("rusanov", "godunov", "lax-friedrichs"),
            "diffusion": ("central-2",),
            "advance": ("euler",),
            "solver": (*STEPPING, "jitted-step"),
        },
        level="simple",
        weight=1.2,
    ),
    Recipe(
        "strang-finite-volume",
        "hybrid",
        "Diffusion alone has an exact solution in Fourier space; splitting it off removes its step bound and leaves "
        "a pure conservation law for limited finite volumes.",
        {
            **_LIMITED,
            "advance": ("strang", "strang", "strang", "lie"),
            "heat": ("fourier-exact", "crank-nicolson", "difference-exact"),
            "transport": ("ssp-rk2", "ssp-rk3", "euler"),
            "step": ("convective",),
            "solver": STEPPING,
        },
        weight=2.5,
    ),
    Recipe(
        "imex",
        "numerical",
        "Convection explicit, diffusion implicit: the step is bounded by the convective CFL condition only.",
        {
            **_LIMITED,
            "convection": ("finite-volume", "pseudo-spectral", "skew-symmetric"),
            "advance": ("imex",),
            "step": ("convective",),
            "solver": STEPPING,
        },
        weight=1.2,
    ),
    Recipe(
        "pseudo-spectral",
        "numerical",
        "The solution is smooth on the viscous scale, so Fourier modes converge fast; the stiff diffusion is "
        "integrated exactly.",
        {**_SPECTRAL, "advance": ("integrating-factor-rk4", "etd-rk4", "etd-rk2")},
        weight=2.0,
    ),
    Recipe(
        "fine-pseudo-spectral",
        "numerical",
        "The steepest fronts are only a few cells wide: solve on a grid twice as fine and return to the output grid.",
        {
            **_SPECTRAL,
            "advance": ("integrating-factor-rk4",),
            "nonlinear": ("dealiased",),
            "grid": ("fourier", "conservative"),
            "solver": ("equal-steps", "compiled-intervals", "compiled-at"),
        },
        precisions=("float64",),
        weight=0.8,
    ),
    Recipe(
        "fine-muscl",
        "numerical",
        "Limited finite volumes on a refined grid, with diffusion split off so that refinement costs a factor of "
        "four and not eight.",
        {
            **_LIMITED,
            "limiter": ("van-leer", "mc"),
            "flux": ("rusanov", "godunov"),
            "advance": ("strang",),
            "heat": ("fourier-exact",),
            "transport": ("ssp-rk2",),
            "grid": ("conservative", "linear", "fourier"),
            "step": ("convective",),
            "solver": ("equal-steps", "compiled-intervals", "compiled-at"),
        },
        weight=0.8,
    ),
    Recipe(
        "cole-hopf",
        "transformed",
        "The Cole-Hopf transformation turns the equation into the heat equation, whose kernel is narrow over one "
        "output interval; the ratio of two sums gives u without time-stepping error.",
        {"advance": ("cole-hopf",), "step": ("output-interval",), "solver": HOST_STEPPING},
        HOST,
        ("float64",),
        {"WINDOW": ("7.0", "6.0", "5.0", "8.0")},
    ),
    Recipe(
        "adaptive",
        "numerical",
        "The method of lines hands time stepping and its error control to SciPy.",
        {
            "space": ("method-of-lines",),
            "convection": ("finite-volume", "pseudo-spectral", "central"),
            "diffusion": ("central-2", "central-4"),
            "reconstruct": ("muscl",),
            "limiter": ("van-leer", "minmod"),
            "flux": ("rusanov", "godunov"),
            "solver": ("solve-ivp",),
        },
        HOST,
        ("float64",),
        {"RTOL": ("1e-4", "1e-3")},
        weight=0.6,
    ),
)

BURGERS = Family(
    name="burgers",
    title="Viscous Burgers' equation u_t + (u^2/2)_x = (nu/pi) u_xx on the periodic interval (0, 1)",
    signature="u0_batch, t_coordinate, nu",
    returns="Return u [batch, T+1, N] at the times t_coordinate for the initial values u0_batch [batch, N].",
    args="viscosity",
    initial="initial = xp.asarray(u0_batch, dtype=DTYPE)\nviscosity = nu / math.pi",
    result="return np.asarray(solution)",
    constants={
        "LENGTH": ("1.0",),
        "CFL": ("0.4", "0.5", "0.3", "0.25"),
        "DIFFUSION_NUMBER": ("0.35", "0.25"),
        "GRID_FACTOR": ("2",),
        "WINDOW": ("7.0",),
        "METHOD": ('"RK45"', '"RK23"'),
        "RTOL": ("1e-4",),
        "ATOL": ("1e-6",),
    },
    blocks=(
        *LIMITERS,
        *RECONSTRUCTIONS,
        *_FLUXES,
        *_CONVECTION,
        *_DIFFUSION,
        *_OPERATORS,
        *HEAT,
        *_TRANSPORT,
        *_NONLINEAR,
        *INTEGRATORS,
        *_STEPS,
        *_STEP_SIZES,
        *GRID_TRANSFER,
        *DRIVERS,
    ),
    recipes=_RECIPES,
)
