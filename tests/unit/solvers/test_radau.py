"""The integrator of ordinary differential equations on its own, against exact solutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sharp.solvers.matrices import Pairs
from sharp.solvers.method import Deadline, SolverFailed, TimeLimitExceeded
from sharp.solvers.radau import STAGES, DenseOutput, integrate, tableau
from tests.helpers.solvers.clocks import Clock

Array = NDArray[np.float64]
NONE = (np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))


@dataclass
class Equations:
    """z' = function(t, z), each unknown measured by its own size."""

    function: Callable[[Any, Any], Any]
    derivative: Callable[[float, Array], Any]
    linear: bool = False
    constant: bool = False
    pairs: Pairs = NONE
    jacobians: int = field(default=0, init=False)

    def rates(self, times: Array, states: Array) -> Array:
        return np.stack([self.function(time, state) for time, state in zip(times, states, strict=True)])

    def jacobian(self, time: float, state: Array) -> Any:
        self.jacobians += 1
        return self.derivative(time, state)

    @property
    def algebraic(self) -> Any:
        return np.zeros(1, dtype=bool)

    def weighed(self, changes: Array) -> Array:
        return changes

    def sizes(self, states: Array) -> Array:
        return np.abs(states).reshape(-1, states.shape[-1]).max(axis=0)


def linear(matrix: Any, source: Callable[[float], Array] | None = None, **more: Any) -> Equations:
    given = source or (lambda _: np.zeros(matrix.shape[0]))
    return Equations(
        lambda t, z: matrix @ z + given(t), lambda *_: matrix, linear=True, constant=True, **more
    )


def follow(
    equations: Equations, state: Any, end: float, tolerance: float = 1e-10, **more: Any
) -> DenseOutput:
    return integrate(
        equations, np.asarray(state, dtype=float), (0.0, end), tolerance, Deadline.within(60), **more
    )


def test_three_stages_have_the_tabulated_coefficients() -> None:
    """Hairer and Wanner, table IV.5.6."""
    root = np.sqrt(6)
    method = tableau(3)
    np.testing.assert_allclose(method.nodes, [(4 - root) / 10, (4 + root) / 10, 1], atol=1e-14)
    weights = np.linalg.inv(method.inverse)[-1]
    np.testing.assert_allclose(weights, [(16 - root) / 36, (16 + root) / 36, 1 / 9], atol=1e-14)


@pytest.mark.parametrize("stages", [1, 2, 5, 9])
def test_the_quadrature_of_s_stages_has_order_2s_minus_1(stages: int) -> None:
    method = tableau(stages)
    weights = np.linalg.inv(method.inverse)[-1]
    for power in range(2 * stages - 1):
        assert weights @ method.nodes**power == pytest.approx(1 / (power + 1), abs=1e-13)
    assert abs(weights @ method.nodes ** (2 * stages - 1) - 1 / (2 * stages)) > 1e-13


def test_the_inverse_coefficients_are_decomposed_into_conjugate_pairs() -> None:
    method = tableau(9)
    assert len(method.shifts) == 5
    again = (method.vectors * method.shifts @ method.back).real
    np.testing.assert_allclose(again, method.inverse, atol=1e-9)


def test_a_stiff_linear_system_is_followed_between_the_ends_of_steps_too() -> None:
    trajectory = follow(linear(np.diag([-1.0, -1e6]), lambda t: np.array([0, 1e6 * np.cos(t)])), [1, 1], 5)
    times = np.linspace(0, 5, 101)
    found = trajectory.at(times)
    np.testing.assert_allclose(found[:, 0], np.exp(-times), atol=1e-9)
    np.testing.assert_allclose(found[:, 1], np.cos(times), atol=2e-6)


def test_a_pendulum_without_friction_keeps_its_amplitude_over_a_hundred_periods() -> None:
    swing = linear(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    end = 200 * np.pi
    found = follow(swing, [1, 0], end).at(np.array([end / 2, end]))
    np.testing.assert_allclose(found, [[1, 0], [1, 0]], atol=1e-8)


@pytest.mark.parametrize("sparse", [False, True])
def test_states_that_follow_others_may_be_eliminated(sparse: bool) -> None:
    from scipy.sparse import csr_array

    matrix = np.array([[0, 0, 1, 0], [0, 0, 0, 1], [-2, 1, -0.1, 0], [1, -2, 0, -0.1]], dtype=float)
    pairs = (np.array([0, 1]), np.array([2, 3]))
    whole = follow(linear(matrix), [1, 0, 0, 0.5], 7).at(np.array([7.0]))
    half = follow(linear(csr_array(matrix) if sparse else matrix, pairs=pairs), [1, 0, 0, 0.5], 7)
    np.testing.assert_allclose(half.at(np.array([7.0])), whole, atol=1e-9)


def test_factors_of_a_constant_matrix_are_made_from_one_jacobian() -> None:
    decay = linear(np.diag([-1.0, -2.0]))
    follow(decay, [1, 1], 10)
    assert decay.jacobians == 1


def test_a_stiff_nonlinear_system_is_followed() -> None:
    """Robertson's problem at t = 40 (Hairer and Wanner, IV.10, test set for IVP solvers)."""

    def rates(_: float, y: Array) -> Array:
        slow, fast = -0.04 * y[0] + 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
        return np.array([slow, -slow - fast, fast])

    def jacobian(_: float, y: Array) -> Array:
        return np.array(
            [
                [-0.04, 1e4 * y[2], 1e4 * y[1]],
                [0.04, -1e4 * y[2] - 6e7 * y[1], -1e4 * y[1]],
                [0, 6e7 * y[1], 0],
            ]
        )

    found = follow(Equations(rates, jacobian), [1, 0, 0], 40).at(np.array([40.0]))[0]
    np.testing.assert_allclose(found, [0.7158270688, 9.185534765e-06, 0.2841637457], rtol=1e-8)


def test_a_jump_of_the_rates_that_is_announced_is_met_exactly() -> None:
    """One that is not is met by short steps, and may be missed by less than the first stage of one of them."""

    def pulse(t: float) -> Array:
        return np.array([1.0 if t < 0.3 else 0.0])

    equations = linear(np.zeros((1, 1)), pulse)
    announced, found_out = follow(equations, [0], 1, breaks=(0.3,)), follow(equations, [0], 1)
    times = np.array([0.15, 0.3, 0.9])
    np.testing.assert_allclose(announced.at(times)[:, 0], [0.15, 0.3, 0.3], atol=1e-12)
    missed = next(step for step in found_out.steps if step.start <= 0.3 < step.start + step.length)
    first_stage = tableau().nodes[0] * missed.length
    np.testing.assert_allclose(found_out.at(times)[:, 0], [0.15, 0.3, 0.3], atol=first_stage)
    assert first_stage < 0.01


def test_a_slab_that_begins_where_a_rate_passes_through_zero_is_followed() -> None:
    """A short event and its rate, which vanishes at the break but for rounding."""
    width, middle = 0.002, 0.4

    def event(t: float) -> float:
        return float(np.exp(-(((t - middle) / width) ** 2)))

    pulled = Equations(
        lambda t, z: np.array([z[1], event(t) * (4 * (t - middle) ** 2 / width**4 - 2 / width**2)]),
        lambda *_: np.array([[0.0, 1.0], [0.0, 0.0]]),
        linear=True,
        constant=True,
    )
    breaks = [middle + reach * width for reach in (-16, -4, 0, 4, 16)]
    found = follow(pulled, np.zeros(2), 1.0, breaks=breaks)
    times = middle + width * np.linspace(-2, 2, 9)
    np.testing.assert_allclose(found.at(times)[:, 0], [event(t) for t in times], atol=1e-8)


def test_growth_without_bounds_is_not_solved() -> None:
    square = Equations(lambda _, y: y**2, lambda _, y: np.diag(2 * y))
    with pytest.raises(SolverFailed, match="beyond the time 0"):
        follow(square, [2.0], 1)


def test_rates_that_are_not_finite_are_not_solved() -> None:
    undefined = Equations(lambda t, y: np.sqrt(0.5 - t) * y if t < 0.5 else y * np.nan, lambda *_: np.eye(1))
    with pytest.raises(SolverFailed, match=r"beyond the time 0\.5"):
        follow(undefined, [1.0], 1)


def test_a_tolerance_below_rounding_errors_is_not_pursued_for_ever() -> None:
    """The second unknown is known to eight digits only, however short the steps are."""
    random = np.random.default_rng(1)
    matrix = np.diag([-1.0, -1e8])

    def rates(_: float, state: Array) -> Array:
        return matrix @ state + [0, 1e8 + random.standard_normal()]

    found = follow(Equations(rates, lambda *_: matrix, linear=True, constant=True), [1, 1], 2, 1e-12)
    assert len(found.steps) < 100
    np.testing.assert_allclose(found.at(np.array([2.0]))[0], [np.exp(-2), 1], atol=1e-7)


def test_a_state_of_zero_stays_zero() -> None:
    assert not follow(linear(-np.eye(2)), [0, 0], 1).at(np.array([0.0, 1.0])).any()


def test_the_limit_of_time_is_kept_between_the_iterations_of_a_step() -> None:
    clock, looks = Clock(), []

    def rates(_: float, state: Array) -> Array:
        looks.append(clock.now)
        clock.now += 1.0
        return -(state**3)

    equations = Equations(rates, lambda _, state: np.diag(-3 * state**2))
    with pytest.raises(TimeLimitExceeded):
        integrate(equations, np.ones(2), (0.0, 1.0), 1e-10, Deadline.within(12, clock))
    # One rate for the first length, then those of the stages, which are looked at together.
    assert max(looks) <= 12 + STAGES


def test_the_limit_of_time_is_kept_between_steps() -> None:
    with pytest.raises(TimeLimitExceeded):
        integrate(linear(-np.eye(1)), np.ones(1), (0.0, 1.0), 1e-6, Deadline.within(-1))


def test_a_factorisation_that_cannot_end_in_time_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sharp.solvers.matrices._dense_speed", lambda: 1.0)
    with pytest.raises(TimeLimitExceeded, match="its next step would take about 500 s of the 60 s"):
        integrate(linear(-np.eye(5)), np.ones(5), (0.0, 1.0), 1e-6, Deadline.within(60, Clock()))
