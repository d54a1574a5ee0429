"""The vocabulary of solver programs: all names that blocks of code use and do not define themselves.

Block modules import everything from here, so that type checkers see where each name comes from. None of it is ever
called: `assembly` reads the source of the modules, and a program gets imports of what it uses. Rewritten are

    *args, *inputs      the equation's parameters as inner functions pass them on; the arguments of `solver`
    read_inputs(…)      the lines by which `solver` reads its arguments;  write_outputs(…)  and shapes its results
    to_solver_grid(…)   from the grid of the data to the solver's own, if it has one;  to_output_grid(…)  and back
    xp                  `np` or `jnp`;  xp.fft  is SciPy's where the program uses SciPy
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:  # these take long to load, and nothing is called here
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax
    from scipy import fft, sparse
    from scipy.integrate import solve_ivp
    from scipy.interpolate import CubicSpline, make_interp_spline
    from scipy.linalg import solve_banded
    from scipy.sparse import linalg

    xp = np

Function = TypeVar("Function", bound=Callable[..., Any])
_ANY: Any = None

# Constants at the top of a program.
ATOL = BEGIN = BOUNDS = CFL = DIFFUSION_NUMBER = DROP_TOLERANCE = END = FIELDS = FLOOR = GAMMA = _ANY
GRID_FACTOR = ITERATIONS = LENGTH = MAX_STEP = METHOD = MOST_ITERATIONS = NODES = RTOL = STAGES = _ANY
SWEEPS = TINY = TOLERANCE = WINDOW = _ANY
# Functions of other blocks, and what is rewritten.
advance = apply_operator = args = assemble = bounds = cell_coefficients = cells_of = closed = _ANY
convection = diagonal_of = diffusion = discretize = dot = face_coefficients = face_viscosity = _ANY
group_args = groups = heat = initial_state = interpolation_matrix = invert_laplacian = inviscid_flux = _ANY
legendre_stages = limiter = mesh = moved = nonlinear_term = nu = numerical_flux = outward = points = _ANY
precondition = primitive = rates = react = reaction = read_inputs = reconstruct = relax = residual = _ANY
rho = laplacian_spectrum = solve_matrix = solve_system = spatial_operator = stable_step = stepper = _ANY
to_output_grid = to_points = to_solver_grid = transport = viscous_step = viscous_terms = write_outputs = _ANY


def block(
    slot: str, rank: int, summary: str, runs_on: Literal["any", "host", "jax"] = "any"
) -> Callable[[Function], Function]:
    """Mark the first function of a block; see `library.CodeBlock` for the arguments.

    The function is called NAME__BLOCK: NAME is what programs call it, BLOCK the block's name with `_` for `-`. Further
    functions of the block follow and end in the same __BLOCK.
    """
    del slot, rank, summary, runs_on
    return lambda function: function
