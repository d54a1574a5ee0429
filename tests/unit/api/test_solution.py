"""A solution as a value: asked anywhere, with its error, as a data set, as a plot, in a notebook."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import meshio
import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure

import sharp
from sharp.errors import InputError, NotSolved, OutsideDomain
from sharp.problems import Problem, parse_problem
from tests.helpers.problems.specifications import specification

ROD = specification(
    "rod", parameters={"k": {"value": 0.1, "unit": "m**2/s"}}, units={"x": "m", "t": "s", "u": "K"}
)
PAIR = specification("pair", equations=["u_t = u_xx + v", "v_t = v_xx - u"], accuracy=None)
ANNULUS = specification("annulus")
TRIANGLE = specification("dirichlet-triangle")
MODES = specification("modes")
BOX = specification("room")

Solve = Callable[[str], sharp.Solution]


def problem(text: str) -> Problem:
    return parse_problem(text, "test.yaml")


@pytest.fixture(scope="module")
def solved() -> Solve:
    """Solutions by the texts of their problems, each computed once."""
    known: dict[str, sharp.Solution] = {}

    def solve(text: str) -> sharp.Solution:
        if text not in known:
            known[text] = sharp.solve(problem(text), cross_check=False)
        return known[text]

    return solve


def test_a_solution_is_a_function_of_space_and_time(solved: Solve) -> None:
    rod = solved(ROD)
    exact = np.exp(-0.1 * np.pi**2 * 0.5) * np.sin(np.pi * 0.3)
    assert rod(0.3, t=0.5) == pytest.approx(exact, rel=1e-5)
    assert rod(0.3, t=0.5).shape == ()
    assert rod([0.1, 0.2, 0.3], t=[0.5, 0.0]).shape == (2, 3)
    np.testing.assert_allclose(rod([0.3], t=[0.5, 0.0])[:, 0], [exact, np.sin(0.3 * np.pi)], rtol=1e-5)
    grid = np.linspace(0, 1, 12).reshape(3, 4)
    assert rod(grid, t=[[0.1], [0.2]]).shape == (2, 1, 3, 4)
    assert rod.at([[0.1], [0.2]], [0.0, 1.0]).shape == (1, 2, 2)


def test_coordinates_are_broadcast_and_steady_problems_take_no_time(solved: Solve) -> None:
    ring = solved(ANNULUS)
    x, y = np.array([[1.2], [1.3]]), np.array([0.5, 0.6, 0.7])
    np.testing.assert_allclose(ring(x, y), np.log(np.hypot(x, y)), rtol=1e-6)
    assert ring.at([[1.5, 0.0]]).shape == (1, 1)
    with pytest.raises(InputError, match="ring is a steady problem; expected no time"):
        ring(1.5, 0, t=0)


def test_systems_give_all_fields_or_one(solved: Solve) -> None:
    pair = solved(PAIR)
    both = pair([0.1, 0.3], t=0.2)
    assert both.shape == (2, 2)
    np.testing.assert_array_equal(pair([0.1, 0.3], t=0.2, field="v"), both[1])
    with pytest.raises(InputError, match="there is no field 'w'; valid fields: u, v"):
        pair(0.1, t=0, field="w")


@pytest.mark.parametrize(
    ("text", "space", "time", "complaint"),
    [
        (
            ROD,
            (1.5,),
            0.5,
            r"no solution at \(1.5\), one of 1 points outside the domain; expected x from 0 to 1",
        ),
        (ROD, (0.5,), 1.5, "no solution at t = 1.5; t from 0 to 1"),
        (ROD, (np.nan,), 0.5, "outside the domain"),
        (ROD, (0.5,), np.nan, "no solution at t = nan"),
        (ANNULUS, (0.5, 0.5), None, "between the circles of radii 1 and 2"),
        (TRIANGLE, (1.5, 0.9), None, "polygon"),
    ],
)
def test_outside_the_domain_there_is_no_value(
    solved: Solve, text: str, space: tuple[float, ...], time: float | None, complaint: str
) -> None:
    with pytest.raises(OutsideDomain, match=complaint):
        solved(text)(*space, t=time)


def test_a_wrong_number_of_arguments_is_told(solved: Solve) -> None:
    with pytest.raises(InputError, match="rod depends on time; expected t, t from 0 to 1"):
        solved(ROD)(0.5)
    with pytest.raises(InputError, match=r"expected 2 coordinates \(x, y\), found 1"):
        solved(ANNULUS)(0.5)


def test_error_and_verdict_can_be_read_and_printed(solved: Solve) -> None:
    rod = solved(ROD)
    assert rod.verdict.verified
    assert 0 < rod.error <= rod.accuracy
    assert "verified  residual of the equations" in str(rod.verdict)
    assert repr(rod) == f"<Solution of rod: {rod.method}, error {rod.error:.1e}, verified>"


def test_eigenvalue_problems_hold_numbers_and_the_first_function(solved: Solve) -> None:
    modes = solved(MODES)
    np.testing.assert_allclose(modes.eigenvalues, np.pi**2 * np.array([1, 4, 9]), rtol=1e-6)
    assert abs(modes(0.5)) == pytest.approx(1, rel=1e-3)
    assert "9.8696" in modes._repr_html_()
    np.testing.assert_array_equal(modes.to_xarray()["mu"], modes.eigenvalues)


def test_a_solution_becomes_a_data_set(solved: Solve) -> None:
    data = solved(ROD).to_xarray()
    assert dict(data.sizes) == {"t": 5, "x": 11}
    assert (data["u"].attrs["units"], data["x"].attrs["units"]) == ("K", "m")
    assert (data.attrs["verdict"], data.attrs["error"]) == ("verified", solved(ROD).error)
    assert float(data["u"].sel(t=0.5, x=0.3, method="nearest")) == pytest.approx(
        float(solved(ROD)(0.3, t=0.5))
    )
    finer = solved(ROD).to_xarray(x=np.linspace(0, 1, 51), t=[1.0])
    assert dict(finer.sizes) == {"t": 1, "x": 51}
    ring = solved(ANNULUS).to_xarray()
    assert ring["u"].dims == ("x", "y")
    assert np.isnan(ring["u"].sel(x=0, y=0))
    with pytest.raises(InputError, match="there is no coordinate 'z'; valid coordinates: t, x"):
        solved(ROD).to_xarray(z=[1])
    with pytest.raises(OutsideDomain):
        solved(ROD).to_xarray(t=[2.0])


def _steps(path: Path) -> list[Path]:
    return [path.with_name(step["name"]) for step in json.loads(path.read_text())["files"]]


@pytest.mark.parametrize(("text", "cells"), [(ROD, 10), (BOX, 120), (ANNULUS, 0)])
def test_a_saved_solution_can_be_read_by_other_programs_and_says_what_is_known_of_its_error(
    solved: Solve, tmp_path: Path, text: str, cells: int
) -> None:
    solution = solved(text)
    grid = solution.to_xarray()
    files = {ending: solution.save(tmp_path / f"a{ending}")[0] for ending in (".nc", ".csv", ".vtu", ".npz")}
    with xarray.open_dataset(files[".nc"]) as read:
        assert read.drop_attrs().equals(grid.drop_attrs())
        assert (read.attrs["verdict"], read.attrs["error"]) == (solution.verdict.status, solution.error)
    head, _, *rows = files[".csv"].read_text().splitlines()
    assert head == f"# {solution.verdict.headline}"
    inside = grid["u"].values[np.isfinite(grid["u"].values)]
    np.testing.assert_array_equal(sorted(float(row.split(",")[-1]) for row in rows), sorted(inside))
    last = _steps(files[".vtu"])[-1] if solution.problem.time else files[".vtu"]
    mesh = meshio.read(last)
    assert mesh.field_data["verified"] == [solution.verdict.verified]
    assert mesh.field_data["error"] == [solution.error]
    assert solution.verdict.headline.split(":")[0] in last.read_text()
    assert len(mesh.cells[0].data) == cells or text == ANNULUS
    centre = mesh.points[:, : len(solution.problem.space)]
    late = solution.problem.time and [solution.problem.time[1]]
    np.testing.assert_allclose(solution.at(centre, late).ravel(), mesh.point_data["u"], atol=1e-12)


def test_another_ending_is_refused_with_those_there_are(solved: Solve, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"a\.vtk: did you mean '\.vtu'\? valid endings: \.csv, \.nc, \.npz, \.vtu"
    ):
        solved(ROD).save(tmp_path / "a.vtk")
    assert not list(tmp_path.iterdir())


def test_without_xarray_the_command_that_installs_it_is_named(
    solved: Solve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(InputError, match=r'pip install "pde-sharp\[xarray\]"'):
        solved(ROD).to_xarray()
    monkeypatch.setitem(sys.modules, "meshio", None)
    with pytest.raises(InputError, match=r"pip install 'pde-sharp\[mesh\]'"):
        solved(ANNULUS).save("a.vtu")


@pytest.mark.parametrize(
    ("text", "panels"), [(ROD, 1), (PAIR, 2), (ANNULUS, 1), (TRIANGLE, 1), (MODES, 1), (BOX, 1)]
)
def test_a_solution_draws_itself(solved: Solve, text: str, panels: int) -> None:
    figure = solved(text).plot()
    assert isinstance(figure, Figure)
    drawn = [axes for axes in figure.axes if axes.get_xlabel()]
    assert len(drawn) == panels
    assert all(axes.lines or axes.collections for axes in drawn)


def test_a_notebook_shows_title_verdict_and_plot(solved: Solve) -> None:
    page = solved(ROD)._repr_html_()
    assert "<b>A rod</b><br>Verified: estimated relative error" in page
    assert '<img alt="plot of u" src="data:image/png;base64,iVBOR' in page


def test_a_problem_that_nothing_solves_has_a_verdict_and_no_values() -> None:
    stiff = sharp.solve(problem(ROD), time_limit=1e-9)
    assert stiff.verdict.status == "unsolved"
    assert repr(stiff) == "<Solution of rod: unsolved>"
    assert "<img" not in stiff._repr_html_()
    for ask in (lambda: stiff(0.5, t=0.5), stiff.plot, stiff.to_xarray):
        with pytest.raises(NotSolved, match="rod: there is no solution"):
            ask()
