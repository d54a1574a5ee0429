"""The Translator: words become a checked specification, or questions, or a refusal; nothing is asked twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpc.journal import read_run
from sharp.agent.export import QUESTIONS, with_answers, without_answers, write_questions
from sharp.agent.replay import replay_and_compare
from sharp.agent.sessions import session_folder
from sharp.agent.settings import ROLES, AgentConfig
from sharp.agent.translation import ROUNDS, Answering, Translation, load_answers, translate
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
        monkeypatch.setattr("sharp.agent.sessions.make_backend", lambda _: script)
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
    assert "Understood: the problem is set up and checked" in found.report.read_text(encoding="utf-8")


def test_nothing_is_planned_that_solves(tmp_path: Path) -> None:
    found = played(load_case("heat-rod-two-ends").statements[0].text, tmp_path)
    assert found.finished.course.memory.plan.steps[-1].tool == "check_problem"
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
        assert found.understood, found.finished.course.reason


def test_what_is_missing_is_asked_for_and_not_invented(tmp_path: Path) -> None:
    statement = load_ill_posed("rod-one-end").statements[0].text
    found = played(statement, tmp_path)
    assert not found.understood
    assert found.finished.course.ending == "needs_clarification"
    asked = yaml.safe_load((tmp_path / QUESTIONS).read_text(encoding="utf-8"))
    assert without_answers(asked["statement"]) == statement.strip()
    assert [entry["answer"] for entry in asked["questions"]] == [None]


def test_what_has_no_solution_is_refused_with_the_reason(tmp_path: Path) -> None:
    course = played(load_ill_posed("backward-rod").statements[0].text, tmp_path).finished.course
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
    assert go(tmp_path, answer).finished.course == found.finished.course
    assert (again.asked, questions) == ([], [QUESTION])


def test_answers_in_the_file_are_taken_by_the_same_words(tmp_path: Path, start: Start) -> None:
    start()
    assert go(tmp_path).finished.course.questions == (QUESTION,)
    fill_in(tmp_path / QUESTIONS, "insulated")
    assert go(tmp_path).understood


def test_a_second_round_in_the_file_begins_with_the_answers_of_the_first(
    tmp_path: Path, start: Start
) -> None:
    start()
    go(tmp_path)
    fill_in(tmp_path / QUESTIONS, "no idea")
    second = go(tmp_path)
    assert "no idea" in second.finished.settings.statement
    script = start()
    assert go(tmp_path).finished.course == second.finished.course
    assert script.asked == []
    fill_in(tmp_path / QUESTIONS, "insulated")
    assert go(tmp_path).understood
    assert "no idea" in script.asked[0]


def test_a_file_of_answers_from_elsewhere_is_put_into_the_folder(tmp_path: Path, start: Start) -> None:
    start()
    write_questions(tmp_path, WORDS, {QUESTION: "insulated"})
    assert load_answers(tmp_path / QUESTIONS, tmp_path / "run") == WORDS
    assert go(tmp_path / "run").understood


def test_a_file_of_answers_that_lacks_one_is_refused_and_kept(tmp_path: Path, start: Start) -> None:
    start()
    write_questions(tmp_path, WORDS, {"How long?": "1 s", QUESTION: None})
    before = (tmp_path / QUESTIONS).read_bytes()
    with pytest.raises(ConfigurationError, match=r"missing: What holds at x = 1\?"):
        go(tmp_path)
    assert (tmp_path / QUESTIONS).read_bytes() == before


def test_answers_to_other_words_are_not_taken(tmp_path: Path, start: Start) -> None:
    start()
    write_questions(tmp_path, "Other words.", {QUESTION: "insulated"})
    assert go(tmp_path).finished.course.questions == (QUESTION,)


def test_questions_end_after_the_last_round(tmp_path: Path, start: Start) -> None:
    start()
    rounds: list[int] = []

    def useless(asked: tuple[str, ...]) -> dict[str, str]:
        rounds.append(len(rounds))
        return dict.fromkeys(asked, f"no idea, {len(rounds)}")

    found = go(tmp_path, useless)
    assert (found.finished.course.ending, len(rounds)) == ("needs_clarification", ROUNDS)
    told = found.finished.settings.statement
    assert without_answers(told) == WORDS
    assert all(f"no idea, {number}" in told for number in range(1, ROUNDS + 1))


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


def test_a_statement_with_answers_is_told_from_the_one_before() -> None:
    once = with_answers("Two words.", {"Which?": "These."})
    twice = with_answers(once, {"Really?": "Yes."})
    assert without_answers(twice) == without_answers(once) == without_answers("Two words.") == "Two words."
