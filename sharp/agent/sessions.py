"""Sessions on disk: every answer and every use of a tool is recorded once, so that a session goes on where it was.

    FOLDER/session-<hash>/     one session: agent.yaml, journal.jsonl, lease/, and runs that write solver programs

The hash is that of the settings. Other words or another model make another session beside the old one, and the same
command again goes on with its own. What the user answers is recorded like everything else: a session goes on from
where it asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from hpc.files import make_directory, write_atomic
from hpc.journal import Journal, ReplayJournal, keep_beating
from sharp.agent.effects import Guard, RecordedEffects, ResultStore
from sharp.agent.memory import GraphMemory, ToolRecord
from sharp.agent.policies import PROGRAMS, left_by, run_policy
from sharp.agent.prog_act import SessionOutcome
from sharp.agent.programs import whole_toolkit
from sharp.agent.questions import Answering, answers_in, nobody
from sharp.agent.settings import AgentConfig
from sharp.agent.synthesis import OpenSynthesis, SolverProgram, SynthesisService, SynthesisUsage
from sharp.agent.team import AgentTeam, Role, SamplingParams
from sharp.agent.toolkit import standard_toolkit
from sharp.agent.tools import Toolkit, toolkit_of
from sharp.event_loop import run_coroutine
from sharp.llm import RULE_BASED, ChatBackend, ModelCard, TokenUsage, load_card, make_backend
from sharp.problems import Problem
from sharp.solvers import RefinementStudy, Solution

MessageCallback = Callable[[str], None]
ROUNDS = 5
"""Rounds of questions and answers in one go."""


@dataclass(frozen=True)
class ModelCalls:
    """How models are called: what answers for a card, and what is entered meanwhile and may raise `BudgetExceeded`."""

    backend_of: Callable[[ModelCard], ChatBackend]
    guard_of: Callable[[Journal], Guard] = lambda _: lambda _: nullcontext()


@dataclass(frozen=True)
class SessionResult:
    """A session that has ended, what it found, and what it took: calls of models and tokens.

    `problem` is what was understood last; `solution` and `solver` are None unless they were found for it. `answer` is
    the solution with its verdict, once it has been judged (`sharp.agent.judgement`). `calls` and `usage` are the team's
    own; `synthesis` is what was asked on its behalf to have solver programs written. `served_by` holds, for each model,
    the names that servers answered under; `answered` the user's questions and answers. `tools_used` names the
    tools of earlier sessions that its program imports, `tools_built` has the sources of those that it leaves.
    """

    folder: Path
    settings: AgentConfig
    outcome: SessionOutcome
    problem: Problem | None
    solution: RefinementStudy | None
    calls: int
    usage: TokenUsage
    solver: SolverProgram | None = None
    synthesis: SynthesisUsage = field(default_factory=SynthesisUsage)
    answer: Solution | None = None
    served_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    answered: tuple[tuple[str, str], ...] = ()
    tools_used: tuple[str, ...] = ()
    tools_built: Mapping[str, str] = field(default_factory=dict)


def session_folder(folder: Path, settings: AgentConfig) -> Path:
    """Return where the session of these settings is kept."""
    return folder / f"session-{settings.hash[:12]}"


def run_session(
    folder: Path,
    settings: AgentConfig,
    say: MessageCallback = lambda _: None,
    cards: Mapping[str, ModelCard] | None = None,
    synthesis: OpenSynthesis | None = None,
    answer: Answering = nobody,
    calls: ModelCalls | None = None,
) -> SessionResult:
    """Carry out a session, or go on with it where it was; `say` is told what is done.

    `cards` are those of the models by name, where they are not the ones of these names; `synthesis` writes solver
    programs if the settings allow them. Questions to the user are answered by the folder's questions.yaml where it is
    filled in, then by `answer`, while no lease is held; at most `ROUNDS` times. `calls` says how models are called.
    Raises `ModelError`, `ConfigurationError` for answers that do not fit, and what `Journal.open` raises.
    """
    path = session_folder(folder, settings)
    session = _Session(
        path, settings, cards or _cards(settings), say, synthesis, calls or ModelCalls(make_backend)
    )
    sources = (answers_in(folder, settings.statement, path.name), answer)
    make_directory(path)
    text = yaml.safe_dump(settings.to_json(), sort_keys=False, allow_unicode=True)
    write_atomic(path / "agent.yaml", text.encode())
    finished = session.go({})
    for _ in range(ROUNDS):
        asked = finished.outcome.questions
        answers = next(filter(None, (source(asked) for source in sources)), {}) if asked else {}
        if not answers:
            break
        finished = session.go(answers)
    return finished


def replay_session(
    folder: Path, settings: AgentConfig, synthesis: OpenSynthesis | None = None, *, stopped: bool = False
) -> SessionResult:
    """Carry out a finished session on its record alone: no model is asked, and values are made again from recipes.

    `stopped` says that a budget ended it where its record ends. Raises `ReplayMiss` where the record does not reach to
    the end.
    """
    path = session_folder(folder, settings)
    calls = ModelCalls(make_backend)
    session = _Session(path, settings, _cards(settings), lambda _: None, synthesis, calls)
    return run_coroutine(session.play(ReplayJournal(path), {}, stopped=stopped))


def _cards(settings: AgentConfig) -> dict[str, ModelCard]:
    return {name: load_card(name) for name in sorted(set(settings.models.values()))}


@dataclass(frozen=True)
class _Session:
    path: Path
    settings: AgentConfig
    cards: Mapping[str, ModelCard]
    say: MessageCallback
    synthesis: OpenSynthesis | None
    calls: ModelCalls

    def go(self, answers: Mapping[str, str]) -> SessionResult:
        """Play as far as the record, the models and the user's answers reach."""
        with Journal.open(self.path) as journal:
            for warning in journal.warnings:
                self.say(warning)
            return run_coroutine(self.live(journal, answers))

    async def live(self, journal: Journal, answers: Mapping[str, str]) -> SessionResult:
        """Play with models; the lease is renewed meanwhile, and when it is lost, the next write will say so."""
        backends = {}
        for card in self.cards.values():
            if card.kind == RULE_BASED:
                options = {**card.options, "error_rate": self.settings.error_rate}
                card = card.model_copy(update={"options": options})
            backends[card.name] = self.calls.backend_of(card)
        renewal = asyncio.create_task(keep_beating(journal.renew))
        try:
            return await self.play(journal, backends, answers, self.calls.guard_of(journal))
        finally:
            renewal.cancel()
            await asyncio.gather(renewal, return_exceptions=True)
            for backend in backends.values():
                await backend.aclose()

    async def play(
        self,
        recorder: Journal | ReplayJournal,
        backends: Mapping[str, ChatBackend],
        answers: Mapping[str, str] = MappingProxyType({}),
        guard: Guard = lambda _: nullcontext(),
        *,
        stopped: bool = False,
    ) -> SessionResult:
        settings, service = self.settings, None
        if settings.synthesis:
            assert self.synthesis is not None, "these settings allow solver programs"
            recorded = isinstance(recorder, ReplayJournal)
            service = self.synthesis(self.path, settings.models, settings.seed, recorded, self.say)
        toolkit = _toolkit(settings, service)
        pool = ResultStore(toolkit, settings.wall_s)
        effects = RecordedEffects(
            recorder, backends, pool, self.tell, answers=answers, guard=guard, stopped=stopped
        )
        cards: dict[Role, ModelCard] = {role: self.cards[model] for role, model in settings.models.items()}
        holding = {card.name: await effects.takes_schemas(card) for card in cards.values()}
        # The card says how long answers may be; agents choose parameters, so nothing is left to chance.
        roles = {
            role: SamplingParams(
                card.name,
                **{
                    "temperature": 0.0,
                    "max_tokens": card.sampling_for(role).max_tokens,
                    **settings.sampling.get(role, {}),
                    "takes_schemas": holding[card.name],
                },
            )
            for role, card in cards.items()
        }
        team = AgentTeam(
            settings.statement, toolkit, effects, roles, settings.allowance, settings.seed, settings.tools
        )
        outcome = await run_policy(settings.policy, team)
        used, built = left_by(outcome)
        problem, solution, solver = [
            await _newest(outcome.memory, pool, port) for port in ("problem", "solution", "solver")
        ]
        spent = service.spending() if service else SynthesisUsage()
        return SessionResult(
            self.path,
            settings,
            outcome,
            problem,
            solution,
            team.calls,
            effects.usage,
            solver,
            spent,
            served_by={name: effects.served_by.get(card.name, ()) for name, card in self.cards.items()},
            answered=tuple(team.answered),
            tools_used=used,
            tools_built=built,
        )

    def tell(self, path: str, record: ToolRecord | None) -> None:
        if record is None:
            self.say(f"{path}: asked")
            return
        self.say(f"{record.step}: {record.error or record.recipe.tool}")
        for line in record.summary.get("as parsed", ()):
            self.say(f"    {line}")


def _toolkit(settings: AgentConfig, service: SynthesisService | None) -> Toolkit:
    if settings.policy in PROGRAMS:
        from sharp.agent.programs.generated import run_program

        return toolkit_of(run_program)
    tools = whole_toolkit(service) if service else standard_toolkit()
    if settings.policy == "translation":
        return toolkit_of(*(tool for tool in tools.values() if tool.owner == "parser"))
    return tools


async def _newest(memory: GraphMemory, pool: ResultStore, port: str) -> Any:
    """Return the value of the last sound step that gives a result of that name, or None."""
    for step in reversed(memory.plan.steps):
        record = memory.current(step.id)
        gives = pool.toolkit[step.tool].output(port) is not None
        if gives and record is not None and not record.failed:
            return await pool.value(f"{record.recipe.fingerprint}.{port}")
    return None
