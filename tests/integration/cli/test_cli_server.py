"""Whole runs against a real HTTP server that plays a model, well and badly."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
import yaml

from hpc.journal import read_run
from sharp.llm.protocol import ChatRequest, Message
from sharp.rule_based.backend import RuleBasedBackend
from tests.helpers.cli.sharp_command import PROBLEM, Sharp, settings, tournament
from tests.helpers.models.scripted_chat_server import (
    Act,
    Handler,
    ScriptedChatServer,
    answer,
    completion,
    error,
    hang_up,
    serving,
    slow,
    truncated,
)

KEY = "sk-a-secret-that-nobody-may-see"
BEFORE_JUDGES = ("analysis", "genesis")

# The rule-based model reads programs, and in Python 3.11 two threads that do so at a time fail (SystemError).
ONE_AT_A_TIME = Lock()


def play(handler: Handler, body: dict[str, Any]) -> None:
    """Answer as the rule-based model does."""
    messages = tuple(Message(m["role"], m["content"]) for m in body["messages"])
    request = ChatRequest("tiny", "", messages, body["temperature"], body["max_tokens"], body["seed"])
    with ONE_AT_A_TIME:
        reply = asyncio.run(RuleBasedBackend("tiny").complete(request))
    usage = {"prompt_tokens": reply.usage.prompt, "completion_tokens": reply.usage.completion}
    handler.reply(200, {**completion(*reply.texts), "usage": usage})


FAULTS: tuple[Act, ...] = (
    answer(error("out of order"), status=500),
    answer(error("slow down"), status=429, Retry_After="1"),
    slow(60.0),
    truncated,
    answer(b"<html>not JSON</html>"),
    hang_up,
)


@pytest.fixture
def server() -> Iterator[ScriptedChatServer]:
    with serving() as server:
        server.script = [play]
        yield server


@pytest.fixture(scope="module")
def served(sharp: Sharp) -> tuple[Path, list[dict[str, Any]]]:
    """A finished run by a server that wants a key, and what the server was asked."""
    run = sharp.folder / "served"
    with serving() as server:
        server.script = [play]
        done = begin(sharp.with_variables(MY_KEY=KEY), run, server, "--json")
        assert done.returncode == 0, done.stderr
        assert "next attempt in" not in done.stderr, done.stderr
        assert set(server.keys) == {f"Bearer {KEY}"}
        assert KEY not in done.stdout + done.stderr
        return run, server.bodies


def begin(sharp: Sharp, run: Path, server: ScriptedChatServer, *arguments: object, **changes: str) -> Any:
    arguments = ("--model", "local", "--base-url", server.url, *arguments)
    changes = {"models__judges": "[local, local]", "models__servers__local__api_key_env": "MY_KEY", **changes}
    return sharp("run", PROBLEM, "--run-dir", run, *settings(**changes), *arguments)


def test_a_run_by_a_server_ends_as_one_by_the_embedded_rule_based_model(
    served: tuple[Path, Any], finished: Path
) -> None:
    by_server, by_rule_based_model = tournament(served[0]), tournament(finished)
    for name in ("candidate_code", "selection_shortlist", "turn_candidate", "best"):
        assert by_server[name] == by_rule_based_model[name]


def test_every_call_reached_the_server_once(served: tuple[Path, list[dict[str, Any]]]) -> None:
    run, bodies = served
    question, *asked = bodies
    assert len(asked) == sum(effect.kind == "chat" for effect in read_run(run).effects.values())
    assert question["max_tokens"] == 16


def test_answers_that_are_json_are_held_to_schemas_that_the_record_holds(
    served: tuple[Path, list[dict[str, Any]]],
) -> None:
    """The server took a schema when the run began."""
    run, (_, *bodies) = served
    assert "structured_output: 'on'" in (run / "run.yaml").read_text()
    chats = {path: effect for path, effect in read_run(run).effects.items() if effect.kind == "chat"}
    held = {path for path, effect in chats.items() if "schema" in effect.request}
    assert {path for path in chats if path.startswith(("analysis/", "cycle-1/select/"))} <= held
    assert not [path for path in held if "/code" in path or "/round-" in path]
    sent = [body["response_format"]["json_schema"]["schema"] for body in bodies if "response_format" in body]
    recorded = [chats[path].request["schema"] for path in held]
    assert sorted(map(str, sent)) == sorted(map(str, recorded))
    for path in held:
        assert "Answer with that JSON object alone" in chats[path].request["messages"][-1]["content"]


def test_a_smaller_context_of_the_server_is_frozen_into_the_run(
    sharp: Sharp, server: ScriptedChatServer, tmp_path: Path
) -> None:
    server.models = [{"id": "tiny", "max_model_len": 9000}]
    done = begin(sharp.with_variables(MY_KEY=KEY), tmp_path / "run", server, budget__calls="1")
    assert done.returncode == 6
    card = yaml.safe_load((tmp_path / "run" / "run.yaml").read_text())["models"]["local"]
    assert (card["context"], card["sampling"]["max_tokens"]) == (9000, 4500)
    assert "First turn of 2 judges, local: about " in done.stderr
    assert "4,500 fit beside the answer" in done.stderr


def test_no_file_holds_the_key(served: tuple[Path, Any]) -> None:
    files = [file for file in served[0].rglob("*") if file.is_file()]
    assert len(files) > 20
    assert not [file for file in files if KEY.encode() in file.read_bytes()]


def test_a_server_that_misbehaves_changes_nothing(
    sharp: Sharp, served: tuple[Path, Any], server: ScriptedChatServer, tmp_path: Path
) -> None:
    server.script = [play, *(act for fault in FAULTS for act in (play, play, fault)), play]
    sharp = sharp.with_variables(MY_KEY=KEY)
    done = begin(sharp, tmp_path / "run", server, models__attempt_timeout_s="15")
    assert done.returncode == 0, done.stderr
    assert len(server.bodies) == len(served[1]) + len(FAULTS)
    for complaint in ("HTTP 500: out of order", "HTTP 429: slow down", "next attempt in"):
        assert complaint in done.stderr
    assert tournament(tmp_path / "run") == tournament(served[0])


def test_a_server_that_quotes_the_key(sharp: Sharp, server: ScriptedChatServer, tmp_path: Path) -> None:
    server.script = [answer(error(f"Incorrect key {KEY}"), status=401)]
    done = begin(sharp.with_variables(MY_KEY=KEY), tmp_path / "run", server)
    assert done.returncode == 4
    assert "did not accept the key from environment variable MY_KEY" in done.stderr
    assert KEY not in done.stderr + (tmp_path / "run" / "journal.jsonl").read_text()


def test_a_dead_server_ends_the_run_and_another_goes_on(
    sharp: Sharp, served: tuple[Path, Any], server: ScriptedChatServer, tmp_path: Path
) -> None:
    run, sharp = tmp_path / "run", sharp.with_variables(MY_KEY=KEY)
    server.script = [play, play, play, play, answer(error("overloaded"), status=503)]
    dead = begin(sharp, run, server, models__deadline_s="15")
    assert dead.returncode == 4
    assert "HTTP 503: overloaded" in dead.stderr
    assert f"continue with: sharp resume {run}" in dead.stderr
    assert len(read_run(run).effects) == 3
    with serving() as other:
        other.script = [play]
        sharp.ok("resume", run, "--server", f"local={other.url}")
        assert len(other.bodies) == len(served[1]) - 4
    assert tournament(run) == tournament(served[0])
    assert other.url in (run / "run.yaml").read_text()


def test_genesis_is_reused_without_a_call(
    sharp: Sharp, served: tuple[Path, Any], server: ScriptedChatServer, tmp_path: Path
) -> None:
    effects = read_run(served[0]).effects
    own = [path for path, e in effects.items() if e.kind == "chat" and not path.startswith(BEFORE_JUDGES)]
    changes = {"genesis__replay_from": str(served[0]), "budget__calls": str(len(own) + 1)}
    done = begin(sharp.with_variables(MY_KEY=KEY), tmp_path / "run", server, **changes)
    assert done.returncode == 0, done.stderr
    assert len(server.bodies) == 1 + len(own)
    assert tournament(tmp_path / "run") == tournament(served[0])


def test_only_the_same_question_is_answered_by_another_run(
    sharp: Sharp, served: tuple[Path, Any], server: ScriptedChatServer, tmp_path: Path
) -> None:
    changes = {"genesis__replay_from": str(served[0]), "sampling__genesis__temperature": "0.1"}
    done = begin(sharp.with_variables(MY_KEY=KEY), tmp_path / "run", server, budget__calls="1", **changes)
    assert done.returncode == 6
    assert len(server.bodies) == 2
    recorded = read_run(tmp_path / "run").effects
    assert {path.split("/")[0] for path in recorded} == {"analysis", "genesis"}
    assert len([path for path in recorded if path.startswith("genesis")]) == 1


def test_a_recorded_run_answers_for_all_models(
    sharp: Sharp, served: tuple[Path, Any], server: ScriptedChatServer, tmp_path: Path
) -> None:
    changes = {"models__replay_from": str(served[0]), "evaluation__memory_mb": "4000"}
    done = begin(sharp, tmp_path / "run", server, **changes)
    assert done.returncode == 0, done.stderr
    assert server.bodies == []
    assert tournament(tmp_path / "run") == tournament(served[0])
