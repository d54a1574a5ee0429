"""Courses on disk: every answer and every use of a tool is recorded once, so that a course goes on where it was.

    FOLDER/course-<hash>/     one course: settings.yaml, journal.jsonl, lease/, and runs that write solver programs

The hash is that of the settings. Other words, another model or an answer to a question make another course beside the
old one, and the same command again goes on with its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hpc.errors import HpcError
from hpc.files import make_directory, write_atomic
from hpc.journal import Journal, ReplayJournal
from sharp.agent.effects import RecordedEffects, Recorder
from sharp.agent.memory import Memory, Record
from sharp.agent.playbook import Knowledge, TeamPlaybook
from sharp.agent.policies import PROGRAMS, carried_out
from sharp.agent.pool import Pool
from sharp.agent.prog_act import Course
from sharp.agent.settings import Settings
from sharp.agent.synthesis import Commission, SolverProgram, Spending, spending
from sharp.agent.team import Role, Sampling, Team
from sharp.agent.toolkit import standard_toolkit, whole_toolkit
from sharp.agent.tools import Toolkit, toolkit_of
from sharp.llm.backends import make_backend
from sharp.llm.cards import ModelCard, load_card
from sharp.llm.protocol import ChatBackend, Usage
from sharp.problems.problem import Problem
from sharp.solving.refine import Refinement

Say = Callable[[str], None]

HEARTBEAT_S = 20.0


@dataclass(frozen=True)
class Finished:
    """A course that has ended, what it found, and what it took: calls of models and tokens.

    `problem` is what was understood last; `solution` and `solver` are None unless they were found for it. `calls` and
    `usage` are the team's own; `synthesis` is what was asked on its behalf to have solver programs written.
    """

    folder: Path
    settings: Settings
    course: Course
    problem: Problem | None
    solution: Refinement | None
    calls: int
    usage: Usage
    solver: SolverProgram | None = None
    synthesis: Spending = field(default_factory=Spending)


def course_folder(folder: Path, settings: Settings) -> Path:
    """Return where the course of these settings is kept."""
    return folder / f"course-{settings.hash[:12]}"


def run_course(
    folder: Path,
    settings: Settings,
    say: Say = lambda _: None,
    cards: Mapping[str, ModelCard] | None = None,
) -> Finished:
    """Carry out a course, or go on with it where it was; `say` is told what is done.

    `cards` are those of the models by name, where they are not the ones of these names. Raises `ModelError`, and what
    `Journal.open` raises.
    """
    cards = cards or _cards(settings)
    path = course_folder(folder, settings)
    make_directory(path)
    write_atomic(path / "settings.yaml", _as_yaml(settings))
    with Journal.open(path) as journal:
        for warning in journal.warnings:
            say(warning)
        return asyncio.run(_held(journal, _asked(path, settings, journal, cards, say)))


def replay_course(folder: Path, settings: Settings) -> Finished:
    """Carry out a finished course on its record alone: no model is asked, and values are made again from recipes.

    Raises `ReplayMiss` where the record does not reach to the end.
    """
    path = course_folder(folder, settings)
    return asyncio.run(_played(path, settings, ReplayJournal(path), _cards(settings), {}, lambda _: None))


def _cards(settings: Settings) -> dict[str, ModelCard]:
    return {name: load_card(name) for name in sorted(set(settings.models.values()))}


async def _held(journal: Journal, course: Awaitable[Finished]) -> Finished:
    """Renew the lease while a course is waited for; when it is lost, the next write will say so."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            with suppress(HpcError):
                journal.beat()

    heart = asyncio.create_task(beat())
    try:
        return await course
    finally:
        heart.cancel()


async def _asked(
    path: Path, settings: Settings, recorder: Recorder, cards: Mapping[str, ModelCard], say: Say
) -> Finished:
    backends = {card.name: _backend(card, settings) for card in cards.values()}
    try:
        return await _played(path, settings, recorder, cards, backends, say)
    finally:
        for backend in backends.values():
            await backend.aclose()


async def _played(
    path: Path,
    settings: Settings,
    recorder: Recorder,
    cards: Mapping[str, ModelCard],
    backends: Mapping[str, ChatBackend],
    say: Say,
) -> Finished:
    recorded = isinstance(recorder, ReplayJournal)
    toolkit = _toolkit(settings, Commission(path, settings.models, settings.seed, recorded, say))
    pool = Pool(toolkit, settings.wall_s)
    effects = RecordedEffects(recorder, backends, pool, _teller(say))
    roles = {role: _sampling(cards[model], role) for role, model in settings.models.items()}
    team = Team(settings.statement, toolkit, effects, roles, settings.allowance, settings.seed)
    course = await carried_out(settings.policy, team)
    problem, solution, solver = [
        await _newest(course.memory, pool, port) for port in ("problem", "solution", "solver")
    ]
    return Finished(
        path, settings, course, problem, solution, team.calls, effects.usage, solver, spending(path)
    )


def _toolkit(settings: Settings, commission: Commission) -> Toolkit:
    if settings.policy in PROGRAMS:
        from sharp.agent.programs.tool import RUN_PROGRAM

        return toolkit_of(RUN_PROGRAM)
    tools = whole_toolkit(commission) if settings.synthesis else standard_toolkit()
    if settings.policy == "translation":
        return toolkit_of(*(tool for tool in tools.values() if tool.owner == "parser"))
    return tools


def _teller(say: Say) -> Callable[[str, Record | None], None]:
    def tell(path: str, record: Record | None) -> None:
        if record is None:
            say(f"{path}: asked")
            return
        say(f"{record.step}: {record.error or record.recipe.tool}")
        for line in record.summary.get("as understood", ()):
            say(f"    {line}")

    return tell


def _backend(card: ModelCard, settings: Settings) -> ChatBackend:
    if card.kind == "playbook":
        return TeamPlaybook(card.name, Knowledge.of_cases(), settings.mistakes)
    return make_backend(card)


def _sampling(card: ModelCard, role: Role) -> Sampling:
    """The card says how long answers may be; agents choose parameters, so nothing is left to chance."""
    return Sampling(card.name, temperature=0.0, max_tokens=card.sampling_for(role).max_tokens)


async def _newest(memory: Memory, pool: Pool, port: str) -> Any:
    """Return the value of the last sound step that gives a result of that name, or None."""
    for step in reversed(memory.plan.steps):
        record = memory.current(step.id)
        gives = pool.toolkit[step.tool].output(port) is not None
        if gives and record is not None and not record.failed:
            return await pool.value(f"{record.recipe.name}.{port}")
    return None


def _as_yaml(settings: Settings) -> bytes:
    return yaml.safe_dump(settings.to_json(), sort_keys=False, allow_unicode=True).encode()
