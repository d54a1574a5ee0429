"""The tools of `sharp mcp`, asked by the official client over a real process's standard input and output."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.helpers.cli.sharp_command import FAST, Sharp
from tests.helpers.problems.specifications import specification

ROD = specification("rod")
PLATE = specification("meshed-plate")
SETTINGS = {**FAST, "genesis.candidates": 2, "models.judges": ["rule-based"], "synthesis.max_rounds": 1}
NUMBERS = {name: int(value) for name, value in SETTINGS.items() if str(value).isdigit()}

Call = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "rod.yaml").write_text(ROD)
    return tmp_path / "open"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[Call]:
    """Give a function that calls a tool and returns its result, an error's under `error`; progress is in `said`."""
    environment = Sharp(folder.parent).environment()
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "sharp.cli", "mcp", str(folder)], env=environment
    )
    async with Client(stdio_client(command)) as client:

        async def call(tool: str, said: list[str] | None = None, **arguments: Any) -> dict[str, Any]:
            async def heard(_: float, _total: float | None, message: str | None) -> None:
                if said is not None:
                    said.append(message or "")

            result = await client.call_tool(tool, arguments, progress_callback=heard)
            found = result.structured_content
            assert isinstance(found, dict), result
            assert bool(result.is_error) == isinstance(found.get("error"), dict), result
            return found

        yield call


async def test_a_problem_is_checked_solved_and_a_claim_about_it_judged(folder: Path) -> None:
    async with connected(folder) as call:
        checked = await call("check_problem", problem="rod.yaml")
        assert checked["verdict"] == "solve"
        assert ["equation", "u_t = k*u_xx"] in checked["understood"]
        open_one = await call("check_problem", problem=ROD.replace("initial: {u: sin(pi*x)}\n", ""))
        assert (open_one["verdict"], len(open_one["questions"])) == ("clarify", 1)
        said: list[str] = []
        solved = await call("solve", said, problem=ROD, folder="out", save=["rod.nc"])
        assert solved["outcome"] == "verified"
        assert solved["error"] <= solved["accuracy"]
        assert any("resolution" in line for line in said)
        assert (folder / "rod.nc").is_file()
        assert str(folder / "out" / "report.html") in solved["files"]
        right = await call("verify", problem="rod.yaml", claim={"u": "exp(-k*pi**2*t)*sin(pi*x)"})
        assert right["outcome"] == "verified"
        wrong = await call("verify", problem="rod.yaml", claim={"u": "exp(-3*k*pi**2*t)*sin(pi*x)"})
        assert wrong["outcome"] == "failed"
        filed = await call("verify", problem="rod.yaml", claim="out/solution.npz")
        assert filed["outcome"] == "verified"


async def test_what_is_refused_says_where_it_is_wrong_and_what_is_valid(folder: Path) -> None:
    async with connected(folder) as call:
        broken = (await call("solve", problem=ROD.replace("type: dirichlet", "type: dirichlett")))["error"]
        assert broken["kind"] == "SpecificationError"
        assert broken["faults"][0]["place"].startswith(f"{folder}/specification.yaml:11: boundary")
        assert "did you mean 'dirichlet'?" in broken["faults"][0]["message"]
        unknown = (await call("solve", problem="burgerss"))["error"]
        assert "did you mean 'burgers'?" in unknown["message"]
        named = (await call("verify", problem="rod.yaml", claim={"v": "0"}))["error"]
        assert "valid fields: u" in named["message"]
        key = (await call("start_run", problem="advection", run="r", settings={"genesis.candidats": 2}))[
            "error"
        ]
        assert "did you mean 'candidates'?" in key["message"]
        asked = (await call("solve", problem=ROD.replace("time: [0, 1]\n", "")))["error"]
        assert asked["questions"][0].startswith("From when t")


async def test_nothing_outside_the_folder_is_read_or_written(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text(ROD)
    (tmp_path / "plate.msh").write_text("a mesh")
    (folder / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    np.savez(tmp_path / "secret.npz", x=[0.0])
    run = {"problem": "advection", "run": "r"}
    refused: list[tuple[str, dict[str, Any]]] = [
        ("solve", {"problem": "../secret.yaml"}),
        ("solve", {"problem": str(tmp_path / "secret.yaml")}),
        ("check_problem", {"problem": "link.yaml"}),
        ("check_problem", {"problem": PLATE}),
        ("solve", {"problem": "rod.yaml", "save": ["../rod.nc"]}),
        ("solve", {"problem": "rod.yaml", "folder": ".."}),
        ("verify", {"problem": "rod.yaml", "claim": "../secret.npz"}),
        ("evaluate", {"problem": "advection", "solver": "../solver.py"}),
        ("start_run", {"problem": "advection", "run": "../r"}),
        ("start_run", {**run, "settings": {"evaluation.data": str(tmp_path / "secret.npz")}}),
        ("start_run", {**run, "model": str(tmp_path / "secret.yaml")}),
        ("watch_run", {"run": ".."}),
    ]
    decided = [{"evaluation.sandbox": "rlimits"}, {"models.servers.o3.base_url": "http://127.0.0.1:9/v1"}]
    async with connected(folder) as call:
        for tool, arguments in refused:
            error = (await call(tool, **arguments))["error"]
            assert f"expected a file below {folder}" in error["message"], (tool, arguments)
        for settings in decided:
            error = (await call("start_run", **run, settings=settings))["error"]
            assert "the user of this server decides this" in error["message"]
    assert names_in(folder) == ["link.yaml", "rod.yaml"]


async def test_a_run_is_started_watched_stopped_and_gone_on_with(folder: Path) -> None:
    settings = {**NUMBERS, "evaluation.data_kind": "reference", "models.judges": ["rule-based"]}
    async with connected(folder) as call:
        started = await call("start_run", problem="advection", run="runs/first", settings=settings)
        assert not started["resumed"]
        again = (await call("start_run", problem="advection", run="runs/first"))["error"]
        assert again["kind"] == "RunDirectoryError"
        stopped = await call("stop_run", run="runs/first")
        assert stopped["stopped"]
        await call("start_run", problem="advection", run="runs/first", settings=settings)
        said: list[str] = []
        seen = await call("watch_run", said, run="runs/first", wait_s=240)
        assert (seen["finished"], seen["exit_code"]) == (True, 0), seen
        assert any("program runs" in line for line in said)
        assert "report.html" in names_in(folder / "runs" / "first")
        solver = str(Path(seen["solver"]).relative_to(folder))
        scored = await call("evaluate", problem="advection", solver=solver, split="smoke", samples=2)
        assert scored["evaluation"]["scores"]["nrmse"] < 0.05
        failed = await call(
            "evaluate", problem="advection", solver="import nothing_there\n", split="smoke", samples=2
        )
        assert failed["evaluation"]["failure"]["kind"] == "import"


def test_without_the_extra_its_name_is_told(tmp_path: Path) -> None:
    code = "import sys; sys.modules['mcp'] = None; from sharp.cli import main; main()"
    command = [sys.executable, "-c", code, "mcp", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'pde-sharp[mcp]'" in done.stderr
