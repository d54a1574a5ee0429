"""Runs as processes of their own: they go on when the client leaves, and can be resumed by anyone."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpc.errors import RunDirectoryError
from sharp.errors import InputError
from sharp.mcp.workspace import Workspace, check_settings
from sharp.problems import catalogue
from sharp.runs import Status, load_config, view, write_specification

SPECIFICATION = "problem.yaml"
LOOK_S = 0.5
LOG_LINES = 20


@dataclass(frozen=True)
class Runs:
    """The runs below a folder, and the processes of those that were started here."""

    workspace: Workspace
    servers: Mapping[str, str]
    _processes: dict[Path, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, problem: str, run: str, model: str | None, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Start a run, or go on with the one in that directory; raises for whatever can be seen beforehand."""
        path = self.workspace.inside(run)
        if (process := self._processes.get(path)) and process.poll() is None:
            raise RunDirectoryError(f"{run}: is worked on already; see how far it is with watch_run")
        if (path / "run.yaml").exists():
            self._spawn(path, ["resume", str(path)])
            return {"run": str(path), "resumed": True, "log": str(_log(path))}
        check_settings(settings)
        sets = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
        if model is not None and model in self.servers:
            sets.append(f"models.servers.{model}.base_url={self.servers[model]}")
        stated = None if problem in catalogue() else self.workspace.problem(problem)
        source = problem if stated is None else str(path / SPECIFICATION)
        config = load_config(source, sets, model=model, foreseen=stated is not None)
        self.workspace.check_config(config)
        if stated is not None:
            write_specification(stated, path)
        options = [word for text in sets for word in ("--set", text)]
        chosen = ["--model", model] if model else []
        self._spawn(path, ["run", source, "--run-dir", str(path), *chosen, *options])
        return {"run": str(path), "resumed": False, "log": str(_log(path))}

    def watch(self, run: str, wait_s: float, say: Callable[[str], None]) -> dict[str, Any]:
        """Return where a run stands once it has ended, or after a time; say whenever that changes."""
        path = self.workspace.inside(run)
        end, said = time.monotonic() + wait_s, ""
        while True:
            process = self._processes.get(path)
            working = process is not None and process.poll() is None
            seen = self._look(path)
            if seen is not None and (text := _sentence(seen)) != said:
                said = text
                say(said)
            # Of a run that others work on, its record says when it is over; of our own, its process.
            over = (
                seen is None or seen.finished or seen.controller is None if process is None else not working
            )
            if over or time.monotonic() > end:
                return _facts(path, seen, process)
            time.sleep(LOOK_S)

    def stop(self, run: str) -> dict[str, Any]:
        """Interrupt a run that was started here; what was finished is kept."""
        path = self.workspace.inside(run)
        process = self._processes.get(path)
        if process is None or process.poll() is not None:
            raise InputError(f"{run}: this server works on no such run; running: {self._running()}")
        process.terminate()
        process.wait()
        return {"run": str(path), "stopped": True, "go_on": "start_run with the same run"}

    def _running(self) -> str:
        names = [str(path) for path, process in self._processes.items() if process.poll() is None]
        return ", ".join(names) or "none"

    def _look(self, path: Path) -> Status | None:
        try:
            return view(path)
        except RunDirectoryError:
            if path not in self._processes:
                raise
            return None  # its data are made before there is a run to look at

    def _spawn(self, path: Path, words: list[str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _log(path).open("ab") as log:
            self._processes[path] = subprocess.Popen(
                [sys.executable, "-m", "sharp.cli", *words],
                cwd=self.workspace.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}.log")


def _sentence(seen: Status) -> str:
    best = f", best so far {seen.best}" if seen.best else ""
    return f"{seen.stage}: {seen.calls} model calls, {seen.executions} program runs{best}"


def _facts(path: Path, seen: Status | None, process: subprocess.Popen[bytes] | None) -> dict[str, Any]:
    """Return where a run stands; with what its process said last where that ended without a finished run."""
    code = None if process is None else process.poll()
    known = {} if seen is None else seen.to_json()
    facts = {**known, "run": str(path), "stage": seen.stage if seen else "preparing", "exit_code": code}
    if seen is not None and seen.finished and (report := path / "report.html").exists():
        facts |= {"report": str(report), "solver": str(path / "solver" / "solver.py")}
    if code:
        facts["said"] = _log(path).read_text(errors="replace").splitlines()[-LOG_LINES:]
    return facts
