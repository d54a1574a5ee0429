"""Limiters, reconstructions and convective steps of conservation laws in one space dimension."""

from sharp.rule_based.vocabulary import *


@block("limiter", 1, "minmod limiter")
def limiter__minmod(a, b):
    """Minmod: the smaller of two slopes of one sign, zero at an extremum."""
    return 0.5 * (xp.sign(a) + xp.sign(b)) * xp.minimum(xp.abs(a), xp.abs(b))


@block("limiter", 3, "van Leer limiter")
def limiter__van_leer(a, b):
    """Van Leer: harmonic mean of two slopes of one sign, zero at an extremum."""
    same_sign = a * b > 0.0
    return xp.where(same_sign, 2.0 * a * b / xp.where(same_sign, a + b, 1.0), 0.0)


@block("limiter", 3, "monotonized central (MC) limiter")
def limiter__mc(a, b):
    """Monotonized central: the mean slope, at most twice the smaller one-sided slope."""
    bound = xp.minimum(2.0 * xp.minimum(xp.abs(a), xp.abs(b)), 0.5 * xp.abs(a + b))
    return 0.5 * (xp.sign(a) + xp.sign(b)) * bound


@block("limiter", 2, "superbee limiter")
def limiter__superbee(a, b):
    """Superbee: the steepest slope that keeps the scheme total-variation diminishing."""
    size_a, size_b = xp.abs(a), xp.abs(b)
    steep = xp.maximum(xp.minimum(2.0 * size_a, size_b), xp.minimum(size_a, 2.0 * size_b))
    return 0.5 * (xp.sign(a) + xp.sign(b)) * steep


@block("limiter", 2, "van Albada limiter")
def limiter__van_albada(a, b):
    """Van Albada: a smooth average that leans towards the smaller slope."""
    blend = a * b * (a + b) / (a * a + b * b + 1e-12)
    return xp.where(a * b > 0.0, blend, 0.0)


@block("reconstruct", 1, "piecewise-constant states (first order)")
def reconstruct__constant(u):
    """Return the states left and right of each face i+1/2: the cell values themselves."""
    return u, xp.roll(u, -1, axis=-1)


@block("reconstruct", 2, "MUSCL piecewise-linear reconstruction")
def reconstruct__muscl(u):
    """Return the states left and right of each face i+1/2 from limited slopes."""
    backward = u - xp.roll(u, 1, axis=-1)
    forward = xp.roll(u, -1, axis=-1) - u
    slope = limiter(backward, forward)
    return u + 0.5 * slope, xp.roll(u - 0.5 * slope, -1, axis=-1)


@block("reconstruct", 2, "unlimited third-order upwind-biased reconstruction (kappa = 1/3)")
def reconstruct__third_order(u):
    """Return the states left and right of each face i+1/2 by the kappa = 1/3 formula."""
    backward = u - xp.roll(u, 1, axis=-1)
    forward = xp.roll(u, -1, axis=-1) - u
    left = u + (2.0 * forward + backward) / 6.0
    right = u - (2.0 * backward + forward) / 6.0
    return left, xp.roll(right, -1, axis=-1)


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


@block("reconstruct", 3, "fifth-order WENO reconstruction")
def reconstruct__weno5(u):
    """Return the states left and right of each face i+1/2 by WENO from both sides."""
    far_left, near_left = xp.roll(u, 2, axis=-1), xp.roll(u, 1, axis=-1)
    near_right, far_right = xp.roll(u, -1, axis=-1), xp.roll(u, -2, axis=-1)
    left = weno_face(far_left, near_left, u, near_right, far_right)
    right = weno_face(far_right, near_right, u, near_left, far_left)
    return left, xp.roll(right, -1, axis=-1)


@block("transport", 1, "forward Euler for convection")
def transport__euler(u, dt, dx):
    """Convect u over dt by one forward Euler step."""
    return u + dt * convection(u, dx)


@block("transport", 2, "SSP-RK2 for convection")
def transport__ssp_rk2(u, dt, dx):
    """Convect u over dt by one step of the two-stage SSP Runge-Kutta method."""
    predicted = u + dt * convection(u, dx)
    return 0.5 * (u + predicted + dt * convection(predicted, dx))


@block("transport", 3, "SSP-RK3 for convection")
def transport__ssp_rk3(u, dt, dx):
    """Convect u over dt by one step of the three-stage SSP Runge-Kutta method."""
    first = u + dt * convection(u, dx)
    second = 0.75 * u + 0.25 * (first + dt * convection(first, dx))
    return (u + 2.0 * (second + dt * convection(second, dx))) / 3.0
