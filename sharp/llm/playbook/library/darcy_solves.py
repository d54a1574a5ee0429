"""Blocks that solve the linear systems of Darcy flow: preconditioners, iterations, sweeps, sparse solvers."""

from __future__ import annotations

from sharp.llm.playbook.library.blocks import HOST, JAX, Block

PRECONDITIONERS: tuple[Block, ...] = (
    Block(
        "spectrum",
        "five-point",
        4,
        "the eigenvalues of the five-point Laplacian",
        '''
@lru_cache
def laplacian_spectrum(n):
    """Return the eigenvalues [n, n] of the five-point Laplacian (times -dx^2) in the sine basis."""
    one = 2.0 - 2.0 * np.cos(np.pi * np.arange(1, n + 1) / (n + 1))
    return one[:, None] + one[None, :]
''',
    ),
    Block(
        "sine",
        "transform",
        4,
        "SciPy's discrete sine transform",
        '''
def invert_laplacian(r):
    """Return the inverse of the five-point Laplacian times r by fast sine transforms."""
    spectrum = fft.dstn(r, type=1, axes=(-2, -1), norm="ortho")
    spectrum /= laplacian_spectrum(r.shape[-1])
    return fft.dstn(spectrum, type=1, axes=(-2, -1), norm="ortho").astype(r.dtype)
''',
        HOST,
    ),
    Block(
        "sine",
        "matrix",
        4,
        "products with the matrix of sines",
        '''
def invert_laplacian(r):
    """Return the inverse of the five-point Laplacian times r by products with the orthogonal matrix of sines."""
    n = r.shape[-1]
    index = np.arange(1, n + 1)
    sines = np.sqrt(2.0 / (n + 1)) * np.sin(np.pi * np.outer(index, index) / (n + 1))
    sines = xp.asarray(sines, dtype=r.dtype)
    return sines @ (sines @ r @ sines / xp.asarray(laplacian_spectrum(n), dtype=r.dtype)) @ sines
''',
    ),
    Block(
        "sine",
        "odd-extension",
        4,
        "sine transforms by FFT of the odd extension",
        '''
def sine_transform(v):
    """Return the sine transform of the last axis, from the real FFT of the odd extension."""
    zero = xp.zeros_like(v[..., :1])
    odd = xp.concatenate([zero, v, zero, -v[..., ::-1]], axis=-1)
    return -xp.fft.rfft(odd, axis=-1).imag[..., 1:-1]


def invert_laplacian(r):
    """Return the inverse of the five-point Laplacian times r by sine transforms along both axes."""
    n = r.shape[-1]
    spectrum = xp.swapaxes(sine_transform(xp.swapaxes(sine_transform(r), -1, -2)), -1, -2)
    spectrum = spectrum / xp.asarray(4.0 * (n + 1) ** 2 * laplacian_spectrum(n), dtype=r.dtype)
    back = sine_transform(xp.swapaxes(sine_transform(spectrum), -1, -2))
    return xp.swapaxes(back, -1, -2).astype(r.dtype)
''',
    ),
    Block(
        "precondition",
        "none",
        1,
        "no preconditioner",
        '''
def precondition(r, c):
    """Return the residual as it is."""
    return r
''',
    ),
    Block(
        "precondition",
        "jacobi",
        2,
        "Jacobi preconditioner",
        '''
def precondition(r, c):
    """Return the residual divided by the diagonal."""
    return r / diagonal_of(c)
''',
    ),
    Block(
        "precondition",
        "polynomial",
        2,
        "three damped Jacobi sweeps as preconditioner",
        '''
def precondition(r, c):
    """Return three damped Jacobi sweeps for the residual."""
    weight = 0.6 / diagonal_of(c)
    z = weight * r
    for _ in range(2):
        z = z + weight * (r - apply_operator(z, c))
    return z
''',
    ),
    Block(
        "precondition",
        "sine",
        4,
        "fast Poisson solver as preconditioner",
        '''
def precondition(r, c):
    """Return the residual times the inverse of the constant-coefficient Laplacian."""
    return invert_laplacian(r)
''',
    ),
    Block(
        "precondition",
        "scaled-sine",
        3,
        "fast Poisson solver scaled by the diagonal as preconditioner",
        '''
def precondition(r, c):
    """Return D^-1/2 (inverse Laplacian) D^-1/2 times the residual, D being the diagonal."""
    scale = 1.0 / xp.sqrt(diagonal_of(c))
    return scale * invert_laplacian(scale * r)
''',
    ),
)

DOT = Block(
    "dot",
    "sample-wise",
    3,
    "inner products of each sample",
    '''
def dot(v, w):
    """Return the inner product of each sample [batch, 1, 1]."""
    return xp.sum(v * w, axis=(-2, -1), keepdims=True)
''',
)

ITERATIONS: tuple[Block, ...] = (
    Block(
        "iterate",
        "conjugate-gradients",
        4,
        "conjugate gradients to a tolerance",
        '''
def solve_system(c, right):
    """Solve A u = right by preconditioned conjugate gradients; return u and the number of iterations."""
    u, r = np.zeros_like(right), right.copy()
    z = precondition(r, c)
    p, rho = z, dot(r, z)
    target = RTOL**2 * rho
    for iteration in range(1, MOST_ITERATIONS + 1):
        q = apply_operator(p, c)
        step = rho / dot(p, q)
        u = u + step * p
        r = r - step * q
        z = precondition(r, c)
        rho, before = dot(r, z), rho
        if np.all(rho <= target):
            break
        p = z + (rho / before) * p
    return u, iteration
''',
        HOST,
    ),
    Block(
        "iterate",
        "compiled-conjugate-gradients",
        4,
        "conjugate gradients to a tolerance in a compiled while_loop",
        '''
def solve_system(c, right):
    """Solve A u = right by preconditioned conjugate gradients; return u and the number of iterations."""
    z = precondition(right, c)
    rho = dot(right, z)
    target = RTOL**2 * rho

    def unfinished(state):
        return jnp.any(state[3] > target) & (state[4] < MOST_ITERATIONS)

    def iterate(state):
        u, r, p, rho, iteration = state
        q = apply_operator(p, c)
        step = rho / dot(p, q)
        r = r - step * q
        z = precondition(r, c)
        size = dot(r, z)
        return u + step * p, r, z + (size / rho) * p, size, iteration + 1

    state = lax.while_loop(unfinished, iterate, (jnp.zeros_like(right), right, z, rho, 0))
    return state[0], state[4]
''',
        JAX,
    ),
    Block(
        "iterate",
        "counted-conjugate-gradients",
        3,
        "a fixed number of conjugate gradient steps",
        '''
def solve_system(c, right):
    """Take ITERATIONS steps of preconditioned conjugate gradients for A u = right; return u and their number."""
    u, r = np.zeros_like(right), right.copy()
    z = precondition(r, c)
    p, rho = z, dot(r, z)
    for _ in range(ITERATIONS):
        q = apply_operator(p, c)
        step = rho / dot(p, q)
        u = u + step * p
        r = r - step * q
        z = precondition(r, c)
        size = dot(r, z)
        p, rho = z + (size / rho) * p, size
    return u, ITERATIONS
''',
        HOST,
    ),
    Block(
        "iterate",
        "looped-conjugate-gradients",
        3,
        "a fixed number of conjugate gradient steps in a compiled fori_loop",
        '''
def solve_system(c, right):
    """Take ITERATIONS steps of preconditioned conjugate gradients for A u = right; return u and their number."""
    z = precondition(right, c)

    def iterate(_, state):
        u, r, p, rho = state
        q = apply_operator(p, c)
        step = rho / dot(p, q)
        r = r - step * q
        z = precondition(r, c)
        size = dot(r, z)
        return u + step * p, r, z + (size / rho) * p, size

    state = lax.fori_loop(0, ITERATIONS, iterate, (jnp.zeros_like(right), right, z, dot(right, z)))
    return state[0], ITERATIONS
''',
        JAX,
    ),
    Block(
        "iterate",
        "steepest-descent",
        2,
        "preconditioned steepest descent",
        '''
def solve_system(c, right):
    """Solve A u = right by preconditioned steepest descent; return u and the number of iterations."""
    u, r = np.zeros_like(right), right.copy()
    first = dot(r, precondition(r, c))
    for iteration in range(1, MOST_ITERATIONS + 1):
        z = precondition(r, c)
        size = dot(r, z)
        if np.all(size <= RTOL**2 * first):
            break
        q = apply_operator(z, c)
        step = size / dot(z, q)
        u, r = u + step * z, r - step * q
    return u, iteration
''',
        HOST,
    ),
    Block(
        "iterate",
        "richardson",
        2,
        "preconditioned Richardson iteration with the optimal constant step",
        '''
def solve_system(c, right):
    """Solve A u = right by Richardson iterations with the step 2 / (least + greatest eigenvalue); see `bounds`."""
    least, greatest = bounds(c)
    step = 2.0 / (least + greatest)
    u, r = np.zeros_like(right), right
    target = RTOL * np.max(np.abs(right))
    for iteration in range(1, MOST_ITERATIONS + 1):
        u = u + step * precondition(r, c)
        r = right - apply_operator(u, c)
        if np.max(np.abs(r)) <= target:
            break
    return u, iteration
''',
        HOST,
    ),
    Block(
        "iterate",
        "chebyshev",
        3,
        "preconditioned Chebyshev semi-iteration",
        '''
def solve_system(c, right):
    """Take ITERATIONS steps of the preconditioned Chebyshev iteration (Saad, Algorithm 12.1) for A u = right."""
    least, greatest = bounds(c)
    centre, radius = 0.5 * (greatest + least), 0.5 * (greatest - least)
    ratio = centre / radius
    rho = 1.0 / ratio
    u, r = xp.zeros_like(right), right
    d = precondition(r, c) / centre
    for _ in range(ITERATIONS):
        u = u + d
        r = r - apply_operator(d, c)
        rho, before = 1.0 / (2.0 * ratio - rho), rho
        d = rho * before * d + (2.0 * rho / radius) * precondition(r, c)
    return u, ITERATIONS
''',
    ),
    Block(
        "bounds",
        "coefficient",
        3,
        "eigenvalue bounds from the range of the coefficient",
        '''
def bounds(c):
    """Return bounds of the preconditioned eigenvalues: those of the coefficient, seen on the diagonal."""
    local = 0.25 * diagonal_of(c)
    return xp.min(local), xp.max(local)
''',
    ),
)

RELAXATIONS: tuple[Block, ...] = (
    Block(
        "relax",
        "jacobi",
        0,
        "damped Jacobi sweeps",
        '''
def relax(u, right, c):
    """Take one damped Jacobi sweep."""
    return u + 0.8 * (right - apply_operator(u, c)) / diagonal_of(c)
''',
    ),
    Block(
        "relax",
        "pseudo-time",
        0,
        "explicit steps of pseudo-time",
        '''
def relax(u, right, c):
    """Take one explicit Euler step of u_t = div(a grad u) + 1 at the stability bound."""
    return u + 0.9 * (right - apply_operator(u, c)) / xp.max(diagonal_of(c))
''',
    ),
    Block(
        "relax",
        "gauss-seidel",
        1,
        "red-black Gauss-Seidel sweeps",
        '''
def relax(u, right, c):
    """Take one red-black Gauss-Seidel sweep."""
    index = np.arange(u.shape[-1])
    red = xp.asarray((index[:, None] + index[None, :]) % 2 == 0)
    u = u + xp.where(red, (right - apply_operator(u, c)) / diagonal_of(c), 0.0)
    return u + xp.where(red, 0.0, (right - apply_operator(u, c)) / diagonal_of(c))
''',
    ),
    Block(
        "relax",
        "over-relaxation",
        2,
        "red-black successive over-relaxation with the Laplacian's optimal factor",
        '''
def relax(u, right, c):
    """Take one red-black sweep of successive over-relaxation."""
    index = np.arange(u.shape[-1])
    factor = 2.0 / (1.0 + math.sin(math.pi / (u.shape[-1] + 1)))
    red = xp.asarray((index[:, None] + index[None, :]) % 2 == 0)
    u = u + factor * xp.where(red, (right - apply_operator(u, c)) / diagonal_of(c), 0.0)
    return u + factor * xp.where(red, 0.0, (right - apply_operator(u, c)) / diagonal_of(c))
''',
    ),
    Block(
        "iterate",
        "sweeps",
        2,
        "a fixed number of sweeps",
        '''
def solve_system(c, right):
    """Take SWEEPS sweeps for A u = right from zero; return u and their number."""
    u = np.zeros_like(right)
    for _ in range(SWEEPS):
        u = relax(u, right, c)
    return u, SWEEPS
''',
        HOST,
    ),
    Block(
        "iterate",
        "compiled-sweeps",
        2,
        "a fixed number of sweeps in a compiled fori_loop",
        '''
def solve_system(c, right):
    """Take SWEEPS sweeps for A u = right from zero; return u and their number."""
    return lax.fori_loop(0, SWEEPS, lambda _, u: relax(u, right, c), jnp.zeros_like(right)), SWEEPS
''',
        JAX,
    ),
)

SPARSE_SOLVES: tuple[Block, ...] = (
    Block(
        "sparse_solve",
        "factorization",
        4,
        "a sparse LU factorization with a symmetric ordering",
        '''
def solve_matrix(matrix, right):
    """Solve the sparse system directly; return the solution and the number of steps."""
    factors = linalg.splu(matrix, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    return factors.solve(right), 1
''',
        HOST,
    ),
    Block(
        "sparse_solve",
        "general",
        3,
        "SciPy's general sparse direct solver",
        '''
def solve_matrix(matrix, right):
    """Solve the sparse system by SciPy's direct solver; return the solution and the number of steps."""
    return linalg.spsolve(matrix, right, permc_spec="MMD_AT_PLUS_A"), 1
''',
        HOST,
    ),
    Block(
        "sparse_solve",
        "incomplete-factors",
        3,
        "conjugate gradients with an incomplete LU preconditioner",
        '''
def solve_matrix(matrix, right):
    """Solve by conjugate gradients with incomplete LU factors; return the solution and the iterations."""
    count = [0]

    def counted(_):
        count[0] += 1

    factors = linalg.spilu(matrix, drop_tol=DROP_TOLERANCE, fill_factor=10.0, permc_spec="MMD_AT_PLUS_A")
    inverse = linalg.LinearOperator(matrix.shape, factors.solve)
    solution, _ = linalg.cg(matrix, right, rtol=RTOL, maxiter=MOST_ITERATIONS, M=inverse, callback=counted)
    return solution, count[0]
''',
        HOST,
    ),
    Block(
        "sparse_solve",
        "diagonal",
        2,
        "SciPy's conjugate gradients with a Jacobi preconditioner",
        '''
def solve_matrix(matrix, right):
    """Solve by conjugate gradients scaled by the diagonal; return the solution and the iterations."""
    count = [0]

    def counted(_):
        count[0] += 1

    scaling = sparse.diags(1.0 / matrix.diagonal())
    solution, _ = linalg.cg(matrix, right, rtol=RTOL, maxiter=MOST_ITERATIONS, M=scaling, callback=counted)
    return solution, count[0]
''',
        HOST,
    ),
    Block(
        "sparse_solve",
        "minimal-residuals",
        2,
        "SciPy's minimal residual method without a preconditioner",
        '''
def solve_matrix(matrix, right):
    """Solve by the minimal residual method; return the solution and the iterations."""
    count = [0]

    def counted(_):
        count[0] += 1

    solution, _ = linalg.minres(matrix, right, rtol=RTOL, maxiter=MOST_ITERATIONS, callback=counted)
    return solution, count[0]
''',
        HOST,
    ),
)
