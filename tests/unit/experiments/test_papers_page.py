"""The page of the paper's tables and figures lists all of them, with commands that there are or a reason."""

from __future__ import annotations

import re

import pytest
from click import Context, Group

from sharp.cli import cli
from sharp.experiments.studies.study_file import list_studies, read_study
from sharp.neural.paper_tables import paper_tables
from tests.helpers import ROOT

PAGE = (ROOT / "docs" / "reference" / "papers.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if re.match(r"\| (Table|Figure|appendix) ", line)
]


def test_every_table_and_figure_is_listed_once() -> None:
    places = [place.strip("| ") for place, *_ in ROWS]
    assert [place for place in places if place.startswith("Table")] == [f"Table {n}" for n in range(1, 23)]
    figures = dict.fromkeys(place for place in places if place.startswith("Figure"))
    assert [*figures] == [f"Figure {number}" for number in range(1, 19)]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]}-{number}" for number, row in enumerate(ROWS)])
def test_a_row_has_a_command_that_exists_or_a_reason(row: list[str]) -> None:
    how = row[-1].strip(" |")
    if how.startswith("none: "):
        assert len(how) > 20
        return
    found = re.match(r"`sharp ([a-z0-9 -]+)`", how)
    assert found, how
    command, context = cli, Context(cli)
    words = found[1].split()
    for index, word in enumerate(words):
        if not isinstance(command, Group):
            assert (words[:index], words[index:]) == (["reproduce"], [word])
            assert word in list_studies()
            return
        command = command.get_command(context, word)
        assert command is not None, how
    assert not isinstance(command, Group), f"{how} only lists commands"


def test_every_published_value_is_of_a_place_that_the_page_lists() -> None:
    cited = {each.table for name in list_studies() for each in read_study(name).study.published.figures}
    listed = {row[0].strip("| ") for row in ROWS}
    assert {place for place in cited if place.startswith("Table")} <= listed


def test_tables_of_neural_solvers_are_those_of_the_paper() -> None:
    tables = {each.table: each for each in paper_tables()}
    assert [*tables] == [f"Table {number}" for number in range(4, 10)]
    assert [len(each.rows) for each in tables.values()] == [1, 5, 5, 1, 2, 4]
    printed = [cell for each in tables.values() for row in each.rows for cell in row[1:] if cell]
    assert len(printed) == 6 + 5 * 6 + 3 + 2 * 3 + 4 * 3
    # The same value of FNO's is quoted elsewhere, too.
    assert "0.0160" in tables["Table 4"].rows[0]
