"""Linear solvers for Darcy flow: preconditioners, iterations, relaxation, sparse solvers."""

from sharp.rule_based.vocabulary import *


@block("spectrum", 4, "the eigenvalues of the five-point Laplacian")
@lru_cache
def laplacian_spectrum__five_point(n):
    """Return the eigenvalues [n, n] of the five-point Laplacian (times -dx^2) in the sine basis."""
    one = 2.0 - 2.0 * np.cos(np.pi * np.arange(1, n + 1) / (n + 1))
    return one[:, None] + one[None, :]


@block("sine", 4, "SciPy's discrete sine transform", "host")
def invert_laplacian__transform(r):
    """Return the inverse of the five-point Laplacian times r by fast sine transforms."""
    spectrum = fft.dstn(r, type=1, axes=(-2, -1), norm="ortho")
    spectrum /= laplacian_spectrum(r.shape[-1])
    return fft.dstn(spectrum, type=1, axes=(-2, -1), norm="ortho").astype(r.dtype)


@block("sine", 4, "products with the matrix of sines")
def invert_laplacian__matrix(r):
    """Return the inverse of the five-point Laplacian times r by products with the orthogonal matrix of sines."""
    n = r.shape[-1]
    index = np.arange(1, n + 1)
    sines = np.sqrt(2.0 / (n + 1)) * np.sin(np.pi * np.outer(index, index) / (n + 1))
    sines = xp.asarray(sines, dtype=r.dtype)
    return sines @ (sines @ r @ sines / xp.asarray(laplacian_spectrum(n), dtype=r.dtype)) @ sines


@block("precondition", 1, "no preconditioner")
def precondition__none(r, c):
    """Return the residual as it is."""
    return r


@block("precondition", 2, "Jacobi preconditioner")
def precondition__jacobi(r, c):
    """Return the residual divided by the diagonal."""
    return r / diagonal_of(c)


@block("precondition", 4, "fast Poisson solver as preconditioner")
def precondition__sine(r, c):
    """Return the residual times the inverse of the constant-coefficient Laplacian."""
    return invert_laplacian(r)


@block("precondition", 3, "fast Poisson solver scaled by the diagonal as preconditioner")
def precondition__scaled_sine(r, c):
    """Return D^-1/2 (inverse Laplacian) D^-1/2 times the residual, D being the diagonal."""
    scale = 1.0 / xp.sqrt(diagonal_of(c))
    return scale * invert_laplacian(scale * r)


@block("dot", 3, "inner products of each sample")
def dot__sample_wise(v, w):
    """Return the inner product of each sample [batch, 1, 1]."""
    return xp.sum(v * w, axis=(-2, -1), keepdims=True)


@block("iterate", 4, "conjugate gradients to a tolerance", "host")
def solve_system__conjugate_gradients(c, right):
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


@block("iterate", 4, "conjugate gradients to a tolerance in a compiled while_loop", "jax")
def solve_system__compiled_conjugate_gradients(c, right):
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


@block("iterate", 3, "a fixed number of conjugate gradient steps")
def solve_system__counted_conjugate_gradients(c, right):
    """Take ITERATIONS steps of preconditioned conjugate gradients for A u = right; return u and their number."""
    u, r = xp.zeros_like(right), right
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


@block("iterate", 3, "preconditioned Chebyshev semi-iteration")
def solve_system__chebyshev(c, right):
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


@block("bounds", 3, "eigenvalue bounds from the range of the coefficient")
def bounds__coefficient(c):
    """Return bounds of the preconditioned eigenvalues: those of the coefficient, seen on the diagonal."""
    local = 0.25 * diagonal_of(c)
    return xp.min(local), xp.max(local)


@block("relax", 0, "damped Jacobi sweeps")
def relax__jacobi(u, right, c):
    """Take one damped Jacobi sweep."""
    return u + 0.8 * (right - apply_operator(u, c)) / diagonal_of(c)


@block("relax", 1, "red-black Gauss-Seidel sweeps")
def relax__gauss_seidel(u, right, c):
    """Take one red-black Gauss-Seidel sweep."""
    index = np.arange(u.shape[-1])
    red = xp.asarray((index[:, None] + index[None, :]) % 2 == 0)
    u = u + xp.where(red, (right - apply_operator(u, c)) / diagonal_of(c), 0.0)
    return u + xp.where(red, 0.0, (right - apply_operator(u, c)) / diagonal_of(c))


@block("relax", 2, "red-black successive over-relaxation with the Laplacian's optimal factor")
def relax__over_relaxation(u, right, c):
    """Take one red-black sweep of successive over-relaxation."""
    index = np.arange(u.shape[-1])
    factor = 2.0 / (1.0 + math.sin(math.pi / (u.shape[-1] + 1)))
    red = xp.asarray((index[:, None] + index[None, :]) % 2 == 0)
    u = u + factor * xp.where(red, (right - apply_operator(u, c)) / diagonal_of(c), 0.0)
    return u + factor * xp.where(red, 0.0, (right - apply_operator(u, c)) / diagonal_of(c))


@block("iterate", 2, "a fixed number of sweeps", "host")
def solve_system__sweeps(c, right):
    """Take SWEEPS sweeps for A u = right from zero; return u and their number."""
    u = np.zeros_like(right)
    for _ in range(SWEEPS):
        u = relax(u, right, c)
    return u, SWEEPS


@block("iterate", 2, "a fixed number of sweeps in a compiled fori_loop", "jax")
def solve_system__compiled_sweeps(c, right):
    """Take SWEEPS sweeps for A u = right from zero; return u and their number."""
    return lax.fori_loop(0, SWEEPS, lambda _, u: relax(u, right, c), jnp.zeros_like(right)), SWEEPS


@block("sparse_solve", 4, "a sparse LU factorization with a symmetric ordering", "host")
def solve_matrix__factorization(matrix, right):
    """Solve the sparse system directly; return the solution and the number of steps."""
    factors = linalg.splu(matrix, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    return factors.solve(right), 1


@block("sparse_solve", 3, "conjugate gradients with an incomplete LU preconditioner", "host")
def solve_matrix__incomplete_factors(matrix, right):
    """Solve by conjugate gradients with incomplete LU factors; return the solution and the iterations."""
    count = [0]

    def counted(_):
        count[0] += 1

    factors = linalg.spilu(matrix, drop_tol=DROP_TOLERANCE, fill_factor=10.0, permc_spec="MMD_AT_PLUS_A")
    inverse = linalg.LinearOperator(matrix.shape, factors.solve)
    solution, _ = linalg.cg(matrix, right, rtol=RTOL, maxiter=MOST_ITERATIONS, M=inverse, callback=counted)
    return solution, count[0]


@block("sparse_solve", 2, "SciPy's conjugate gradients with a Jacobi preconditioner", "host")
def solve_matrix__diagonal(matrix, right):
    """Solve by conjugate gradients scaled by the diagonal; return the solution and the iterations."""
    count = [0]

    def counted(_):
        count[0] += 1

    scaling = sparse.diags(1.0 / matrix.diagonal())
    solution, _ = linalg.cg(matrix, right, rtol=RTOL, maxiter=MOST_ITERATIONS, M=scaling, callback=counted)
    return solution, count[0]


@block("solver", 3, "the whole batch at once", "host")
def solver__batch(*inputs):
    """Return the solution."""
    coefficient = read_inputs(*inputs)
    c = discretize(to_solver_grid(coefficient))
    diagonal = diagonal_of(c)
    dx = 1.0 / (diagonal.shape[-1] + 1)
    inner, iterations = solve_system(c, dx**2 * np.ones_like(diagonal))
    print(f"steps={int(iterations)}")
    padded = np.pad(inner, ((0, 0), (1, 1), (1, 1)))
    solution = to_output_grid(padded)
    return write_outputs(solution)


@block("solver", 3, "one sample after the other", "host")
def solver__samples(*inputs):
    """Return the solution."""
    coefficient = read_inputs(*inputs)
    solved, steps = [], 0
    for k in range(len(coefficient)):
        sample = coefficient[k : k + 1]
        c = discretize(to_solver_grid(sample))
        diagonal = diagonal_of(c)
        dx = 1.0 / (diagonal.shape[-1] + 1)
        inner, iterations = solve_system(c, dx**2 * np.ones_like(diagonal))
        padded = np.pad(inner, ((0, 0), (1, 1), (1, 1)))
        solved.append(to_output_grid(padded))
        steps = max(steps, iterations)
    print(f"steps={steps}")
    solution = np.concatenate(solved)
    return write_outputs(solution)


def solve_field(field, load):
    """Return the solution at the unknowns of the grid of a field [batch, nodes, nodes], and the iterations."""
    c = discretize(field)
    diagonal = diagonal_of(c)
    dx = 1.0 / (diagonal.shape[-1] + 1)
    return solve_system(c, load * dx**2 * jnp.ones_like(diagonal))


@block("solver", 3, "one compiled function for the whole batch", "jax")
def solver__compiled(*inputs):
    """Return the solution."""
    coefficient = read_inputs(*inputs)
    inner, iterations = jax.jit(solve_field)(to_solver_grid(coefficient), 1.0)
    print(f"steps={int(iterations)}")
    padded = jnp.pad(inner, ((0, 0), (1, 1), (1, 1)))
    solution = to_output_grid(padded)
    return write_outputs(solution)


@block("solver", 3, "a compiled map over the samples", "jax")
def solver__mapped(*inputs):
    """Return the solution."""
    coefficient = read_inputs(*inputs)

    def solve_one(field):
        inner, iterations = solve_field(field[None], 1.0)
        return inner[0], iterations

    solve_all = jax.jit(lambda fields: lax.map(solve_one, fields))
    inner, iterations = solve_all(to_solver_grid(coefficient))
    print(f"steps={int(jnp.max(iterations))}")
    padded = jnp.pad(inner, ((0, 0), (1, 1), (1, 1)))
    solution = to_output_grid(padded)
    return write_outputs(solution)


@block("solver", 3, "one sparse system after the other", "host")
def solver__matrices(*inputs):
    """Return the solution."""
    coefficient = read_inputs(*inputs)
    solved, steps = [], 0
    for field in to_solver_grid(coefficient):
        matrix = assemble(field)
        n = math.isqrt(matrix.shape[0])
        dx = 1.0 / (n + 1)
        values, iterations = solve_matrix(matrix, np.full(n * n, dx**2, dtype=matrix.dtype))
        solved.append(values.reshape(n, n))
        steps = max(steps, iterations)
    print(f"steps={steps}")
    inner = np.stack(solved)
    padded = np.pad(inner, ((0, 0), (1, 1), (1, 1)))
    solution = to_output_grid(padded)
    return write_outputs(solution)
