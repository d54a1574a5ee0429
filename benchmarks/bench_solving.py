"""How `sharp solve` fares on the cases of the agent benchmark: errors, times, and verdicts that are wrong.

    python benchmarks/bench_solving.py [--hard] [--category heat] [--case ID …] [--no-cross-check] [--time-limit 60]
        [--json FILE]

Every case is solved from its specification with the exact solution hidden from the checks; then the error against it
is measured at held-out points. `--hard` takes the second hundred (`data/hard`), whose asked numbers count as well. A
verdict is wrong where a solution is called verified and an error is above ten times the accuracy asked for, or where it
is called failed and no error is. Seconds, and the limit of time, are the processor's.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from measuring import Table, command_line, write_rows

from sharp.errors import InputError
from sharp.experiments.hard_cases.families import HardCase, list_hard_cases, load_hard_case
from sharp.problems import BenchmarkCase, list_cases, load_case
from sharp.solvers import CROSS_CHECK, RESIDUAL, SolveOptions, exact_errors, solve_problem

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
    numbers: float | None = None
    sentence: str = ""

    @property
    def wrong(self) -> str:
        """Say how the verdict is wrong, if it is."""
        errors = [error for error in (self.l2, self.numbers) if error is not None]
        if not errors:
            return ""
        if self.outcome == "verified" and not max(errors) <= FACTOR * self.accuracy:
            return "verified but wrong"
        return (
            "failed but right" if self.outcome == "failed" and max(errors) <= FACTOR * self.accuracy else ""
        )


def main(
    hard: bool = False,
    category: str = "*",
    case: Sequence[str] = [],
    no_cross_check: bool = False,
    time_limit: float = 60.0,
    json: Path | None = None,
) -> None:
    """Print the table and its summary."""
    listed = list_hard_cases() if hard else {name: path.parent.name for name, path in list_cases().items()}
    names = case or [name for name, own in listed.items() if category in ("*", own)]
    wanted = SolveOptions(time_limit=time_limit, clock="cpu", cross_check=not no_cross_check, compare=False)
    errors = (
        "estimate:.1e",
        "residual:.1e",
        "second method:.1e",
        "L2 error:.1e",
        "maximum:.1e",
        "numbers:.1e",
    )
    table, rows = Table("case", "outcome", "method", "resolution", "seconds:.1f", *errors, "note"), []
    for name in names:
        case_or_hard = load_hard_case(name) if hard else load_case(name)
        rows.append(row := measure(case_or_hard, wanted))
        note = row.wrong or ("" if row.outcome == "verified" else row.sentence)
        found = (row.method, row.resolution, row.seconds)
        table.row(
            name,
            row.outcome,
            *found,
            row.estimate,
            row.residual,
            row.second,
            row.l2,
            row.maximum,
            row.numbers,
            note,
        )
    print(summary(rows))
    write_rows(json, rows)


def measure(case: BenchmarkCase | HardCase, options: SolveOptions) -> Row:
    """Solve one case; seconds are the processor's."""
    name, known = case.problem.id, case.exact if isinstance(case, HardCase) else None
    began = time.process_time()
    try:
        found = solve_problem(case.problem, options)
    except InputError as error:
        return Row(name, "error", 0.0, sentence=str(error).partition("\n")[0])
    except Exception as error:  # noqa: BLE001 - a crash is a row like the others
        return Row(name, "crashed", 0.0, sentence=f"{type(error).__name__}: {error}")
    spent = time.process_time() - began
    row = Row(name, found.verdict.status, found.accuracy, seconds=spent, sentence=found.verdict.reason)
    if found.discrete is None or found.trial is None:
        return row
    checks = {check.name: check.value for check in found.verdict.checks}
    errors = exact_errors(found.problem, found.discrete, known)
    numbers = case.numbers if isinstance(case, HardCase) else {}
    wrong = [
        abs(given.value - numbers[key])
        / max(abs(numbers[key]), abs(given.error) / max(given.relative, 1e-300), 1e-300)
        for key, given in found.quantities.items()
        if key in numbers and given.verified
    ]
    return replace(
        row,
        method=found.discrete.method,
        resolution=found.discrete.resolution,
        estimate=found.trial.refinement.error,
        residual=checks.get(RESIDUAL),
        second=checks.get(CROSS_CHECK),
        l2=errors.l2 if errors else None,
        maximum=errors.maximum if errors else None,
        numbers=max(wrong, default=None),
    )


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
    command_line(main)
