"""Discretisations of -dx^2 div(a grad u) on a square: coefficients, operators, matrices, grids of their own."""

from sharp.rule_based.vocabulary import *


def neighbours(a):
    """Return a at the lower and the upper end of the edges between nodes, first along x, then along y."""
    return a[..., :-1, 1:-1], a[..., 1:, 1:-1], a[..., 1:-1, :-1], a[..., 1:-1, 1:]


@block("faces", 2, "arithmetic face means")
def face_coefficients__arithmetic(a):
    """Return a on the edges between nodes, along x and along y: the arithmetic mean of both ends."""
    left, right, below, above = neighbours(a)
    return 0.5 * (left + right), 0.5 * (below + above)


@block("faces", 3, "harmonic face means")
def face_coefficients__harmonic(a):
    """Return a on the edges between nodes, along x and along y: resistances in series (harmonic mean)."""
    left, right, below, above = neighbours(a)
    return 2.0 * left * right / (left + right), 2.0 * below * above / (below + above)


@block("faces", 3, "geometric face means")
def face_coefficients__geometric(a):
    """Return a on the edges between nodes, along x and along y: the geometric mean of both ends."""
    left, right, below, above = neighbours(a)
    return xp.sqrt(left * right), xp.sqrt(below * above)


@block("faces", 1, "one-sided face values")
def face_coefficients__one_sided(a):
    """Return a on the edges between nodes, along x and along y: the value of the lower end."""
    return a[..., :-1, 1:-1], a[..., 1:-1, :-1]


@block("faces", 3, "linear elements on triangles, whose stiffness is that of five points")
def face_coefficients__linear_elements(a):
    """Return the stiffness of the edges: the mean coefficient of the two squares that share an edge."""
    squares = cell_coefficients(a)
    return (
        0.5 * (squares[..., :, :-1] + squares[..., :, 1:]),
        0.5 * (squares[..., :-1, :] + squares[..., 1:, :]),
    )


@block("cells", 2, "the mean of the corners as the coefficient of a square")
def cell_coefficients__mean(a):
    """Return a in the squares between the nodes: the mean of the four corners."""
    return 0.25 * (a[..., :-1, :-1] + a[..., 1:, :-1] + a[..., :-1, 1:] + a[..., 1:, 1:])


@block("cells", 3, "the geometric mean of the corners as the coefficient of a square")
def cell_coefficients__geometric(a):
    """Return a in the squares between the nodes: the geometric mean of the four corners."""
    exponent = xp.log(a)
    total = exponent[..., :-1, :-1] + exponent[..., 1:, :-1] + exponent[..., :-1, 1:] + exponent[..., 1:, 1:]
    return xp.exp(0.25 * total)


@block("cells", 1, "the value of one corner as the coefficient of a square")
def cell_coefficients__corner(a):
    """Return a in the squares between the nodes: the value of the lower left corner."""
    return a[..., :-1, :-1]


@block("cells", 4, "squares of an own grid, each with the value of the nearest node")
def cell_coefficients__nearest(a):
    """Return a in the squares of the own grid: constant around each node, so the nearest node's value."""
    intervals = a.shape[-1] - 1
    squares = round(GRID_FACTOR * intervals)
    nearest = np.floor((np.arange(squares) + 0.5) * intervals / squares + 0.5).astype(int)
    return a[..., nearest[:, None], nearest[None, :]]


@block("transfer", 1, "the coefficient of the nearest node on an own grid")
def to_own_grid__sample(a):
    """Return a at the nodes of the own grid: the value of the nearest given node."""
    intervals = a.shape[-1] - 1
    nodes = round(GRID_FACTOR * intervals) + 1
    nearest = np.rint(np.linspace(0.0, intervals, nodes)).astype(int)
    return a[..., nearest[:, None], nearest[None, :]]


@block("transfer", 2, "the coefficient interpolated to an own grid")
def to_own_grid__bilinear(a):
    """Return a at the nodes of the own grid by bilinear interpolation."""
    nodes = round(GRID_FACTOR * (a.shape[-1] - 1)) + 1
    weights = xp.asarray(interpolation_matrix(a.shape[-1], nodes), dtype=a.dtype)
    return weights @ a @ weights.T


@block("interpolation", 2, "bilinear interpolation between the grids")
def interpolation_matrix__linear(given, wanted):
    """Return the matrix [wanted, given] of linear interpolation between node grids of one interval."""
    position = np.linspace(0.0, given - 1.0, wanted)
    left = np.minimum(position.astype(int), given - 2)
    matrix = np.zeros((wanted, given))
    matrix[np.arange(wanted), left] = 1.0 - (position - left)
    matrix[np.arange(wanted), left + 1] = position - left
    return matrix


@block("output", 2, "the solution interpolated bilinearly to the nodes")
def onto_nodes__bilinear(u, nodes):
    """Return u at the given number of nodes by bilinear interpolation."""
    weights = xp.asarray(interpolation_matrix(u.shape[-1], nodes), dtype=u.dtype)
    return weights @ u @ weights.T


@block("output", 3, "the solution interpolated to the nodes by cubic splines", "host")
def onto_nodes__spline(u, nodes):
    """Return u at the given number of nodes by cubic splines along both axes."""
    own, wanted = np.linspace(0.0, 1.0, u.shape[-1]), np.linspace(0.0, 1.0, nodes)
    u = CubicSpline(own, u, axis=-1)(wanted)
    return CubicSpline(own, u, axis=-2)(wanted)


@block("operator", 3, "five-point differences as a balance of fluxes")
def discretize__fluxes(a):
    """Return what the operator needs: the coefficients on the edges along x and along y."""
    return face_coefficients(a)


def apply_operator__fluxes(u, c):
    """Return -dx^2 div(a grad u) at the unknowns u [batch, n, n] as the balance of the fluxes through the faces."""
    along_x, along_y = c
    v = xp.pad(u, ((0, 0), (1, 1), (1, 1)))
    flux_x = along_x * (v[:, 1:, 1:-1] - v[:, :-1, 1:-1])
    flux_y = along_y * (v[:, 1:-1, 1:] - v[:, 1:-1, :-1])
    return flux_x[:, :-1] - flux_x[:, 1:] + flux_y[:, :, :-1] - flux_y[:, :, 1:]


def diagonal_of__fluxes(c):
    """Return the diagonal of the operator."""
    along_x, along_y = c
    return along_x[:, :-1] + along_x[:, 1:] + along_y[:, :, :-1] + along_y[:, :, 1:]


@block("operator", 3, "five-point differences with a precomputed stencil")
def discretize__stencil(a):
    """Return the weights of the five-point stencil: the diagonal, then west, east, south and north."""
    along_x, along_y = face_coefficients(a)
    west, east = along_x[:, :-1], along_x[:, 1:]
    south, north = along_y[:, :, :-1], along_y[:, :, 1:]
    return west + east + south + north, west, east, south, north


def apply_operator__stencil(u, c):
    """Return -dx^2 div(a grad u) at the unknowns u [batch, n, n] by the five-point stencil."""
    diagonal, west, east, south, north = c
    v = xp.pad(u, ((0, 0), (1, 1), (1, 1)))
    neighbours = west * v[:, :-2, 1:-1] + east * v[:, 2:, 1:-1]
    neighbours = neighbours + south * v[:, 1:-1, :-2] + north * v[:, 1:-1, 2:]
    return diagonal * u - neighbours


def diagonal_of__stencil(c):
    """Return the diagonal of the operator."""
    return c[0]


@block("operator", 3, "bilinear finite elements (nine points)")
def discretize__bilinear_elements(a):
    """Return what the operator needs: the coefficient in each square."""
    return (cell_coefficients(a),)


def apply_operator__bilinear_elements(u, c):
    """Return the stiffness of bilinear elements times u [batch, n, n], square by square and corner by corner."""
    v = xp.pad(u, ((0, 0), (1, 1), (1, 1)))
    side = (slice(None, -1), slice(1, None))
    total = v[:, :-1, :-1] + v[:, 1:, :-1] + v[:, :-1, 1:] + v[:, 1:, 1:]
    result = xp.zeros_like(u)
    for p, q in ((0, 0), (0, 1), (1, 0), (1, 1)):
        force = c[0] * (5.0 * v[:, side[p], side[q]] - v[:, side[1 - p], side[1 - q]] - total) / 6.0
        result = result + force[:, side[1 - p], side[1 - q]]
    return result


def diagonal_of__bilinear_elements(c):
    """Return the diagonal of the stiffness matrix."""
    squares = c[0]
    total = squares[:, :-1, :-1] + squares[:, 1:, :-1] + squares[:, :-1, 1:] + squares[:, 1:, 1:]
    return 2.0 / 3.0 * total


@block("matrix", 3, "the five-point matrix built from its diagonals", "host")
def assemble__diagonals(a):
    """Return the matrix of the inner nodes for one coefficient [N, N]."""
    along_x, along_y = face_coefficients(a)
    n = along_y.shape[-2]
    main = (along_x[:-1] + along_x[1:] + along_y[:, :-1] + along_y[:, 1:]).ravel()
    far = -along_x[1:-1].ravel()
    near = -along_y[:, 1:]
    near[:, -1] = 0.0
    near = near.ravel()[:-1]
    return sparse.diags([far, near, main, near, far], [-n, -1, 0, 1, n], format="csc")


@block("matrix", 3, "the five-point matrix gathered edge by edge", "host")
def assemble__triplets(a):
    """Return the matrix of the inner nodes for one coefficient [N, N] from (row, column, value) triplets."""
    along_x, along_y = face_coefficients(a)
    n = along_y.shape[-2]
    number = np.arange(n * n).reshape(n, n)
    main = along_x[:-1] + along_x[1:] + along_y[:, :-1] + along_y[:, 1:]
    edges_x, edges_y = along_x[1:-1].ravel(), along_y[:, 1:-1].ravel()
    first = np.concatenate([number[:-1].ravel(), number[:, :-1].ravel()])
    second = np.concatenate([number[1:].ravel(), number[:, 1:].ravel()])
    values = -np.concatenate([edges_x, edges_y])
    rows = np.concatenate([number.ravel(), first, second])
    columns = np.concatenate([number.ravel(), second, first])
    entries = np.concatenate([main.ravel(), values, values])
    return sparse.coo_matrix((entries, (rows, columns)), shape=(n * n, n * n)).tocsc()


@block("matrix", 3, "the stiffness matrix of bilinear finite elements", "host")
def assemble__elements(a):
    """Return the stiffness matrix of bilinear elements at the inner nodes for one coefficient [N, N]."""
    squares = cell_coefficients(a)
    nodes = squares.shape[-1] + 1
    number = np.arange(nodes * nodes).reshape(nodes, nodes)
    corners = np.stack([number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]], axis=-1)
    corners = corners.reshape(-1, 4)
    local = np.array([[4, -1, -2, -1], [-1, 4, -1, -2], [-2, -1, 4, -1], [-1, -2, -1, 4]]) / 6.0
    values = squares.reshape(-1, 1, 1) * local
    rows, columns = np.broadcast_arrays(corners[:, :, None], corners[:, None, :])
    size = (nodes * nodes, nodes * nodes)
    matrix = sparse.coo_matrix((values.ravel(), (rows.ravel(), columns.ravel())), shape=size).tocsc()
    inner = number[1:-1, 1:-1].ravel()
    return matrix[inner][:, inner]
