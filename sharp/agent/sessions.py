"""Courses on disk: every answer and every use of a tool is recorded once, so that a course goes on where it was.

    FOLDER/session-<hash>/     one session: agent.yaml, journal.jsonl, lease/, and runs that write solver programs

The hash is that of the settings. Other words, another model or an answer to a question make another course beside the
old one, and the same command again goes on with its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hpc.files import make_directory, write_atomic
from hpc.journal import Journal, ReplayJournal, keep_beating
from sharp.agent.effects import EffectRecorder, RecordedEffects
from sharp.agent.memory import GraphMemory, ToolRecord
from sharp.agent.policies import PROGRAMS, run_policy
from sharp.agent.pool import ResultStore
from sharp.agent.prog_act import SessionOutcome
from sharp.agent.settings import AgentConfig
from sharp.agent.synthesis import OpenSynthesis, SolverProgram, SynthesisService, SynthesisUsage
from sharp.agent.team import AgentTeam, Role, SamplingParams
from sharp.agent.toolkit import standard_toolkit, whole_toolkit
from sharp.agent.tools import Toolkit, toolkit_of
from sharp.event_loop import run_coroutine
from sharp.llm.backends import make_backend
from sharp.llm.cards import RULE_BASED, ModelCard, load_card
from sharp.llm.protocol import ChatBackend, TokenUsage
from sharp.problems.problem import Problem
from sharp.solvers.refine import RefinementStudy

MessageCallback = Callable[[str], None]


@dataclass(frozen=True)
class SessionResult:
    """A course that has ended, what it found, and what it took: calls of models and tokens.

    `problem` is what was understood last; `solution` and `solver` are None unless they were found for it. `calls` and
    `usage` are the team's own; `synthesis` is what was asked on its behalf to have solver programs written.
    """

    folder: Path
    settings: AgentConfig
    course: SessionOutcome
    problem: Problem | None
    solution: RefinementStudy | None
    calls: int
    usage: TokenUsage
    solver: SolverProgram | None = None
    synthesis: SynthesisUsage = field(default_factory=SynthesisUsage)


def session_folder(folder: Path, settings: AgentConfig) -> Path:
    """Return where the course of these settings is kept."""
    return folder / f"session-{settings.hash[:12]}"


def run_session(
    folder: Path,
    settings: AgentConfig,
    say: MessageCallback = lambda _: None,
    cards: Mapping[str, ModelCard] | None = None,
    synthesis: OpenSynthesis | None = None,
) -> SessionResult:
    """Carry out a course, or go on with it where it was; `say` is told what is done.

    `cards` are those of the models by name, where they are not the ones of these names; `synthesis` writes solver
    programs if the settings allow them. Raises `ModelError`, and what
    `Journal.open` raises.
    """
    cards = cards or _cards(settings)
    path = session_folder(folder, settings)
    make_directory(path)
    write_atomic(path / "agent.yaml", _as_yaml(settings))
    with Journal.open(path) as journal:
        for warning in journal.warnings:
            say(warning)
        return run_coroutine(_held(journal, _asked(path, settings, journal, cards, say, synthesis)))


def replay_session(
    folder: Path, settings: AgentConfig, synthesis: OpenSynthesis | None = None
) -> SessionResult:
    """Carry out a finished course on its record alone: no model is asked, and values are made again from recipes.

    Raises `ReplayMiss` where the record does not reach to the end.
    """
    path = session_folder(folder, settings)
    replayed = _played(path, settings, ReplayJournal(path), _cards(settings), {}, lambda _: None, synthesis)
    return run_coroutine(replayed)


def _cards(settings: AgentConfig) -> dict[str, ModelCard]:
    return {name: load_card(name) for name in sorted(set(settings.models.values()))}


async def _held(journal: Journal, course: Awaitable[SessionResult]) -> SessionResult:
    """Renew the lease while a course is waited for; when it is lost, the next write will say so."""
    heart = asyncio.create_task(keep_beating(journal.renew))
    try:
        return await course
    finally:
        heart.cancel()
        await asyncio.gather(heart, return_exceptions=True)


async def _asked(
    path: Path,
    settings: AgentConfig,
    recorder: EffectRecorder,
    cards: Mapping[str, ModelCard],
    say: MessageCallback,
    synthesis: OpenSynthesis | None,
) -> SessionResult:
    backends = {card.name: _backend(card, settings) for card in cards.values()}
    try:
        return await _played(path, settings, recorder, cards, backends, say, synthesis)
    finally:
        for backend in backends.values():
            await backend.aclose()


async def _played(
    path: Path,
    settings: AgentConfig,
    recorder: EffectRecorder,
    cards: Mapping[str, ModelCard],
    backends: Mapping[str, ChatBackend],
    say: MessageCallback,
    synthesis: OpenSynthesis | None,
) -> SessionResult:
    recorded = isinstance(recorder, ReplayJournal)
    commission = None
    if settings.synthesis:
        assert synthesis is not None, "these settings allow solver programs"
        commission = synthesis(path, settings.models, settings.seed, recorded, say)
    toolkit = _toolkit(settings, commission)
    pool = ResultStore(toolkit, settings.wall_s)
    effects = RecordedEffects(recorder, backends, pool, _teller(say))
    roles = {role: _sampling(cards[model], role) for role, model in settings.models.items()}
    team = AgentTeam(settings.statement, toolkit, effects, roles, settings.allowance, settings.seed)
    course = await run_policy(settings.policy, team)
    problem, solution, solver = [
        await _newest(course.memory, pool, port) for port in ("problem", "solution", "solver")
    ]
    spent = commission.spending() if commission else SynthesisUsage()
    return SessionResult(path, settings, course, problem, solution, team.calls, effects.usage, solver, spent)


def _toolkit(settings: AgentConfig, commission: SynthesisService | None) -> Toolkit:
    if settings.policy in PROGRAMS:
        from sharp.agent.programs.tool import RUN_PROGRAM

        return toolkit_of(RUN_PROGRAM)
    tools = whole_toolkit(commission) if commission else standard_toolkit()
    if settings.policy == "translation":
        return toolkit_of(*(tool for tool in tools.values() if tool.owner == "parser"))
    return tools


def _teller(say: MessageCallback) -> Callable[[str, ToolRecord | None], None]:
    def tell(path: str, record: ToolRecord | None) -> None:
        if record is None:
            say(f"{path}: asked")
            return
        say(f"{record.step}: {record.error or record.recipe.tool}")
        for line in record.summary.get("as understood", ()):
            say(f"    {line}")

    return tell


def _backend(card: ModelCard, settings: AgentConfig) -> ChatBackend:
    if card.kind == RULE_BASED:
        options = {**card.options, "error_rate": settings.error_rate}
        return make_backend(card.model_copy(update={"options": options}))
    return make_backend(card)


def _sampling(card: ModelCard, role: Role) -> SamplingParams:
    """The card says how long answers may be; agents choose parameters, so nothing is left to chance."""
    return SamplingParams(card.name, temperature=0.0, max_tokens=card.sampling_for(role).max_tokens)


async def _newest(memory: GraphMemory, pool: ResultStore, port: str) -> Any:
    """Return the value of the last sound step that gives a result of that name, or None."""
    for step in reversed(memory.plan.steps):
        record = memory.current(step.id)
        gives = pool.toolkit[step.tool].output(port) is not None
        if gives and record is not None and not record.failed:
            return await pool.value(f"{record.recipe.fingerprint}.{port}")
    return None


def _as_yaml(settings: AgentConfig) -> bytes:
    return yaml.safe_dump(settings.to_json(), sort_keys=False, allow_unicode=True).encode()
