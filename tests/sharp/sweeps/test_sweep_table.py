"""Table and report of a sweep, from rows as runs leave them."""

from __future__ import annotations

import builtins
import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_sweeps import SmallSite, Watch, carry_out, plan_of

from hpc.journal import read_run
from sharp.report.html import render_html
from sharp.report.markdown import render_markdown
from sharp.sweeps.page import compose
from sharp.sweeps.publish import Publisher, publish
from sharp.sweeps.record import KnownCell, SweepRecord
from sharp.sweeps.row import Row, lowest
from sharp.sweeps.table import COLUMNS, Line, columns_of, lines_of, write_parquet

DONE = Row(
    "finished",
    winner="h1.2.1",
    nrmse=1e-3,
    nrmse_truth=2e-3,
    floor=5e-3,
    flag="below",
    rounds=4,
    cycles=1,
    evaluations=12,
    executions=30,
    calls=50,
    shared_calls=37,
    prompt_tokens=1000,
    completion_tokens=200,
    dollars=0.5,
    evaluation_seconds=9.5,
    seconds=60.0,
    failures={"exception": 2, "timeout": 1},
    data="burgers@1",
    software="0.1.0",
    prompts="abc",
)


def line(name: str, row: Row | None, **values: Any) -> Line:
    return Line(name, {key.replace("__", "."): value for key, value in values.items()}, row)


LINES = (
    line("a-s0", DONE, models="a", seed=0),
    line("a-s1", replace(DONE, nrmse=3e-3, nrmse_truth=1e-3, flag="", evaluations=14), models="a", seed=1),
    line("b-s0", Row("failed", note="wrong key, | not <mine>", calls=3), models="b", seed=0),
    line("b-s1", None, models="b", seed=1),
    line("odd", replace(DONE, dollars=None, failures={}), evaluation__x64=True),
)


def test_one_row_a_cell_with_all_columns() -> None:
    table = columns_of(LINES)
    assert list(table) == ["cell", "models", "seed", "evaluation.x64", *COLUMNS[1:]]
    assert {len(column) for column in table.values()} == {5}
    row = {name: column[0] for name, column in table.items()}
    assert (row["cell"], row["models"], row["seed"], row["evaluation.x64"]) == ("a-s0", "a", 0, None)
    assert (row["failed_exception"], row["failed_timeout"], row["failed_memory"]) == (2, 1, 0)
    assert (row["flag"], row["path"], row["winner"]) == ("below", "runs/a-s0", "h1.2.1")
    assert table["state"] == ["finished", "finished", "failed", "unfinished", "finished"]
    assert table["calls"][3] is None


def test_an_axis_goes_before_a_column_of_its_name(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    lines = [
        line("a", replace(DONE, method="codepde"), method="ours"),
        line("b", replace(DONE, method="moa")),
        line("c", replace(DONE, rounds=3), rounds="few"),
    ]
    table = columns_of(lines)
    assert list(table).count("method") == 1
    assert table["method"] == ["ours", None, None]
    assert write_parquet(tmp_path / "t.parquet", table)
    assert parquet.read_table(tmp_path / "t.parquet")["rounds"].to_pylist() == [None, None, "few"]


def test_what_has_parts_is_json_text() -> None:
    row = replace(DONE, best_after=(None, 0.5), strategies={"hybrid": 2}, saturated=True)
    table = columns_of([line("a", row), line("b", None)])
    assert [json.loads(str(table[name][0])) for name in ("best_after", "strategies")] == [
        [None, 0.5],
        {"hybrid": 2},
    ]
    assert (table["best_after"][1], table["saturated"]) == (None, [True, None])


def record() -> SweepRecord:
    cells = {each.cell: KnownCell(each.values, "w", None, None, 4) for each in LINES}
    return SweepRecord(cells, tuple(cells), {each.cell: each.row for each in LINES if each.row})


def test_csv_and_parquet_hold_the_same(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    files = publish(tmp_path, "tried", "", record())
    with files.csv.open() as file:
        rows = list(csv.DictReader(file))
    assert files.parquet is not None
    table = parquet.read_table(files.parquet).to_pydict()
    assert list(rows[0]) == list(table)
    assert rows[2]["note"] == table["note"][2] == "wrong key, | not <mine>"
    assert (table["seed"], table["evaluation.x64"]) == ([0, 1, 0, 1, None], [None, None, None, None, True])
    assert [float(row["nrmse"]) if row["nrmse"] else None for row in rows] == table["nrmse"]
    types = {field.name: str(field.type) for field in parquet.read_schema(files.parquet)}
    assert types["calls"] == types["failed_memory"] == types["seed"] == "int64"
    assert (types["gpu_seconds"], types["dollars"], types["winner"]) == ("double", "double", "string")


def test_values_of_several_types_become_texts(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    mixed = columns_of([line("a", None, k=1), line("b", None, k="two"), line("c", None, k=2.5)])
    assert write_parquet(tmp_path / "mixed.parquet", mixed)
    assert parquet.read_table(tmp_path / "mixed.parquet")["k"].to_pylist() == ["1", "two", "2.5"]
    numbers = columns_of([line("a", None, k=1), line("b", None, k=2.5)])
    assert write_parquet(tmp_path / "numbers.parquet", numbers)
    assert parquet.read_table(tmp_path / "numbers.parquet")["k"].to_pylist() == [1.0, 2.5]


@pytest.fixture
def without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    imported: Callable[..., Any] = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)


@pytest.mark.usefixtures("without_pyarrow")
def test_without_pyarrow_there_is_no_stale_parquet_file(tmp_path: Path) -> None:
    (tmp_path / "table.parquet").write_text("of an earlier plan")
    files = publish(tmp_path, "tried", "", record())
    assert files.parquet is None
    assert not (tmp_path / "table.parquet").exists()
    assert files.csv.exists()


def test_the_report_shows_results_spread_failures_and_costs() -> None:
    text = render_markdown(compose("tried", "What this is for.", LINES))
    assert "**3 of 5 cells finished; 1 failed; lowest error on test data 1.000e-03‡ (a-s0).**" in text
    assert "In 2 cells the winner's error is below the floor" in text
    assert "| b-s0 | wrong key, \\| not \\<mine\\>" in text.replace("  ", " ")
    seeds = text[text.index("## Over seeds") : text.index("## Failed cells")]
    row = [cell.strip() for cell in next(ln for ln in seeds.splitlines() if ln.startswith("| a ")).split("|")]
    assert row[3:7] == ["2", "0", "2.000e-03‡", "1.500e-03‡ – 2.500e-03‡"]
    assert "13" in row
    assert "- **calls paid for:** 153" in text
    assert "- **dollars:** –" in text
    assert "What this is for." in text
    assert "- **models:** a, b" in text


def test_the_page_needs_nothing_else_and_shows_no_html_of_others() -> None:
    page = render_html(compose("tried", "<script>alert(1)</script>", LINES))
    assert "<script" not in page
    assert "not &lt;mine&gt;" in page
    assert "http-equiv" in page
    assert not any(f'{attribute}="http' in page for attribute in ("src", "href"))


def test_errors_on_different_data_are_not_compared() -> None:
    rows = {each.cell: each.row for each in LINES if each.row is not None}
    assert lowest(rows) == (1e-3, "a-s0")
    assert lowest({**rows, "other": replace(DONE, data="darcy@1", nrmse=1e-9)}) is None
    assert lowest({"b-s0": rows["b-s0"]}) is None


def test_mixtures_are_said() -> None:
    other = replace(DONE, software="0.2.0", prompts="xyz", data="burgers@2")
    report = compose("tried", "", [*LINES, line("c", other, models="c")])
    notes = " ".join(note.text for note in report.notes)
    assert "different versions of pde-sharp" in notes
    assert "different prompts" in notes
    assert "The data set burgers had different contents" in notes
    assert not any("different" in note.text for note in compose("tried", "", LINES).notes)


def test_a_large_sweep_does_not_spend_its_time_on_tables() -> None:
    now, written = [0.0], []

    def write() -> Any:
        written.append(now[0])
        now[0] += 1.0

    publisher = Publisher(write, clock=lambda: now[0])
    for _ in range(50):
        publisher.due()
        now[0] += 0.5
    assert written == [0.0, 21.0]
    publisher.now()
    assert len(written) == 3


def test_rows_of_a_real_sweep_are_complete(tmp_path: Path) -> None:
    watch = Watch()
    plan = plan_of(tmp_path, "matrix: {synthesis.mode: [tournament, best-of-n], seed: [0]}\n")
    carry_out(plan, SmallSite(), watch)
    assert any(row.failures for row in watch.rows.values())
    by_cell = {each.cell: each for each in lines_of(plan_record(plan.folder))}
    for name, row in watch.rows.items():
        assert by_cell[name].row == row
        assert row.nrmse == row.floor
        assert row.flag == "at"
        effects = read_run(plan.folder / "runs" / name).effects.values()
        assert row.evaluation_seconds == 1.5 * sum(effect.kind == "evaluate" for effect in effects)
        assert row.seconds is not None
        assert row.data.startswith("advection-")
        assert row.effects > row.calls
        assert (row.rounds, row.cycles) == ((1, 1) if "tournament" in name else (0, 0))


def plan_record(folder: Path) -> SweepRecord:
    from sharp.sweeps.record import read_record

    return read_record(folder)
