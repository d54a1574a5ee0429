"""Spectral collocation for one problem: its solution at any points and times, by tensor grids of `method_of_lines`.

Interpolation is barycentric (J.-P. Berrut and L. N. Trefethen, SIAM Review 46, 2004), which is the Dirichlet kernel for
periodic functions.
"""

from sharp.rule_based.vocabulary import *


def between(nodes, x):
    """Return the matrix that takes values at Chebyshev nodes to values at x."""
    weights = (-1.0) ** np.arange(len(nodes))
    weights[[0, -1]] /= 2.0
    gap = x[:, None] - nodes
    shares = weights / np.where(gap == 0.0, 1e-300, gap)
    return shares / shares.sum(axis=1, keepdims=True)


def around(nodes, period, x):
    """Return the matrix that takes values at the nodes of a period, an odd number of them, to values at x."""
    n = len(nodes)
    half = np.pi * (x[:, None] - nodes) / period
    whole = np.abs(np.sin(half)) < 1e-14
    return np.where(whole, 1.0, np.sin(n * half) / (n * np.sin(half + whole)))


@block("solver", 4, "the method of lines", "host")
def solve__in_time(points, times):
    """Return the fields [field, time, point] at points [point, axis] and times."""
    axes = mesh()
    start = initial_state(axes)

    def slope(now, flat):
        return rates(now, flat.reshape(start.shape), axes).ravel()

    found = solve_ivp(
        slope,
        (BEGIN, END),
        start.ravel(),
        method=METHOD,
        t_eval=np.clip(times, BEGIN, END),
        rtol=TOLERANCE,
        atol=0.1 * TOLERANCE * (np.abs(start).max() or 1.0),
    )
    if not found.success:
        raise RuntimeError(found.message)
    states = [closed(now, flat.reshape(start.shape), axes) for now, flat in zip(found.t, found.y.T)]
    return to_points(np.stack(states, axis=1)[:FIELDS], axes, points)


def jacobian_matrix(function, state):
    """Return the Jacobian matrix of a function of a flat state by differences."""
    step = 1e-7 * (np.abs(state).max() or 1.0)
    middle = function(state)
    return np.array([function(state + step * row) - middle for row in np.eye(len(state))]).T / step


@block("solver", 4, "Newton's method", "host")
def solve__steady(points, times):
    """Return the fields [field, 1, point] at points [point, axis], by Newton's method."""
    axes = mesh()
    shape = (FIELDS, *(len(nodes) for nodes, _, _ in axes))

    def rest(flat):
        return residual(flat.reshape(shape), axes).ravel()

    state = np.zeros(np.prod(shape))
    for _ in range(30):
        change = np.linalg.solve(jacobian_matrix(rest, state), rest(state))
        state = state - change
        if np.abs(change).max() < 1e-11 * (np.abs(state).max() or 1.0):
            return to_points(closed(state.reshape(shape), axes)[:, None], axes, points)
    raise RuntimeError("Newton's method did not converge")
