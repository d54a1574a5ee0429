"""Exit codes: what a script may rely on."""

from __future__ import annotations

import sys
import traceback

import click

from hpc.errors import ExpectedError
from sharp.cli.options import fitting

REFUSED = 2
NO_SOLVER = 3
NOT_VERIFIED = 3
DIFFERS = 3
CELLS_FAILED = 3
BUDGET_USED = 6
MACHINE_FAILED = 7
PROGRAM_FAILED = 8
NEEDS_ANSWER = 9
WAITING = 75

MEANINGS = {
    0: "done",
    1: "internal error",
    2: "wrong input or usage",
    3: "no working solver or verified solution, a replay that differs, or failed cells or trials",
    4: "a model server failed",
    5: "unusable run directory (locked, damaged, changed, other version, full disk)",
    6: "a budget is used up",
    7: "infrastructure failure",
    8: "the evaluated program failed",
    9: "needs clarification: answer the questions",
    75: "waiting for cluster jobs; run the same command later",
    130: "interrupted (Ctrl-C or SIGTERM, or its jobs were cancelled)",
}

# \b keeps click from filling the lines.
EXIT_CODES_HELP = "\n".join(
    ["\b", "Exit codes:", *(f"  {code:<4} {text}" for code, text in MEANINGS.items())]
)


def exit_code(error: BaseException) -> int:
    """Say what went wrong (with a traceback only where it was not foreseen) and return the exit code."""
    if isinstance(error, SystemExit):
        return int(error.code or 0)
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if isinstance(error, click.Abort):
        error = error.__cause__ or KeyboardInterrupt()
    if isinstance(error, ExpectedError):
        known = error.exit_code
    elif isinstance(error, OSError):
        known = MACHINE_FAILED
    elif isinstance(error, KeyboardInterrupt):
        known = 130
    else:
        traceback.print_exception(error)
        return 1
    for sentence in (str(error) or "interrupted", *getattr(error, "__notes__", ())):
        print(fitting(f"sharp: {sentence}", sys.stderr), file=sys.stderr)  # noqa: T201
    return known
