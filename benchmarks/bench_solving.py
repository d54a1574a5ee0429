"""How `sharp solve` fares on the cases of the agent benchmark: errors, times, and verdicts that are wrong.

    python benchmarks/bench_solving.py [--category heat] [--case ID …] [--no-cross-check] [--time-limit 60]
        [--json FILE]

Every case is solved from its specification with the exact solution hidden from the checks; then the error against it
is measured at held-out points. A verdict is wrong where a solution is called verified and its error is above ten times
the accuracy asked for, or where it is called failed and its error is not.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sharp.errors import InputError
from sharp.problems.cases import list_cases, load_case
from sharp.solvers.driver import SolveOptions, solve_problem
from sharp.solvers.exact import exact_errors
from sharp.solvers.solution import Solution
from sharp.solvers.verification import CROSS_CHECK, RESIDUAL

FACTOR = 10.0


@dataclass(frozen=True)
class Row:
    """What came of one case; errors against the exact solution are None where there is none."""

    case: str
    outcome: str
    accuracy: float
    method: str = ""
    resolution: int = 0
    seconds: float = 0.0
    estimate: float | None = None
    residual: float | None = None
    second: float | None = None
    l2: float | None = None
    maximum: float | None = None
    sentence: str = ""

    @property
    def wrong(self) -> str:
        """Say how the verdict is wrong, if it is."""
        if self.l2 is None:
            return ""
        if self.outcome == "verified" and self.l2 > FACTOR * self.accuracy:
            return "verified but wrong"
        return "failed but right" if self.outcome == "failed" and self.l2 <= FACTOR * self.accuracy else ""


def main() -> None:
    """Print the table and its summary."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--category", default="*")
    parser.add_argument("--case", nargs="*", default=[])
    parser.add_argument("--no-cross-check", action="store_true")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    names = options.case or [
        name for name, path in list_cases().items() if options.category in ("*", path.parent.name)
    ]
    wanted = SolveOptions(
        time_limit=options.time_limit, cross_check=not options.no_cross_check, compare=False
    )
    rows = []
    for name in names:
        rows.append(measure(name, wanted))
        print(line(rows[-1]), flush=True)
    print(summary(rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


def measure(name: str, options: SolveOptions) -> Row:
    """Solve one case."""
    try:
        problem = load_case(name).problem
        found = solve_problem(problem, options)
    except InputError as error:
        return Row(name, "error", 0.0, sentence=str(error).partition("\n")[0])
    return row_of(name, found)


def row_of(name: str, found: Solution) -> Row:
    """Return the row of an answer."""
    base = Row(
        name, found.verdict.status, found.accuracy, seconds=found.seconds, sentence=found.verdict.reason
    )
    if found.discrete is None or found.trial is None:
        return base
    checks = {check.name: check.value for check in found.verdict.checks}
    errors = exact_errors(found.problem, found.discrete)
    return Row(
        name,
        found.verdict.status,
        found.accuracy,
        found.discrete.method,
        found.discrete.resolution,
        found.seconds,
        found.trial.refinement.error,
        checks.get(RESIDUAL),
        checks.get(CROSS_CHECK),
        errors.l2 if errors else None,
        errors.maximum if errors else None,
        found.verdict.reason,
    )


def line(row: Row) -> str:
    """Return one line of the table."""
    figures = " ".join(
        f"{value:8.1e}" if value is not None else " " * 7 + "-"
        for value in (row.estimate, row.residual, row.second, row.l2, row.maximum)
    )
    note = row.wrong or ("" if row.outcome == "verified" else row.sentence)
    start = f"{row.case:38} {row.outcome:9} {row.method:10} {row.resolution:5} {row.seconds:6.1f} s"
    return f"{start} {figures}  {note}"


def summary(rows: Sequence[Row]) -> str:
    """Return what all rows have in common."""
    known = [row for row in rows if row.l2 is not None]
    solved = [row.l2 for row in known if row.l2 is not None]
    outcomes = {name: sum(row.outcome == name for row in rows) for name in {row.outcome for row in rows}}
    seconds = [row.seconds for row in rows if row.method]
    shares = "; ".join(
        f"error below {limit:.0e}: {sum(value < limit for value in solved)} of {len(known)}"
        for limit in (1e-3, 1e-6, 1e-9)
    )
    return "\n".join(
        [
            "",
            f"cases: {len(rows)}; "
            + ", ".join(f"{name} {count}" for name, count in sorted(outcomes.items())),
            f"with an exact solution: {len(known)}; {shares}",
            f"seconds: median {statistics.median(seconds):.2f}, most {max(seconds):.1f}" if seconds else "",
            f"wrong verdicts: {', '.join(f'{row.case} ({row.wrong})' for row in rows if row.wrong) or 'none'}",
        ]
    )


if __name__ == "__main__":
    main()
