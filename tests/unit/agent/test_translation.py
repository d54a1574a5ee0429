"""The Translator: words become a checked specification, or questions, or a refusal; nothing is asked twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpc.journal import read_run
from sharp.agent.questions import QUESTIONS, Questions, take_answers, write_questions
from sharp.agent.replay import replay_and_compare
from sharp.agent.sessions import ROUNDS, session_folder
from sharp.agent.settings import ROLES, AgentConfig
from sharp.agent.translation import Answering, Translation, translate
from sharp.errors import ConfigurationError, ModelUnavailable
from sharp.llm.cards import ModelCard, load_card
from sharp.problems import load_problem
from sharp.problems.cases import load_case, load_ill_posed
from tests.helpers.models.scripted_rod import QUESTION, WORDS, ScriptedRod

RULE_BASED = load_card("rule-based")
SCRIPTED = ModelCard(name="scripted", description="a script", context=200_000, sampling=RULE_BASED.sampling)

Start = Callable[..., ScriptedRod]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Start:
    """Put a new script in place of the model's server, as a new process would find it."""

    def begin(**options: Any) -> ScriptedRod:
        script = ScriptedRod(**options)
        monkeypatch.setattr("sharp.agent.sessions.make_backend", lambda _, **__: script)
        return script

    return begin


def nobody(_: tuple[str, ...]) -> dict[str, str]:
    return {}


def fill_in(path: Path, answer: str) -> None:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    document["questions"][0]["answer"] = answer
    path.write_text(yaml.safe_dump(document), encoding="utf-8")


def go(folder: Path, answer: Answering = nobody, words: str = WORDS) -> Translation:
    """Let the scripted model translate words, or go on where this was left."""
    return translate(words, "scripted", SCRIPTED, folder, answer)


def played(statement: str, folder: Path) -> Translation:
    return translate(statement, "rule-based", RULE_BASED, folder, nobody)


def test_words_become_the_specification_that_they_mean(tmp_path: Path) -> None:
    case = load_case("heat-rod-two-ends")
    found = played(case.statements[0].text, tmp_path)
    assert found.understood
    problem = load_problem(found.problem)
    assert problem.equations == case.problem.equations
    assert (problem.bounds, problem.time) == (case.problem.bounds, case.problem.time)
    assert "Parsed: the problem is set up and checked" in found.report.read_text(encoding="utf-8")


def test_nothing_is_planned_that_solves(tmp_path: Path) -> None:
    found = played(load_case("heat-rod-two-ends").statements[0].text, tmp_path)
    assert found.finished.outcome.memory.plan.steps[-1].tool == "check_problem"
    assert found.finished.solution is None
    prompts = [
        effect.request["messages"][1]["content"]
        for effect in read_run(found.finished.folder).effects.values()
        if effect.kind == "chat"
    ]
    assert "Nothing more is wanted: it is solved elsewhere" in prompts[0]
    assert not any('"name": "solve_in_time"' in prompt for prompt in prompts)


def test_a_steady_problem_and_an_eigenvalue_problem_are_understood_like_any_other(tmp_path: Path) -> None:
    for name in ("laplace-annulus-log", "drum-tones"):
        found = played(load_case(name).statements[0].text, tmp_path / name)
        assert found.understood, found.finished.outcome.reason


def test_what_is_missing_is_asked_for_and_not_invented(tmp_path: Path) -> None:
    statement = load_ill_posed("rod-one-end").statements[0].text
    found = played(statement, tmp_path)
    assert not found.understood
    assert found.finished.outcome.ending == "needs_clarification"
    asked = yaml.safe_load((tmp_path / QUESTIONS).read_text(encoding="utf-8"))
    assert asked["statement"] == statement
    assert asked["session"] == found.finished.folder.name
    assert [entry["answer"] for entry in asked["questions"]] == [None]


def test_what_has_no_solution_is_refused_with_the_reason(tmp_path: Path) -> None:
    course = played(load_ill_posed("backward-rod").statements[0].text, tmp_path).finished.outcome
    assert (course.ending, bool(course.reason)) == ("rejected", True)


def test_answers_lead_on_and_the_same_words_ask_nobody_again(tmp_path: Path, start: Start) -> None:
    script, questions = start(), []

    def answer(asked: tuple[str, ...]) -> dict[str, str]:
        questions.extend(asked)
        return dict.fromkeys(asked, "it is insulated")

    found = go(tmp_path, answer)
    assert found.understood
    assert questions == [QUESTION]
    assert "dirichlet" in (written := found.problem.read_text(encoding="utf-8"))
    assert "neumann" in written
    assert "it is insulated" in script.asked[-1]
    again = start()
    assert go(tmp_path, answer).finished.outcome == found.finished.outcome
    assert (again.asked, questions) == ([], [QUESTION])


def test_answers_in_the_file_are_taken_by_the_same_words(tmp_path: Path, start: Start) -> None:
    start()
    assert go(tmp_path).finished.outcome.questions == (QUESTION,)
    fill_in(tmp_path / QUESTIONS, "insulated")
    assert go(tmp_path).understood


def test_answers_go_on_with_the_session_from_where_it_asked(tmp_path: Path, start: Start) -> None:
    first = start()
    asked = go(tmp_path).finished
    fill_in(tmp_path / QUESTIONS, "insulated")
    rest = start()
    found = go(tmp_path)
    assert found.finished.folder == asked.folder
    assert found.finished.answered == ((QUESTION, "insulated"),)
    assert "insulated" not in "".join(first.asked)
    assert all("Asked and answered:\n- What holds at x = 1? insulated" in prompt for prompt in rest.asked)
    assert not set(first.asked) & set(rest.asked)
    assert len(first.asked) + len(rest.asked) == found.finished.calls
    assert not (tmp_path / QUESTIONS).exists(), "what was answered is in the record"
    assert "Asked and answered" in found.report.read_text(encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sharp.agent.sessions.load_card", lambda _: SCRIPTED)
        assert replay_and_compare(tmp_path).same


def test_a_second_round_in_the_file_asks_what_is_still_open(tmp_path: Path, start: Start) -> None:
    start()
    go(tmp_path)
    fill_in(tmp_path / QUESTIONS, "no idea")
    second = go(tmp_path)
    assert second.finished.answered == ((QUESTION, "no idea"),)
    script = start()
    assert go(tmp_path).finished.outcome == second.finished.outcome
    assert script.asked == []
    fill_in(tmp_path / QUESTIONS, "insulated")
    assert go(tmp_path).understood
    assert "no idea" in script.asked[0]


def test_a_file_of_answers_from_elsewhere_is_put_into_the_folder(tmp_path: Path, start: Start) -> None:
    start()
    go(tmp_path / "run")
    elsewhere = (tmp_path / "run" / QUESTIONS).rename(tmp_path / "mine.yaml")
    fill_in(elsewhere, "insulated")
    assert take_answers(elsewhere, tmp_path / "run") == WORDS
    assert go(tmp_path / "run").understood


def test_a_file_of_answers_that_lacks_one_is_refused_and_kept(tmp_path: Path, start: Start) -> None:
    start()
    session = go(tmp_path).finished.folder.name
    write_questions(tmp_path, Questions(WORDS, session, {"How long?": "1 s", QUESTION: ""}))
    before = (tmp_path / QUESTIONS).read_bytes()
    with pytest.raises(ConfigurationError, match=r"missing: What holds at x = 1\?"):
        go(tmp_path)
    assert (tmp_path / QUESTIONS).read_bytes() == before


def test_answers_to_other_words_are_not_taken(tmp_path: Path, start: Start) -> None:
    start()
    write_questions(tmp_path, Questions("Other words.", "session-1", {QUESTION: "insulated"}))
    assert go(tmp_path).finished.outcome.questions == (QUESTION,)


def test_answers_to_a_session_with_other_settings_are_refused_and_kept(tmp_path: Path, start: Start) -> None:
    start()
    write_questions(tmp_path, Questions(WORDS, "session-1", {QUESTION: "insulated"}))
    with pytest.raises(
        ConfigurationError, match="answers to session-1, which was begun with other settings than"
    ):
        go(tmp_path)
    assert "insulated" in (tmp_path / QUESTIONS).read_text(encoding="utf-8")


def test_questions_end_after_the_last_round(tmp_path: Path, start: Start) -> None:
    start()
    rounds: list[int] = []

    def useless(asked: tuple[str, ...]) -> dict[str, str]:
        rounds.append(len(rounds))
        return dict.fromkeys(asked, f"no idea, {len(rounds)}")

    found = go(tmp_path, useless)
    assert (found.finished.outcome.ending, len(rounds)) == ("needs_clarification", ROUNDS)
    assert found.finished.answered == tuple((QUESTION, f"no idea, {n}") for n in range(1, ROUNDS + 1))


@pytest.mark.parametrize("calls", [1, 4, 6])
def test_a_translation_that_was_stopped_goes_on_and_asks_nothing_twice(
    tmp_path: Path, start: Start, calls: int
) -> None:
    words = f"{WORDS} The right end is insulated."
    whole = start()
    go(tmp_path / "whole", words=words)
    first = start(fails_at=calls)
    with pytest.raises(ModelUnavailable):
        go(tmp_path / "stopped", words=words)
    rest = start()
    assert go(tmp_path / "stopped", words=words).understood
    assert len(first.asked) == calls
    assert first.asked + rest.asked == whole.asked


def test_a_translation_is_replayed_from_its_record_alone(tmp_path: Path, start: Start) -> None:
    start()
    found = go(tmp_path, words=f"{WORDS} The right end is insulated.")
    start(fails_at=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sharp.agent.sessions.load_card", lambda _: SCRIPTED)
        assert replay_and_compare(tmp_path).same
        journal = found.finished.folder / "journal.jsonl"
        journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:5]))
        assert not replay_and_compare(tmp_path).same


def test_every_role_is_played_by_the_one_model_and_the_course_lies_in_the_folder(tmp_path: Path) -> None:
    statement = load_case("heat-rod-two-ends").statements[0].text
    found = played(statement, tmp_path)
    settings = AgentConfig(statement, dict.fromkeys(ROLES, "rule-based"), policy="translation")
    assert found.finished.folder == session_folder(tmp_path, settings)
