"""What a person sees of each method while it works, and of its record when it was interrupted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpc.journal import Journal
from sharp.config import to_plain
from sharp.document import render_terminal
from sharp.evaluation.protocol import Evaluation, EvaluationRequest
from sharp.llm.protocol import ChatReply, ChatRequest, TokenUsage
from sharp.methods import run_method
from sharp.runs.directory import RunDirectory
from sharp.runs.effects import JournaledEffects
from sharp.runs.progress import ProgressView
from sharp.runs.status import status_blocks, view
from sharp.tournament.run_context import RunContext
from tests.helpers.models.scripted import evaluation, fenced, program, session

METHODS: Mapping[str, Mapping[str, Any]] = {
    "codepde": {},
    "codepde-refine": {"refine": {"parents": [2], "generations": 3}},
    "funsearch": {"funsearch": {"initial": 4, "iterations": 9}},
    "aide": {"aide": {"steps": 9, "drafts": 4}},
}


class Stopped(Exception):
    """The world has no more answers."""


class World:
    """Both effects: each program is better than the one before; there are no more than so many answers."""

    def __init__(self, answers: float) -> None:
        self.left = answers
        self.written = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        self._live()
        self.written += 1
        code = program(1 / self.written, f"program {self.written}")
        return ChatReply((fenced(code),), ("stop",), TokenUsage(100, 0, 10, 0), request.model)

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        self._live()
        return evaluation(request)

    async def aclose(self) -> None:
        return None

    def _live(self) -> None:
        if self.left <= 0:
            raise Stopped
        self.left -= 1


def prepared(path: Path, played: RunContext) -> RunDirectory:
    """Make the directory of a run, with as much of its record as watching needs."""
    manifest = {
        "format": 3,
        "problem": {"id": played.problem.id},
        "config": to_plain(played.config),
        "models": {name: card.model_dump(mode="json") for name, card in played.cards.items()},
    }
    path.mkdir()
    (path / "run.yaml").write_text(yaml.safe_dump(manifest))
    return RunDirectory(path, played.config, played.problem, played.cards, manifest)


async def watched(path: Path, method: str, answers: float = inf) -> None:
    """Play a method under a view of its progress into a run directory."""
    played = session(None, method=method, genesis={"candidates": 4}, **METHODS[method])  # type: ignore[arg-type]
    progress = ProgressView(prepared(path, played))
    world = World(answers)
    with Journal.open(path) as journal:
        effects = JournaledEffects(
            journal,
            {"rule-based": world},  # type: ignore[dict-item]
            world,
            listener=progress.on_effect,
        )
        await run_method(replace(played, effects=effects))


@pytest.mark.parametrize("method", METHODS)
async def test_the_lines_of_a_run_name_its_method_and_its_milestones(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await watched(tmp_path / "run", method)
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("  ")]
    assert lines[0] == f"Linear advection in one dimension: {method}, run directory {tmp_path / 'run'}"
    expected = {
        "codepde": [
            "genesis: 4 programs, 0 unusable answers",
            "best-of-n: 4 programs ran; c004 leads with 2.500e-01",
        ],
        "codepde-refine": [
            "genesis: 4 programs, 0 unusable answers",
            "best-of-n: 4 programs ran; c004 leads with 2.500e-01",
            "search: 3 steps; s003 leads with 1.429e-01",
        ],
        "funsearch": [
            "genesis: 4 programs, 0 unusable answers",
            "best-of-n: 4 programs ran; c004 leads with 2.500e-01",
            "search: 8 steps; s008 leads with 8.333e-02",
        ],
        "aide": ["search: 8 steps; s008 leads with 1.250e-01"],
    }
    assert lines[1:-1] == expected[method]
    assert re.fullmatch(r"winner [cs]\d{3}; test data opened once", lines[-1])


@pytest.mark.parametrize(
    ("method", "answers", "stage"),
    [
        ("codepde", 3, "at genesis/c003"),
        ("codepde-refine", 13, "at search/s001 (step 1 of 3)"),
        ("funsearch", 18, "at search/s002 (step 2 of 9)"),
        ("aide", 7, "at search/s003 (step 3 of 9)"),
    ],
)
async def test_the_status_of_an_interrupted_run_says_how_far_its_method_came(
    method: str, answers: int, stage: str, tmp_path: Path
) -> None:
    with pytest.raises(Stopped):
        await watched(tmp_path / "run", method, answers)
    status = view(tmp_path / "run")
    assert (status.method, status.stage, status.finished) == (method, stage, False)
    lines = render_terminal(*status_blocks(status)).splitlines()
    assert lines[0].endswith(f": advection, {stage}")
    assert lines[1].split() == ["method", method]


async def test_the_status_of_a_finished_search_is_finished(tmp_path: Path) -> None:
    await watched(tmp_path / "run", "aide")
    status = view(tmp_path / "run")
    assert (status.stage, status.finished, status.best) == ("finished", True, "s009")
