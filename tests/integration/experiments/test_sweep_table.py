"""Table and report of a sweep, from rows as runs leave them."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hpc.journal import read_run
from sharp.document import render_html, render_markdown
from sharp.experiments.frame import describe_columns, plain_rows, read_rows, write_csv, write_parquet
from sharp.experiments.run_summary import RunSummary, lowest
from sharp.experiments.sweeps.runner import Publisher, publish_sweep
from sharp.experiments.sweeps.sweep_log import log_file, read_record
from tests.helpers.experiments.made_records import Line, compose, frame, record_of
from tests.helpers.experiments.small_sweeps import SmallSite, Watch, carry_out, plan_of

DONE = RunSummary(
    "finished",
    winner="h1.2.1",
    nrmse=1e-3,
    nrmse_reference=2e-3,
    data_error=5e-3,
    flag="below",
    rounds=4,
    cycles=1,
    evaluations=12,
    executions=30,
    calls=50,
    reused_calls=37,
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


def line(name: str, row: RunSummary | None, **values: Any) -> Line:
    return Line(name, {key.replace("__", "."): value for key, value in values.items()}, row)


LINES = (
    line("a-s0", DONE, models="a", seed=0),
    line(
        "a-s1", replace(DONE, nrmse=3e-3, nrmse_reference=1e-3, flag="", evaluations=14), models="a", seed=1
    ),
    line("b-s0", RunSummary("failed", note="wrong key, | not <mine>", calls=3), models="b", seed=0),
    line("b-s1", None, models="b", seed=1),
    line("odd", replace(DONE, dollars=None, failures={}), evaluation__x64=True),
)


def test_one_row_a_cell_with_all_columns() -> None:
    rows = frame(LINES)
    assert list(rows.columns[:4]) == ["cell", "models", "seed", "evaluation.x64"]
    assert rows.columns[-1] == "path"
    assert set(rows.columns) >= set(describe_columns().index) - {"failures", "effects", "trial"}
    row = plain_rows(rows)[0]
    assert (row["cell"], row["models"], row["seed"], row["evaluation.x64"]) == ("a-s0", "a", 0, None)
    assert (row["failed_exception"], row["failed_timeout"], row["failed_memory"]) == (2, 1, 0)
    assert (row["flag"], row["path"], row["winner"]) == ("below", "runs/a-s0", "h1.2.1")
    assert list(rows["state"]) == ["finished", "finished", "failed", "unfinished", "finished"]
    assert rows["calls"].isna()[3]
    assert rows.dtypes[["calls", "nrmse", "saturated", "winner"]].astype(str).tolist() == [
        "Int64",
        "float64",
        "boolean",
        "string",
    ]


def test_an_axis_goes_before_a_column_of_its_name() -> None:
    rows = frame(
        [
            line("a", replace(DONE, method="codepde"), method="ours"),
            line("b", replace(DONE, method="moa")),
            line("c", replace(DONE, rounds=3), rounds="few"),
        ]
    )
    assert list(rows.columns).count("method") == 1
    assert [row["method"] for row in plain_rows(rows)] == ["ours", None, None]
    assert [row["rounds"] for row in plain_rows(rows)] == [None, None, "few"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_hold_what_the_frame_has(tmp_path: Path, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    parts = replace(DONE, best_by_evaluation=(None, 0.5), strategies={"hybrid": 2}, saturated=True)
    rows = frame([*LINES, line("c", parts, models="c", seed=3)])
    path = tmp_path / f"rows.{ending}"
    write_csv(path, rows) if ending == "csv" else write_parquet(path, rows)
    again = read_rows(path)
    assert list(again.columns) == list(rows.columns)
    lost = empty_text if ending == "csv" else lambda _: {}
    assert plain_rows(again) == [{**row, **lost(row)} for row in plain_rows(rows)]
    assert plain_rows(again)[-1]["best_by_evaluation"] == [None, 0.5]
    assert plain_rows(again)[-1]["strategies"] == {"hybrid": 2}
    assert again["nrmse"].equals(rows["nrmse"])
    assert again["saturated"].tolist()[-1] is True


def empty_text(row: dict[str, Any]) -> dict[str, None]:
    """What CSV cannot tell from a missing text."""
    return {name: None for name, value in row.items() if value == ""}


def test_csv_and_parquet_hold_the_same(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    files = publish_sweep(tmp_path, "tried", "", record_of(LINES))
    with files.csv.open() as file:
        rows = list(csv.DictReader(file))
    assert files.parquet is not None
    table = parquet.read_table(files.parquet).to_pydict()
    assert list(rows[0]) == list(table)
    assert rows[2]["note"] == table["note"][2] == "wrong key, | not <mine>"
    assert (table["seed"], table["evaluation.x64"]) == ([0, 1, 0, 1, None], [None, None, None, None, True])
    assert [float(row["nrmse"]) if row["nrmse"] else None for row in rows] == table["nrmse"]
    assert [json.loads(text or "null") for text in table["strategies"]] == [{}, {}, {}, None, {}]
    types = {field.name: str(field.type) for field in parquet.read_schema(files.parquet)}
    assert types["calls"] == types["failed_memory"] == types["seed"] == "int64"
    assert (types["gpu_seconds"], types["dollars"]) == ("double", "double")
    assert "string" in types["winner"]


def test_values_of_several_types_become_texts() -> None:
    mixed = frame([line("a", None, k=1), line("b", None, k="two"), line("c", None, k=2.5)])
    assert list(mixed["k"]) == ["1", "two", "2.5"]
    numbers = frame([line("a", None, k=1), line("b", None, k=2.5)])
    assert list(numbers["k"]) == [1.0, 2.5]


def test_every_column_is_documented() -> None:
    known = describe_columns()
    assert known["meaning"].str.len().min() > 3
    assert (known.loc["nrmse", "dtype"], known.loc["seconds", "unit"]) == ("float64", "s")


def test_without_pyarrow_there_is_no_stale_parquet_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sharp.experiments.frame.find_spec", lambda _: None)
    (tmp_path / "table.parquet").write_text("of an earlier plan")
    files = publish_sweep(tmp_path, "tried", "", record_of(LINES))
    assert files.parquet is None
    assert not (tmp_path / "table.parquet").exists()
    assert files.csv.exists()


def test_a_finished_sweep_is_written_again_only_where_something_has_changed(tmp_path: Path) -> None:
    text = "matrix: {seed: [0]}\n"
    plan = plan_of(tmp_path, text)
    first = carry_out(plan, SmallSite()).files
    written = {path: path.stat().st_mtime_ns for path in first.paths()}
    log = log_file(plan.folder).read_bytes()
    again = carry_out(plan_of(tmp_path, text), SmallSite()).files
    assert again == first
    assert {path: path.stat().st_mtime_ns for path in first.paths()} == written
    assert log_file(plan.folder).read_bytes() == log
    first.csv.unlink()
    assert carry_out(plan_of(tmp_path, text), SmallSite()).files.csv.exists()
    carry_out(plan_of(tmp_path, f"description: Another.\n{text}"), SmallSite())
    assert "Another." in first.markdown.read_text()


def test_the_report_shows_results_spread_failures_and_costs() -> None:
    text = render_markdown(compose("tried", "What this is for.", LINES))
    assert "**3 of 5 cells finished; 1 failed; lowest error on test data 1.000e-03‡ (a-s0).**" in text
    assert "In 2 runs the winner's error is below the data-set error" in text
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
    record = read_record(plan.folder)
    for name, row in watch.rows.items():
        assert record.rows[name] == row
        assert row.nrmse == row.data_error
        assert row.flag == "at"
        effects = read_run(plan.folder / "runs" / name).effects.values()
        assert row.evaluation_seconds == 1.5 * sum(effect.kind == "evaluate" for effect in effects)
        assert row.seconds is not None
        assert row.data.startswith("advection-")
        assert row.effects > row.calls
        assert (row.rounds, row.cycles) == ((1, 1) if "tournament" in name else (0, 0))
