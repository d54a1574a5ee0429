"""What the benchmarks share: a command line made of functions, costs, rounds side by side, and tables in Markdown."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

PROBLEMS = ("advection", "burgers", "reaction-diffusion", "navier-stokes", "darcy")
SHARP = (sys.executable, "-P", "-m", "sharp.cli")


def command_line(*functions: Callable[..., None]) -> None:
    """Run a function by the command line; the first argument names it where there are several.

    Its parameters are the options: a default gives the type, a tuple all values that a list may have, a list those that
    it has by default, None a file. A parameter without a default is a folder that is to be named.
    """
    parser = argparse.ArgumentParser(
        description=sys.modules["__main__"].__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True) if len(functions) > 1 else None
    for function in functions:
        own = commands.add_parser(function.__name__) if commands else parser
        own.set_defaults(function=function)
        for name, parameter in inspect.signature(function).parameters.items():
            _add_option(own, name, parameter.default)
    chosen = vars(parser.parse_args())
    chosen.pop("function")(**chosen)


def _add_option(parser: argparse.ArgumentParser, name: str, default: Any) -> None:
    option = f"--{name.replace('_', '-')}"
    if default is inspect.Parameter.empty:
        parser.add_argument(name, type=Path)
    elif isinstance(default, bool):
        parser.add_argument(option, action="store_true")
    elif isinstance(default, (list, tuple)):
        choices = default if isinstance(default, tuple) else None
        kind = type(default[0]) if default else str
        parser.add_argument(option, nargs="+", type=kind, default=default, choices=choices)
    else:
        parser.add_argument(option, type=Path if default is None else type(default), default=default)


class Cost(NamedTuple):
    """What some work returned, the seconds it took, and those of processors, ended child processes included."""

    result: Any
    wall_s: float
    cpu_s: float


def cost_of(work: Callable[[], Any]) -> Cost:
    """Do some work."""
    began, before = time.perf_counter(), _processor_s()
    result = work()
    return Cost(result, time.perf_counter() - began, _processor_s() - before)


def _processor_s() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def side_by_side(works: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[Cost]]:
    """Do works in turns, so that other work on the machine weighs on all alike."""
    kept = [{name: cost_of(work) for name, work in works.items()} for _ in range(rounds)]
    return {name: [each[name] for each in kept] for name in works}


def median_s(work: Callable[[], Any], rounds: int) -> float:
    """Return the median of wall seconds."""
    return median(cost_of(work).wall_s for _ in range(rounds))


class Table:
    """A table in Markdown, printed row by row; a column is given as its title, or as `title:format`."""

    def __init__(self, *columns: str) -> None:
        titles, self._formats = zip(*(column.partition(":")[::2] for column in columns), strict=True)
        self.row(*titles)
        self.row(*["---"] * len(titles))

    def row(self, *values: Any) -> None:
        """Print a row; texts are printed as they are, and None as nothing."""
        cells = (
            value if isinstance(value, str) else "" if value is None else format(value, wanted)
            for value, wanted in zip(values, self._formats, strict=True)
        )
        print(f"| {' | '.join(cells)} |", flush=True)


def print_times(
    works: Mapping[str, Callable[[], Any]], rounds: int, wanted_s: Mapping[str, float] = {}
) -> None:
    """Print median and least seconds of works, and what is wanted."""
    table = Table("what", "median s:.4f", "least s:.4f", "processor s:.4f", "wanted s")
    for name, costs in side_by_side(works, rounds).items():
        _, walls, processor = zip(*costs, strict=True)
        table.row(name, median(walls), min(walls), median(processor), wanted_s.get(name))


def write_rows(path: Path | None, rows: Sequence[Any]) -> None:
    """Write rows as JSON where a file is given."""
    if path is not None:
        path.write_text(json.dumps([asdict(row) for row in rows], indent=1))


def call_sharp(*arguments: object) -> None:
    """Run the command as a process; fails if it does."""
    subprocess.run([*SHARP, *map(str, arguments)], check=True, capture_output=True)


@contextmanager
def scratch(*variables: str) -> Iterator[Path]:
    """Give a temporary folder that these environment variables name."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= dict.fromkeys(variables, folder)
        yield Path(folder)


def shares(values: Sequence[bool]) -> str:
    """Return how many of some things are so."""
    return f"{sum(values)} of {len(values)}"
