"""The page of a benchmark: what the tables show, and what they do not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from pandas import DataFrame

from hpc.files import write_atomic
from hpc.journal import software_version
from sharp.document import Block, Bullets, Details, Facts, Headline, Note, Paragraph, Report, Section, Table
from sharp.document.text import MISSING, plural, share_text
from sharp.experiments.agent_benchmark.benchmark_tables import (
    chain_figure,
    chain_table,
    cost_table,
    group_table,
    outcome_table,
    paired_table,
    passes_table,
    unsolved_table,
    wilson_interval,
)
from sharp.experiments.agent_benchmark.chain_scoring import AcceptedChain
from sharp.experiments.agent_benchmark.held_out import TOLERANCE
from sharp.experiments.agent_benchmark.metrics.structure import ConstantBaseline, constant_baselines
from sharp.experiments.agent_benchmark.trials import (
    Arm,
    BenchmarkTrial,
    Check,
    Record,
    TrialResult,
    short_names,
)
from sharp.experiments.frame import frame_of
from sharp.experiments.publishing import ExperimentFiles, publish
from sharp.experiments.run_summary import dtypes_of
from sharp.problems.cases import BenchmarkCase, list_ill_posed, load_ill_posed

PLAYED = (
    "The rule-based model, a program that knows these cases, stood in for models in {arms}. Its figures try the "
    "machinery of plans, checks and corrections; they say nothing of any language model."
)
_RESULTS = (
    "A case is solved where the solution's relative L2 error on a fixed held-out set is at most "
    f"{TOLERANCE:g}; what the team says of it counts for nothing. Medians and means of errors are over each "
    "arm's own solved cases, which are not the same for all: only the last column compares."
)
_COSTS = (
    "Seconds are those of all calls and uses of tools; the first arm on a case also pays for what is "
    "imported and compiled once. A correction is a step whose parameters were chosen anew. Tokens are the "
    "server's count; the rule-based model's are estimates."
)
_CHAINS = (
    "Only steps with a sound result count, against the chain that the specification takes; whether the "
    "exact solution was used, which few statements tell, is free. The last columns are what the chains of "
    "other cases score, which takes no understanding at all: only what is above them says anything. Figures "
    "with the number of an equation are as the paper prints them."
)
_ILL_POSED = (
    "No team takes part in this: specifications that say what ill-posed statements say go through "
    "the check that every problem goes through before it is solved."
)
_KEPT = "benchmark.csv beside this page has every figure of every course; docs/agent-benchmark.md says what they mean."


@dataclass(frozen=True)
class IllPosednessResult:
    """What the deterministic check says of one ill-posed case, and what is right."""

    case: str
    expected: str
    kind: str
    found: str
    kinds: tuple[str, ...]

    @property
    def right(self) -> bool:
        """Whether it asks where asking is right, and refuses where that is."""
        return self.found == self.expected

    @property
    def named(self) -> bool:
        """Whether it also says what is wrong."""
        return self.right and self.kind in self.kinds


@dataclass(frozen=True)
class BenchmarkReportData:
    """All that a page is made of: the trials that are wanted, their rows, and what depends on no team."""

    trials: tuple[BenchmarkTrial, ...]
    rows: tuple[TrialResult, ...]
    checks: tuple[Check, ...]
    baselines: Mapping[str, ConstantBaseline]
    ill_posed: tuple[IllPosednessResult, ...]

    @property
    def arms(self) -> tuple[Arm, ...]:
        """What is compared."""
        return tuple(dict.fromkeys(trial.arm for trial in self.trials))

    @cached_property
    def frame(self) -> DataFrame:
        """The rows as a frame, in the order of the trials."""
        return trial_frame(self.rows)

    @cached_property
    def runs(self) -> DataFrame:
        """The same with the short name of each arm."""
        return self.frame.assign(arm=self.frame["arm"].replace(short_names(self.arms)))


def trial_frame(rows: Sequence[TrialResult]) -> DataFrame:
    """Return trials as a frame with the columns of `TrialResult`."""
    return frame_of([asdict(row) for row in rows], {**dtypes_of(TrialResult), "solved": "bool"})


def collect_report_data(
    folder: Path, trials: Sequence[BenchmarkTrial], record: Record
) -> BenchmarkReportData:
    """Return what a page shows of the trials that are wanted, as far as they have been run."""
    cases = list({trial.case.id: trial.case for trial in trials}.values())
    return BenchmarkReportData(
        tuple(trials),
        tuple(record.rows[trial.key] for trial in trials if trial.key in record.rows),
        tuple(check for case in cases if (check := record.checks.get(case.problem.hash))),
        kept_baselines(cases, folder),
        tuple(check_ill_posed_cases()),
    )


def kept_baselines(cases: Sequence[BenchmarkCase], folder: Path) -> dict[str, ConstantBaseline]:
    """Return what a constant answer scores over some cases, nothing for a single case; kept in a folder."""
    if len(cases) < 2:
        return {}
    graphs = {case.id: AcceptedChain(case.problem).graph for case in cases}
    name = hashlib.sha256(repr([(case.id, case.problem.hash) for case in cases]).encode()).hexdigest()
    path = folder / f"floors-{name[:12]}.json"
    if not path.exists():
        found = {figure: asdict(floor) for figure, floor in constant_baselines(graphs).items()}
        write_atomic(path, json.dumps(found, indent=1).encode())
    return {figure: ConstantBaseline(**floor) for figure, floor in json.loads(path.read_bytes()).items()}


def check_ill_posed_cases() -> Iterator[IllPosednessResult]:
    """Yield what the deterministic check says of all ill-posed cases."""
    for name in list_ill_posed():
        case = load_ill_posed(name)
        diagnosis = case.diagnose()
        kinds = tuple(concern.kind for concern in diagnosis.concerns)
        yield IllPosednessResult(name, case.verdict, case.kind, diagnosis.verdict, kinds)


def publish_benchmark(folder: Path, data: BenchmarkReportData) -> ExperimentFiles:
    """Write page and rows into the folder of a benchmark; in files each score of a tool chain has its own column."""
    rows = data.frame
    names = dict.fromkeys(name for scores in rows["figures"] for name in scores)
    scores = {name: [each.get(name) for each in rows["figures"]] for name in names}
    flat = rows.drop(columns="figures").assign(**scores)
    return publish(folder, "benchmark", build_report(data), "benchmark", flat)


def build_report(data: BenchmarkReportData) -> Report:
    """Return the page of a benchmark, finished or not."""
    sentence = f"{len(data.rows)} of {plural(len(data.trials), 'course')} played."
    sections = _sections(data) if data.rows else ()
    return Report(
        "Agent benchmark",
        Headline(sentence),
        tuple(_notes(data)),
        (*sections, _ill_posed(data), _setting(data), _published()),
    )


def _notes(data: BenchmarkReportData) -> Iterator[Note]:
    played = [arm.label for arm in data.arms if arm.played]
    if played:
        everywhere = len(played) == len(data.arms)
        yield Note(PLAYED.format(arms="every arm" if everywhere else ", ".join(played)), "warning")
    missing = len(data.trials) - len(data.rows)
    if missing:
        yield Note(
            f"{plural(missing, 'course')} not played yet: arms may have been compared on few cases so far.",
            "warning",
        )
    renamed = sum(row.matched_by_position for row in data.rows)
    if renamed:
        yield Note(
            f"In {plural(renamed, 'course')} fields or coordinates bear other names than the case's; they "
            "were compared in their order."
        )


def _sections(data: BenchmarkReportData) -> Iterator[Section]:
    runs = data.runs
    yield Section("results", "Solved or not", tuple(_results(runs)))
    yield Section("categories", "By category", (group_table(runs, "category"),))
    if runs["style"].nunique() > 1:
        yield Section("styles", "By style of the statement", (group_table(runs, "style"),))
    yield Section("costs", "What it took", (Paragraph(_COSTS), cost_table(runs)))
    names = tuple(dict.fromkeys(name for row in data.rows for name in row.figures))
    chains = (chain_figure(runs, data.baselines), chain_table(runs, data.baselines, names))
    yield Section("chains", "How they got there", (Paragraph(_CHAINS), *chains))


def _results(runs: DataFrame) -> Iterator[Block]:
    yield Paragraph(_RESULTS)
    yield outcome_table(runs)
    if runs["arm"].nunique() > 1:
        yield paired_table(runs)
    passed = passes_table(runs)
    if passed is not None:
        yield passed
    unsolved = unsolved_table(runs)
    if unsolved.rows:
        yield Details(f"{plural(len(unsolved.rows), 'run')} without a solution within tolerance", (unsolved,))


def _ill_posed(data: BenchmarkReportData) -> Section:
    wrong = [
        f"{each.case}: right is to {each.expected}, found {each.found}"
        for each in data.ill_posed
        if not each.right
    ]
    false = [f"{check.case}: {check.reason}" for check in data.checks if check.verdict != "solve"]
    listed = [Bullets((*wrong, *false))] if wrong or false else []
    blocks: tuple[Block, ...] = (Paragraph(_ILL_POSED), _ill_posed_table(data), *listed)
    return Section("ill-posed", "Problems that are ill-posed", blocks)


def _ill_posed_table(data: BenchmarkReportData) -> Table:
    """Return how the deterministic check does on problems that are ill-posed, and on those that are not."""
    columns = ("problems", "number", "right", "share", "right, and the kind named")

    def row(name: str, count: int, right: int, named: str) -> tuple[str, ...]:
        return (name, str(count), str(right), share_text(right / count if count else None), named)

    rows = []
    for verdict in ("clarify", "reject"):
        due = [each for each in data.ill_posed if each.expected == verdict]
        right, named = sum(each.right for each in due), sum(each.named for each in due)
        rows.append(row(f"ill-posed, right is to {verdict}", len(due), right, str(named)))
    sound = sum(check.verdict == "solve" for check in data.checks)
    rows.append(row("well-posed, right is to solve", len(data.checks), sound, MISSING))
    return Table(columns, tuple(rows), columns[1:], "The deterministic check of specifications")


def _setting(data: BenchmarkReportData) -> Section:
    trials = data.trials
    facts = (
        ("arms", "; ".join(arm.label for arm in data.arms)),
        ("cases", str(len({trial.case.id for trial in trials}))),
        ("styles of statements", ", ".join(dict.fromkeys(trial.statement.style for trial in trials))),
        ("seeds", str(len({trial.seed for trial in trials}))),
        ("calls of models a course", f"at most {trials[0].settings.allowance.calls}"),
        ("version", software_version()),
    )
    return Section("setting", "The courses", (Facts(facts), Paragraph(_KEPT)))


def _published() -> Section:
    prog_act, step_wise = (wilson_interval(solved, 100) for solved in (90, 86))
    said = Paragraph(
        "The paper (arXiv 2512.16214) reports 90 % for Prog-Act and 86 % for the step-wise variant, "
        "from one run on 100 problems that are not public: not comparable with the figures above, "
        f"and with intervals of {prog_act[0]:.0%} to {prog_act[1]:.0%} and {step_wise[0]:.0%} to "
        f"{step_wise[1]:.0%} not significantly different from each other."
    )
    return Section("published", "What was published", (said,))
