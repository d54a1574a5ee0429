"""No expression ends in a traceback: read, checked and solved for a moment, it is solved or refused in words."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sharp.errors import SharpError, SpecificationError
from sharp.problems import check_well_posedness, parse_problem
from sharp.solvers import SolveOptions, solve_problem

_UNARY = ("sin", "exp", "log", "sqrt", "abs", "sign", "acosh", "Heaviside", "J1", "-")
_POWERS = ("2", "-2", "0.5", "(1/3)", "-1")


def expressions(names: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Texts of the grammar, most of which make no sense."""
    leaves = st.sampled_from([*names, "0", "1", "2.5", "pi"])

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.builds("({}) {} ({})".format, inner, st.sampled_from("+-*/"), inner),
            st.builds("({})**{}".format, inner, st.sampled_from(_POWERS)),
            st.builds("{}({})".format, st.sampled_from(_UNARY), inner),
            st.builds("piecewise({}, {} < {}, {})".format, inner, inner, inner, inner),
        )

    return st.recursive(leaves, larger, max_leaves=4)


def specification(equation: str, value: str, steady: bool, periodic: bool, initial: str = "x*(1 - x)") -> str:
    held = f'{{where: all, type: dirichlet, field: u, value: "{value}"}}'
    condition = "{type: periodic, axis: x}" if periodic else held
    lines = [
        "pde_spec: 1", "id: hostile", "title: hostile",
        f"coordinates: {{space: [x]{'' if steady else ', time: t'}}}", "fields: [u]", f'equations: ["{equation}"]',
        "domain: {type: box, bounds: {x: [0, 1]}}", f"boundary: [{condition}]",
        *([] if steady else ["time: [0, 0.1]", f'initial: {{u: "{initial}"}}']),
    ]  # fmt: skip
    return "\n".join(lines)


def attempt(text: str) -> None:
    """Do all that is done with a specification; only errors in words may come of it."""
    with suppress(SharpError):
        problem = parse_problem(text, "hostile.yaml")
        known = [found for found in check_well_posedness(problem) if found.verdict == "warn"]
        solve_problem(problem, SolveOptions(time_limit=0.05, cross_check=False), known=known)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(expressions(("x", "u", "u_x", "u_xx")), expressions(("x",)), st.booleans(), st.booleans())
def test_what_is_written_at_random_is_solved_or_refused(
    right: str, value: str, steady: bool, periodic: bool
) -> None:
    attempt(specification(f"{'-u_xx' if steady else 'u_t'} = {right}", value, steady, periodic))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("equation", "value"),
    [
        ("u_t = u_xx + J1(x/u_x)**-2", "0"),
        ("u_t = u_xx", "piecewise(x, 2 >= 1, 1)"),
        ("u_t = piecewise(0**0.5*u_xx*x, cos(0) < min(2, x), 1)", "x*0"),
        ("u_t = u_xx + piecewise(x, t >= u, pi)/(x - u)", "1"),
        ("-(abs(u_x)**2*u_x)_x = 1", "0"),
    ],
)
def test_what_once_ended_in_a_traceback(equation: str, value: str) -> None:
    for periodic in (False, True):
        attempt(specification(equation, value, steady="u_t" not in equation, periodic=periodic))


@pytest.mark.parametrize(
    ("equation", "name"),
    [
        ("u_t = -(-lap(u))**0.5", "fractional power of the Laplacian"),
        ("u_t = lap(u)**(1/3)", "fractional power of the Laplacian"),
        ("u_t = -frac_lap(u, 0.7)", "fractional Laplacian"),
        ("u_t = conv(exp(-x**2), u)", "convolution"),
        ("u_t = u_xx + integral(u, x)", "integral"),
        ("u_t = u_xx + noise", "noise"),
    ],
)
def test_terms_that_are_not_local_are_refused_by_name(equation: str, name: str) -> None:
    with pytest.raises(SpecificationError, match=name):
        parse_problem(specification(equation, "0", steady=False, periodic=True), "hostile.yaml")
