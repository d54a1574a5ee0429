"""Times how long `sharp` takes to be of use: `--help`, `status`, `resume` up to the first new effect.

    python benchmarks/bench_startup.py [--repeat 9]

The run that is resumed holds 100 candidates and stopped before its first judge. Its answers are the rule-based model's,
recorded through the journal; its data set has the default 200 samples. `resume` is timed from the start of the process
to the moment at which it asks for the first effect that is not recorded; nothing is paid for.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from hpc.journal import Journal
from sharp.evaluation.protocol import Evaluation, EvaluationRequest
from sharp.llm.ledger import Effect
from sharp.methods.pde_sharp import pde_sharp
from sharp.rule_based.backend import RuleBasedBackend
from sharp.runs.configure import load_config
from sharp.runs.creation import create_run
from sharp.runs.effects import JournaledEffects
from sharp.tournament.run_context import RunContext

CANDIDATES = 100
SHARP = [sys.executable, "-P", "-m", "sharp.cli"]
REQUIRED_S = {"--help": 0.3, "status": 0.3, "resume": 1.0}

# Ends the process where the first effect would be paid for.
RESUME = """\
import os, sys
from sharp.cli import main
from sharp.runs.budget import BudgetGuard

def asked(self, effect):
    print(effect.path, flush=True)
    os._exit(0)

BudgetGuard.__call__ = asked
main()
"""


class Stopped(Exception):
    """The run is where it should stop."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time how long `sharp` takes to be of use.")
    parser.add_argument("--repeat", type=int, default=9, help="runs of each command; the median counts")
    repeat = parser.parse_args().repeat
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["SHARP_DATA"] = str(Path(scratch) / "data")
        path = Path(scratch) / "run"
        record(path)
        commands = {
            "--help": [*SHARP, "--help"],
            "status": [*SHARP, "status", str(path)],
            "resume": [sys.executable, "-P", "-c", RESUME, "resume", str(path)],
        }
        print(f"{'command':10} {'median s':>9} {'least s':>9} {'processor s':>12} {'required s':>11}")
        for name, command in commands.items():
            walls, processor = zip(*(timed(command) for _ in range(repeat)), strict=True)
            print(
                f"{name:10} {statistics.median(walls):9.3f} {min(walls):9.3f} "
                f"{statistics.median(processor):12.3f} {REQUIRED_S[name]:11.1f}"
            )


def record(path: Path) -> None:
    """Make a run that stopped before its first judge."""
    options = [f"genesis.candidates={CANDIDATES}", "evaluation.data_kind=reference"]
    run = create_run(load_config("advection", options), path)
    with Journal.open(path) as journal:
        effects = JournaledEffects(
            journal,
            {"rule-based": RuleBasedBackend("rule-based")},
            Nobody(),
            guard=stop_at_the_first_judge,
        )
        session = RunContext(run.config, run.problem, run.cards, run.manifest["data"]["label"], effects)
        with suppress(Stopped):
            asyncio.run(pde_sharp(session))


def stop_at_the_first_judge(effect: Effect) -> AbstractContextManager[None]:
    """Raise Stopped once genesis is done."""
    if effect.path.startswith("cycle-"):
        raise Stopped
    return nullcontext()


class Nobody:
    """The evaluator of a run that never gets to an evaluation."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Raise Stopped."""
        raise Stopped(request)


def timed(command: list[str]) -> tuple[float, float]:
    """Return wall time and processor time of a process in seconds; only the second ignores a busy machine."""
    start, used = time.perf_counter(), processor_s()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start, processor_s() - used


def processor_s() -> float:
    """Return the processor time of all processes that have been waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
