"""Parts that the playbook's programs are put together from: what a numerical analyst would write by hand.

Matrices are those of L. N. Trefethen, Spectral Methods in MATLAB (2000), chs. 3 and 6; interpolation is barycentric
(J.-P. Berrut and L. N. Trefethen, SIAM Review 46, 2004), which is the Dirichlet kernel for periodic functions.
"""

from __future__ import annotations

_MODULES = {"np", "special", "solve_ivp"}
_FUNCTIONS = {"chebyshev", "fourier", "between", "around", "diff", "holder", "closed", "rates", "slopes"}
_OTHERS = {"residual", "newton", "solve", "axes", "matrices", "zeros", "shape", "start", "state"}
TAKEN = frozenset(_MODULES | _FUNCTIONS | _OTHERS)
"""Names that a program uses itself, so that those of the problem have to give way."""

CHEBYSHEV = '''\
def chebyshev(low, high, n):
    """Return n + 1 nodes, the matrix of the derivative, and barycentric weights."""
    nodes = -np.cos(np.pi * np.arange(n + 1) / n)
    weights = (-1.0) ** np.arange(n + 1)
    weights[[0, -1]] /= 2
    matrix = weights / weights[:, None] / (nodes[:, None] - nodes + np.eye(n + 1))
    matrix -= np.diag(matrix.sum(axis=1))
    return low + (high - low) * (nodes + 1) / 2, 2 / (high - low) * matrix, weights
'''

FOURIER = '''\
def fourier(low, high, n):
    """Return n nodes (n odd) of a period, and the matrix of the derivative."""
    nodes = 2 * np.pi * np.arange(n) / n
    gap = nodes[:, None] - nodes
    sign = (-1.0) ** (np.arange(n)[:, None] - np.arange(n))
    matrix = np.where(gap == 0, 0.0, 0.5 * sign / np.sin(gap / 2 + (gap == 0)))
    return low + (high - low) * nodes / (2 * np.pi), 2 * np.pi / (high - low) * matrix, high - low
'''

DIFFERENTIATION = '''\
def diff(values, *along):
    """Return the derivative of an array on the grid, once along each axis."""
    for axis in along:
        values = values @ matrices[1].T if axis else matrices[0] @ values
    return values
'''

CLOSURE = '''\
def holder(axis, conditions):
    """Return a function that sets end values such that a*u + b*(outward derivative of u) = g at them."""
    ends = [end for end, _, _ in conditions]
    one = np.eye(shape[axis])
    rows = np.array([a * one[end] + b * (1 if end else -1) * matrices[axis][end] for end, a, b in conditions])
    inverse = np.linalg.inv(rows[:, ends])

    def hold(values, *given):
        lines = values.T.copy() if axis else values.copy()
        lines[ends] = 0.0
        wanted = np.array([((g + zeros).T if axis else g + zeros)[end] for end, g in zip(ends, given)])
        lines[ends] = inverse @ (wanted - rows @ lines)
        return lines.T if axis else lines

    return hold
'''

INTERPOLATION = {
    "chebyshev": '''\
def between(nodes, weights, x):
    """Return the matrix that takes values at Chebyshev nodes to values at x."""
    gap = x[:, None] - nodes
    shares = weights / np.where(gap == 0, 1e-300, gap)
    return shares / shares.sum(axis=1, keepdims=True)
''',
    "fourier": '''\
def around(nodes, period, x):
    """Return the matrix that takes values at the nodes of a period to values at x."""
    n = len(nodes)
    half = np.pi * (x[:, None] - nodes) / period
    whole = np.abs(np.sin(half)) < 1e-14
    return np.where(whole, 1.0, np.sin(n * half) / (n * np.sin(half + whole)))
''',
}

DIFFERENCES = '''\
def slopes(function, state):
    """Return the Jacobian matrix of a function by differences."""
    step = 1e-7 * (np.abs(state).max() or 1.0)
    middle = function(state)
    return np.array([function(state + step * row) - middle for row in np.eye(len(state))]).T / step
'''

IN_TIME = """\
def solve(points, times):
    found = solve_ivp(
        rates, ({begin!r}, {end!r}), start.ravel(), method="{method}",
        t_eval=np.clip(times, {begin!r}, {end!r}), rtol={rtol:g}, atol={atol},{jacobian}
    )
    if not found.success:
        raise RuntimeError(found.message)
    values = np.array([np.stack(closed(now, state)[:{fields}]) for now, state in zip(found.t, found.y.T)])
    return np.einsum("{einsum}", values.swapaxes(0, 1), {weights})
"""

STEADY = '''\
def newton(state):
    """Return where the residual vanishes, by Newton's method with a Jacobian of differences."""
    for _ in range(30):
        change = np.linalg.solve(slopes(residual, state), residual(state))
        state = state - change
        if np.abs(change).max() < 1e-11 * (np.abs(state).max() or 1.0):
            return state
    raise RuntimeError("Newton's method did not converge")


def solve(points, times):
    values = np.stack(closed(newton(np.zeros({fields} * np.prod(shape)))))[:, None]
    return np.einsum("{einsum}", values, {weights})
'''
