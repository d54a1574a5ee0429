"""Figures of a row: from runs of the tiny tournaments, and from states made up to have what those do not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hpc.journal import read_run
from sharp.config import RunConfig
from sharp.evaluation.protocol import Evaluation, EvaluationRequest, Evaluator
from sharp.experiments import summarise as figures
from sharp.experiments.run_summary import RunSummary
from sharp.llm.cards import load_card
from sharp.runs.directory import RunDirectory
from sharp.runs.execution_backend import RunResources
from sharp.tournament.state import Candidate, Execution, JudgeTurn, Tournament
from tests.helpers.experiments.small_sweeps import SmallSite, Watch, carry_out, plan_of

THREE_WAYS = """\
matrix:
  way:
    judged: {method: pde-sharp}
    unjudged: {synthesis.mode: best-of-n}
    sampled: {method: codepde}
  seed: [0]
"""
OLD = {
    "state": "finished",
    "note": "",
    "winner": "c001",
    "nrmse": 0.25,
    "data_error": None,
    "flag": "",
    "rounds": 3,
    "evaluations": 9,
    "calls": 40,
    "dollars": 1.5,
    "failures": {"timeout": 1},
    "data": "burgers@1",
    "forgotten": 1,
}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, RunSummary]]:
    watch = Watch()
    plan = plan_of(tmp_path_factory.mktemp("figures"), THREE_WAYS)
    carry_out(plan, SmallSite(), watch)
    return plan.folder / "runs", watch.rows


def test_rows_of_earlier_versions_can_be_read() -> None:
    row = RunSummary.from_json(OLD)
    assert (row.nrmse, row.evaluations, row.failures) == (0.25, 9, {"timeout": 1})
    assert (row.method, row.best_by_evaluation, row.saturated, row.run_time_s, row.strategies) == (
        "",
        (),
        None,
        None,
        {},
    )


def test_a_row_comes_back_from_the_record_as_it_was(played: tuple[Path, dict[str, RunSummary]]) -> None:
    for row in played[1].values():
        assert RunSummary.from_json(row.to_json()) == row


def test_positions_of_the_course_count_evaluations(played: tuple[Path, dict[str, RunSummary]]) -> None:
    for row in played[1].values():
        assert len(row.best_by_evaluation) == row.evaluations > 0
        known = [best for best in row.best_by_evaluation if best is not None]
        assert known == sorted(known, reverse=True)
        assert known[-1] == row.validation_nrmse


def test_rounds_are_those_of_the_judges_alone(played: tuple[Path, dict[str, RunSummary]]) -> None:
    _, rows = played
    judged = rows["judged-s0"]
    assert len(judged.best_by_round) == judged.rounds == 1
    assert judged.saturated is False
    assert judged.stop_reason == "round limit reached"
    for name in ("unjudged-s0", "sampled-s0"):
        assert (rows[name].best_by_round, rows[name].saturated, rows[name].stop_reason) == ((), None, "")


def test_repairs_are_counted_in_calls_and_programs_without_them(
    played: tuple[Path, dict[str, RunSummary]],
) -> None:
    runs, rows = played
    for name, row in rows.items():
        effects = read_run(runs / name).effects.values()
        asked = [e for e in effects if e.kind == "chat" and e.request["purpose"] == "debug"]
        assert row.repairs == len(asked)
    assert rows["unjudged-s0"].programs == rows["sampled-s0"].programs == 3
    assert sum(row.repairs for row in rows.values()) > 0


def test_a_row_says_who_played_and_how_it_was_written(played: tuple[Path, dict[str, RunSummary]]) -> None:
    _, rows = played
    assert [rows[f"{way}-s0"].method for way in ("judged", "unjudged", "sampled")] == [
        "pde-sharp",
        "pde-sharp",
        "codepde",
    ]
    assert rows["judged-s0"].roles["judge 1"] == "rule-based"
    assert "judge 1" not in rows["unjudged-s0"].roles
    assert rows["sampled-s0"].roles == {"generator": "rule-based"}
    for row in rows.values():
        assert (row.problem, row.rule_based, row.device) == ("advection", "all", "cpu")
        assert sum(row.strategies.values()) == 3
        assert row.winner_strategy in row.strategies
        assert sum(row.libraries.values()) == pytest.approx(1)
        assert row.order_note == "not measured"


def test_what_others_gave_or_had_measured_counts_in_the_whole(tmp_path: Path) -> None:
    watch = Watch()
    plan = plan_of(tmp_path, "matrix: {synthesis.mode: [tournament, best-of-n], seed: [0]}\n")
    carry_out(plan, SmallSite(), watch)
    shared = [row for row in watch.rows.values() if row.reused_calls]
    assert len(shared) == 1
    assert shared[0].standalone_prompt_tokens > shared[0].prompt_tokens
    payer = next(row for row in watch.rows.values() if not row.reused_calls)
    assert payer.standalone_prompt_tokens == payer.prompt_tokens
    assert payer.standalone_evaluation_seconds == payer.evaluation_seconds


@dataclass
class KnownEverything(SmallSite):
    """A place where another run has had every program run before, on a GPU."""

    @asynccontextmanager
    async def opened(self, run: RunDirectory) -> AsyncIterator[RunResources]:
        async with super().opened(run) as tools:
            yield replace(tools, evaluator=_Known(tools.evaluator))


@dataclass
class _Known:
    inner: Evaluator

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        measured = await self.inner.evaluate(request)
        return replace(measured, environment={"device": "H200", "cached": True})


def test_what_came_from_the_cache_took_no_time_but_counts_in_the_whole(tmp_path: Path) -> None:
    watch = Watch()
    carry_out(plan_of(tmp_path, "matrix: {seed: [0]}\n"), KnownEverything(), watch)
    row = watch.rows["s0"]
    assert (row.evaluation_seconds, row.gpu_seconds) == (0, 0)
    assert row.standalone_gpu_seconds == row.standalone_evaluation_seconds > 0
    assert row.cached_evaluations == row.evaluations > 0
    assert row.nominee_cached == row.nominee_evaluations == 1
    assert row.device == "H200"


def evaluation(**fields: Any) -> Evaluation:
    plain = dict.fromkeys(
        ("failure", "scores", "run_time_s", "peak_memory_mb", "internal_dt", "internal_steps", "dtype")
    )
    return Evaluation(**{**plain, "total_s": 1.0, "stdout": "", "stderr": "", "environment": {}, **fields})


def run_of(name: str, path: str, metric: float = 1.0, *, cached: bool = False, **fields: Any) -> Execution:
    result = evaluation(environment={"cached": True} if cached else {})
    return Execution(name, f"{path}/{name}/validation", "validation", result, metric, **fields)


def nominee(cycle: int, judge: int, name: str) -> JudgeTurn:
    return JudgeTurn(cycle, 1, judge, "nominee", name, name, 1.0)


def program(name: str, code: str = "", **fields: Any) -> Candidate:
    return Candidate(name, fields.pop("origin", "genesis"), "numerical", "m", code, "", **fields)


def test_nominees_are_measured_cached_or_shared() -> None:
    state = Tournament(
        "p",
        entries=(
            nominee(1, 1, "c001"),
            nominee(1, 2, "c002"),
            nominee(1, 3, "c002"),
            JudgeTurn(1, 2, 1, "patch", "h1.2.1", "c001", 1.0),
            nominee(2, 1, "h1.2.1"),
            nominee(2, 2, "c003"),
        ),
        executions=(
            run_of("c001", "cycle-1/round-1"),
            run_of("c002", "cycle-1/round-1", cached=True),
            run_of("h1.2.1", "cycle-1/round-2", cached=True),
            run_of("c003", "cycle-2/round-1", cached=True),
        ),
    )
    assert figures.nominee_sources(state) == {"measured": 1, "cached": 2, "shared": 2}


def test_failed_evaluations_have_their_place_in_the_course() -> None:
    runs = [run_of("a", "x", metric) for metric in (inf, 0.5, inf, 0.7, 0.2)]
    assert figures.best_by_evaluation(runs) == (None, 0.5, 0.5, 0.5, 0.2)


def test_the_best_of_a_round_is_that_of_its_judges_and_rounds_go_on_over_cycles() -> None:
    turns = [(1, 1, 3.0), (1, 1, inf), (1, 2, inf), (1, 2, inf), (2, 1, 1.0), (2, 1, 0.5)]
    entries = [JudgeTurn(cycle, round_, 1, "patch", None, None, metric) for cycle, round_, metric in turns]
    assert figures.best_by_round(entries) == (3.0, None, 0.5)


def test_libraries_are_those_of_programs_as_last_repaired_and_lent_results_count_once() -> None:
    numpy = "import numpy as np\nx = np.zeros(3)\n"
    both = "import numpy as np\nimport scipy.linalg as la\nx = la.norm(np.zeros(3))\n"
    state = Tournament(
        "p",
        candidates={
            each.id: each
            for each in (
                program("c001", numpy),
                program("c001d1", both, origin="debug", parents=("c001",)),
                program("c002", numpy),
                program("h1.2.1", numpy, origin="hybrid"),
                program("c003", "y = 1"),
            )
        },
        executions=(
            run_of("c001", "x", inf),
            run_of("c001d1", "x"),
            run_of("c002", "x"),
            run_of("c003", "x"),
            run_of("h1.2.1", "x", reused_from="c002"),
        ),
    )
    assert figures.programs(state) == {"c001": "c001d1", "c002": "c002", "c003": "c003"}
    assert figures.libraries(state) == {"NumPy": 0.75, "SciPy": 0.25}
    assert figures.strategies(state) == {"numerical": 3}


def test_steady_time_is_told_from_compilation() -> None:
    assert figures.steady_time(evaluation(run_time_s=5.0, repeat_times_s=(1.0, 3.0, 2.0))) == (2.0, 3.0)
    assert figures.steady_time(evaluation(run_time_s=1.0, repeat_times_s=(2.0,))) == (2.0, 0.0)
    assert figures.steady_time(evaluation(run_time_s=5.0)) == (5.0, None)
    assert figures.steady_time(None) == (None, None)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ({"failure": None, "convergence": {"order": 2.0, "note": ""}}, (2.0, "")),
        (
            {"failure": None, "convergence": {"order": None, "note": "not asymptotic"}},
            (None, "not asymptotic"),
        ),
        ({"failure": {"kind": "timeout"}, "convergence": None}, (None, "failed: timeout")),
    ],
)
def test_an_order_of_accuracy_that_is_missing_says_why(
    reply: dict[str, Any], expected: tuple[float | None, str]
) -> None:
    effect: Any = SimpleNamespace(reply=reply)
    assert figures.order_of_accuracy({"finalize/convergence": effect}) == expected


def test_the_rule_based_model_is_told_from_models_and_mixtures() -> None:
    embedded, model = load_card("rule-based"), load_card("o3")
    assert figures.rule_based_share([embedded]) == "all"
    assert figures.rule_based_share([embedded, model]) == "some"
    assert figures.rule_based_share([model]) == "none"


def test_the_one_who_rates_is_named_where_another_model_does() -> None:
    config = RunConfig.model_validate(
        {"problem": "burgers", "method": "cepo", "cepo": {"rating_model": "o3"}}
    )
    assert figures.roles(config) == {"generator": "rule-based", "rater": "o3"}
