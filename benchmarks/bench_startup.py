"""Times how long `sharp` takes to be of use: `--help`, `status`, `resume` up to the first new effect.

    python benchmarks/bench_startup.py [--repeat 9]

The run that is resumed holds 100 candidates and stopped before its first judge. Its answers are the rule-based model's,
recorded by a process that was ended there; its data set has the default 200 samples. `resume` is timed from the start
of the process to the moment at which it asks for the first effect that is not recorded; nothing is paid for.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from measuring import SHARP, command_line, print_times, scratch

CANDIDATES = 100
REQUIRED_S = {"--help": 0.3, "status": 0.3, "resume": 1.0}

# Ends the process where the first effect below a path would be paid for.
STOPPED = """\
import os, sys
from sharp.cli import main
from sharp.runs.budget import BudgetGuard

path, pay = sys.argv.pop(1), BudgetGuard.__call__

def asked(self, effect):
    if effect.path.startswith(path):
        print(effect.path, flush=True)
        os._exit(0)
    return pay(self, effect)

BudgetGuard.__call__ = asked
main()
"""


def main(repeat: int = 9) -> None:
    """Print the table."""
    stopped = (sys.executable, "-P", "-c", STOPPED)
    settings = (f"genesis.candidates={CANDIDATES}", "evaluation.data_kind=reference")
    with scratch("SHARP_DATA", "SHARP_CACHE") as folder:
        run = str(folder / "run")
        call = partial(subprocess.run, check=True, capture_output=True)
        changes = [word for setting in settings for word in ("--set", setting)]
        call([*stopped, "cycle-", "run", "advection", "--run-dir", run, *changes])
        commands = {
            "--help": [*SHARP, "--help"],
            "status": [*SHARP, "status", run],
            "resume": [*stopped, "", "resume", run],
        }
        print_times({name: partial(call, command) for name, command in commands.items()}, repeat, REQUIRED_S)


if __name__ == "__main__":
    command_line(main)
