"""Quantities, probes and output points of a specification: what is read, and what is refused by name."""

from __future__ import annotations

import pytest

from sharp.errors import SpecificationError
from sharp.problems import parse_problem
from tests.helpers.problems.specifications import specification

ROD = specification("aluminium-rod")
DRUM = specification("drum", quantities=None)


def asking(text: str, asked: str, base: str = ROD):
    return parse_problem(f"{base}{text}: {asked}\n", "rod.yaml")


@pytest.mark.parametrize(
    ("asked", "unit", "of_20"),
    [
        ("{value: u, at: {x: L, t: 300}, unit: K}", "K", 293.15),
        ("{value: u, at: {x: L, t: 300}}", "degC", 20.0),
        ("{value: u - T_air, at: {x: L, t: 300}, unit: K}", "K", 20.0),
        ("{value: u, take: mean, unit: degF}", "degF", 68.0),
        ("{value: 0.5*u + 0.5*T_air, take: mean, unit: K}", "K", 293.15),
        ("{value: -k*u_x*normal_x, take: integral, over: x = L, at: {t: 9}, unit: kW/m**2}", "kW/m**2", 0.02),
        ("{value: u_t, take: maximum, unit: K/h}", "K/h", 72000.0),
        ("{value: k*u_x, take: integral, at: {x: 0}, unit: J/cm**2}", "J/cm**2", 0.002),
    ],
)
def test_units_are_converted_with_the_zero_of_a_temperature(asked: str, unit: str, of_20: float) -> None:
    (quantity,) = asking("quantities", f"{{q: {asked}}}").quantities
    assert quantity.unit == unit
    assert quantity.converted(20.0) == pytest.approx(of_20, rel=1e-12)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("{value: u, at: {x: 0.6, t: 3}}", "outside"),
        ("{value: u, at: {x: 0.1, t: 301}}", "expected a time from 0 to 300"),
        ("{value: u, at: {x: 0.1}}", "missing: t"),
        ("{value: u, at: {y: 0.1}, take: mean}", "'y' is no coordinate"),
        ("{value: v, take: mean}", "unknown name 'v'"),
        ("{value: u_xx, take: mean}", "first derivatives"),
        ("{value: lap(u), take: mean}", "first derivatives"),
        ("{value: normal_x, take: mean}", "normal_x"),
        ("{value: u, take: mean, over: x = 0.3}", "no end of the domain"),
        ("{value: u, take: mean, at: {x: 0, t: 1}}", "fixes all"),
        ("{value: u, take: mean, unit: m}", "expected a unit of the kind of K"),
        ("{value: u*2, take: mean, unit: K}", "neither"),
        ("{value: u, take: mean, unit: parsnip}", "unknown unit 'parsnip'"),
        ("{value: u, take: mean, mode: 2}", "no mode"),
        ("{value: u, take: average}", "valid values: integral, maximum, mean, minimum, value"),
    ],
)
def test_what_cannot_be_asked_is_named(asked: str, message: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        asking("quantities", f"{{q: {asked}}}")
    assert message in str(caught.value)
    assert "quantities.q" in str(caught.value)


def test_a_unit_needs_those_of_the_names() -> None:
    with pytest.raises(SpecificationError, match="the unit of mu is not given in units"):
        asking("quantities", "{tone: {value: mu, unit: 1/m**2}}", DRUM)


def test_eigenvalues_have_numbers() -> None:
    (tone,) = asking("quantities", "{tone: {value: c*sqrt(mu)/(2*pi), mode: 2}}", DRUM).quantities
    assert tone.mode == 2
    for wrong, message in (("{value: mu, mode: 4}", "up to 3"), ("{value: mu, take: mean}", "eigenvalues")):
        with pytest.raises(SpecificationError, match=message):
            asking("quantities", f"{{tone: {wrong}}}", DRUM)


def test_quantities_do_not_change_what_a_solver_is_asked() -> None:
    assert asking("quantities", "{q: {value: u, take: mean}}").hash == parse_problem(ROD, "rod.yaml").hash


def test_outputs_list_points_times_and_probes() -> None:
    grid = asking("outputs", "{at: {t: [0, 1, 250], x: [0, L/4]}, probes: {middle: {x: L/2}}}").grid
    assert grid.at == {"t": (0.0, 1.0, 250.0), "x": (0.0, 0.125)}
    assert grid.probes == {"middle": (0.25,)}
    assert (grid.kind, grid.points["x"], grid.times) == ("nodes", 101, 11)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ("{at: {t: [1, 0]}}", "ascending"),
        ("{at: {t: [0, 301]}}", "expected values from 0 to 300"),
        ("{at: {z: [0]}}", "'z' is no coordinate"),
        ("{probes: {p: {x: 0.7}}}", "outside"),
        ("{probes: {p: {y: 0.7}}}", "missing: x"),
    ],
)
def test_wrong_outputs_are_named(outputs: str, message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        asking("outputs", outputs)
