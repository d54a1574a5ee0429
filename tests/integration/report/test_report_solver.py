"""The exported solver: unchanged code, an example that runs, and nothing lost of what a user put beside it."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sharp.problems import load_problem
from sharp.report import write_report
from sharp.report.solver_folder import example
from tests.helpers import ROOT
from tests.helpers.documents.document_pages import skeleton
from tests.helpers.documents.hostile_texts import TEXTS
from tests.helpers.documents.report_hostile import poison

ANSWERS = {
    "advection": "lambda u0_batch, t_coordinate, beta: np.repeat(u0_batch[:, None], len(t_coordinate), 1)",
    "burgers": "lambda u0_batch, t_coordinate, nu: np.repeat(u0_batch[:, None], len(t_coordinate), 1)",
    "reaction-diffusion": "lambda u0_batch, t_coordinate, nu, rho: np.repeat(u0_batch[:, None], len(t_coordinate), 1)",
    "navier-stokes": "lambda *a: tuple(np.repeat(v[:, None], len(a[3]), 1) for v in a[:3])",
    "darcy": "lambda a: a / a.max()",
}


def run_example(folder: Path, cwd: Path) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(folder / "example.py")]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def exported(folder: Path, problem, solver: str) -> Path:
    folder.mkdir()
    (folder / "solver.py").write_text(f"import numpy as np\n{problem.interface.function} = {solver}\n")
    (folder / "example.py").write_text(example(problem))
    return folder


@pytest.fixture
def solved(finished, tmp_path):
    """A copy of the finished run, so that its files may be changed."""
    run, state = finished
    shutil.copytree(run.path, tmp_path / "run")
    return replace(run, path=tmp_path / "run"), state


def test_the_code_is_unchanged_below_a_header_that_says_where_it_comes_from(solved):
    run, state = solved
    text = (write_report(run, state).solver / "solver.py").read_text()
    assert text.endswith(state.candidates[state.best].code)
    header = text.removesuffix(state.candidates[state.best].code)
    assert all(line.startswith("# ") for line in header.strip().split("\n"))
    for fact in (
        "run: run",
        "h1.2.3d1, repair of h1.2.3",
        "4.000e-03",
        "2.000e-03",
        "1.000e-02",
        "below the data-set error",
    ):
        assert fact in header


def test_a_strange_name_of_the_run_cannot_leave_the_header(solved, tmp_path):
    run, state = solved
    strange = tmp_path / "run\nraise SystemExit('out')\n"
    run.path.rename(strange)
    solver = write_report(replace(run, path=strange), state).solver
    assert "\nraise" not in (solver / "solver.py").read_text()
    assert run_example(solver, tmp_path).startswith("u: shape")


def test_the_example_runs_from_any_directory(solved, tmp_path):
    solver = write_report(*solved).solver
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert run_example(solver, elsewhere).startswith("u: shape (2, 64), float32, all finite, from -0.99")


@pytest.mark.parametrize(("name", "solver"), ANSWERS.items(), ids=ANSWERS)
def test_the_example_of_every_problem_calls_its_solver_as_agreed(tmp_path, name, solver):
    problem = load_problem(name)
    printed = run_example(exported(tmp_path / "solver", problem, solver), tmp_path)
    lines = printed.strip().split("\n")
    assert [line.split(":")[0] for line in lines] == [port.name for port in problem.interface.returns]
    shape = "(2, 33, 33)" if name == "darcy" else "(2, 5, 64)"
    assert all(f"shape {shape}" in line and "all finite" in line for line in lines)


def test_gas_starts_with_positive_density_and_a_coefficient_has_two_values(tmp_path):
    gas = "lambda *a: (a[0][:, None], a[1][:, None], a[2][:, None])"
    printed = run_example(exported(tmp_path / "gas", load_problem("navier-stokes"), gas), tmp_path)
    assert "from 0.8" in printed.split("\n")[1]
    values = "lambda a: print(sorted(set(a.ravel().tolist()))) or a"
    printed = run_example(exported(tmp_path / "flow", load_problem("darcy"), values), tmp_path)
    assert printed.startswith("[3.0, 12.0]")


def test_the_example_tells_when_a_result_is_not_finite(tmp_path):
    folder = exported(tmp_path / "solver", load_problem("darcy"), "lambda a: a + np.inf")
    assert "NOT ALL FINITE" in run_example(folder, tmp_path)


@pytest.mark.parametrize(
    "formula", ["exp(-50*(x - L/2)**2)", "1", "piecewise(1, x < L/2, 0)", "erfc(0*x)*sin(pi*x/L)"]
)
def test_an_initial_state_given_as_a_formula_is_that_formula(tmp_path, formula):
    text = (ROOT / "data" / "problems" / "advection.yaml").read_text()
    text = text.replace("{family: sine-sums}", f'"{formula}"').replace("  beta: 0.1", "  beta: 0.1\n  L: 2/2")
    (tmp_path / "mine.yaml").write_text(text)
    problem = load_problem(tmp_path / "mine.yaml")
    folder = exported(tmp_path / "solver", problem, "lambda u0_batch, t_coordinate, beta: u0_batch[:, None]")
    printed = run_example(folder, tmp_path)
    assert "all finite" in printed
    assert "to 1," in printed or "to 0.99" in printed


def test_the_readme_says_what_a_user_must_know(solved):
    text = (write_report(*solved).solver / "README.md").read_text()
    for fact in (
        "# Solver: Linear advection in one dimension",
        "solver(u0_batch, t_coordinate, beta)",
        "against the data set: 4.000e-03",
        "against the reference solution: 2.000e-03",
        "- h1.2.3: made from c003 by judge 3",
        "1024 cells and 201 output times, beta = 0.1",
        "20 min 0 s, 8000 MB, 1 thread",
        "Review it",
    ):
        assert fact in text


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_hostile_texts_stay_within_the_readme_and_out_of_the_header(solved, text):
    run, state = solved
    code = state.candidates[state.best].code
    hostile = poison(state, text)
    candidates = {**hostile.candidates, state.best: replace(hostile.candidates[state.best], code=code)}
    solver = write_report(run, replace(hostile, candidates=candidates)).solver
    assert skeleton((solver / "README.md").read_text()).headings == (
        "# Solver: Linear advection in one dimension",
        "## Errors",
        "## Where it comes from",
        "## Limits",
        "## Licence",
    )
    compile((solver / "solver.py").read_text(), "solver.py", "exec")


def test_the_solver_of_another_winner_is_replaced_and_other_files_stay(solved):
    run, state = solved
    solver = write_report(run, state).solver
    (solver / "mine.txt").write_text("mine")
    other = write_report(run, replace(state, best="c001")).solver
    assert other == solver
    assert (solver / "solver.py").read_text().endswith(state.candidates["c001"].code)
    assert (solver / "mine.txt").read_text() == "mine"


def test_without_a_winner_an_old_folder_is_left_alone(solved):
    run, state = solved
    solver = write_report(run, state).solver
    before = (solver / "solver.py").read_bytes()
    assert write_report(run, replace(state, best=None, test=None, x64={})).solver is None
    assert (solver / "solver.py").read_bytes() == before
