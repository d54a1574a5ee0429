"""`sharp verify`: the verdict on a solution that somebody claims."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sharp.cli.exits import NOT_VERIFIED
from sharp.cli.options import (
    FILE,
    POSITIVE,
    PROBLEM,
    RELATIVE_ERROR,
    SharpCommand,
    fitting,
    json_option,
    repeated,
    show,
)
from sharp.cli.progress import work_log


@click.command(cls=SharpCommand)
@click.argument("problem", metavar="SPEC.yaml|PROBLEM", type=PROBLEM)
@click.argument("solution", metavar="[SOLUTION.npz]", type=FILE, required=False)
@repeated(
    "--claim",
    "claims",
    "A field as an expression in coordinates and parameters; eigenvalues as numbers with commas between them.",
    metavar="NAME=VALUE",
)
@click.option(
    "--accuracy",
    type=RELATIVE_ERROR,
    help="Relative error that the solution may have.  [default: the specification's]",
)
@click.option(
    "--time-limit",
    type=POSITIVE,
    help="Seconds for the solution that it is compared with.  [default: limits.wall_s]",
)
@json_option
def verify(
    problem: str,
    solution: Path | None,
    claims: tuple[str, ...],
    accuracy: float | None,
    time_limit: float | None,
    as_json: bool,
) -> None:
    """Check a claimed solution: is its error as small as asked for?

    SOLUTION is an .npz or .nc file with the coordinates, the times and the fields by their names, as `sharp solve`
    writes it. The problem is solved here, too; a solution is verified only where that one is. Exit code 3: not
    verified.

    \b
    Examples:
      sharp verify rod.yaml rod-by-others.npz --accuracy 1e-4
      sharp verify rod.yaml --claim 'u = 20 + 150*x'
      sharp verify drum-tones --claim 'mu = 5.7832, 14.682, 26.375' --accuracy 1e-3 --json
    """
    if (solution is None) == (not claims):
        raise click.UsageError("expected either a file of arrays or --claim NAME=VALUE")
    from sharp.api import as_problem
    from sharp.api import verify as verified
    from sharp.solvers import claim_of, read_claim, verdict_facts

    known = as_problem(problem)
    candidate = read_claim(solution) if solution is not None else claim_of(known, _texts(claims))
    with work_log("solving the problem to compare with") as log:
        verdict = verified(known, candidate, accuracy, time_limit=time_limit, listener=log)
    show(as_json, {"problem": known.label, **verdict_facts(verdict)}, fitting(verdict.headline, sys.stdout))
    if not verdict.verified:
        raise click.exceptions.Exit(NOT_VERIFIED)


def _texts(claims: tuple[str, ...]) -> dict[str, str]:
    for claim in claims:
        if "=" not in claim:
            raise click.UsageError(f"--claim {claim!r}: expected NAME=VALUE")
    pairs = (claim.split("=", 1) for claim in claims)
    return {name.strip(): value.strip() for name, value in pairs}
