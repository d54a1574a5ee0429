"""What the report says of the programs as they were written: distinct ones, authors, methods asked for, short runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sharp.document import Bullets, Table
from sharp.experiments.summarise import summarise
from sharp.report.document import build_report
from tests.helpers.documents.report_blocks import blocks_of, evidence_of, report_of, rows_of, words_of
from tests.helpers.documents.report_runs import Script, play
from tests.helpers.models.scripted import fenced, program

TWICE = Script(
    rules={
        r"^genesis/c003/code$": fenced(program(0.1, "c001").replace("NAME", "TITLE")),
        r"^genesis/c004/code$": fenced(program(0.4, "c001")),
    }
)
VARIED: dict[str, Any] = {
    "genesis": {"candidates": 4, "assignments": "plan", "smoke_run": True},
    "models": {"generators": ["rule-based", "local"]},
}


def test_programs_that_were_written_twice_are_named_and_counted(tmp_path: Path) -> None:
    run, state = play(tmp_path, TWICE)
    evidence = evidence_of(run, state)
    report = build_report(evidence)
    assert "4 programs written first, 3 of them distinct" in words_of(report, "variety")
    assert blocks_of(report, "variety", Bullets)[0] == Bullets(("c001 = c003",))
    variants = blocks_of(report, "variety", Bullets)[1]
    assert "c004 is c001 with ERROR = 0.4, there 0.1" in variants.items
    row = summarise(run, evidence.record.effects, state, "finished")
    assert (row.written, row.distinct) == (4, 3)


def test_nothing_is_said_of_authors_methods_and_short_runs_where_there_is_nothing_to_say(
    tmp_path: Path,
) -> None:
    report = report_of(tmp_path)
    assert blocks_of(report, "variety", Table) == []
    assert "Short runs" not in words_of(report, "variety")


def test_authors_methods_and_short_runs_are_told(tmp_path: Path) -> None:
    run, state = play(tmp_path, TWICE, **VARIED)
    report = build_report(evidence_of(run, state))
    authors, methods = (rows_of(table) for table in blocks_of(report, "variety", Table))
    assert [(row["author"], row["programs"]) for row in authors] == [("rule-based", "2"), ("local", "2")]
    assert authors[0]["tried"] == "2"  # c001 and c003 were nominated
    assert authors[0]["best"] == "1.000e-01"
    assert [row["program"] for row in methods] == ["c001", "c002", "c003", "c004"]
    asked = state.candidates["c001"].assignment
    assert methods[0]["integrator"] == asked.integrator
    assert (methods[0]["result"], methods[3]["result"]) == ("1.000e-01", "not run")
    assert "Short runs before judging: 4 of 4 programs passed." in words_of(report, "variety")


def test_the_lineage_tells_the_method_of_a_nominee(tmp_path: Path) -> None:
    from sharp.report.figures import lineage_of

    run, state = play(tmp_path, TWICE, **VARIED)
    tips = {node.id: node.tip for row in lineage_of(evidence_of(run, state)).rows for node in row.nodes}
    assert tips["c001"] == str(state.candidates["c001"].assignment)


def test_short_runs_that_fail_are_among_the_failures_once(tmp_path: Path) -> None:
    broken = Script(rules={r"^genesis/c00[14]/code$": fenced(program(0.1, crash="boom"))})
    report = report_of(
        tmp_path, broken, **{**VARIED, "synthesis": {"max_cycles": 1, "max_rounds": 1, "repairs": 0}}
    )
    (failures,) = blocks_of(report, "failures", Table)
    assert [(row["class"], row["runs"]) for row in rows_of(failures)] == [("exception", "1")]
    assert "2 of 4 programs passed; exception: 2" in words_of(report, "variety")
