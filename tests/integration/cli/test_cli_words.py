"""`sharp run "words"`: what is asked, answered, shown and confirmed, and a run from a statement to a report."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from hpc.errors import RunDirectoryError, RunVersionError
from sharp.agent.settings import AgentConfig
from sharp.agent.team import AgentLimits
from sharp.cli.exits import exit_code
from sharp.cli.report import replay
from sharp.cli.run import run
from sharp.cli.solve import solve
from sharp.errors import ConfigurationError, DataError
from sharp.problems.cases import load_case, load_ill_posed
from tests.helpers.cli.sharp_command import Sharp, end, wait_for
from tests.helpers.models.scripted_chat_server import Act, Handler, ScriptedChatServer, completion, serving
from tests.helpers.models.scripted_rod import QUESTION, WORDS, answer_of

ROD = load_case("heat-rod-two-ends").statements[0].text
STEADY = load_case("laplace-annulus-log").statements[0].text
PLAN = ("--dry-run", "--run-dir", "r")


def model(handler: Handler, body: dict[str, Any]) -> None:
    handler.reply(200, completion(answer_of(body["messages"][1]["content"])))


def holding(number: int) -> Act:
    """Answer as the model does, but never the request of a number, counted from 1."""

    def act(handler: Handler, body: dict[str, Any]) -> None:
        if len(handler.server.bodies) == number:
            handler.server.stopping.wait(60.0)
        model(handler, body)

    return act


@pytest.fixture
def server() -> Iterator[ScriptedChatServer]:
    with serving() as server:
        server.script = [model]
        yield server


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody sits there."""
    monkeypatch.setattr("sharp.cli.run.at_terminal", lambda: True)


def told(*arguments: str, said: str = "") -> Result:
    return CliRunner().invoke(run, arguments, input=said)


def served(server: ScriptedChatServer) -> tuple[str, ...]:
    return ("--model", "local", "--base-url", server.url)


def prompts(server: ScriptedChatServer) -> list[str]:
    return [body["messages"][1]["content"] for body in server.bodies]


def answered(path: Path, answer: str) -> None:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    for entry in document["questions"]:
        entry["answer"] = answer
    path.write_text(yaml.safe_dump(document), encoding="utf-8")


def test_words_are_translated_shown_and_planned_for(here: Path) -> None:
    done = told(ROD, *PLAN)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "A steel rod between two temperatures"
    assert lines[1].split(None, 1) == ["equation", "u_t = alpha*u_xx"]
    assert "Specification: r/translation/problem.yaml" in lines
    assert "  problem: r/translation/problem.yaml" in lines
    assert sorted(path.name for path in (here / "r").iterdir()) == ["translation"]
    again = told(ROD, *PLAN, "--json")
    assert json.loads(again.stdout)["config"]["problem"] == "r/translation/problem.yaml"
    assert "asked" not in again.stderr


def test_what_words_leave_open_is_asked_for_in_a_file(here: Path) -> None:
    done = told(load_ill_posed("rod-one-end").statements[0].text, "--run-dir", "r")
    assert done.exit_code == 9, done.output
    file = "r/translation/questions.yaml"
    assert "Question: " in done.stdout
    assert f"To be answered: {file}; then: sharp run --run-dir r --answers {file}" in done.stdout
    assert "expected an answer" in str(told("--answers", file).exception)
    found = told(load_ill_posed("rod-one-end").statements[0].text, "--run-dir", "r", "--json")
    assert found.exit_code == 9
    assert json.loads(found.stdout)["ending"] == "needs_clarification"


def test_answers_in_the_file_lead_on_in_the_same_run(here: Path, server: ScriptedChatServer) -> None:
    assert told(WORDS, *PLAN, *served(server)).exit_code == 9
    file = here / "r" / "translation" / "questions.yaml"
    answered(file, "it is insulated")
    before = len(server.bodies)
    done = told("--answers", str(file), "--dry-run", *served(server))
    assert done.exit_code == 0, done.output
    assert f"Specification: {here / 'r' / 'translation' / 'problem.yaml'}" in done.stdout
    assert all("it is insulated" in prompt for prompt in prompts(server)[before:])
    assert len({*prompts(server)}) == len(prompts(server)), "nothing is asked twice"


def test_at_a_terminal_questions_are_asked_there(
    here: Path, server: ScriptedChatServer, terminal: None
) -> None:
    done = told(WORDS, *PLAN, *served(server), said="it is insulated\n")
    assert done.exit_code == 0, done.output
    assert QUESTION in done.stdout
    assert "du/dn = 0 at x = 1" in done.stdout
    before = len(server.bodies)
    again = told(WORDS, *PLAN, *served(server))
    assert (again.exit_code, QUESTION in again.stdout, len(server.bodies)) == (0, False, before)


def test_at_a_terminal_the_problem_is_confirmed(here: Path, terminal: None) -> None:
    denied = told(STEADY, "--run-dir", "r", said="n\n")
    assert denied.exit_code == 9
    assert "Is this the problem that you mean?" in denied.stdout
    assert "Say it in other words, or change r/translation/problem.yaml" in denied.stdout
    for said, options in (("y\n", ()), ("", ("--yes",))):
        done = told(STEADY, "--run-dir", "r", *options, said=said)
        assert isinstance(done.exception, DataError), "it went on to the data"
    assert not (here / "r" / "run.yaml").exists()


def test_a_problem_without_data_leads_to_sharp_solve(here: Path) -> None:
    done = told(STEADY, "--run-dir", "r")
    assert exit_code(done.exception) == 2
    assert "sharp solve" in str(done.exception)


def test_what_has_no_solution_is_refused_with_the_reason(here: Path) -> None:
    done = told(load_ill_posed("backward-rod").statements[0].text, "--run-dir", "r")
    assert done.exit_code == 2
    assert done.stdout.startswith("Not solvable as it stands: ")
    assert not (here / "r" / "run.yaml").exists()


def test_what_is_wrong_is_said_before_a_model_is_asked(here: Path, server: ScriptedChatServer) -> None:
    (here / "old").mkdir()
    (here / "old" / "run.yaml").write_text("")
    done = told(WORDS, "--run-dir", "old", *served(server))
    assert isinstance(done.exception, RunDirectoryError)
    assert "old already holds a run; continue it with: sharp resume old" in str(done.exception)
    done = told(WORDS, "--run-dir", "r", *served(server), "--set", "genesis.candidate=3")
    assert isinstance(done.exception, ConfigurationError)
    assert "genesis.candidate" in str(done.exception)
    done = told(WORDS, "--run-dir", "r", "--set", "models.analyst=nobody")
    assert "there is no model card 'nobody'" in str(done.exception)
    assert "expected a problem, a configuration file or a problem in words; or --answers" in told().output
    assert server.bodies == []
    assert [path.name for path in here.iterdir()] == ["old"]


def test_a_translation_that_was_killed_goes_on_and_asks_nothing_twice(
    sharp: Sharp, server: ScriptedChatServer, tmp_path: Path
) -> None:
    server.script = [holding(5)]
    command = (
        "run",
        f"{WORDS} The right end is insulated.",
        "--run-dir",
        tmp_path,
        "--dry-run",
        *served(server),
    )
    process = sharp.start(*command)
    wait_for(lambda: len(server.bodies) == 5, process)
    assert end(process, signal.SIGKILL)[0] == -signal.SIGKILL
    server.script = [model]
    sharp.ok(*command)
    asked = prompts(server)
    assert asked[5] == asked[4], "what was not answered is asked again"
    assert len({*asked}) == len(asked) - 1


def test_a_course_of_words_is_replayed_and_compared(here: Path) -> None:
    assert CliRunner().invoke(solve, [ROD, "--dir", "f"]).exit_code == 0
    assert told(ROD, *PLAN).exit_code == 0
    for folder in ("f", "r/translation"):
        done = CliRunner().invoke(replay, [folder])
        assert (done.exit_code, done.stdout) == (
            0,
            "Same ending, plan, findings and error, without a call.\n",
        )
    path = here / "f" / "solve_result.json"
    written = json.loads(path.read_text(encoding="utf-8"))
    changed = {**written, "error": 2 * written["error"] + 1e-3, "ending": "unsolved"}
    path.write_text(json.dumps(changed), encoding="utf-8")
    done = CliRunner().invoke(replay, ["f", "--json"])
    assert done.exit_code == 3
    assert json.loads(done.stdout) == {"same": False, "missing": None, "differing": ["ending", "error"]}
    (settings,) = (here / "f").glob("session-*/agent.yaml")
    settings.write_text(settings.read_text(encoding="utf-8").replace("format: 2\n", ""), encoding="utf-8")
    old = CliRunner().invoke(replay, ["f"]).exception
    assert isinstance(old, RunVersionError)
    assert str(old).startswith("agent.yaml was written in session format 1; this is pde-sharp ")
    path.unlink()
    assert "has the session ended?" in str(CliRunner().invoke(replay, ["f"]).exception)


def test_all_calls_used_up_is_a_code_of_its_own_and_leaves_a_report(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = lambda words, *_, **__: replace(AgentConfig(words), allowance=AgentLimits(calls=5))  # noqa: E731
    monkeypatch.setattr("sharp.cli.solve._team_config", short)
    done = CliRunner().invoke(solve, [ROD, "--dir", "f"])
    assert done.exit_code == 6
    assert done.stdout.startswith("Not solved: all 5 model calls that this problem may take are used up.")
    found = json.loads((here / "f" / "solve_result.json").read_text(encoding="utf-8"))
    assert (found["ending"], found["calls"], len(found["plan"])) == ("unsolved", 5, 15)
    assert "define_domain" in (here / "f" / "report.md").read_text(encoding="utf-8")
