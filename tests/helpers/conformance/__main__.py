"""Tries the conformance programs on sandboxes and prints what came of each.

    python -m tests.helpers.conformance                                   # every tier of this machine, all programs
    python -m tests.helpers.conformance --tier landlock --like memory
    python -m tests.helpers.conformance --sandbox mymodule:make_sandbox    # another sandbox
    python -m tests.helpers.conformance --page                            # also writes docs/reference/sandbox-tests.md

Another sandbox is what a function without arguments returns: it has `tier` and `note` (strings; the note says in the
words of `candidates.py` what programs can do) and `run`, which is called and answers like
`hpc.sandbox.Interpreter.run`. The exit code is 1 if anything was wrong.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import click

from hpc.sandbox import probe_tiers
from tests.helpers.conformance.candidates import THEMES, Candidate
from tests.helpers.conformance.conformance_page import write_page
from tests.helpers.conformance.ground import Ground
from tests.helpers.conformance.trial import (
    TIERS,
    Station,
    checked_for_remains,
    cold,
    conformance_ground,
    try_candidate,
    warm,
)
from tests.helpers.conformance.variations import variations

NOT_RUN = "not run"
Results = dict[str, dict[str, str]]
Opened = Callable[[Ground], AbstractContextManager[Station]]


@click.command()
@click.option(
    "--tier", "tiers", type=click.Choice(TIERS), multiple=True, help="Only this tier; may be repeated."
)
@click.option("--sandbox", metavar="MODULE:FUNCTION", help="Try the sandbox that a function returns.")
@click.option("--like", default="", help="Only programs whose names have this in them.")
@click.option("--seed", default=0, show_default=True, help="Seed of the variations.")
@click.option("--variations", "number", default=60, show_default=True, help="How many variations.")
@click.option("--page", is_flag=True, help="Write docs/reference/sandbox-tests.md.")
def main(tiers: tuple[str, ...], sandbox: str | None, like: str, seed: int, number: int, page: bool) -> None:
    """Try the conformance programs on sandboxes and print what came of each."""
    themes = {**THEMES, "Variations": variations(seed, number)}
    programs = [one for theme in themes.values() for one in theme if like in one.name]
    results: Results = {}
    wrong = 0
    with (
        tempfile.TemporaryDirectory(prefix="conformance-") as folder,
        conformance_ground(Path(folder)) as ground,
    ):
        for tier, opened in dict(_sandboxes(tiers, sandbox)).items():
            with checked_for_remains(ground), opened(ground) as station:
                results[tier], found = _tried(tier, programs, station, ground)
                wrong += found
    click.echo(f"{len(programs)} programs, {', '.join(results)}: {wrong} wrong")
    if page:
        write_page(themes, results)
    raise SystemExit(wrong > 0)


def _tried(
    tier: str, programs: list[Candidate], station: Station, ground: Ground
) -> tuple[dict[str, str], int]:
    results, wrong = {}, 0
    for program in programs:
        if not station.admits(program):
            results[program.name] = NOT_RUN
            continue
        outcomes, faults = try_candidate(program, station, ground)
        results[program.name] = ", ".join(dict.fromkeys(outcomes))
        click.echo(f"{tier:<12} {results[program.name]:<18} {program.name}")
        for fault in faults:
            wrong += 1
            click.echo(f"    WRONG: {fault}")
    return results, wrong


def _sandboxes(tiers: tuple[str, ...], named: str | None) -> Iterator[tuple[str, Opened]]:
    if named is not None:
        module, _, function = named.partition(":")
        sandbox = getattr(importlib.import_module(module), function)()
        yield sandbox.tier, lambda ground: cold(sandbox.tier, sandbox.note, ground, sandbox)
        return
    for probed in probe_tiers():
        if probed.tier in (tiers or TIERS):
            if not probed.usable:
                click.echo(f"{probed.tier} cannot be used here: {probed.reason}")
                continue
            yield probed.tier, lambda ground, one=probed: warm(one.tier, one.reason, ground)  # type: ignore[misc]


if __name__ == "__main__":
    main()
