"""Study files: read strictly, and all that are shipped can be planned for anybody who may play in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from made import STUDY, VIEW, planned, tried, written

from sharp.documents import read_document
from sharp.errors import ConfigurationError
from sharp.studies.cast import (
    folder_of,
    is_played,
    is_quick,
    of_models,
    of_the_paper,
    of_the_playbook,
    with_cast,
)
from sharp.studies.form import list_studies, read_study
from sharp.sweeps.library import Library

SHIPPED = sorted(list_studies())


@pytest.fixture
def earlier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place to start from that has the earlier run which the study of reports wants."""
    (tmp_path / "earlier-run").mkdir()
    (tmp_path / "earlier-run" / "run.yaml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STUDY + VIEW + "colour: red\n", "tried.yaml:10: colour is not a key of a study. Valid: name, title"),
        (
            STUDY + VIEW.replace("method", "metod"),
            "tried.yaml:9: views.0.rows: the sweep has no axis 'metod'; did you",
        ),
        (STUDY + VIEW.replace("columns: problem", "columns: size"), "the sweep has no axis 'size'"),
        (
            STUDY + VIEW.replace("rows:", "measure: speed, rows:"),
            "tried.yaml:9: views.0: there is no measure 'speed'",
        ),
        (STUDY + VIEW.replace("rows:", "show: shares, rows:"), "there is no measure 'nrmse' to show so"),
        (
            STUDY + VIEW.replace("rows:", "show: paired, rows:"),
            "`reference` goes with `show: paired or reaching`",
        ),
        (STUDY + VIEW.replace("rows:", "against: seed, rows:"), "`against` goes with `show: against`"),
        (STUDY + "of: table2\n" + VIEW, "expected either `sweep`, a sweep file, or `of`"),
        (STUDY.replace("models: {generators: [gpt-4o, o3]}\n", "") + VIEW, "`models` go with `sweep`"),
        (
            STUDY.replace("sweep: tried", "sweep: mian") + VIEW,
            "tried.yaml:5: sweep: there is no sweep 'mian'; did you mean",
        ),
        (
            STUDY.replace("name: tried", "name: other") + VIEW,
            "tried.yaml:1: name: the name of a study must be that of its file",
        ),
        (STUDY + "views: []\n", "tried.yaml:8: views: "),
    ],
)
def test_what_is_wrong_with_a_study_is_told_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    path = written(tmp_path, monkeypatch, text)
    with pytest.raises(ConfigurationError) as caught:
        read_study(str(path))
    assert said in str(caught.value)


def test_an_unknown_study_is_answered_with_those_there_are() -> None:
    with pytest.raises(ConfigurationError, match="there is no study 'tabel2'; did you mean 'table2'"):
        read_study("tabel2")


def test_a_view_of_another_study_must_name_one_with_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = "name: tried\ntitle: t\nreproduces: r\nabout: a\nof: orders\n"
    path = written(tmp_path, monkeypatch, head + VIEW)
    with pytest.raises(ConfigurationError, match="of: 'orders' has no runs of its own"):
        read_study(str(path))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_study_can_be_planned_by_the_playbook(earlier: Path, name: str) -> None:
    plan = planned(read_study(name), earlier / "sweep", quick=True)
    assert plan.cells
    assert {model for cell in plan.cells for model in [cell.config.models.generator]} == {"playbook"}
    assert {card.kind for card in Library().cards_asked(cell.config for cell in plan.cells)} == {"playbook"}


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_study_can_be_planned_with_the_models_of_the_paper(earlier: Path, name: str) -> None:
    file = read_study(name)
    plan = planned(file, earlier / "sweep", of_the_paper(file.models))
    assert {cell.config.models.generator for cell in plan.cells} == set(file.models.generators)
    assert {cell.config.models.played_by for cell in plan.cells} == {None}


def test_the_main_table_has_six_methods_five_problems_and_three_seeds(tmp_path: Path) -> None:
    plan = planned(read_study("table2"), tmp_path / "sweep", quick=True)
    assert len(plan.cells) == 6 * 5 * 3
    assert {cell.config.evaluation.validation for cell in plan.cells} == {2}


def test_the_structure_study_has_twenty_juries_and_none(tmp_path: Path) -> None:
    plan = planned(read_study("structure"), tmp_path / "sweep")
    one = [cell for cell in plan.cells if cell.config.problem == "darcy"]
    juries = {
        (cell.config.models.judges, cell.config.synthesis.criteria)
        for cell in one
        if cell.config.synthesis.mode == "tournament"
    }
    assert (len(one), len(juries)) == (21, 20)
    assert len(plan.shares) == 100  # what one writes for each problem, all others take


def test_published_values_stand_in_columns_and_rows_that_the_study_has(tmp_path: Path) -> None:
    for name in SHIPPED:
        file = read_study(name)
        named = {axis for view in file.study.views for axis in view.rows}
        for cited in file.study.published.figures:
            assert set(cited.at) <= named
            assert any(
                cited.measure == view.measure and set(cited.at) <= set(view.rows) for view in file.study.views
            )
            assert cited.source or file.study.published.source


def test_the_models_of_the_user_take_all_roles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tried(tmp_path, monkeypatch)
    plan = planned(file, tmp_path / "sweep", of_models(file.models, ("qwen3-32b", "gpt-oss-120b"), ()))
    models = {cell.values["generator"]: cell.config.models for cell in plan.cells}
    assert set(models) == {"qwen3-32b", "gpt-oss-120b"}
    assert models["gpt-oss-120b"].analyst == models["gpt-oss-120b"].reporter == "gpt-oss-120b"
    assert {each.judges for each in models.values()} == {("qwen3-32b", "gpt-oss-120b", "qwen3-32b")}


def test_judges_of_the_user_are_the_jury(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tried(tmp_path, monkeypatch)
    plan = planned(file, tmp_path / "sweep", of_models(file.models, ("qwen3-32b",), ("o3", "o3")))
    assert {cell.config.models.judges for cell in plan.cells} == {("o3", "o3")}


def test_a_study_of_juries_gives_the_roles_of_the_paper_to_three_judges(tmp_path: Path) -> None:
    file, three = read_study("structure"), ("qwen3-32b", "gpt-oss-120b", "gemma-3-27b")
    plan = planned(file, tmp_path / "sweep", of_models(file.models, ("qwen3-32b",), three))
    assert plan.by_id["o3+gpt-4o-darcy-qwen3-32b-s0"].config.models.judges == ("qwen3-32b", "gpt-oss-120b")
    with pytest.raises(ConfigurationError, match="name three different ones with --judge"):
        planned(file, tmp_path / "other", of_models(file.models, ("qwen3-32b",), ()))


def test_seeds_quick_settings_and_overrides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tried(tmp_path, monkeypatch)
    cast = of_the_playbook(file.models)
    whole, quick = with_cast(file, cast), with_cast(file, cast, quick=True)
    assert (is_quick(file, whole), is_quick(file, quick)) == (False, True)
    assert is_played(quick)
    assert quick.form.matrix["seed"] == [0]
    assert with_cast(file, cast, seeds=3, quick=True).form.matrix["seed"] == [0, 1, 2]
    changed = with_cast(file, cast, ["evaluation.validation=7"], quick=True)
    assert changed.base.data["evaluation"] == {"validation": 7}
    assert not is_quick(file, changed)


def test_quick_runs_and_those_of_other_players_lie_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tried(tmp_path, monkeypatch)
    played, paper = of_the_playbook(file.models), of_the_paper(file.models)
    folders = [folder_of(file, cast, quick=quick) for cast in (played, paper) for quick in (False, True)]
    assert [str(path) for path in folders] == [
        "sweeps/tried-playbook",
        "sweeps/tried-playbook-quick",
        "sweeps/tried",
        "sweeps/tried-quick",
    ]
    assert folder_of(read_study("orders"), played, quick=False) == Path("sweeps/table2-playbook")


def test_the_sweep_of_a_study_is_a_sweep_file_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tried(tmp_path, monkeypatch)
    frozen = with_cast(file, of_the_paper(file.models)).frozen()
    (tmp_path / "sweep.yaml").write_bytes(frozen)
    matrix = read_document(tmp_path / "sweep.yaml", ConfigurationError, "a sweep").data["matrix"]
    assert list(matrix) == ["method", "problem", "genesis.candidates", "generator", "seed"]
