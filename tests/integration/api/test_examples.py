"""The scripts and notebooks of the folder `examples` run as they stand."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient

from tests.helpers import ROOT
from tests.helpers.models.rule_based_server import answer_by_rules
from tests.helpers.models.scripted_chat_server import serving

EXAMPLES = ROOT / "examples"
NOTEBOOKS = sorted(path.stem for path in (EXAMPLES / "notebooks").glob("*.py"))
PRINTED = {
    "ask_for_what_is_missing": ("asked: What else holds for u at x = 2?", "refused: "),
    "cluster_ablation": ("burgers-no-stability-s2", "Estimate for 12 cells"),
    "compare_your_programs": ("upwind     error ", "spectral   error ", "broken     failed: u has shape"),
    "picture_for_a_page": ("picture: rod.svg",),
    "run_untrusted_programs": (
        *(
            "honest     exit code 0: the sum is 45",
            "endless    stopped after 2 s",
            "greedy     stopped at 512 MB",
        ),
        *("curious    exit code 1: ", "talkative  exit code 1: PermissionError"),
    ),
    "solve_a_problem": ("Verified: estimated relative error",),
    "stop_and_go_on": ("the budget of 1 calls is used up", "the record alone gives the same: True"),
    "tones_of_a_drum": ("tone 6", "largest relative distance from the zeros of Bessel functions: "),
    "vary_a_parameter": ("aluminium   True",),
    "verify_your_own": ("128 cells: verified, error at most",),
    "write_a_solver": ("a program of one's own, against the data",),
}
Script = Callable[..., str]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data are made once for all examples."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def script(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Script:
    """Runs a file in an empty folder, as a program with arguments, and returns what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHARP_DATA", str(data))
    monkeypatch.setenv("SHARP_CACHE", str(data / "cache"))

    def run(path: Path, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [str(path), *arguments])
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as left:
            if left.code:
                pytest.fail(str(left.code))
        return capfd.readouterr().out

    return run


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_a_script_runs(name: str, script: Script) -> None:
    out = script(EXAMPLES / f"{name}.py")
    for text in PRINTED[name]:
        assert text in out
    if name == "tones_of_a_drum":
        assert float(out.split()[-1]) < 1e-4


def test_a_model_behind_a_server_is_asked(script: Script) -> None:
    with serving() as server:
        server.script = [answer_by_rules]
        out = script(EXAMPLES / "own_model_server.py", server.url)
        assert server.bodies
    assert "program: runs/own-server/solver" in out


def test_every_script_is_run() -> None:
    scripts = {path.stem for path in EXAMPLES.glob("*.py")}
    assert scripts == {*PRINTED, "own_model_server"}
    page = (ROOT / "docs" / "examples.md").read_text()
    assert [name for name in sorted({*scripts, *NOTEBOOKS}) if f"/{name}.py)" not in page] == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_cells_of_a_notebook_run(name: str, script: Script) -> None:
    script(EXAMPLES / "notebooks" / f"{name}.py")


def test_a_notebook_runs_in_jupyter(script: Script, tmp_path: Path) -> None:
    """There an event loop is running already, and values show themselves."""
    notebook = jupytext.read(EXAMPLES / "notebooks" / "whose_error.py")
    shown = jupytext.read(EXAMPLES / "notebooks" / "first_solution.py").cells[:2]
    notebook.cells += shown
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    html = notebook.cells[-1].outputs[-1].data["text/html"]
    assert "data:image/png;base64" in html
