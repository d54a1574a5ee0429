"""Problems as systems of first order in time: components, rates, conditions."""

from __future__ import annotations

import pytest
import sympy

from sharp.solvers.system import SpatialDerivative, StateComponent, UnsupportedProblem, real, system_of
from tests.helpers.solvers.boxed import boxed

ROD = {"x": (0, 1)}
HELD = ["all: dirichlet u = 0"]
X, T = real("x"), real("t")


def jet(component: int, *by: int) -> sympy.Symbol:
    return SpatialDerivative(component, by).symbol


def test_a_wave_equation_becomes_two_components() -> None:
    wave = system_of(
        boxed(
            ["u_tt = c**2*u_xx - d*u_t"],
            ROD,
            ["x = 0: dirichlet u = sin(3*t)", "x = 1: robin 1 2 u = t**2"],
            parameters={"c": 3, "d": 0.5},
            time=[0, 1],
            initial={"u": "x", "u_t": "2*x"},
        )
    )
    assert wave.components == (StateComponent("u", 0), StateComponent("u", 1))
    assert wave.rhs[0] == jet(1, 0)
    assert sympy.expand(wave.rhs[1] - 9 * jet(0, 2) + jet(1, 0) / 2).evalf(12) == 0
    assert wave.initial == (X, 2 * X)
    values = {(condition.component, condition.part): condition.value for condition in wave.conditions}
    assert values[1, "x-"] == 3 * sympy.cos(3 * T)
    assert values[1, "x+"] == 2 * T
    assert wave.linear
    assert wave.constant_operator
    assert wave.order(0, 0) == 2


def test_conservative_forms_and_products_are_differentiated() -> None:
    burgers = system_of(boxed(["u_t + (u**2/2)_x = (x*u_x)_x"], ROD, HELD, time=[0, 1], initial={"u": "0"}))
    expected = X * jet(0, 2) + jet(0, 1) - jet(0, 0) * jet(0, 1)
    assert sympy.expand(burgers.rhs[0] - expected) == 0
    assert not burgers.linear
    assert burgers.jacobian[0, burgers.jets.index(SpatialDerivative(0, (1,)))] == 1 - jet(0, 0)


def test_coupled_time_derivatives_are_solved_for() -> None:
    mixed = system_of(
        boxed(
            ["u_t + v_t = u_xx", "u_t - v_t = v_xx"],
            ROD,
            ["all: dirichlet u = 0", "all: dirichlet v = 0"],
            fields=["u", "v"],
            time=[0, 1],
            initial={"u": "0", "v": "0"},
        )
    )
    assert sympy.expand(mixed.rhs[0] - (jet(0, 2) + jet(1, 2)) / 2) == 0
    assert sympy.expand(mixed.rhs[1] - (jet(0, 2) - jet(1, 2)) / 2) == 0


def test_functions_are_not_taken_apart() -> None:
    pulse = system_of(boxed(["u_t = 2*u_xx + exp(-(x - t)**2)"], ROD, HELD, time=[0, 1], initial={"u": "0"}))
    assert sympy.exp(-((X - T) ** 2)) in sympy.Add.make_args(pulse.rhs[0])


def test_factors_that_depend_on_time_make_the_operator_vary() -> None:
    varying = system_of(boxed(["u_t = (1 + t)*u_xx"], ROD, HELD, time=[0, 1], initial={"u": "0"}))
    sourced = system_of(boxed(["u_t = u_xx + sin(t)"], ROD, HELD, time=[0, 1], initial={"u": "0"}))
    assert varying.linear
    assert not varying.constant_operator
    assert sourced.constant_operator


def test_an_eigenvalue_problem_is_split_into_operator_and_weight() -> None:
    modes = system_of(boxed(["-u_xx + x*u = mu*(1 + x)*u"], ROD, HELD, eigenvalue={"name": "mu", "count": 2}))
    assert sympy.expand(modes.rhs[0] + jet(0, 2) - X * jet(0, 0)) == 0
    assert sympy.expand(modes.eigenvalue_terms[0] - (1 + X) * jet(0, 0)) == 0
    assert list(modes.mass.values()) == [1 + X]
    assert modes.steady


def test_conditions_on_all_leave_out_periodic_axes() -> None:
    channel = system_of(
        boxed(["lap(u) = 1"], {"x": (0, 1), "y": (0, 2)}, ["periodic x", "all: robin 1 y u = 3"])
    )
    assert channel.periodic == {"x"}
    assert [condition.part for condition in channel.conditions] == ["y-", "y+"]
    assert channel.conditions[0].factors == {0: 1, 1: real("y")}


@pytest.mark.parametrize(
    ("equation", "more", "message"),
    [
        ("u_t = u_xxt + u_xx", {}, "space derivative of the highest time derivative"),
        ("u_t**2 = u_xx", {}, "not linear in their highest time derivatives"),
        ("u_t = u_xx", {"initial": {"u": {"family": "sine-sums"}}}, "sampled from the family sine-sums"),
    ],
)
def test_problems_of_other_forms_are_refused(equation: str, more: dict[str, object], message: str) -> None:
    problem = boxed([equation], ROD, HELD, **{"time": [0, 1], "initial": {"u": "0"}, **more})
    with pytest.raises(UnsupportedProblem, match=message):
        system_of(problem)


def test_an_eigenvalue_that_enters_twice_is_refused() -> None:
    squared = boxed(["-u_xx = mu**2*u"], ROD, HELD, eigenvalue={"name": "mu"})
    with pytest.raises(UnsupportedProblem, match="not linear in the eigenvalue 'mu'"):
        system_of(squared)
