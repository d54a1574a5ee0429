"""Answers that an earlier run has paid for, and that this one need not pay for again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc.errors import ReplayMiss, RunDirectoryError
from hpc.journal import EffectRecord, effect_key, read_run, to_plain_json
from sharp.evaluation.protocol import Evaluation, EvaluationRequest
from sharp.llm.ledger import Effect
from sharp.llm.protocol import ChatReply, ChatRequest

if TYPE_CHECKING:
    from sharp.config import RunConfig

# What comes before the first judge: where the same is asked, another run's answer serves.
_REUSABLE = ("analysis", "genesis")
# Where methods that run all their first programs debug them.
_REPAIRS = "best-of-n"


@dataclass(frozen=True)
class ReplaySource:
    """Gives an earlier run's answers by where they were asked.

    With `strict` only if exactly the same was asked. Without, what was asked then may differ, in measured times and
    errors say; the answer is the recorded one all the same, so that programs can be run anew under other limits.
    """

    effects: Mapping[str, EffectRecord]
    strict: bool = True

    @classmethod
    def of_genesis(cls, run: Path, *, repairs: bool = False) -> ReplaySource:
        """Give what models were asked before the first judge, with `repairs` also while all programs were debugged.

        Raises `RunDirectoryError` where there is no such run.
        """
        stages = (*_REUSABLE, _REPAIRS) if repairs else _REUSABLE
        effects = read_run(run).effects
        return cls(
            {path: e for path, e in effects.items() if e.kind == "chat" and path.split("/")[0] in stages}
        )

    @classmethod
    def of_all_but(cls, run: Path, failed: Collection[str]) -> ReplaySource:
        """Give every answer but those of evaluations that failed in some ways.

        Raises `RunDirectoryError` where there is no such run.
        """
        effects = read_run(run).effects
        return cls({path: e for path, e in effects.items() if failure_kind(e) not in failed})

    @classmethod
    def of_models(cls, run: Path) -> ReplaySource:
        """Give every answer of a model; raises `RunDirectoryError` where there is no such run."""
        effects = read_run(run).effects
        return cls({path: e for path, e in effects.items() if e.kind == "chat"}, strict=False)

    def __call__(self, effect: Effect) -> Mapping[str, Any] | None:
        """Return the answer, or None."""
        known = self.effects.get(effect.path)
        if known is None or (
            self.strict and known.key != effect_key(effect.kind, to_plain_json(effect.request))
        ):
            return None
        reply: Mapping[str, Any] = known.reply
        return reply

    def provided(self, record: EffectRecord) -> bool:
        """Return whether a recorded answer is one of these."""
        known = self.effects.get(record.path)
        return known is not None and known.reply == record.reply


class ReplayOnlyBackend:
    """The model and the evaluator of a run that has only its record, or another's: it refuses what that lacks."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Refuse a call."""
        raise ReplayMiss(f"a call to {request.model} is not in the record")

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Refuse an evaluation."""
        raise ReplayMiss(f"an evaluation on {request.split} data is not in the record")

    async def aclose(self) -> None:
        """Have nothing to close."""


@dataclass(frozen=True)
class ReplaySources:
    """Several donors; the first that has an answer gives it."""

    donors: tuple[ReplaySource, ...] = ()

    def __call__(self, effect: Effect) -> Mapping[str, Any] | None:
        """Return the answer, or None."""
        answers = (donor(effect) for donor in self.donors)
        return next((answer for answer in answers if answer is not None), None)

    def provided(self, record: EffectRecord) -> bool:
        """Return whether a recorded answer is one of theirs."""
        return any(donor.provided(record) for donor in self.donors)


def replay_sources(config: RunConfig, warn: Callable[[str], None]) -> ReplaySources:
    """Return what other runs have to give, as far as a configuration names any.

    `warn` is told of one that is gone; raises `RunDirectoryError` where its answers stand in for all models.
    """
    found = []
    if config.retry.of is not None:
        retried, failed = config.retry.of, config.retry.failed
        found.append(_or_warn("retry.of", lambda: ReplaySource.of_all_but(retried, failed), warn))
    if config.models.replay_from is not None:
        found.append(ReplaySource.of_models(config.models.replay_from))
    elif config.genesis.replay_from is not None:
        reused, repairs = config.genesis.replay_from, config.genesis.replay_repairs
        found.append(
            _or_warn("genesis.replay_from", lambda: ReplaySource.of_genesis(reused, repairs=repairs), warn)
        )
    return ReplaySources(tuple(found))


def paid_effects(config: RunConfig, effects: Iterable[EffectRecord]) -> list[EffectRecord]:
    """Return what a run has paid for itself; answers that other runs gave it are left out.

    Where a record that stood in for all models is gone, nothing tells its answers from others, and all are returned.
    """
    try:
        donors = replay_sources(config, lambda _: None)
    except RunDirectoryError:
        donors = ReplaySources()
    return [record for record in effects if not donors.provided(record)]


def failure_kind(effect: EffectRecord) -> str | None:
    """Return how the program of an evaluation failed; None where it did not, and for other effects."""
    failure = effect.reply.get("failure") if effect.kind == "evaluate" else None
    return None if failure is None else str(failure["kind"])


def _or_warn(key: str, find: Callable[[], ReplaySource], warn: Callable[[str], None]) -> ReplaySource:
    try:
        return find()
    except RunDirectoryError as error:
        warn(f"{key}: {error} What it has given is recorded; the rest is paid for.")
        return ReplaySource({})
