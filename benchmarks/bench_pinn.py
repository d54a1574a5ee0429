"""Networks beside classical methods: seconds and errors on the same problems, in one run.

    python benchmarks/bench_pinn.py [--width 32] [--seconds 90] [--accuracy 1e-6] [--case ID …] [--json FILE]

The recommended classical method is refined until its estimate is below the accuracy asked for, and all its resolutions
count. The network is trained once, of one width, for at most so many seconds. Errors are relative L2 against the exact
solution at points that neither has seen. Ratios are of processor time, which does not depend on what else runs, and of
errors. Both are as many times larger for the network.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from sharp.problems import Problem
from sharp.problems.cases import load_case
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.driver import SolveOptions, solve_problem
from sharp.solvers.exact import exact_errors
from sharp.solvers.method import Deadline
from sharp.solvers.pinn.method import Pinn
from sharp.solvers.system import system_of

CASES = (
    "poisson-charged-film",
    "heat-rod-two-ends",
    "viscous-front",
    "wave-hanging-rope",
    "laplace-trough",
)


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

    @property
    def slower(self) -> float:
        """How many times more processor time the network takes."""
        return self.network.cpu / self.classical.cpu

    @property
    def less_accurate(self) -> float:
        """How many times larger the error of the network is."""
        return self.network.error / self.classical.error


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--accuracy", type=float, default=1e-6)
    parser.add_argument("--case", nargs="*", default=list(CASES))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(", ".join(f"{name} {version(name)}" for name in ("deepxde", "torch", "numpy", "scipy")))
    print("| case | method | seconds | cpu s | error | network | cpu s | error | time ratio | error ratio |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    rows = []
    for name in options.case:
        rows.append(compare(name, options))
        print(line(rows[-1]), flush=True)
    met = sum(row.slower >= 100 and row.less_accurate > 1 for row in rows)
    print(f"\n100 times faster at a lower error: the classical method in {met} of {len(rows)} cases")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


def compare(name: str, options: argparse.Namespace) -> Row:
    """Solve a case by both."""
    problem = load_case(name).problem

    def classical() -> DiscreteSolution:
        wanted = SolveOptions(
            accuracy=options.accuracy, time_limit=options.seconds, cross_check=False, compare=False
        )
        found = solve_problem(problem, wanted).solution
        assert found is not None, f"{name} has a classical solution"
        return found

    def network() -> DiscreteSolution:
        deadline = Deadline.within(options.seconds)
        return Pinn().solve(system_of(problem), options.width, options.accuracy, deadline)

    # What is imported and compiled when first used is not the method's.
    classical()
    first, _ = measured(problem, classical)
    second, solution = measured(problem, network)
    return Row(name, first, second, str(solution.facts["ended as"]))


def measured(problem: Problem, solve: Callable[[], DiscreteSolution]) -> tuple[Measured, DiscreteSolution]:
    """Return what a solution took and how good it is."""
    begun, before = time.perf_counter(), processor_seconds()
    solution = solve()
    seconds, cpu = time.perf_counter() - begun, processor_seconds() - before
    errors = exact_errors(problem, solution)
    assert errors is not None, f"{problem.id} has an exact solution"
    return Measured(solution.method, solution.resolution, seconds, cpu, errors.l2), solution


def processor_seconds() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def line(row: Row) -> str:
    """Return one line of the table."""
    one, other = row.classical, row.network
    return (
        f"| {row.case} | {one.method} {one.resolution} | {one.seconds:.2f} | {one.cpu:.2f} | {one.error:.1e} "
        f"| {other.seconds:.0f} s | {other.cpu:.0f} | {other.error:.1e} "
        f"| {row.slower:.0f} | {row.less_accurate:.0e} |"
    )


if __name__ == "__main__":
    main()
