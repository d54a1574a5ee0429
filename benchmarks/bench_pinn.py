"""Networks beside classical methods: seconds and errors on the same problems, in one run.

    python benchmarks/bench_pinn.py [--width 32] [--seconds 90] [--accuracy 1e-6] [--case ID …] [--json FILE]

The recommended classical method is refined until its estimate is below the accuracy asked for, and all its resolutions
count. The network is trained once, of one width, for at most so many seconds. Errors are relative L2 against the exact
solution at points that neither has seen. Ratios are of processor time, which does not depend on what else runs, and of
errors. Both are as many times larger for the network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from measuring import Table, command_line, cost_of, write_rows

from sharp.problems import Problem, load_case
from sharp.solvers import (
    Deadline,
    DiscreteSolution,
    Pinn,
    SolveOptions,
    exact_errors,
    solve_problem,
    system_of,
)

CASES = [
    "poisson-charged-film",
    "heat-rod-two-ends",
    "viscous-front",
    "wave-hanging-rope",
    "laplace-trough",
]


@dataclass(frozen=True)
class Measured:
    """What one method took, on the clock and of processors, and how far its solution is from the exact one."""

    method: str
    resolution: int
    seconds: float
    cpu: float
    error: float


@dataclass(frozen=True)
class Row:
    """Both methods on one case."""

    case: str
    classical: Measured
    network: Measured
    ended: str


def main(
    width: int = 32,
    seconds: float = 90.0,
    accuracy: float = 1e-6,
    case: Sequence[str] = CASES,
    json: Path | None = None,
) -> None:
    """Print the table."""
    print(", ".join(f"{name} {version(name)}" for name in ("deepxde", "torch", "numpy", "scipy")))
    ways = ("method", "seconds:.2f", "cpu s:.2f", "error:.1e", "network", "cpu s:.0f", "error:.1e")
    table = Table("case", *ways, "time ratio:.0f", "error ratio:.0e")
    rows, met = [], 0
    for name in case:
        rows.append(row := compare(name, width, seconds, accuracy))
        one, other = row.classical, row.network
        slower, less_accurate = other.cpu / one.cpu, other.error / one.error
        figures = (one.seconds, one.cpu, one.error, f"{other.seconds:.0f} s", other.cpu, other.error)
        table.row(name, f"{one.method} {one.resolution}", *figures, slower, less_accurate)
        met += slower >= 100 and less_accurate > 1
    print(f"\n100 times faster at a lower error: the classical method in {met} of {len(rows)} cases")
    write_rows(json, rows)


def compare(name: str, width: int, seconds: float, accuracy: float) -> Row:
    """Solve a case by both."""
    problem = load_case(name).problem

    def classical() -> DiscreteSolution:
        wanted = SolveOptions(accuracy=accuracy, time_limit=seconds, cross_check=False, compare=False)
        found = solve_problem(problem, wanted).discrete
        assert found is not None, f"{name} has a classical solution"
        return found

    def network() -> DiscreteSolution:
        return Pinn().solve(system_of(problem), width, accuracy, Deadline.within(seconds))

    # What is imported and compiled when first used is not the method's.
    classical()
    first, _ = measured(problem, classical)
    second, solution = measured(problem, network)
    return Row(name, first, second, str(solution.facts["ended as"]))


def measured(problem: Problem, solve: Callable[[], DiscreteSolution]) -> tuple[Measured, DiscreteSolution]:
    """Return what a solution took and how good it is."""
    solution, seconds, cpu = cost_of(solve)
    errors = exact_errors(problem, solution)
    assert errors is not None, f"{problem.id} has an exact solution"
    return Measured(solution.method, solution.resolution, seconds, cpu, errors.l2), solution


if __name__ == "__main__":
    command_line(main)
