"""Times `sharp view` on a folder of many runs: the first page, the list, and how soon a live run's page follows.

    python benchmarks/bench_view.py [--runs 1000] [--rounds 3]

A small run of the rule-based model is made and copied. *First page*: from the start of the process to the last byte of
the page with the names of all runs; *whole list*: until the stage of each of them is on it. *Update*: from a line's
being in the journal to its arrival at the reader of the run's page. Processor time is that of the server's process.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.request import HTTPCookieProcessor, OpenerDirector

from measuring import SHARP, Table, call_sharp, command_line, scratch

RECORD = ("run.yaml", "problem.yaml", "journal.jsonl")
SMALL = {
    "genesis.candidates": 3,
    "synthesis.max_rounds": 2,
    "evaluation.data_kind": "reference",
    "evaluation.coarsen": 4,
    "evaluation.validation": 2,
    "evaluation.test": 2,
    "evaluation.convergence_check": "false",
}
HALF = 6  # lines that the live run's journal has at first
_UNREAD = "<td></td>" * 5  # the row of a run that has not been read yet
_TICKS = os.sysconf("SC_CLK_TCK")


class _Server(NamedTuple):
    process: subprocess.Popen[str]
    begun: float
    site: str
    opener: OpenerDirector

    def get(self, path: str) -> str:
        with self.opener.open(self.site + path) as answer:
            return str(answer.read().decode())

    def processor_s(self) -> float:
        after_name = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / _TICKS


@contextmanager
def _served(folder: Path) -> Iterator[_Server]:
    begun = time.perf_counter()
    process = subprocess.Popen([*SHARP, "view", str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    opener = urllib.request.build_opener(HTTPCookieProcessor(CookieJar()))
    address = process.stdout.readline().strip()
    server = _Server(process, begun, address.partition("?")[0], opener)
    try:
        # The cookie with the token comes with the first page.
        assert 'id="rows"' in server.get(address.removeprefix(server.site))
        yield server
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def _copy(run: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in RECORD:
        shutil.copy(run / name, folder)


def _first_page(folder: Path) -> tuple[float, float]:
    """Return wall and processor seconds to the first page."""
    with _served(folder) as server:
        return time.perf_counter() - server.begun, server.processor_s()


def _whole_list(folder: Path) -> tuple[float, float]:
    """Return wall and processor seconds until all runs have been read."""
    with _served(folder) as server:
        while _UNREAD in server.get(""):
            time.sleep(1.0)
        return time.perf_counter() - server.begun, server.processor_s()


def _updates(folder: Path, lines: list[bytes]) -> list[float]:
    """Return after how many seconds each effect in the journal of the run `live` was at the reader of its page."""
    path, delays = folder / "live" / "journal.jsonl", []
    path.write_bytes(b"".join(lines[:HALF]))
    arrived: list[float] = []
    with _served(folder) as server:
        stream = server.opener.open(f"{server.site}events?run=live")

        def read() -> None:
            states = (line for line in stream if line.startswith(b"data: ") and _is_state(line))
            arrived.extend(time.perf_counter() for _ in states)

        threading.Thread(target=read, daemon=True).start()
        while not arrived:
            time.sleep(0.05)
        for line in lines[HALF:]:
            shown = b'"event":"effect"' in line
            if shown:
                time.sleep(1.0)
            told = len(arrived)
            with path.open("ab") as journal:
                journal.write(line)
            written = time.perf_counter()
            if not shown:
                continue
            while len(arrived) == told:
                time.sleep(0.01)
            delays.append(arrived[-1] - written)
    return delays


def _is_state(event: bytes) -> bool:
    return str(json.loads(event[len("data: ") :])["slot"]).endswith("-now")


def main(runs: int = 1000, rounds: int = 3) -> None:
    """Print the table."""
    with scratch("SHARP_DATA", "SHARP_CACHE") as folder:
        changes = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
        call_sharp("run", "advection", "--run-dir", folder / "made", *changes)
        for number in range(runs):
            _copy(folder / "made", folder / "runs" / f"run-{number:04}")
        _copy(folder / "made", folder / "runs" / "live")
        table = Table("what", "median s:.2f", "least s:.2f", "processor s:.2f", "wanted s")
        walls, processor = zip(*(_first_page(folder / "runs") for _ in range(rounds)), strict=True)
        table.row(f"first page of {runs + 1} runs", median(walls), min(walls), median(processor), "1")
        lines = (folder / "made" / "journal.jsonl").read_bytes().splitlines(keepends=True)
        delays = _updates(folder / "runs", lines)
        table.row(f"update of a live run ({len(delays)})", median(delays), min(delays), None, "2")
        table.row("longest of these", max(delays), None, None, "2")
        whole, processor_s = _whole_list(folder / "runs")
        table.row("whole list", whole, None, processor_s, None)


if __name__ == "__main__":
    command_line(main)
