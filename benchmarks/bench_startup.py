"""Times how long `sharp` takes to be of use: `--help`, `status`, `resume` up to the first new effect.

    python benchmarks/bench_startup.py [--repeat 9]

The run that is resumed holds 100 candidates and stopped before its first judge. Its answers are the rule-based model's,
recorded through the journal; its data set has the default 200 samples. `resume` is timed from the start of the process
to the moment at which it asks for the first effect that is not recorded; nothing is paid for.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path

from measuring import SHARP, command_line, print_times, scratch

from hpc.journal import Journal
from hpc.quiescence import QuiescenceTracker
from sharp.evaluation.protocol import Evaluation, EvaluationRequest
from sharp.llm.ledger import Effect
from sharp.methods.pde_sharp import pde_sharp
from sharp.rule_based.backend import RuleBasedBackend
from sharp.runs.configure import load_config
from sharp.runs.creation import create_run
from sharp.runs.effects import JournaledEffects
from sharp.tournament.run_context import RunContext

CANDIDATES = 100
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


def main(repeat: int = 9) -> None:
    """Print the table."""
    with scratch("SHARP_DATA") as folder:
        path = folder / "run"
        record(path)
        commands = {
            "--help": [*SHARP, "--help"],
            "status": [*SHARP, "status", str(path)],
            "resume": [sys.executable, "-P", "-c", RESUME, "resume", str(path)],
        }
        call = partial(subprocess.run, check=True, capture_output=True)
        print_times({name: partial(call, command) for name, command in commands.items()}, repeat, REQUIRED_S)


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
            donor=lambda _: None,
            listener=lambda _: None,
            parking=QuiescenceTracker(),
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


if __name__ == "__main__":
    command_line(main)
