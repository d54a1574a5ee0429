"""One-dimensional compressible Navier-Stokes equations of an ideal gas on the periodic interval (-1, 1)."""

from __future__ import annotations

from sharp.llm.playbook.library.blocks import HOST, JAX, Block, Family, Recipe
from sharp.llm.playbook.library.drivers import DRIVERS, HOST_STEPPING, STEPPING
from sharp.llm.playbook.library.gas import GAS
from sharp.llm.playbook.library.shared import GRID_TRANSFER, INTEGRATORS, LIMITERS, RECONSTRUCTIONS

_CONVECTION = (
    Block(
        "convection",
        "finite-volume",
        3,
        "conservative finite volumes in primitive variables",
        '''
def convection(u, dx):
    """Return the rate of change of the conserved variables by the inviscid fluxes."""
    left, right = reconstruct(xp.stack(primitive(u)))
    flux = numerical_flux(left, right)
    return -(flux - xp.roll(flux, 1, axis=-1)) / dx
''',
    ),
    Block(
        "convection",
        "pseudo-spectral",
        2,
        "pseudo-spectral derivatives of the fluxes",
        '''
def convection(u, dx):
    """Return the rate of change by the inviscid fluxes, differentiated in Fourier space."""
    k = 2.0 * np.pi * xp.fft.rfftfreq(u.shape[-1], d=dx)
    flux = xp.fft.rfft(inviscid_flux(xp.stack(primitive(u))), axis=-1)
    return -xp.fft.irfft(1j * k * flux, n=u.shape[-1], axis=-1).astype(u.dtype)
''',
    ),
)

_VISCOSITY = (
    Block(
        "closure",
        "kinematic",
        3,
        "kinematic viscosities",
        '''
def face_viscosity(density, eta, zeta):
    """Return the factor (zeta + 4/3 eta) density of the viscous stress at the faces i+1/2."""
    return (zeta + 4.0 / 3.0 * eta) * 0.5 * (density + xp.roll(density, -1, axis=-1))
''',
    ),
    Block(
        "closure",
        "dynamic",
        0,
        "viscosities read as dynamic ones (no density in the stress)",
        '''
def face_viscosity(density, eta, zeta):
    """Return the factor zeta + 4/3 eta of the viscous stress at the faces i+1/2."""
    return (zeta + 4.0 / 3.0 * eta) * xp.ones_like(density)
''',
    ),
    Block(
        "viscosity",
        "face-stress",
        2,
        "central viscous stress at the faces",
        '''
def viscous_terms(u, dx, eta, zeta):
    """Return the rate of change by the viscous stress sigma = mu v_x and its work v sigma."""
    velocity = u[1] / u[0]
    ahead = xp.roll(velocity, -1, axis=-1)
    stress = face_viscosity(u[0], eta, zeta) * (ahead - velocity) / dx
    flux = xp.stack([xp.zeros_like(stress), stress, 0.5 * (velocity + ahead) * stress])
    return (flux - xp.roll(flux, 1, axis=-1)) / dx
''',
    ),
    Block(
        "space",
        "method-of-lines",
        2,
        "method of lines",
        '''
def spatial_operator(u, dx, eta, zeta):
    """Return du/dt of the conserved variables."""
    return convection(u, dx) + viscous_terms(u, dx, eta, zeta)
''',
    ),
    Block(
        "space",
        "no-heating",
        0,
        "viscous force without viscous heating",
        '''
def spatial_operator(u, dx, eta, zeta):
    """Return du/dt of the conserved variables; the small work of the viscous stress is neglected."""
    velocity = u[1] / u[0]
    stress = face_viscosity(u[0], eta, zeta) * (xp.roll(velocity, -1, axis=-1) - velocity) / dx
    force = (stress - xp.roll(stress, 1, axis=-1)) / dx
    return convection(u, dx) + xp.stack([xp.zeros_like(force), force, velocity * force])
''',
    ),
)

_VISCOUS_STEPS = (
    Block(
        "viscous",
        "implicit",
        3,
        "Crank-Nicolson viscosity by cyclic tridiagonal solves",
        '''
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


def viscous_step(u, dt, dx, eta, zeta):
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
''',
        HOST,
    ),
    Block(
        "viscous",
        "legendre",
        3,
        "explicit stabilized (Runge-Kutta-Legendre) viscosity",
        '''
def viscous_step(u, dt, dx, eta, zeta):
    """Apply the viscous stress over dt by the second-order Runge-Kutta-Legendre step with STAGES stages."""
    w = 4.0 / (STAGES**2 + STAGES - 2.0)
    b = [1.0 / 3.0, 1.0 / 3.0] + [(j * j + j - 2.0) / (2.0 * j * (j + 1.0)) for j in range(2, STAGES + 1)]
    start = viscous_terms(u, dx, eta, zeta)
    older, old = u, u + b[1] * w * dt * start
    for j in range(2, STAGES + 1):
        mu = (2.0 * j - 1.0) / j * b[j] / b[j - 1]
        nu = -(j - 1.0) / j * b[j] / b[j - 2]
        gamma = -(1.0 - b[j - 1]) * mu * w
        new = mu * old + nu * older + (1.0 - mu - nu) * u
        older, old = old, new + mu * w * dt * viscous_terms(old, dx, eta, zeta) + gamma * dt * start
    return old
''',
    ),
)

_TRANSPORT = (
    Block(
        "transport",
        "euler",
        1,
        "forward Euler for the inviscid part",
        '''
def transport(u, dt, dx):
    """Advance the inviscid equations over dt by forward Euler."""
    return u + dt * convection(u, dx)
''',
    ),
    Block(
        "transport",
        "ssp-rk2",
        2,
        "SSP-RK2 for the inviscid part",
        '''
def transport(u, dt, dx):
    """Advance the inviscid equations over dt by the two-stage SSP Runge-Kutta method."""
    predicted = u + dt * convection(u, dx)
    return 0.5 * (u + predicted + dt * convection(predicted, dx))
''',
    ),
    Block(
        "transport",
        "ssp-rk3",
        3,
        "SSP-RK3 for the inviscid part",
        '''
def transport(u, dt, dx):
    """Advance the inviscid equations over dt by the three-stage SSP Runge-Kutta method."""
    first = u + dt * convection(u, dx)
    second = 0.75 * u + 0.25 * (first + dt * convection(first, dx))
    return (u + 2.0 * (second + dt * convection(second, dx))) / 3.0
''',
    ),
    Block(
        "transport",
        "maccormack",
        2,
        "MacCormack predictor-corrector for the inviscid part",
        '''
def transport(u, dt, dx):
    """Advance the inviscid equations over dt by MacCormack's forward predictor and backward corrector."""
    flux = inviscid_flux(xp.stack(primitive(u)))
    predicted = u - dt / dx * (xp.roll(flux, -1, axis=-1) - flux)
    flux = inviscid_flux(xp.stack(primitive(predicted)))
    return 0.5 * (u + predicted - dt / dx * (flux - xp.roll(flux, 1, axis=-1)))
''',
    ),
)

_STEPS = (
    Block(
        "advance",
        "strang",
        3,
        "Strang splitting of inviscid and viscous parts (second order)",
        '''
def advance(u, dt, dx, eta, zeta):
    """Take one Strang step: half a viscous step, an inviscid step, half a viscous step."""
    u = viscous_step(u, 0.5 * dt, dx, eta, zeta)
    u = transport(u, dt, dx)
    return viscous_step(u, 0.5 * dt, dx, eta, zeta)
''',
    ),
    Block(
        "advance",
        "lie",
        1,
        "Lie splitting of inviscid and viscous parts (first order)",
        '''
def advance(u, dt, dx, eta, zeta):
    """Take one Lie step: an inviscid step, then a viscous step."""
    return viscous_step(transport(u, dt, dx), dt, dx, eta, zeta)
''',
    ),
    Block(
        "advance",
        "filtered-rk4",
        2,
        "RK4 with an exponential filter of the highest Fourier modes",
        '''
def smooth(u):
    """Damp the highest Fourier modes with an exponential filter of order 16."""
    modes = u.shape[-1] // 2 + 1
    damping = xp.exp(-36.0 * (xp.arange(modes) / (modes - 1.0)) ** 16)
    return xp.fft.irfft(damping * xp.fft.rfft(u, axis=-1), n=u.shape[-1], axis=-1).astype(u.dtype)


def advance(u, dt, dx, eta, zeta):
    """Take one classical Runge-Kutta step and filter the result."""
    k1 = spatial_operator(u, dx, eta, zeta)
    k2 = spatial_operator(u + 0.5 * dt * k1, dx, eta, zeta)
    k3 = spatial_operator(u + 0.5 * dt * k2, dx, eta, zeta)
    k4 = spatial_operator(u + dt * k3, dx, eta, zeta)
    return smooth(u + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4))
''',
    ),
)

_WAVE_SPEED = '''
def wave_speed(u):
    """Return the largest speed |v| + c of the whole batch."""
    density, velocity, pressure = primitive(u)
    return xp.max(xp.abs(velocity) + xp.sqrt(GAMMA * pressure / density))


'''

_STEP_SIZES = (
    Block(
        "step",
        "explicit",
        2,
        "time step from the acoustic and the viscous stability bound",
        _WAVE_SPEED
        + '''
def stable_step(u, dx, eta, zeta):
    """Return the step that respects the acoustic and the viscous bound of explicit steps together."""
    lightest = xp.minimum(u[0], xp.roll(u[0], -1, axis=-1))
    kinematic = xp.max(face_viscosity(u[0], eta, zeta) / lightest)
    return 1.0 / (wave_speed(u) / (CFL * dx) + kinematic / (DIFFUSION_NUMBER * dx**2))
'''.lstrip("\n"),
    ),
    Block(
        "step",
        "acoustic",
        2,
        "time step from the acoustic CFL condition",
        _WAVE_SPEED
        + '''
def stable_step(u, dx, eta, zeta):
    """Return the acoustic bound CFL dx / (|v| + c); the viscous part has no bound."""
    return CFL * dx / wave_speed(u)
'''.lstrip("\n"),
    ),
    Block(
        "step",
        "stabilized",
        2,
        "time step from the acoustic bound and the extended viscous bound",
        _WAVE_SPEED
        + '''
def stable_step(u, dx, eta, zeta):
    """Return the smaller of the acoustic bound and the viscous bound of STAGES Legendre stages."""
    lightest = xp.minimum(u[0], xp.roll(u[0], -1, axis=-1))
    kinematic = xp.max(face_viscosity(u[0], eta, zeta) / lightest)
    viscous = 0.5 * dx**2 / kinematic * (STAGES**2 + STAGES - 2.0) / 4.0
    return xp.minimum(CFL * dx / wave_speed(u), viscous)
'''.lstrip("\n"),
    ),
)

_LIMITED = {
    "convection": ("finite-volume",),
    "reconstruct": ("muscl",),
    "limiter": ("minmod", "van-leer", "mc", "van-albada"),
    "flux": ("rusanov", "hll", "hllc", "lax-friedrichs"),
    "state": ("plain", "floored"),
    "inviscid": ("euler",),
}
_CLOSURE = ("kinematic", "kinematic", "kinematic", "dynamic")
_EXPLICIT = {
    "space": ("method-of-lines",),
    "viscosity": ("face-stress",),
    "closure": _CLOSURE,
    "step": ("explicit",),
}
_COARSE = {"grid": ("conservative", "linear", "cubic")}

_RECIPES = (
    Recipe(
        "split-implicit",
        "hybrid",
        "The viscous bound dx^2/(2 mu) is several times below the acoustic one: split the viscous stress off, solve "
        "it implicitly, and use a standard shock-capturing scheme for the Euler equations.",
        {
            **_LIMITED,
            "advance": ("strang", "strang", "lie"),
            "viscous": ("implicit",),
            "closure": _CLOSURE,
            "transport": ("ssp-rk2", "ssp-rk2", "ssp-rk3"),
            "step": ("acoustic",),
            "solver": HOST_STEPPING,
        },
        HOST,
        ("float64",),
        {"CFL": ("0.5", "0.8", "0.6")},
        weight=2.0,
    ),
    Recipe(
        "split-stabilized",
        "hybrid",
        "Split the viscous stress off and step it with a few Runge-Kutta-Legendre stages: explicit, cheap, and "
        "stable at the acoustic step.",
        {
            **_LIMITED,
            "advance": ("strang", "lie"),
            "viscous": ("legendre",),
            "viscosity": ("face-stress",),
            "closure": _CLOSURE,
            "transport": ("ssp-rk2", "ssp-rk3", "maccormack"),
            "step": ("stabilized",),
            "solver": STEPPING,
        },
        constants={"CFL": ("0.5", "0.4", "0.6")},
        weight=2.0,
    ),
    Recipe(
        "explicit",
        "numerical",
        "One explicit Runge-Kutta method for everything, finite volumes with an approximate Riemann solver; the loop "
        "is compiled because the viscous bound asks for many steps.",
        {**_LIMITED, **_EXPLICIT, "advance": ("ssp-rk2", "midpoint", "ssp-rk3"), "solver": STEPPING},
        JAX,
        ("float32",),
        {"CFL": ("0.5",)},
        weight=0.3,
    ),
    Recipe(
        "coarse-explicit",
        "numerical",
        "Viscosity smooths the velocity over many cells, so a coarser grid carries the solution and its explicit "
        "step bound is many times larger.",
        {
            **_LIMITED,
            **_EXPLICIT,
            **_COARSE,
            "space": ("method-of-lines", "method-of-lines", "no-heating"),
            "advance": ("ssp-rk2", "midpoint", "ssp-rk3"),
            "solver": ("equal-steps", "clipped-steps", "preallocated", "compiled-intervals", "compiled-at"),
        },
        constants={"GRID_FACTOR": ("0.5", "0.25")},
        weight=2.5,
    ),
    Recipe(
        "weno",
        "numerical",
        "WENO reconstruction in primitive variables keeps density fronts sharp on half the cells.",
        {
            **_LIMITED,
            **_EXPLICIT,
            **_COARSE,
            "reconstruct": ("weno5", "third-order"),
            "advance": ("ssp-rk3",),
            "solver": ("equal-steps", "compiled-intervals", "compiled-at"),
        },
        constants={"GRID_FACTOR": ("0.5", "0.25")},
        weight=1.2,
    ),
    Recipe(
        "first-order",
        "numerical",
        "Piecewise-constant states with a Rusanov-type flux are positive and simple.",
        {
            **_LIMITED,
            **_EXPLICIT,
            **_COARSE,
            "space": ("method-of-lines", "no-heating"),
            "reconstruct": ("constant",),
            "flux": ("rusanov", "hll", "lax-friedrichs"),
            "advance": ("euler", "ssp-rk2"),
            "solver": ("equal-steps", "clipped-steps", "preallocated", "compiled-intervals", "compiled-at"),
        },
        constants={"GRID_FACTOR": ("0.5", "0.25")},
        level="simple",
        weight=1.2,
    ),
    Recipe(
        "pseudo-spectral",
        "numerical",
        "The flow is subsonic and viscous, so Fourier derivatives with RK4 need no Riemann solver; a high-order "
        "filter removes the energy that piles up at the grid scale.",
        {
            **_EXPLICIT,
            **_COARSE,
            "state": ("plain", "floored"),
            "inviscid": ("euler",),
            "convection": ("pseudo-spectral",),
            "advance": ("filtered-rk4",),
            "solver": ("equal-steps", "preallocated", "compiled-intervals", "compiled-at"),
        },
        constants={"GRID_FACTOR": ("0.25",)},
        weight=0.8,
    ),
    Recipe(
        "adaptive",
        "numerical",
        "The method of lines on a coarser grid hands time stepping and its error control to SciPy.",
        {
            **_LIMITED,
            **_EXPLICIT,
            **_COARSE,
            "solver": ("solve-ivp",),
        },
        HOST,
        ("float64",),
        {"GRID_FACTOR": ("0.25",), "RTOL": ("1e-4", "1e-3")},
        weight=0.6,
    ),
)

NAVIER_STOKES = Family(
    name="navier-stokes-1d",
    title="Compressible Navier-Stokes equations of an ideal gas (Gamma = 5/3) on the periodic interval (-1, 1)",
    signature="Vx0, density0, pressure0, t_coordinate, eta, zeta",
    returns="Return (Vx, density, pressure), each [batch, T+1, N], for initial values [batch, N].",
    args="eta, zeta",
    initial=(
        "density, velocity, pressure = (xp.asarray(v, dtype=DTYPE) for v in (density0, Vx0, pressure0))\n"
        "initial = conserved(density, velocity, pressure)"
    ),
    result=(
        "density, velocity, pressure = primitive(solution)\n"
        "return np.asarray(velocity), np.asarray(density), np.asarray(pressure)"
    ),
    constants={
        "GAMMA": ("5.0 / 3.0",),
        "LENGTH": ("2.0",),
        "CFL": ("0.4", "0.5", "0.3"),
        "DIFFUSION_NUMBER": ("0.35", "0.25"),
        "GRID_FACTOR": ("0.5",),
        "STAGES": ("8", "6", "10"),
        "FLOOR": ("1e-6",),
        "METHOD": ('"RK45"', '"RK23"'),
        "RTOL": ("1e-4",),
        "ATOL": ("1e-6",),
    },
    blocks=(
        *LIMITERS,
        *RECONSTRUCTIONS,
        *GAS,
        *_CONVECTION,
        *_VISCOSITY,
        *_VISCOUS_STEPS,
        *_TRANSPORT,
        *INTEGRATORS,
        *_STEPS,
        *_STEP_SIZES,
        *GRID_TRANSFER,
        *DRIVERS,
    ),
    recipes=_RECIPES,
)
