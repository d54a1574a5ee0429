"""What the rule-based model reaches, and how well its judgement and its repairs work.

    python benchmarks/bench_rule_based.py runs  [--problems …] [--seeds 0 1 2]
    python benchmarks/bench_rule_based.py judging [--problems …] [--programs 30]
    python benchmarks/bench_rule_based.py repairs [--problems …] [--programs 20]
    python benchmarks/bench_rule_based.py improvements [--problems …] [--programs 10]

`runs` plays the run files of data/runs in full: the winner's error on the test samples against the data set and
against the true solution, the data set's own distance from it (floor), the best published value, validation runs,
all runs (with smoke runs and those of repairs) and wall seconds with data already made. `judging` evaluates sound
programs and prints the rank correlation between the error that reading promises and the measured ones. `repairs`
composes faulty programs and counts how many that fail on the smoke data run after at most four attempts. `improvements`
runs sound programs, has each improved once by its result, and counts how many errors fell. Data are kept in the data
folder ($SHARP_DATA) and everything else in a temporary one.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from scipy.stats import spearmanr

from sharp.evaluation.feedback import failure_text, feedback_text
from sharp.evaluation.local import LocalEvaluator
from sharp.evaluation.protocol import Evaluation, EvaluationRequest, Split
from sharp.llm.prompts import render
from sharp.llm.protocol import Message
from sharp.llm.replies import extract_code
from sharp.problems import Problem, load_problem, render_description
from sharp.problems.limits import ResourceLimits
from sharp.reference.datasets import DataSet, make_splits
from sharp.reference.generation import ensure_dataset
from sharp.resources import find_resource
from sharp.rule_based.answers import answer
from sharp.rule_based.composer import ComposedProgram, compose
from sharp.rule_based.program_analysis import read
from sharp.rule_based.repairing import repair
from sharp.runs.configure import load_config
from sharp.runs.creation import create_run
from sharp.runs.execute import execute
from sharp.tournament.state import Tournament

PROBLEMS = ("advection", "burgers", "reaction-diffusion", "navier-stokes", "darcy")
SAMPLES, WALL_S, ATTEMPTS = 2, 60.0, 4


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", choices=tuple(HEADINGS))
    parser.add_argument("--problems", nargs="+", default=PROBLEMS, choices=PROBLEMS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--programs", type=int, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        lines = {
            "runs": lambda name: run_lines(name, options.seeds, Path(scratch)),
            "judging": lambda name: [judging_line(Bench(name, Path(scratch)), options.programs)],
            "repairs": lambda name: [repair_line(Bench(name, Path(scratch)), options.programs)],
            "improvements": lambda name: [improvement_line(Bench(name, Path(scratch)), options.programs)],
        }
        print(HEADINGS[options.table])
        for name in options.problems:
            for line in lines[options.table](name):
                print(line, flush=True)


HEADINGS = {
    "runs": f"{'problem':<20}{'seed':>5}{'winner':>10}{'vs data':>11}{'vs reference':>11}{'floor':>11}{'published':>11}"
    f"{'validations':>13}{'runs':>6}{'repairs':>9}{'seconds':>9}",
    "judging": f"{'problem':<20}{'programs':>9}{'failed':>8}{'rank correlation with truth':>30}{'with data':>11}",
    "repairs": f"{'problem':<20}{'faulty':>8}{'failed':>8}{'repaired':>10}{'attempts':>10}",
    "improvements": f"{'problem':<20}{'programs':>9}{'run':>6}{'improved ones run':>19}{'lower error to data':>21}"
    f"{'to truth':>10}{'median factor':>15}",
}


def run_lines(name: str, seeds: Sequence[int], scratch: Path) -> Iterator[str]:
    """Play the run file of a problem once for every seed."""
    file = find_resource("data", f"runs/{name}.yaml")
    assert file is not None
    for seed in seeds:
        run = create_run(load_config(str(file), [f"seed={seed}"]), scratch / f"{name}-{seed}")
        began = time.perf_counter()
        state = execute(run)
        yield run_line(name, seed, run.problem, state, time.perf_counter() - began)


def run_line(name: str, seed: int, problem: Problem, state: Tournament, seconds: float) -> str:
    """Return a line of the table of runs."""
    assert state.test is not None
    assert state.test.scores is not None
    scores = state.test.scores
    paid = [run for run in state.executions if run.reused_from is None]
    validations = sum(run.split == "validation" for run in paid)
    published = problem.published.nrmse if problem.published else float("nan")
    repairs = sum(candidate.origin == "debug" for candidate in state.candidates.values())
    return (
        f"{name:<20}{seed:>5}{state.best:>10}{scores.nrmse:>11.2e}{scores.nrmse_reference or 0.0:>11.2e}"
        f"{scores.data_error or 0.0:>11.2e}{published:>11.2e}{validations:>13}{len(paid):>6}{repairs:>9}{seconds:>9.0f}"
    )


@dataclass(frozen=True)
class Bench:
    """A problem with a few samples on which single programs are run."""

    name: str
    scratch: Path

    @property
    def problem(self) -> Problem:
        """The problem."""
        return load_problem(self.name)

    def evaluate(self, codes: Sequence[str], split: Split) -> list[Evaluation]:
        """Run programs one after the other."""
        problem = self.problem
        dataset: DataSet = ensure_dataset(problem, 2 * SAMPLES, 2022, "pdebench")
        splits = make_splits(dataset.n_samples, SAMPLES, SAMPLES, SAMPLES)
        limits = ResourceLimits(WALL_S, problem.limits.memory_mb)

        async def everything() -> list[Evaluation]:
            requests = (
                EvaluationRequest(problem.label, dataset.label, split, code, limits) for code in codes
            )
            folder = self.scratch / self.name
            async with LocalEvaluator(folder, problem, dataset, splits, workers=1) as evaluator:
                return [await evaluator.evaluate(request) for request in requests]

        return asyncio.run(everything())


def judging_line(bench: Bench, programs: int) -> str:
    """Compare promised with measured errors of sound programs."""
    family = bench.problem.family
    codes = [compose(family, seed, fault_rate=0.0).code for seed in range(programs)]
    evaluations = bench.evaluate(codes, "validation")
    promised = [-read(code, family).merit for code, e in zip(codes, evaluations, strict=True) if e.scores]
    scores = [evaluation.scores for evaluation in evaluations if evaluation.scores]
    truth = spearmanr(promised, [score.nrmse_reference for score in scores]).statistic
    data = spearmanr(promised, [score.nrmse for score in scores]).statistic
    return f"{bench.name:<20}{programs:>9}{programs - len(scores):>8}{truth:>30.2f}{data:>11.2f}"


def repair_line(bench: Bench, programs: int) -> str:
    """Repair faulty programs that fail, as a run does."""
    faulty = [compose(bench.problem.family, seed, fault_rate=1.0) for seed in range(programs)]
    evaluations = bench.evaluate([program.code for program in faulty], "smoke")
    broken = [(program, e) for program, e in zip(faulty, evaluations, strict=True) if not e.ok]
    attempts = [repaired(bench, program, evaluation) for program, evaluation in broken]
    done = [number for number in attempts if number]
    mean = sum(done) / len(done) if done else 0.0
    return f"{bench.name:<20}{programs:>8}{len(broken):>8}{len(done):>10}{mean:>10.1f}"


def improvement_line(bench: Bench, programs: int) -> str:
    """Improve sound programs once each, by their result, and compare the errors before and after."""
    codes = [compose(bench.problem.family, seed, fault_rate=0.0).code for seed in range(programs)]
    pairs = [(c, e) for c, e in zip(codes, bench.evaluate(codes, "validation"), strict=True) if e.ok]
    results = bench.evaluate([improved(bench, code, e) for code, e in pairs], "validation")
    both = [(e.scores, r.scores) for (_, e), r in zip(pairs, results, strict=True) if e.scores and r.scores]
    data = [before.nrmse / after.nrmse for before, after in both]
    truth = [(before.nrmse_reference or 0.0) / (after.nrmse_reference or 1.0) for before, after in both]
    fallen = [sum(factor > 1 for factor in factors) for factors in (data, truth)]
    return (
        f"{bench.name:<20}{programs:>9}{len(pairs):>6}{len(both):>19}{fallen[0]:>21}{fallen[1]:>10}"
        f"{median(truth):>15.2f}"
    )


def improved(bench: Bench, code: str, evaluation: Evaluation) -> str:
    """Return the program that one change makes of another, as in a search that asks for one change."""
    prompt = render(
        "aide/improve",
        description=render_description(bench.problem),
        id="s001",
        code=code.strip(),
        feedback=feedback_text(evaluation, ("nrmse",)),
        memory=[],
        function="solver",
    )
    return extract_code(answer([Message("user", prompt)], random.Random(code)), "solver")


def repaired(bench: Bench, program: ComposedProgram, evaluation: Evaluation) -> int:
    """Return the attempts that it took to make a program run, 0 if it never did."""
    code, rng = program.code, random.Random(program.code)
    for attempt in range(1, ATTEMPTS + 1):
        assert evaluation.failure is not None
        prompt = render(
            "debug/repair",
            description=render_description(bench.problem),
            code=code.strip(),
            failure=failure_text(evaluation.failure),
            function="solver",
        )
        answer = repair([Message("user", prompt)], bench.problem.family, rng)
        code = extract_code(answer, "solver")
        evaluation = bench.evaluate([code], "smoke")[0]
        if evaluation.ok:
            return attempt
    print(f"    never repaired: {program.fault} in {program.title}: {evaluation.failure}")
    return 0


if __name__ == "__main__":
    main()
