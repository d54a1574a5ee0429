"""The table of published errors: what is shipped can be read, and what is wrong is named with its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sharp.errors import DataError
from sharp.neural.published import load_published, published_rows, read_published
from sharp.problems import list_problems
from sharp.resources import find_resource

SHIPPED = find_resource("data", "published/neural.yaml")
GOOD = """name: neural
unit: none
sources:
  paper: {cite: A paper, read_in: the paper}
metrics: {plain: as here}
settings: {usual: as usual}
rows:
  - {method: Zebra, problem: burgers, value: 1e-3, case: nu, source: paper,
     table: Table 1, metric: plain, setting: usual, comparable: no, note: none}
  - {method: Ape, problem: burgers, value: 1e-2, case: nu, source: paper,
     table: Table 1, metric: plain, setting: usual, comparable: no, note: none}
"""


def written(folder: Path, old: str = "", new: str = "") -> Path:
    assert old in GOOD
    path = folder / "neural.yaml"
    path.write_text(GOOD.replace(old, new, 1))
    return path


def test_the_shipped_table_cites_a_source_for_every_number() -> None:
    rows = load_published()
    assert {row.problem for row in rows} == set(list_problems())
    for row in rows:
        assert 0 < row.value < 1
        assert re.search(r"Table|section|supplement|results/|README", row.source), row
        assert all([row.metric, row.setting, row.read_in, row.note])


def test_rows_of_a_problem_are_sorted_by_name_and_not_by_error() -> None:
    methods = [row.method for row in published_rows("burgers")]
    assert methods == sorted(methods)
    assert {"FNO", "PINN", "UPS"} <= set(methods)
    assert published_rows("nothing") == ()


def test_a_smaller_error_does_not_come_first(tmp_path: Path) -> None:
    assert [row.method for row in read_published(written(tmp_path))] == ["Ape", "Zebra"]


def test_the_users_own_table_comes_before_the_shipped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data" / "published"
    folder.mkdir(parents=True)
    written(folder)
    monkeypatch.setenv("SHARP_RESOURCES", str(tmp_path))
    assert [row.method for row in load_published()] == ["Ape", "Zebra"]


@pytest.mark.parametrize(
    ("old", "new", "place", "complaint"),
    [
        ("source: paper,", "source: papier,", ":8: rows.0.source", "did you mean 'paper'?"),
        ("problem: burgers", "problem: burger", ":8: rows.0.problem", "did you mean 'burgers'?"),
        ("metrics: {plain: as here}", "metrics: {plain: as here, odd: other}", ":5: metrics.odd", "no row"),
        ("value: 1e-3", "value: -1", ":8: rows.0.value", "greater than 0"),
        (
            "comparable: no",
            "comparable: maybe",
            ":9: rows.0.comparable",
            "'yes', 'partly', 'no' or 'unknown'",
        ),
        ("table: Table 1, ", "", ":8: rows.0.table", "is missing"),
        ("unit: none", "units: none", ":2: units", "did you mean 'unit'?"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, place: str, complaint: str
) -> None:
    path = written(tmp_path, old, new)
    with pytest.raises(DataError) as raised:
        read_published(path)
    assert f"{path}{place}" in str(raised.value)
    assert complaint in str(raised.value)
