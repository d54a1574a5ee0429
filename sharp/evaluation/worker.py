"""The trusted worker: `python -P -m sharp.evaluation.worker` evaluates one task folder after another.

It reads `{"folder": …, "flush": …}` lines from standard input and answers each with a line on standard output once
`result.json` is there: `{"folder": …, "error": null}`, or a sentence where the machine failed. With `--folder` it
evaluates one and exits, with 1 and the sentence on standard error where the machine failed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args, get_type_hints

from hpc.errors import ExpectedError, HpcError
from hpc.processes import die_with_parent
from hpc.sandbox import SandboxPolicy
from sharp.evaluation.task import evaluate
from sharp.evaluation.task_folder import read_task, write_result
from sharp.evaluation.worker_context import WorkerContext


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluate what is asked; return the exit code."""
    options = parser("sharp.evaluation.worker", __doc__).parse_args(arguments)
    die_with_parent()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    policy = SandboxPolicy(options.sandbox, options.require, options.image)
    try:
        with WorkerContext(policy, warm=options.folder is None) as context:
            if options.folder is None:
                _serve(context)
                return 0
            error = _attempt(options.folder, context, flush=True)
    except (HpcError, OSError) as failure:
        error = str(failure)
    if error is not None:
        print(error, file=sys.stderr)  # noqa: T201  read by whoever started the worker
    return 0 if error is None else 1


def run_task(folder: Path, context: WorkerContext, *, flush: bool = True) -> None:
    """Evaluate what `request.json` asks and write `result.json`, see `write_result`."""
    task = read_task(folder)
    write_result(folder, task, evaluate(task, context), flush=flush)


def parser(program: str, description: str | None, *, one: bool = False) -> argparse.ArgumentParser:
    """Return the parser of a program that evaluates folders, or just one."""
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--sandbox", choices=get_args(get_type_hints(SandboxPolicy)["tier"]), default="auto")
    parser.add_argument("--require", action="store_true", help="refuse the tier that only limits resources")
    parser.add_argument("--image", type=Path, help="image of the apptainer tier")
    parser.add_argument("--folder", type=Path, required=one, help="evaluate this one folder")
    return parser


def _serve(context: WorkerContext) -> None:
    """Answer lines; standard output is for the answers alone, and what else is printed goes to standard error."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        for line in sys.stdin:
            asked = json.loads(line)
            error = _attempt(Path(asked["folder"]), context, flush=asked["flush"])
            answers.write(json.dumps({"folder": asked["folder"], "error": error}) + "\n")
            answers.flush()


def _attempt(folder: Path, context: WorkerContext, *, flush: bool) -> str | None:
    """Run a task; return a sentence where it failed through no fault of the candidate."""
    try:
        run_task(folder, context, flush=flush)
    except ExpectedError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001  whatever fails here is ours, and the next task may not
        return f"{type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    sys.exit(main())
