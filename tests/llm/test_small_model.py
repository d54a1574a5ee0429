"""A real small model plays a reduced tournament and three sessions of the team, at whatever server serves it.

Not part of the default tests: `sh tools/test_llm.sh` gets the model, serves it by llama.cpp or vLLM and runs these. The
model solves little. What is shown is that the machine treats it well: each ending is clear, each failure has a name, no
call is lost, and what was answered is never asked again.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import get_args

import pytest

from hpc.journal import EffectRecord, read_run
from sharp.api import write_report
from sharp.evaluation.protocol import FailureKind
from sharp.problems.cases import load_case, load_ill_posed
from tests.helpers.cli.sharp_command import Sharp

URL = os.environ.get("SHARP_TEST_BASE_URL", "")

pytestmark = pytest.mark.skipif(not URL, reason="takes a real model and half an hour: sh tools/test_llm.sh")

CARD = f"""
name: small
description: a small code model
context: 16384
sampling: {{temperature: 0.7, max_tokens: 400}}
sampling_by_purpose:
  genesis: {{max_tokens: 600}}
  debug: {{max_tokens: 600}}
api: {{structured_output: "on"}}  # both servers offer it; to find out would take a request that no record holds
base_url: {URL}
"""
REDUCED = {
    "analysis.prompting": "merged",
    "genesis.candidates": 2,
    "genesis.two_step": "false",
    "synthesis.max_cycles": 1,
    "synthesis.max_rounds": 2,
    "synthesis.repairs": 1,
    "synthesis.patch_retries": 1,
    "evaluation.coarsen": 8,
    "evaluation.validation": 2,
    "evaluation.test": 2,
    "evaluation.smoke": 1,
    "models.concurrency": 1,
}
# What the servers say of themselves: llama.cpp counts prompt tokens from its cache apart, vLLM does not.
PROMPT = ("llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total", "vllm:prompt_tokens_total")
AT_WORK = ("llamacpp:requests_processing", "vllm:num_requests_running")
WRITTEN = ("llamacpp:tokens_predicted_total", "vllm:generation_tokens_total")
CODES = {"solved": (0, 3), "unsolved": (3, 6), "needs_clarification": (9,), "rejected": (2,)}
WORDS = "u_t = 0.1 u_xx on (0, 1), u = 0 at both ends, u = sin(pi x) at first, until t = 1"


@dataclass(frozen=True)
class Tokens:
    """Tokens of prompts and of answers."""

    prompt: int
    written: int


def counted() -> Tokens:
    """Return what the server has counted since it was started, once it works on no request."""
    while True:
        with urllib.request.urlopen(URL.removesuffix("/v1") + "/metrics", timeout=60) as answer:
            text = answer.read().decode()
        lines = re.findall(r"^([a-z:_]+)(?:\{.*\})? ([0-9.e+]+)$", text, re.MULTILINE)
        if not any(float(n) for name, n in lines if name in AT_WORK):
            break
        time.sleep(0.1)
    return Tokens(
        *(int(sum(float(n) for name, n in lines if name in wanted)) for wanted in (PROMPT, WRITTEN))
    )


def recorded(run: Path) -> dict[str, EffectRecord]:
    """Return the calls of models that a server has answered, by their places in the record."""
    effects = read_run(run).effects
    return {
        path: e for path, e in effects.items() if e.kind == "chat" and e.reply["served_by"] != "rule-based"
    }


@contextmanager
def nothing_asked() -> Iterator[None]:
    before = counted()
    yield
    assert counted() == before


@pytest.fixture(scope="module")
def sharp(tmp_path_factory: pytest.TempPathFactory) -> Sharp:
    made = Sharp(tmp_path_factory.mktemp("small"))
    (made.folder / "small.yaml").write_text(CARD)
    return made


def asked(sharp: Sharp, folder: Path, *arguments: object) -> CompletedProcess[str]:
    """Run a command; check that the record below a folder holds, to the token, what the server has answered."""
    before, began = counted(), time.monotonic()
    done = sharp(*arguments, "--json")
    after, seconds = counted(), time.monotonic() - began
    assert "Traceback" not in done.stderr, done.stderr
    records = [path.parent for path in folder.rglob("journal.jsonl")]
    usages = [effect.reply["usage"] for record in records for effect in recorded(record).values()]
    assert len(usages) > 0
    held = Tokens(*(sum(usage[kind] for usage in usages) for kind in ("prompt", "completion")))
    sys.stdout.write(f"{folder.name}: exit {done.returncode}, {len(usages)} calls, {held}, {seconds:.0f} s\n")
    assert Tokens(after.prompt - before.prompt, after.written - before.written) == held
    return done


@pytest.mark.parametrize("writer", ["small.yaml", "rule-based"])
def test_a_tournament_ends_clearly_and_loses_nothing(sharp: Sharp, writer: str) -> None:
    """Small models seldom write a program that runs: with those of the rule-based model they judge and patch, too."""
    run = sharp.folder / f"tournament-by-{writer.removesuffix('.yaml')}"
    values = {
        **REDUCED,
        "models.analyst": writer,
        "models.generator": writer,
        "models.judges": "[small.yaml]",
    }
    options = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
    done = asked(sharp, run, "run", "advection", "--run-dir", run, "--model", "small.yaml", *options)
    assert done.returncode in (0, 3), done.stderr
    with nothing_asked():
        finished = write_report(run)
        assert (finished.best is None) == (done.returncode == 3)
        state = finished.state
        assert len(state.candidates) + len(state.discarded) >= REDUCED["genesis.candidates"]
        assert all(reason.strip() for reason in state.discarded.values())
        for evaluation in (e for e in read_run(run).effects.values() if e.kind == "evaluate"):
            failure = evaluation.reply["failure"]
            assert failure is None or (failure["kind"] in get_args(FailureKind) and failure["message"])
        assert finished.report.stat().st_size > 10_000
        assert sharp("replay", run).returncode == 0
        assert sharp("resume", run, "--json").returncode == done.returncode
    if writer == "rule-based":
        assert finished.best is not None
        assert any("/judge-" in place for place in recorded(run))


@pytest.mark.parametrize(
    ("name", "words", "team"),
    [
        ("all", WORDS, ["small.yaml"]),
        (
            "parser",
            load_case("heat-rod-two-ends").statements[0].text,
            ["rule-based", "small.yaml", "small.yaml", "rule-based", "rule-based"],
        ),
        (
            "open",
            load_ill_posed("rod-one-end").statements[0].text,
            ["rule-based", "small.yaml", "small.yaml", "small.yaml", "rule-based"],
        ),
    ],
)
def test_a_session_ends_clearly_and_loses_nothing(
    sharp: Sharp, name: str, words: str, team: list[str]
) -> None:
    folder = sharp.folder / f"session-by-{name}"
    command = ("solve", words, "--dir", folder, *(part for model in team for part in ("--model", model)))
    done = asked(sharp, folder, *command)
    found = json.loads(done.stdout)
    assert done.returncode in CODES[found["ending"]], found["sentence"]
    assert found["sentence"]
    assert (found["ending"] == "needs_clarification") == bool(found["questions"])
    assert Path(found["report"]).stat().st_size > 3000
    with nothing_asked():
        replayed = sharp("replay", folder)
        assert replayed.returncode == 0, replayed.stdout
        again = sharp(*command, "--json")
        assert (again.returncode, json.loads(again.stdout)["calls"]) == (done.returncode, found["calls"])
