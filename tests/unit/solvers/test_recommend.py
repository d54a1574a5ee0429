from __future__ import annotations

import pytest

from sharp.errors import ConfigurationError
from sharp.solvers.driver import unsolved_sentence
from sharp.solvers.pinn.method import Pinn
from sharp.solvers.recommend import ORDER, MethodRanking, recommend
from sharp.solvers.system import system_of
from sharp.solvers.traits import SolutionRegularity
from tests.helpers.problems.specifications import specification
from tests.helpers.solvers.solving_fakes import HEAT, PLATE, Invented, problem_of

METHODS = [
    Invented(name)
    for name in (
        "characteristics",
        "etd",
        "imex",
        "fd",
        "fv",
        "muscl",
        "chebyshev",
        "fourier",
        "polar",
        "fem",
    )
]

BURGERS = specification("steep-burgers")

ADVECTION = specification("advection")


def traits(text: str, **changes: str) -> SolutionRegularity:
    return SolutionRegularity(system_of(problem_of(text, **changes)))


def names(text: str, methods=METHODS, forced: str | None = None, **changes: str) -> list[str]:
    return [found.method.name for found in choice(text, methods, forced, **changes).recommendations]


def choice(text: str, methods=METHODS, forced: str | None = None, **changes: str) -> MethodRanking:
    return recommend(system_of(problem_of(text, **changes)), methods, forced)


def test_smooth_problems_are_for_spectral_methods_first() -> None:
    assert traits(HEAT).situation == "smooth"
    assert traits(PLATE).situation == "smooth"
    assert names(HEAT)[:4] == ["fourier", "etd", "imex", "chebyshev"]


@pytest.mark.parametrize(
    "state",
    ["abs(x - 1/2) - 1/2 + 2*x", "piecewise(0, x < 0.5, 4*x - 2)", "2*Heaviside(x - 1/2)", "min(4*x, 2)"],
)
def test_kinks_and_jumps_in_the_data_of_an_interval_are_for_elements_that_end_there(state: str) -> None:
    changed = HEAT.replace("sin(pi*x) + 2*x}", f'"{state}"}}', 1).replace(
        "reference: {kind: exact, value: {u: exp(-alpha*pi**2*t)*sin(pi*x) + 2*x}}", ""
    )
    found = traits(changed)
    assert found.situation == "nonsmooth"
    assert state in found.nonsmooth_reason
    assert names(changed)[0] == "fem"
    assert state in choice(changed).recommendations[0].reason


def test_layers_are_for_elements_which_never_differentiate_a_coefficient() -> None:
    changed = PLATE.replace('["lap(u) = ', '["div(a*grad(u)) = ')
    layers = f"{changed}coefficients: {{a: 'piecewise(1, x < 0.5, 2)'}}\n"
    assert traits(layers).situation == "discontinuous-coefficient"
    assert names(layers)[0] == "fem"


def test_jumps_that_are_carried_along_are_for_finite_volumes() -> None:
    assert traits(ADVECTION).situation == "smooth"
    square = {"sin(2*pi*x)": '"Heaviside(x - 1/2)"'}
    assert traits(ADVECTION, **square).situation == "advected-discontinuity"
    assert names(ADVECTION, **square) == ["characteristics", "fv", "muscl"]


def test_the_thickness_of_fronts_is_diffusion_over_speed_and_extent() -> None:
    found = traits(BURGERS)
    assert found.front_thickness == pytest.approx(0.01 / (3 * 2), rel=0.05)
    assert found.situation == "steep-front"
    assert "2e-03" in choice(BURGERS).recommendations[0].reason
    assert traits(BURGERS, **{"nu: 0.01": "nu: 0.5"}).situation == "smooth"
    assert traits(HEAT).front_thickness == 1.0


def test_a_method_that_cannot_solve_the_problem_is_left_out_with_its_reason() -> None:
    methods = [Invented("fourier", refused="nothing repeats"), Invented("chebyshev"), Invented("fd")]
    found = choice(HEAT, methods)
    assert [each.method.name for each in found.recommendations] == ["chebyshev", "fd"]
    assert found.refusals == {"fourier": "nothing repeats"}


def test_a_forced_method_comes_first_and_the_others_may_check_it() -> None:
    assert names(HEAT, forced="fv") == [
        *("fv", "fourier", "etd", "imex", "chebyshev", "fd", "fem", "muscl", "characteristics", "polar")
    ]
    assert choice(HEAT, forced="fv").recommendations[0].reason == "It was requested."


def test_a_forced_method_that_does_not_exist_or_does_not_fit_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="unknown method 'chebychev'; did you mean 'chebyshev'"):
        choice(HEAT, forced="chebychev")
    with pytest.raises(ConfigurationError, match="cannot solve this problem: nothing repeats"):
        choice(HEAT, [Invented("fourier", refused="nothing repeats")], forced="fourier")


def test_every_reason_is_a_sentence_and_a_method_without_rules_comes_last() -> None:
    found = choice(BURGERS, [Invented("new"), *METHODS]).recommendations
    assert found[-1].method.name == "new"
    assert all(each.reason.endswith(".") and each.reason[0].isupper() for each in found)


def test_every_situation_ranks_every_method() -> None:
    every = sorted({*(method.name for method in METHODS), "rbf", "fem-cubic"})
    assert [sorted(order) for order in ORDER.values()] == [every] * len(ORDER)


def test_weak_solutions_are_expected_where_data_are_rough_or_jumps_may_form() -> None:
    assert not traits(HEAT).needs_weak_form
    assert not traits(ADVECTION).needs_weak_form
    assert traits(ADVECTION, **{"u_t + u_x = 0": "u_t + u*u_x = 0"}).needs_weak_form
    accepted = HEAT + "allow: [corner-jump]\n"
    quenched = {"initial: {u: sin(pi*x) + 2*x}": 'initial: {u: "1"}', HEAT[HEAT.index("reference") :]: ""}
    rough = traits(accepted, **quenched)
    assert (rough.situation, rough.needs_weak_form) == ("nonsmooth", True)
    # What is accepted and is not there makes nothing rough.
    assert traits(accepted).situation == "smooth"


def test_a_network_that_nothing_else_replaces_and_that_cannot_be_trained_is_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sharp.solvers.pinn.method.find_spec", lambda _: None)
    found = choice(HEAT, [Invented("fd", refused="no"), Pinn()])
    assert found.recommendations == ()
    assert "pip install 'pde-sharp[pinn]'" in found.refusals["pinn"]
    assert "pip install 'pde-sharp[pinn]'" in unsolved_sentence(found, [])


def test_networks_are_trained_only_when_asked_for_or_where_nothing_else_fits() -> None:
    network, other = Invented("pinn"), Invented("fd")
    assert names(HEAT, [network, other]) == ["fd"]
    assert "only when asked for" in choice(HEAT, [network, other]).refusals["pinn"]
    assert names(HEAT, [network, other], forced="pinn") == ["pinn", "fd"]
    assert names(HEAT, [network, Invented("fd", refused="no")]) == ["pinn"]
