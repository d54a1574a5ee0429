"""Blocks that serve every equation in one space dimension: limiters, reconstructions, integrators, grid transfer."""

from __future__ import annotations

from sharp.llm.playbook.library.blocks import Block

LIMITERS: tuple[Block, ...] = (
    Block(
        "limiter",
        "minmod",
        1,
        "minmod limiter",
        '''
def limiter(a, b):
    """Minmod: the smaller of two slopes of one sign, zero at an extremum."""
    return 0.5 * (xp.sign(a) + xp.sign(b)) * xp.minimum(xp.abs(a), xp.abs(b))
''',
    ),
    Block(
        "limiter",
        "van-leer",
        3,
        "van Leer limiter",
        '''
def limiter(a, b):
    """Van Leer: harmonic mean of two slopes of one sign, zero at an extremum."""
    same_sign = a * b > 0.0
    return xp.where(same_sign, 2.0 * a * b / xp.where(same_sign, a + b, 1.0), 0.0)
''',
    ),
    Block(
        "limiter",
        "mc",
        3,
        "monotonized central (MC) limiter",
        '''
def limiter(a, b):
    """Monotonized central: the mean slope, at most twice the smaller one-sided slope."""
    bound = xp.minimum(2.0 * xp.minimum(xp.abs(a), xp.abs(b)), 0.5 * xp.abs(a + b))
    return 0.5 * (xp.sign(a) + xp.sign(b)) * bound
''',
    ),
    Block(
        "limiter",
        "superbee",
        2,
        "superbee limiter",
        '''
def limiter(a, b):
    """Superbee: the steepest slope that keeps the scheme total-variation diminishing."""
    size_a, size_b = xp.abs(a), xp.abs(b)
    steep = xp.maximum(xp.minimum(2.0 * size_a, size_b), xp.minimum(size_a, 2.0 * size_b))
    return 0.5 * (xp.sign(a) + xp.sign(b)) * steep
''',
    ),
    Block(
        "limiter",
        "van-albada",
        2,
        "van Albada limiter",
        '''
def limiter(a, b):
    """Van Albada: a smooth average that leans towards the smaller slope."""
    blend = a * b * (a + b) / (a * a + b * b + 1e-12)
    return xp.where(a * b > 0.0, blend, 0.0)
''',
    ),
)

RECONSTRUCTIONS: tuple[Block, ...] = (
    Block(
        "reconstruct",
        "constant",
        1,
        "piecewise-constant states (first order)",
        '''
def reconstruct(u):
    """Return the states left and right of each face i+1/2: the cell values themselves."""
    return u, xp.roll(u, -1, axis=-1)
''',
    ),
    Block(
        "reconstruct",
        "muscl",
        2,
        "MUSCL piecewise-linear reconstruction",
        '''
def reconstruct(u):
    """Return the states left and right of each face i+1/2 from limited slopes."""
    backward = u - xp.roll(u, 1, axis=-1)
    forward = xp.roll(u, -1, axis=-1) - u
    slope = limiter(backward, forward)
    return u + 0.5 * slope, xp.roll(u - 0.5 * slope, -1, axis=-1)
''',
    ),
    Block(
        "reconstruct",
        "third-order",
        2,
        "unlimited third-order upwind-biased reconstruction (kappa = 1/3)",
        '''
def reconstruct(u):
    """Return the states left and right of each face i+1/2 by the kappa = 1/3 formula."""
    backward = u - xp.roll(u, 1, axis=-1)
    forward = xp.roll(u, -1, axis=-1) - u
    left = u + (2.0 * forward + backward) / 6.0
    right = u - (2.0 * backward + forward) / 6.0
    return left, xp.roll(right, -1, axis=-1)
''',
    ),
    Block(
        "reconstruct",
        "weno5",
        3,
        "fifth-order WENO reconstruction",
        '''
def weno_face(a, b, c, d, e):
    """Fifth-order WENO value (Jiang-Shu weights) at the right face of the cell that holds c."""
    p0 = (2.0 * a - 7.0 * b + 11.0 * c) / 6.0
    p1 = (-b + 5.0 * c + 2.0 * d) / 6.0
    p2 = (2.0 * c + 5.0 * d - e) / 6.0
    s0 = 13.0 / 12.0 * (a - 2.0 * b + c) ** 2 + 0.25 * (a - 4.0 * b + 3.0 * c) ** 2
    s1 = 13.0 / 12.0 * (b - 2.0 * c + d) ** 2 + 0.25 * (b - d) ** 2
    s2 = 13.0 / 12.0 * (c - 2.0 * d + e) ** 2 + 0.25 * (3.0 * c - 4.0 * d + e) ** 2
    w0, w1, w2 = 0.1 / (1e-6 + s0) ** 2, 0.6 / (1e-6 + s1) ** 2, 0.3 / (1e-6 + s2) ** 2
    return (w0 * p0 + w1 * p1 + w2 * p2) / (w0 + w1 + w2)


def reconstruct(u):
    """Return the states left and right of each face i+1/2 by WENO from both sides."""
    far_left, near_left = xp.roll(u, 2, axis=-1), xp.roll(u, 1, axis=-1)
    near_right, far_right = xp.roll(u, -1, axis=-1), xp.roll(u, -2, axis=-1)
    left = weno_face(far_left, near_left, u, near_right, far_right)
    right = weno_face(far_right, near_right, u, near_left, far_left)
    return left, xp.roll(right, -1, axis=-1)
''',
    ),
)

INTEGRATORS: tuple[Block, ...] = (
    Block(
        "advance",
        "euler",
        1,
        "forward Euler (first order)",
        '''
def advance(u, dt, dx, ARGS):
    """Take one forward Euler step."""
    return u + dt * spatial_operator(u, dx, ARGS)
''',
    ),
    Block(
        "advance",
        "ssp-rk2",
        2,
        "two-stage SSP Runge-Kutta (second order)",
        '''
def advance(u, dt, dx, ARGS):
    """Take one step of the two-stage strong-stability-preserving Runge-Kutta method."""
    predicted = u + dt * spatial_operator(u, dx, ARGS)
    return 0.5 * (u + predicted + dt * spatial_operator(predicted, dx, ARGS))
''',
    ),
    Block(
        "advance",
        "midpoint",
        2,
        "two-stage midpoint rule (second order)",
        '''
def advance(u, dt, dx, ARGS):
    """Take one step of the two-stage midpoint rule."""
    middle = u + 0.5 * dt * spatial_operator(u, dx, ARGS)
    return u + dt * spatial_operator(middle, dx, ARGS)
''',
    ),
    Block(
        "advance",
        "ssp-rk3",
        3,
        "three-stage SSP Runge-Kutta (third order)",
        '''
def advance(u, dt, dx, ARGS):
    """Take one step of the three-stage strong-stability-preserving Runge-Kutta method (Shu-Osher)."""
    first = u + dt * spatial_operator(u, dx, ARGS)
    second = 0.75 * u + 0.25 * (first + dt * spatial_operator(first, dx, ARGS))
    return (u + 2.0 * (second + dt * spatial_operator(second, dx, ARGS))) / 3.0
''',
    ),
    Block(
        "advance",
        "rk4",
        3,
        "classical Runge-Kutta (fourth order)",
        '''
def advance(u, dt, dx, ARGS):
    """Take one step of the classical fourth-order Runge-Kutta method."""
    k1 = spatial_operator(u, dx, ARGS)
    k2 = spatial_operator(u + 0.5 * dt * k1, dx, ARGS)
    k3 = spatial_operator(u + 0.5 * dt * k2, dx, ARGS)
    k4 = spatial_operator(u + dt * k3, dx, ARGS)
    return u + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
''',
    ),
)

GRID_TRANSFER: tuple[Block, ...] = (
    Block(
        "grid",
        "linear",
        1,
        "linear interpolation between the grids",
        '''
def resample(u, cells):
    """Move periodic cell-centre values to a grid of `cells` cells by linear interpolation."""
    position = (np.arange(cells) + 0.5) * u.shape[-1] / cells - 0.5
    index = np.floor(position).astype(int)
    weight = xp.asarray(position - index, dtype=u.dtype)
    left, right = u[..., index % u.shape[-1]], u[..., (index + 1) % u.shape[-1]]
    return (1.0 - weight) * left + weight * right
''',
    ),
    Block(
        "grid",
        "cubic",
        2,
        "four-point Lagrange interpolation between the grids",
        '''
def resample(u, cells):
    """Move periodic cell-centre values to a grid of `cells` cells by cubic Lagrange interpolation."""
    position = (np.arange(cells) + 0.5) * u.shape[-1] / cells - 0.5
    index = np.floor(position).astype(int)
    s = xp.asarray(position - index, dtype=u.dtype)
    a, b, c, d = (u[..., (index + shift) % u.shape[-1]] for shift in (-1, 0, 1, 2))
    return (
        -s * (s - 1.0) * (s - 2.0) / 6.0 * a
        + (s + 1.0) * (s - 1.0) * (s - 2.0) / 2.0 * b
        - (s + 1.0) * s * (s - 2.0) / 2.0 * c
        + (s + 1.0) * s * (s - 1.0) / 6.0 * d
    )
''',
    ),
    Block(
        "grid",
        "conservative",
        3,
        "conservative transfer of cell averages between the grids",
        '''
def resample(u, cells):
    """Move cell averages to a grid of `cells` cells: differences of a spline through their running integral."""
    average = np.mean(np.asarray(u), axis=-1, keepdims=True)
    fluctuation = np.asarray(u) - average
    integral = np.concatenate([0.0 * average, np.cumsum(fluctuation, axis=-1)], axis=-1) / u.shape[-1]
    integral[..., -1] = integral[..., 0]
    spline = CubicSpline(np.linspace(0.0, 1.0, u.shape[-1] + 1), integral, axis=-1, bc_type="periodic")
    faces = spline(np.linspace(0.0, 1.0, cells + 1))
    return xp.asarray(average + cells * np.diff(faces, axis=-1), dtype=u.dtype)
''',
    ),
    Block(
        "grid",
        "fourier",
        3,
        "trigonometric interpolation between the grids",
        '''
def resample(u, cells):
    """Move periodic cell-centre values to a grid of `cells` cells by trigonometric interpolation."""
    modes = min(u.shape[-1], cells) // 2
    offset = 0.5 / cells - 0.5 / u.shape[-1]
    shift = xp.exp(2j * np.pi * xp.arange(modes) * offset)
    spectrum = xp.fft.rfft(u, axis=-1)[..., :modes] * shift
    return xp.fft.irfft(spectrum * (cells / u.shape[-1]), n=cells, axis=-1).astype(u.dtype)
''',
    ),
)
