"""Reaction-diffusion u_t = nu u_xx + rho u (1 - u) on the periodic interval (0, 1)."""

from __future__ import annotations

from sharp.llm.playbook.library.blocks import HOST, JAX, Block, Family, Recipe
from sharp.llm.playbook.library.drivers import DRIVERS, HOST_STEPPING, STEPPING
from sharp.llm.playbook.library.heat import HEAT
from sharp.llm.playbook.library.shared import GRID_TRANSFER, INTEGRATORS

_REACT = (
    Block(
        "react",
        "fraction",
        4,
        "exact logistic step u / (u + (1 - u) e^{-rho dt})",
        '''
def react(u, dt, rho):
    """Solve u_t = rho u (1 - u) over dt exactly."""
    return u / (u + (1.0 - u) * xp.exp(-rho * dt))
''',
    ),
    Block(
        "react",
        "odds",
        3,
        "exact logistic step 1 / (1 + e^{-rho dt} (1 - u) / u)",
        '''
def react(u, dt, rho):
    """Solve u_t = rho u (1 - u) over dt exactly, written with the odds (1 - u) / u."""
    return 1.0 / (1.0 + xp.exp(-rho * dt) * ((1.0 - u) / (u + TINY)))
''',
    ),
    Block(
        "react",
        "growth",
        4,
        "exact logistic step u e^{rho dt} / (1 + u (e^{rho dt} - 1))",
        '''
def react(u, dt, rho):
    """Solve u_t = rho u (1 - u) over dt exactly, written with the growth factor."""
    growth = xp.exp(rho * dt)
    return growth * u / (1.0 + u * (growth - 1.0))
''',
    ),
    Block(
        "react",
        "increment",
        4,
        "exact logistic step in increment form",
        '''
def react(u, dt, rho):
    """Solve u_t = rho u (1 - u) over dt exactly, as an increment that does not lose small steps to rounding."""
    growth = xp.expm1(rho * dt)
    return u + growth * u * (1.0 - u) / (1.0 + growth * u)
''',
    ),
    Block(
        "react",
        "logit",
        3,
        "exact logistic step through the log odds",
        '''
def react(u, dt, rho):
    """Solve u_t = rho u (1 - u) over dt exactly: the log odds grow linearly."""
    return expit(logit(np.clip(u, 1e-7, 1.0 - 1e-7)) + rho * dt).astype(u.dtype)
''',
        HOST,
    ),
    Block(
        "react",
        "euler",
        1,
        "forward Euler for the reaction",
        '''
def react(u, dt, rho):
    """Step u_t = rho u (1 - u) over dt by forward Euler."""
    return u + dt * rho * u * (1.0 - u)
''',
    ),
    Block(
        "react",
        "heun",
        2,
        "Heun's method for the reaction",
        '''
def react(u, dt, rho):
    """Step u_t = rho u (1 - u) over dt by Heun's method."""
    slope = rho * u * (1.0 - u)
    predicted = u + dt * slope
    return u + 0.5 * dt * (slope + rho * predicted * (1.0 - predicted))
''',
    ),
)

_STEPS = (
    Block(
        "advance",
        "strang-diffusion-first",
        3,
        "Strang splitting with half steps of diffusion (second order)",
        '''
def advance(u, dt, dx, nu, rho):
    """Take one Strang step: half a step of diffusion, a step of reaction, half a step of diffusion."""
    u = heat(u, 0.5 * dt, dx, nu)
    u = react(u, dt, rho)
    return heat(u, 0.5 * dt, dx, nu)
''',
    ),
    Block(
        "advance",
        "strang-reaction-first",
        3,
        "Strang splitting with half steps of reaction (second order)",
        '''
def advance(u, dt, dx, nu, rho):
    """Take one Strang step: half a step of reaction, a step of diffusion, half a step of reaction."""
    u = react(u, 0.5 * dt, rho)
    u = heat(u, dt, dx, nu)
    return react(u, 0.5 * dt, rho)
''',
    ),
    Block(
        "advance",
        "lie",
        1,
        "Lie splitting of reaction and diffusion (first order)",
        '''
def advance(u, dt, dx, nu, rho):
    """Take one Lie step: reaction, then diffusion."""
    return heat(react(u, dt, rho), dt, dx, nu)
''',
    ),
    Block(
        "advance",
        "imex-euler",
        1,
        "IMEX Euler: implicit diffusion, explicit reaction (first order)",
        '''
def advance(u, dt, dx, nu, rho):
    """Take one IMEX Euler step; the implicit diffusion is diagonal in Fourier space."""
    k = 2.0 * np.pi * xp.fft.rfftfreq(u.shape[-1], d=dx)
    forced = xp.fft.rfft(u + dt * reaction(u, rho), axis=-1)
    return xp.fft.irfft(forced / (1.0 + dt * nu * k**2), n=u.shape[-1], axis=-1).astype(u.dtype)
''',
    ),
    Block(
        "advance",
        "imex-heun",
        2,
        "IMEX: Crank-Nicolson diffusion with Heun's method for the reaction (second order)",
        '''
def advance(u, dt, dx, nu, rho):
    """Take one IMEX step: diffusion by Crank-Nicolson in Fourier space, reaction by Heun's method."""
    k = 2.0 * np.pi * xp.fft.rfftfreq(u.shape[-1], d=dx)
    decay = 0.5 * dt * nu * k**2

    def implicit_solve(forcing):
        spectrum = (1.0 - decay) * xp.fft.rfft(u, axis=-1) + dt * xp.fft.rfft(forcing, axis=-1)
        return xp.fft.irfft(spectrum / (1.0 + decay), n=u.shape[-1], axis=-1).astype(u.dtype)

    slope = reaction(u, rho)
    predicted = implicit_solve(slope)
    return implicit_solve(0.5 * (slope + reaction(predicted, rho)))
''',
    ),
    Block(
        "advance",
        "etd-rk2",
        3,
        "exponential time differencing ETD-RK2 in Fourier space (second order)",
        '''
def advance(u, dt, dx, nu, rho):
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
''',
    ),
    Block(
        "advance",
        "integrating-factor-rk4",
        3,
        "integrating-factor RK4 in Fourier space (fourth order for smooth data)",
        '''
def advance(u, dt, dx, nu, rho):
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
''',
    ),
)

_TERMS = (
    Block(
        "reaction",
        "logistic",
        2,
        "logistic reaction",
        '''
def reaction(u, rho):
    """Return the logistic growth rate rho u (1 - u)."""
    return rho * u * (1.0 - u)
''',
    ),
    Block(
        "space",
        "central-2",
        2,
        "second-order central differences",
        '''
def spatial_operator(u, dx, nu, rho):
    """Return du/dt of the semi-discrete equation with the three-point Laplacian."""
    laplacian = (xp.roll(u, -1, axis=-1) - 2.0 * u + xp.roll(u, 1, axis=-1)) / dx**2
    return nu * laplacian + reaction(u, rho)
''',
    ),
    Block(
        "space",
        "central-4",
        3,
        "fourth-order central differences",
        '''
def spatial_operator(u, dx, nu, rho):
    """Return du/dt of the semi-discrete equation with the five-point Laplacian."""
    near = xp.roll(u, -1, axis=-1) + xp.roll(u, 1, axis=-1)
    far = xp.roll(u, -2, axis=-1) + xp.roll(u, 2, axis=-1)
    return nu * (16.0 * near - far - 30.0 * u) / (12.0 * dx**2) + reaction(u, rho)
''',
    ),
)

_STEP_SIZES = (
    Block(
        "step",
        "accuracy",
        2,
        "time step chosen for accuracy",
        '''
def stable_step(u, dx, nu, rho):
    """Return the time step chosen for accuracy; the scheme itself has no stability bound from diffusion."""
    return MAX_STEP / max(rho, 1.0)
''',
    ),
    Block(
        "step",
        "diffusive",
        2,
        "time step from the diffusive stability bound",
        '''
def stable_step(u, dx, nu, rho):
    """Return the explicit diffusive bound: the fraction DIFFUSION_NUMBER of dx^2 / nu."""
    return DIFFUSION_NUMBER * dx**2 / nu
''',
    ),
)

_SPARSE_DRIVER = Block(
    "solver",
    "sparse-bdf",
    3,
    "SciPy's implicit BDF solve_ivp for each sample with a sparse Jacobian",
    '''
def periodic_laplacian(cells, dx):
    """Return the three-point Laplacian with periodic ends as a sparse matrix."""
    bands = [np.ones(cells - 1), -2.0 * np.ones(cells), np.ones(cells - 1), [1.0], [1.0]]
    return sparse.diags(bands, [-1, 0, 1, cells - 1, 1 - cells], format="csc") / dx**2


def solver(SIGNATURE):
    """RETURNS"""
    times = [float(t) for t in t_coordinate]
    INITIAL
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
    RESULT
''',
    HOST,
)

_EXACT_REACTION = ("fraction", "odds", "growth", "increment", "logit")

_RECIPES = (
    Recipe(
        "strang",
        "hybrid",
        "Diffusion and logistic growth have closed solutions on their own; Strang splitting joins them with second "
        "order and no stability bound.",
        {
            "advance": ("strang-diffusion-first", "strang-reaction-first"),
            "heat": (
                "fourier-exact",
                "fourier-exact",
                "difference-exact",
                "crank-nicolson",
                "banded-crank-nicolson",
            ),
            "react": _EXACT_REACTION,
            "step": ("accuracy",),
            "solver": STEPPING,
        },
        weight=4.0,
    ),
    Recipe(
        "lie",
        "hybrid",
        "A simple splitting: react, then diffuse, each part by its own solution.",
        {
            "advance": ("lie",),
            "heat": ("fourier-exact", "implicit-euler", "crank-nicolson"),
            "react": (*_EXACT_REACTION, "euler", "heun"),
            "step": ("accuracy",),
            "solver": STEPPING,
        },
        level="simple",
        weight=1.8,
    ),
    Recipe(
        "stabilized",
        "hybrid",
        "Runge-Kutta-Legendre stages stretch the explicit diffusion step with the square of their number, so no "
        "linear system has to be solved.",
        {
            "advance": ("strang-reaction-first", "lie"),
            "heat": ("legendre",),
            "react": _EXACT_REACTION,
            "step": ("accuracy",),
            "solver": HOST_STEPPING,
        },
        HOST,
        weight=0.8,
    ),
    Recipe(
        "imex",
        "numerical",
        "Diffusion is stiff and linear, the reaction slow and nonlinear: treat the first implicitly, the second "
        "explicitly.",
        {
            "advance": ("imex-heun", "imex-heun", "imex-euler"),
            "reaction": ("logistic",),
            "step": ("accuracy",),
            "solver": STEPPING,
        },
        weight=1.8,
    ),
    Recipe(
        "exponential",
        "numerical",
        "Exponential integrators treat the stiff diffusion exactly and the smooth reaction with high order.",
        {
            "advance": ("etd-rk2", "integrating-factor-rk4"),
            "reaction": ("logistic",),
            "step": ("accuracy",),
            "solver": STEPPING,
        },
        weight=1.8,
    ),
    Recipe(
        "coarse-explicit",
        "numerical",
        "The explicit step bound scales with dx^2 while diffusion smooths the solution at once: an explicit scheme "
        "on a coarser grid is affordable.",
        {
            "space": ("central-2", "central-4"),
            "reaction": ("logistic",),
            "advance": ("euler", "ssp-rk2", "rk4"),
            "grid": ("conservative", "linear", "cubic", "fourier"),
            "step": ("diffusive",),
            "solver": ("equal-steps", "preallocated", "compiled-intervals", "compiled-at"),
        },
        constants={"GRID_FACTOR": ("0.125", "0.25", "0.0625")},
        level="simple",
        weight=1.5,
    ),
    Recipe(
        "explicit",
        "numerical",
        "Forward Euler in time and central differences in space on the given grid; the loop is compiled because the "
        "diffusive bound asks for millions of steps.",
        {
            "space": ("central-2",),
            "reaction": ("logistic",),
            "advance": ("euler",),
            "step": ("diffusive",),
            "solver": ("compiled-intervals",),
        },
        JAX,
        ("float32",),
        {"DIFFUSION_NUMBER": ("0.45", "0.4")},
        weight=0.15,
    ),
    Recipe(
        "explicit-splitting",
        "hybrid",
        "Exact logistic steps between the explicit diffusion steps of a compiled loop.",
        {
            "advance": ("strang-reaction-first", "lie"),
            "heat": ("explicit",),
            "react": ("odds", "fraction", "growth"),
            "step": ("diffusive",),
            "solver": ("compiled-intervals", "compiled-scan"),
        },
        JAX,
        ("float32",),
        {"DIFFUSION_NUMBER": ("0.25", "0.4")},
        weight=0.25,
    ),
    Recipe(
        "implicit-adaptive",
        "numerical",
        "A stiff, smooth system: SciPy's BDF with an analytic sparse Jacobian controls the error by itself.",
        {"reaction": ("logistic",), "solver": ("sparse-bdf",)},
        HOST,
        ("float64",),
        {"RTOL": ("1e-5", "1e-6", "1e-4"), "ATOL": ("1e-8", "1e-7")},
        weight=0.5,
    ),
)

REACTION_DIFFUSION = Family(
    name="reaction-diffusion",
    title="Reaction-diffusion u_t = nu u_xx + rho u (1 - u) on the periodic interval (0, 1)",
    signature="u0_batch, t_coordinate, nu, rho",
    returns="Return u [batch, T+1, N] at the times t_coordinate for the initial values u0_batch [batch, N].",
    args="nu, rho",
    initial="initial = xp.asarray(u0_batch, dtype=DTYPE)",
    result="return np.asarray(solution)",
    constants={
        "LENGTH": ("1.0",),
        "MAX_STEP": ("0.001", "0.002", "0.01", "0.0005", "0.005"),
        "DIFFUSION_NUMBER": ("0.25", "0.3"),
        "GRID_FACTOR": ("0.25",),
        "TINY": ("1e-12",),
        "RTOL": ("1e-5",),
        "ATOL": ("1e-8",),
    },
    blocks=(
        *_REACT,
        *HEAT,
        *_TERMS,
        *INTEGRATORS,
        *_STEPS,
        *_STEP_SIZES,
        *GRID_TRANSFER,
        *DRIVERS,
        _SPARSE_DRIVER,
    ),
    recipes=_RECIPES,
)
