"""Linear advection u_t + beta u_x = 0 on the periodic interval (0, 1)."""

from __future__ import annotations

from sharp.llm.playbook.library.blocks import HOST, Block, Family, Recipe
from sharp.llm.playbook.library.drivers import DRIVERS, STEPPING
from sharp.llm.playbook.library.shared import GRID_TRANSFER, INTEGRATORS, LIMITERS, RECONSTRUCTIONS

_FLUXES = (
    Block(
        "flux",
        "upwind",
        3,
        "upwind flux",
        '''
def numerical_flux(left, right, beta):
    """Return the flux of the state on the side the wave comes from."""
    return xp.where(beta > 0.0, beta * left, beta * right)
''',
    ),
    Block(
        "flux",
        "rusanov",
        3,
        "Rusanov flux",
        '''
def numerical_flux(left, right, beta):
    """Return the Rusanov flux: the mean flux minus the wave speed times half the jump."""
    return 0.5 * beta * (left + right) - 0.5 * abs(beta) * (right - left)
''',
    ),
    Block(
        "flux",
        "diffusive",
        0,
        "Lax-Friedrichs flux with a doubled wave speed",
        '''
def numerical_flux(left, right, beta):
    """Return the Lax-Friedrichs flux with a generous bound of the wave speed."""
    bound = 2.0 * abs(beta)
    return 0.5 * beta * (left + right) - 0.5 * bound * (right - left)
''',
    ),
)

_OPERATORS = (
    Block(
        "space",
        "finite-volume",
        3,
        "conservative finite volumes",
        '''
def spatial_operator(u, dx, beta):
    """Return du/dt of the cell averages from the fluxes through the faces i+1/2."""
    left, right = reconstruct(u)
    flux = numerical_flux(left, right, beta)
    return -(flux - xp.roll(flux, 1, axis=-1)) / dx
''',
    ),
    Block(
        "space",
        "upwind-difference",
        1,
        "first-order upwind differences",
        '''
def spatial_operator(u, dx, beta):
    """Return -beta u_x by one-sided differences against the wind."""
    backward = (u - xp.roll(u, 1, axis=-1)) / dx
    forward = (xp.roll(u, -1, axis=-1) - u) / dx
    return -(max(beta, 0.0) * backward + min(beta, 0.0) * forward)
''',
        HOST,
    ),
    Block(
        "space",
        "central-2",
        2,
        "second-order central differences",
        '''
def spatial_operator(u, dx, beta):
    """Return -beta u_x by second-order central differences."""
    return -beta * (xp.roll(u, -1, axis=-1) - xp.roll(u, 1, axis=-1)) / (2.0 * dx)
''',
    ),
    Block(
        "space",
        "central-4",
        3,
        "fourth-order central differences",
        '''
def spatial_operator(u, dx, beta):
    """Return -beta u_x by fourth-order central differences."""
    near = xp.roll(u, -1, axis=-1) - xp.roll(u, 1, axis=-1)
    far = xp.roll(u, -2, axis=-1) - xp.roll(u, 2, axis=-1)
    return -beta * (8.0 * near - far) / (12.0 * dx)
''',
    ),
    Block(
        "space",
        "compact",
        3,
        "fourth-order compact (Pade) differences",
        '''
def spatial_operator(u, dx, beta):
    """Return -beta u_x by the Pade scheme u'_{i-1} + 4 u'_i + u'_{i+1} = 3 (u_{i+1} - u_{i-1}) / dx."""
    angle = 2.0 * np.pi * xp.arange(u.shape[-1] // 2 + 1) / u.shape[-1]
    symbol = 3.0j * xp.sin(angle) / (dx * (2.0 + xp.cos(angle)))
    derivative = xp.fft.irfft(symbol * xp.fft.rfft(u, axis=-1), n=u.shape[-1], axis=-1)
    return -beta * derivative.astype(u.dtype)
''',
    ),
    Block(
        "space",
        "fourier",
        4,
        "Fourier pseudo-spectral derivative",
        '''
def spatial_operator(u, dx, beta):
    """Return -beta u_x, differentiated in Fourier space."""
    k = 2.0 * np.pi * xp.fft.rfftfreq(u.shape[-1], d=dx)
    derivative = xp.fft.irfft(1j * k * xp.fft.rfft(u, axis=-1), n=u.shape[-1], axis=-1)
    return -beta * derivative.astype(u.dtype)
''',
    ),
)

_STEPS = (
    Block(
        "advance",
        "lax-friedrichs",
        0,
        "Lax-Friedrichs (first order, very diffusive)",
        '''
def advance(u, dt, dx, beta):
    """Take one Lax-Friedrichs step."""
    left, right = xp.roll(u, 1, axis=-1), xp.roll(u, -1, axis=-1)
    return 0.5 * (left + right) - 0.5 * beta * dt / dx * (right - left)
''',
    ),
    Block(
        "advance",
        "lax-wendroff",
        2,
        "Lax-Wendroff (second order in space and time)",
        '''
def advance(u, dt, dx, beta):
    """Take one Lax-Wendroff step."""
    courant = beta * dt / dx
    left, right = xp.roll(u, 1, axis=-1), xp.roll(u, -1, axis=-1)
    return u - 0.5 * courant * (right - left) + 0.5 * courant**2 * (right - 2.0 * u + left)
''',
    ),
    Block(
        "advance",
        "beam-warming",
        2,
        "Beam-Warming (second-order upwind)",
        '''
def advance(u, dt, dx, beta):
    """Take one Beam-Warming step; the stencil reaches two cells against the wind."""
    courant = abs(beta) * dt / dx
    side = 1 if beta > 0.0 else -1
    near, far = np.roll(u, side, axis=-1), np.roll(u, 2 * side, axis=-1)
    slope = 3.0 * u - 4.0 * near + far
    return u - 0.5 * courant * slope + 0.5 * courant**2 * (u - 2.0 * near + far)
''',
        HOST,
    ),
    Block(
        "advance",
        "crank-nicolson",
        2,
        "Crank-Nicolson with central differences, solved exactly by FFT",
        '''
def advance(u, dt, dx, beta):
    """Take one Crank-Nicolson step; the circulant system is diagonal in Fourier space."""
    angle = 2.0 * np.pi * xp.arange(u.shape[-1] // 2 + 1) / u.shape[-1]
    symbol = -1j * beta * xp.sin(angle) / dx
    growth = (1.0 + 0.5 * dt * symbol) / (1.0 - 0.5 * dt * symbol)
    return xp.fft.irfft(growth * xp.fft.rfft(u, axis=-1), n=u.shape[-1], axis=-1).astype(u.dtype)
''',
    ),
    Block(
        "advance",
        "implicit-upwind",
        1,
        "implicit Euler with upwind differences, solved exactly by FFT",
        '''
def advance(u, dt, dx, beta):
    """Take one implicit Euler step with upwind differences; the system is diagonal in Fourier space."""
    angle = 2.0 * np.pi * xp.arange(u.shape[-1] // 2 + 1) / u.shape[-1]
    symbol = (abs(beta) * (xp.cos(angle) - 1.0) - 1j * beta * xp.sin(angle)) / dx
    return xp.fft.irfft(xp.fft.rfft(u, axis=-1) / (1.0 - dt * symbol), n=u.shape[-1], axis=-1).astype(u.dtype)
''',
    ),
    Block(
        "advance",
        "fourier-shift",
        4,
        "exact shift of every Fourier mode",
        '''
def advance(u, dt, dx, beta):
    """Return u moved by beta dt: every Fourier mode is multiplied by its phase factor."""
    k = 2.0 * np.pi * xp.fft.rfftfreq(u.shape[-1], d=dx)
    spectrum = xp.fft.rfft(u, axis=-1) * xp.exp(-1j * k * beta * dt)
    return xp.fft.irfft(spectrum, n=u.shape[-1], axis=-1).astype(u.dtype)
''',
    ),
    Block(
        "advance",
        "linear-characteristics",
        1,
        "linear interpolation at the feet of the characteristics",
        '''
def advance(u, dt, dx, beta):
    """Return u at the feet x - beta dt of the characteristics by linear interpolation."""
    shift = beta * dt / dx
    cells = math.floor(shift)
    weight = shift - cells
    return (1.0 - weight) * xp.roll(u, cells, axis=-1) + weight * xp.roll(u, cells + 1, axis=-1)
''',
        HOST,
    ),
    Block(
        "advance",
        "cubic-characteristics",
        3,
        "four-point Lagrange interpolation at the feet of the characteristics",
        '''
def advance(u, dt, dx, beta):
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
''',
        HOST,
    ),
    Block(
        "advance",
        "spline-characteristics",
        3,
        "periodic cubic spline evaluated at the feet of the characteristics",
        '''
def advance(u, dt, dx, beta):
    """Return u at the feet x - beta dt of the characteristics from a periodic cubic spline."""
    cells = u.shape[-1]
    centres = (np.arange(cells + 1) + 0.5) * dx
    spline = CubicSpline(centres, np.concatenate([u, u[..., :1]], axis=-1), axis=-1, bc_type="periodic")
    feet = centres[0] + np.mod(centres[:-1] - beta * dt - centres[0], cells * dx)
    return spline(feet).astype(u.dtype)
''',
        HOST,
    ),
)

_STEP_SIZES = (
    Block(
        "step",
        "cfl",
        2,
        "time step from the CFL condition",
        '''
def stable_step(u, dx, beta):
    """Return the time step that moves the wave by the fraction CFL of a cell."""
    return CFL * dx / max(abs(beta), 1e-12)
''',
    ),
    Block(
        "step",
        "output-interval",
        3,
        "one step per output interval",
        '''
def stable_step(u, dx, beta):
    """Return no bound: the step is exact, whatever its length."""
    return math.inf
''',
    ),
)

_FV = {"space": ("finite-volume",), "flux": ("upwind", "rusanov"), "step": ("cfl",), "solver": STEPPING}
_DIFFERENCES = {
    "space": ("central-2", "central-4", "compact", "fourier"),
    "step": ("cfl",),
    "solver": STEPPING,
}

_RECIPES = (
    Recipe(
        "muscl",
        "numerical",
        "The equation is a conservation law, so limited second-order finite volumes transport smooth profiles "
        "accurately and keep kinks free of oscillations.",
        {
            **_FV,
            "reconstruct": ("muscl",),
            "limiter": ("minmod", "van-leer", "mc", "superbee", "van-albada"),
            "advance": ("ssp-rk2", "ssp-rk2", "midpoint", "ssp-rk3"),
        },
        weight=4.0,
    ),
    Recipe(
        "muscl-predictor",
        "numerical",
        "A half-step predictor and a full-step corrector with van Leer slopes: the classical compact "
        "second-order transport scheme.",
        {**_FV, "reconstruct": ("muscl",), "limiter": ("van-leer", "mc"), "advance": ("midpoint",)},
        constants={"CFL": ("0.4",)},
    ),
    Recipe(
        "weno",
        "numerical",
        "Fifth-order WENO keeps the phase error far below that of second-order schemes and does not oscillate at "
        "kinks.",
        {**_FV, "reconstruct": ("weno5", "third-order"), "advance": ("ssp-rk3", "rk4")},
    ),
    Recipe(
        "lax-wendroff",
        "numerical",
        "A single-step second-order scheme is enough for smooth waves and costs next to nothing.",
        {"advance": ("lax-wendroff", "lax-wendroff", "beam-warming"), "step": ("cfl",), "solver": STEPPING},
        constants={"CFL": ("0.8", "0.9", "0.5")},
        level="simple",
        weight=1.2,
    ),
    Recipe(
        "differences",
        "numerical",
        "Central (or spectral) derivatives in space and a Runge-Kutta method whose stability region holds part of "
        "the imaginary axis.",
        {**_DIFFERENCES, "advance": ("rk4", "ssp-rk3")},
        constants={"CFL": ("0.4", "0.5", "0.25")},
        weight=1.5,
    ),
    Recipe(
        "first-order",
        "numerical",
        "First-order upwinding is monotone and simple to verify.",
        {
            "space": ("finite-volume", "upwind-difference"),
            "reconstruct": ("constant",),
            "flux": ("upwind", "rusanov", "diffusive"),
            "advance": ("euler", "ssp-rk2"),
            "step": ("cfl",),
            "solver": (*STEPPING, "jitted-step"),
        },
        level="simple",
        constants={"CFL": ("0.45", "0.4", "0.2")},
    ),
    Recipe(
        "lax-friedrichs",
        "numerical",
        "The Lax-Friedrichs scheme is stable up to a Courant number of one and needs no upwind direction.",
        {"advance": ("lax-friedrichs",), "step": ("cfl",), "solver": STEPPING},
        level="simple",
        weight=0.5,
        constants={"CFL": ("0.9", "0.5")},
    ),
    Recipe(
        "implicit",
        "numerical",
        "Implicit steps are unconditionally stable, and on a periodic grid the linear system is diagonal in Fourier "
        "space.",
        {
            "advance": ("crank-nicolson", "crank-nicolson", "implicit-upwind"),
            "step": ("cfl",),
            "solver": STEPPING,
        },
        constants={"CFL": ("1.0", "0.5", "2.0")},
        weight=0.8,
    ),
    Recipe(
        "adaptive",
        "numerical",
        "The method of lines hands time stepping and its error control to SciPy.",
        {
            "space": ("finite-volume", "central-4", "compact", "fourier"),
            "reconstruct": ("muscl", "weno5"),
            "limiter": ("van-leer", "mc"),
            "flux": ("upwind", "rusanov"),
            "solver": ("solve-ivp",),
        },
        HOST,
        ("float64",),
        weight=0.8,
    ),
    Recipe(
        "exact-shift",
        "analytical",
        "The solution is the initial profile moved by beta t; a trigonometric interpolant is moved exactly by "
        "multiplying each Fourier mode by its phase.",
        {"advance": ("fourier-shift",), "step": ("output-interval",), "solver": ("direct", *STEPPING)},
        weight=1.2,
    ),
    Recipe(
        "characteristics",
        "analytical",
        "u is constant along the characteristics x - beta t, so every output is the initial profile read at the feet "
        "of the characteristics.",
        {
            "advance": ("linear-characteristics", "cubic-characteristics", "spline-characteristics"),
            "solver": ("direct",),
        },
        weight=1.2,
    ),
    Recipe(
        "semi-lagrangian",
        "hybrid",
        "Each output interval follows the characteristics exactly and interpolates once.",
        {
            "advance": ("cubic-characteristics", "spline-characteristics", "linear-characteristics"),
            "step": ("output-interval",),
            "solver": ("equal-steps", "preallocated", "clipped-steps"),
        },
        HOST,
    ),
)

ADVECTION = Family(
    name="advection",
    title="Linear advection u_t + beta u_x = 0 on the periodic interval (0, 1)",
    signature="u0_batch, t_coordinate, beta",
    returns="Return u [batch, T+1, N] at the times t_coordinate for the initial values u0_batch [batch, N].",
    args="beta",
    initial="initial = xp.asarray(u0_batch, dtype=DTYPE)",
    result="return np.asarray(solution)",
    constants={
        "LENGTH": ("1.0",),
        "CFL": ("0.4", "0.5", "0.3", "0.25"),
        "GRID_FACTOR": ("2",),
        "METHOD": ('"RK45"', '"DOP853"', '"RK23"'),
        "RTOL": ("1e-6", "1e-5", "1e-8"),
        "ATOL": ("1e-8",),
    },
    blocks=(
        *LIMITERS,
        *RECONSTRUCTIONS,
        *INTEGRATORS,
        *GRID_TRANSFER,
        *_FLUXES,
        *_OPERATORS,
        *_STEPS,
        *_STEP_SIZES,
        *DRIVERS,
    ),
    recipes=_RECIPES,
)
