from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from sharp.document import render_html, render_markdown
from sharp.errors import ConfigurationError
from sharp.problems.diagnosis import diagnose
from sharp.solvers.driver import SolveOptions, solve_problem
from sharp.solvers.export import NAMES, Folder, export, export_questions, facts, id_in
from sharp.solvers.output import output
from sharp.solvers.solution import Solution
from sharp.solvers.solution_report import build_report
from tests.helpers.problems.specifications import specification
from tests.helpers.solvers.solving_fakes import DISK, HEAT, MODES, PLATE, WAVE, Invented, modes, problem_of

BOX = specification("room", reference={"kind": "exact", "value": {"u": "x*y*z"}})


class Modes(Invented):
    def solve(self, system, resolution, accuracy, deadline):
        return modes({1: np.pi**2, 2: 4 * np.pi**2}, resolution)


def solved(text: str, method: Invented | None = None) -> Solution:
    return solve_problem(
        problem_of(text),
        SolveOptions(cross_check=False),
        methods=[method or Invented(error=lambda n: n**-9.0)],
    )


@pytest.fixture
def rod(tmp_path: Path) -> Path:
    export(solved(HEAT), Folder(tmp_path / "rod", HEAT))
    return tmp_path / "rod"


def test_all_files_of_a_solution_are_there_and_no_others(rod: Path) -> None:
    assert {path.name for path in rod.iterdir()} == set(NAMES) - {
        "questions.yaml",
        "quantities.csv",
        "probes.csv",
    }
    assert (rod / "problem.yaml").read_text() == HEAT


def test_the_arrays_hold_the_solution_on_the_output_grid(rod: Path) -> None:
    with np.load(rod / "solution.npz", allow_pickle=False) as stored:
        x, t, u = (stored[name] for name in ("x", "t", "u"))
        assert str(stored["verdict"]).startswith("Verified: ")
    assert (len(x), len(t), u.shape) == (101, 11, (11, 101))
    exact = np.exp(-0.1 * np.pi**2 * t[:, None]) * np.sin(np.pi * x) + 2 * x
    assert np.abs(u - exact).max() < 1e-5


def test_the_table_holds_the_same_numbers(rod: Path) -> None:
    verdict, _, text = (rod / "solution.csv").read_text().partition("\n")
    assert verdict.startswith("# Verified: ")
    rows = list(csv.DictReader(io.StringIO(text)))
    with np.load(rod / "solution.npz") as stored:
        u = stored["u"]
    assert len(rows) == u.size
    assert [float(row["u"]) for row in rows] == u.ravel().tolist()
    assert (rows[101]["t"], rows[102]["x"]) == ("0.1", "0.01")


def test_all_figures_are_in_the_answer(rod: Path) -> None:
    found = json.loads((rod / "solve_result.json").read_text(), parse_constant=pytest.fail)
    assert found["outcome"] == "verified"
    assert 0 < found["error"] <= found["accuracy"] == 1e-6
    assert found["method"] == "invented"
    assert found["attempts"][0]["resolution"] == 8
    assert all(check["value"] <= check["limit"] for check in found["checks"])
    assert found["problem"] == problem_of(HEAT).label


def test_outside_of_the_domain_there_are_no_numbers() -> None:
    problem = problem_of(DISK)
    found = output(problem, solved(DISK).discrete)
    x, y = np.meshgrid(*found.axes, indexing="ij")
    outside = np.hypot(x, y) > 1 + 1e-9
    assert np.isnan(found.values[0, 0][outside]).all()
    assert found.values[0, 0][~outside] == pytest.approx((1 - x**2 - y**2)[~outside], abs=1e-4)
    assert found.arrays()["u"].shape == (41, 41)
    assert "t" not in found.arrays()


def test_cells_are_the_centres_of_equal_parts() -> None:
    problem = problem_of(BOX)
    arrays = output(problem, solved(BOX).discrete).arrays()
    assert arrays["x"] == pytest.approx([0.1, 0.3, 0.5, 0.7, 0.9])
    assert arrays["u"].shape == (5, 6, 7)
    assert arrays["u"][1, 2, 3] == pytest.approx(0.3 * (2.5 / 6) * 1.0, rel=1e-4)


def pages(text: str, found: Solution | None = None) -> tuple[str, str]:
    report = build_report(found or solved(text))
    return render_html(report), render_markdown(report)


@pytest.mark.parametrize(
    ("text", "charts", "maps"), [(HEAT, 1, 1), (WAVE, 1, 1), (PLATE, 0, 1), (DISK, 0, 1), (BOX, 0, 1)]
)
def test_the_report_shows_the_solution(text: str, charts: int, maps: int) -> None:
    html, markdown = pages(text)
    assert html.count('id="lines-0-title"') == charts
    assert html.count("<image") >= maps
    assert "http://" not in html.replace("http://www.w3.org", "")
    assert "<script" not in html
    for part in ("The problem as parsed", "Checks", "Refinement", "Methods"):
        assert part in html
        assert part in markdown


def test_the_sentence_on_the_error_comes_first() -> None:
    found = solved(HEAT)
    _, markdown = pages(HEAT, found)
    assert markdown.splitlines()[2].startswith("**Verified: estimated relative error ")
    assert found.verdict.headline.endswith(".")


def test_eigenvalues_are_a_table_beside_the_exact_ones() -> None:
    _, markdown = pages(MODES, solved(MODES, Modes()))
    assert "| 9.86960440109 | 9.86960440109 |" in markdown.replace("  ", " ")


def test_eigenvalues_are_stored_under_the_name_of_the_unknown_number(tmp_path: Path) -> None:
    export(solved(MODES, Modes()), Folder(tmp_path / "modes", MODES))
    with np.load(tmp_path / "modes" / "solution.npz") as stored:
        assert stored["mu"] == pytest.approx(np.pi**2 * np.array([1, 4]))


def test_what_could_not_be_solved_has_a_report_without_a_solution(tmp_path: Path) -> None:
    found = solved(HEAT, Invented(error=lambda _: None))
    path = export(found, Folder(tmp_path / "rod", HEAT))
    assert "Not solved: no method found a solution" in path.read_text()
    assert not (tmp_path / "rod" / "solution.npz").exists()
    assert json.loads((tmp_path / "rod" / "solve_result.json").read_text())["error"] is None


def test_a_number_that_json_does_not_have_becomes_null() -> None:
    found = solved(HEAT, Invented(sizes=(8,)))
    assert facts(found)["error"] is None
    assert found.verdict.status == "inconclusive"


def test_the_folder_of_the_same_problem_is_written_anew(rod: Path) -> None:
    (rod / "mine.txt").write_text("kept")
    changed = HEAT.replace("alpha: 0.1", "alpha: 0.2")
    export(solved(changed, Invented(error=lambda _: None)), Folder(rod, changed))
    assert (rod / "problem.yaml").read_text() == changed
    assert not (rod / "solution.npz").exists()
    assert (rod / "mine.txt").read_text() == "kept"


def test_another_folder_is_never_touched(rod: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in rod.iterdir()}
    with pytest.raises(ConfigurationError, match="holds something else"):
        Folder(rod, WAVE).open()
    assert {path.name: path.read_bytes() for path in rod.iterdir()} == before
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    with pytest.raises(ConfigurationError, match="holds something else"):
        Folder(tmp_path / "full", HEAT).open()
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="is a file"):
        Folder(tmp_path / "file", HEAT).open()


def test_questions_can_be_filled_in(tmp_path: Path) -> None:
    text = HEAT.replace("initial: {u: sin(pi*x) + 2*x}", "")
    path = export_questions(diagnose(text, "rod.yaml"), Folder(tmp_path / "rod", text))
    found = yaml.safe_load(path.read_text())
    assert found["problem"] == "rod"
    assert [set(question) for question in found["questions"]] == [
        {"question", "reason", "kind", "place", "answer"}
    ]
    assert found["questions"][0]["answer"] is None
    assert found["questions"][0]["question"].endswith("?")


def test_the_id_of_a_text_that_is_no_specification_is_empty() -> None:
    assert [id_in(text) for text in ("id: rod", "- 1", "{", "title: x")] == ["rod", "", "", ""]
