"""`sharp compare` as people call it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.cli.sharp_command import Sharp
from tests.helpers.experiments.recorded_runs import record


@pytest.fixture(scope="module")
def sharp(tmp_path_factory: pytest.TempPathFactory) -> Sharp:
    return Sharp(tmp_path_factory.mktemp("sharp"))


@pytest.fixture(scope="module")
def runs(sharp: Sharp) -> tuple[Path, Path]:
    one_cycle = {"max_cycles": 1, "max_rounds": 3}
    return (
        record(sharp.folder / "codepde", budget={"calls": 9}),
        record(sharp.folder / "judged", "pde-sharp", synthesis=one_cycle),
    )


def test_it_prints_tables_and_where_the_files_are(
    sharp: Sharp, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    done = sharp("compare", *runs, "--gpu-price", "2", "--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "Errors of winners on test data" in done.stdout
    assert "#2 judged: 2 evaluations saved against #1 codepde" in done.stdout
    written = done.stdout.splitlines()[-6:]
    names = ["compare.html", "compare.md", "compare.tex", "compare.csv", "compare.parquet", "cost.svg"]
    assert [Path(name).name for name in written] == names
    assert all(Path(name).is_file() for name in written)


def test_its_json_agrees_with_the_status_of_the_runs(sharp: Sharp, runs: tuple[Path, Path]) -> None:
    compared = json.loads(sharp("compare", *runs, "--json").stdout)
    assert [run["method"] for run in compared["runs"]] == ["codepde", "pde-sharp"]
    assert compared["files"] == {}
    for run, path in zip(compared["runs"], runs, strict=True):
        status = json.loads(sharp("status", path, "--json").stdout)
        assert (run["all_calls"], run["standalone_prompt_tokens"]) == (
            status["calls"],
            status["prompt_tokens"],
        )
        assert run["total_dollars"] == pytest.approx(status["dollars"])


def test_what_is_no_run_and_a_price_that_is_none_are_refused(
    sharp: Sharp, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    done = sharp("compare", runs[0], tmp_path)
    assert done.returncode == 5
    assert f"{tmp_path} holds neither a run" in done.stderr
    assert sharp("compare", runs[0], "--gpu-price", "-1").returncode == 2


def test_status_counts_for_a_budget_only_what_the_run_has_paid_for_itself(
    sharp: Sharp, runs: tuple[Path, Path]
) -> None:
    judged = {"synthesis": {"max_cycles": 1, "max_rounds": 3}, "budget": {"calls": 100}}
    taker = record(
        sharp.folder / "taker", "pde-sharp", genesis={"candidates": 4, "replay_from": str(runs[1])}, **judged
    )
    status = json.loads(sharp("status", taker, "--json").stdout)
    (run,) = json.loads(sharp("compare", taker, "--json").stdout)["runs"]
    (budget,) = status["budgets"]
    assert run["reused_calls"] > 0
    assert budget["used"] == status["calls"] - run["reused_calls"] == run["calls"]
