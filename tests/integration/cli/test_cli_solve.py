"""`sharp solve` from the command line: what it prints, what it writes, how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from sharp.cli.solve import solve
from sharp.errors import InputError
from sharp.problems.cases import load_case, load_ill_posed
from tests.helpers.cli.sharp_command import Sharp
from tests.helpers.problems.specifications import specification

ROD = specification("heated-rod")


@pytest.fixture
def here(tmp_path: Path) -> Sharp:
    (tmp_path / "rod.yaml").write_text(ROD)
    return Sharp(tmp_path)


def written(here: Sharp, text: str) -> str:
    (here.folder / "rod.yaml").write_text(text)
    return "rod.yaml"


def test_from_a_specification_to_a_verified_solution(here: Sharp) -> None:
    done = here.ok("solve", "rod.yaml")
    lines = done.stdout.splitlines()
    assert lines[0] == "A rod"
    assert lines[1].split(None, 1) == ["equation", "u_t = alpha*u_xx"]
    assert lines[-2].startswith("Verified: estimated relative error ")
    assert lines[-1] == "Report: solution-rod/report.html"
    assert "chebyshev, resolution 12: " in done.stderr
    folder = here.folder / "solution-rod"
    assert {path.name for path in folder.iterdir()} == {
        *("problem.yaml", "solve_result.json", "solution.npz", "solution.csv", "report.html", "report.md")
    }
    found = json.loads((folder / "solve_result.json").read_text())
    exact = next(check for check in found["checks"] if check["name"] == "exact solution")
    assert exact["value"] < 1e-6


def test_what_is_missing_is_asked_for(here: Sharp) -> None:
    done = here("solve", written(here, ROD.replace("initial: {u: sin(pi*x) + 2*x}\n", "")))
    assert done.returncode == 9, done.stderr
    assert done.stdout.splitlines()[-1] == "To be answered: solution-rod/questions.yaml"
    asked = yaml.safe_load((here.folder / "solution-rod" / "questions.yaml").read_text())["questions"]
    assert [question["answer"] for question in asked] == [None]
    assert f"Question: {asked[0]['question']}" in done.stdout
    assert not (here.folder / "solution-rod" / "solution.npz").exists()
    again = here("solve", "rod.yaml", "--json")
    assert again.returncode == 9
    assert json.loads(again.stdout)["questions"] == [asked[0]["question"]]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "expected a specification, the id of a problem or a problem in natural language; or --answers"),
        (
            ["a rod that cools", "--method", "fd"],
            "--method, --resolution and --check-only are for specifications",
        ),
        (["a rod that cools", "--policy", "octopus"], "policy: found 'octopus'; did you mean 'octo'?"),
        (
            ["a rod that cools", "--model", "a", "--model", "b"],
            "expected one model, or one for each of planner",
        ),
        (["a rod that cools", "--model", "nobody"], "nobody"),
        (["heat-rod-two-end"], "did you mean 'heat-rod-two-ends'?"),
        (["nowhere.yaml"], "nowhere.yaml: cannot be read"),
        (
            ["rod.yaml", "--method", "magic"],
            "unknown method 'magic'; valid methods: characteristics, chebyshev, etd",
        ),
        (["rod.yaml", "--method", "polar"], "the method 'polar' cannot solve this problem"),
        (["rod.yaml", "--accuracy", "2"], "2.0 is not in the range"),
        (["rod.yaml", "--dir", "rod.yaml"], "--dir rod.yaml: is a file"),
    ],
    ids=lambda value: (value or ["nothing"])[-1] if isinstance(value, list) else "",
)
def test_wrong_input_is_told_in_a_sentence(
    here: Sharp, monkeypatch: pytest.MonkeyPatch, arguments: list[str], complaint: str
) -> None:
    monkeypatch.chdir(here.folder)
    done = CliRunner().invoke(solve, arguments)
    said = str(done.exception) if isinstance(done.exception, InputError) else done.output
    assert isinstance(done.exception, InputError) or done.exit_code == 2
    assert complaint in said
    assert [path.name for path in here.folder.iterdir()] == ["rod.yaml"]


def test_the_folder_of_another_problem_is_not_overwritten(here: Sharp) -> None:
    other = here.folder / "solution-rod"
    other.mkdir()
    (other / "problem.yaml").write_text("id: bridge\n")
    assert "choose another folder" in here.fails(2, "solve", "rod.yaml")
    assert [path.name for path in other.iterdir()] == ["problem.yaml"]


def test_what_no_method_can_treat_leaves_no_folder(here: Sharp) -> None:
    assert "'u' is sampled from the family sine-sums" in here.fails(2, "solve", "burgers")
    assert [path.name for path in here.folder.iterdir()] == ["rod.yaml"]


def test_help_loads_nothing_heavy(here: Sharp) -> None:
    code = "import sys, sharp.cli.solve; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "scipy", "sympy", "jax", "pydantic"} & set(done.stdout.split())


def test_a_problem_in_words_is_carried_to_a_verified_solution(here: Sharp) -> None:
    statement = load_case("heat-rod-two-ends").statements[0].text
    done = here.ok("solve", statement, "--error-rate", "0.2", "--seed", "2")
    assert done.stdout.splitlines()[-1] == "Report: solution-text/report.html"
    assert "equation: u_t = alpha*u_xx" in done.stderr
    again = here.ok("solve", statement, "--error-rate", "0.2", "--seed", "2", "--json")
    assert "needs_clarification" not in again.stderr
    assert json.loads(again.stdout)["ending"] == "solved"
    here.ok("solve", "solution-text/problem.yaml", "--no-cross-check")


def test_words_for_what_has_no_solution_are_refused_with_the_reason(here: Sharp) -> None:
    done = here("solve", load_ill_posed("backward-rod").statements[0].text)
    assert done.returncode == 2
    assert done.stdout.startswith("Not solvable as specified: ")
