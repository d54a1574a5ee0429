"""What a cell is: by what it is the same cell, and by what it asks the same before its first judge as another.

What configurations refer to is read once for all cells: problems, model cards, prompts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from hashlib import sha256
from typing import Any, get_args

from pydantic import BaseModel

from hpc.journal import canonical_json
from sharp.config import Method, RunConfig
from sharp.experiments.agent_benchmark.trials import trial_of
from sharp.experiments.sweeps.prefix_graph import CellFingerprint
from sharp.llm import ModelCard, load_card, prompt_hashes
from sharp.problems import Problem, load_problem
from sharp.runs import models_of, with_servers

CHANGEABLE: Any = {"budget": True, "problem": True, "models": {"servers"}}
"""What of a configuration may change while a run goes on; the problem counts by its content."""

# Methods that write their programs otherwise than CodePDE does.
_TECHNIQUES = ("cot-reflection", "moa", "cepo")
# What of a model card decides its answers.
_DECISIVE = (
    *("name", "served_name", "context", "max_output", "bytes_per_token", "sampling", "sampling_by_purpose"),
    "api",
)
# What prompts say of the place where programs run.
_PLACE = ("validation", "smoke", "shards", "wall_s", "memory_mb", "threads", "x64")
# What of it decides what it is asked.
_ASKED = ("name", "served_name", "context", "bytes_per_token", "sampling", "sampling_by_purpose")


class ResourceCache:
    """Reads each problem and card when it is first wanted; raises `InputError` as reading them does."""

    def __init__(self) -> None:
        self._problem = cache(load_problem)
        self._card = cache(load_card)

    def problem_of(self, config: RunConfig) -> Problem:
        """Return the problem of a configuration."""
        return self._problem(config.problem, config.evaluation.coarsen)

    def cards_of(self, config: RunConfig) -> dict[str, ModelCard]:
        """Return the cards of all models in a configuration, with the servers that it names."""
        return with_servers({name: self._card(name) for name in models_of(config)}, config)

    def cards_asked(self, configs: Iterable[RunConfig]) -> list[ModelCard]:
        """Return the cards of all models that runs with these configurations ask; a record that answers asks nobody."""
        asking = (config for config in configs if config.models.replay_from is None)
        return list(
            {name: card for config in asking for name, card in self.cards_of(config).items()}.values()
        )

    @cached_property
    def prompts(self) -> Mapping[str, str]:
        """The hashes of the prompts in force, by `stage/name`."""
        return prompt_hashes()


def cell_fingerprint(
    config: RunConfig, library: ResourceCache, earlier: CellFingerprint | None = None
) -> CellFingerprint:
    """Return the identity of a cell with this configuration, which takes over what an `earlier` one leaves."""
    cards, prompts = library.cards_of(config), library.prompts
    decisive = {name: _part(card, _DECISIVE) for name, card in cards.items()}
    if config.trial is not None:
        taken = [earlier.whole] if earlier else []
        return CellFingerprint(_hash([trial_of(config).key, decisive, *taken]))
    problem = library.problem_of(config)
    whole = _hash([fixed_settings(config), problem.label, decisive])
    replays = (config.models.replay_from, config.genesis.replay_from, config.retry.of)
    shares = config.method != "aide" and config.method in get_args(Method)
    if not shares or any(run is not None for run in replays):
        return CellFingerprint(whole, candidates=config.sampled)
    if config.method == "pde-sharp":
        before = _analysis(config, problem, cards, prompts)
        analysis, asked = _hash(before), [before, *_genesis(config, cards, prompts)]
    else:
        analysis, asked = None, [*_sampling(config, problem, cards, prompts)]
    genesis = _hash(asked)
    judged = config.method == "pde-sharp" and config.synthesis.mode == "tournament"
    best_of_n = None if judged else _hash(_repairs(genesis, config, prompts))
    return CellFingerprint(whole, analysis, genesis, best_of_n, config.sampled)


def fixed_settings(config: RunConfig) -> dict[str, Any]:
    """Return, in plain form, what a configuration says of a run that may not change while it goes on.

    Keys at their defaults are left out, so that a later version with more keys finds the same. The problem counts by
    its content, not by the name of its file.
    """
    written = config.model_dump(mode="json", exclude_defaults=True, exclude=CHANGEABLE)
    return {name: value for name, value in written.items() if value != {}}


def _analysis(
    config: RunConfig, problem: Problem, cards: Mapping[str, ModelCard], prompts: Mapping[str, str]
) -> list[Any]:
    """Return what decides the requests of the analysis; answers are taken to depend on requests alone."""
    writer = [_part(cards[config.models.writer], _ASKED)] if config.analysis.written else []
    return [
        problem.label,
        _part(config.evaluation, _PLACE),
        config.seed,
        config.analysis.model_dump(mode="json"),
        config.sampling.analysis.model_dump(mode="json"),
        config.context.model_dump(mode="json"),
        _part(cards[config.models.analyst], _ASKED),
        *writer,
        _of_stages(prompts, ("common", "analysis")),
    ]


def _genesis(config: RunConfig, cards: Mapping[str, ModelCard], prompts: Mapping[str, str]) -> Iterable[Any]:
    """Yield what decides the requests of genesis beside the analysis; a candidate does not know how many there are."""
    unasked = {"candidates", "replay_from", "replay_repairs", "smoke_run"}
    options = config.genesis.model_dump(mode="json", exclude=unasked)
    yield from (options, config.sampling.genesis.model_dump(mode="json"))
    yield [_part(cards[name], _ASKED) for name in config.models.authors]
    yield _of_stages(prompts, ("genesis",))


def _sampling(
    config: RunConfig, problem: Problem, cards: Mapping[str, ModelCard], prompts: Mapping[str, str]
) -> Iterable[Any]:
    """Yield what decides the requests of the programs that a method without analysis begins with."""
    technique = config.method if config.method in _TECHNIQUES else "codepde"
    yield from (technique, problem.label, config.seed, config.context.model_dump(mode="json"))
    yield _part(config.evaluation, _PLACE)
    yield [config.feedback.model_dump(mode="json"), config.target, config.objective, config.error_below]
    yield config.sampling.genesis.model_dump(mode="json")
    if technique != "codepde":
        options = getattr(config, technique.replace("-", "_"))
        yield options.model_dump(mode="json")
    yield config.models.authors
    yield from (_part(card, _ASKED) for _, card in sorted(cards.items()))
    yield _of_stages(prompts, ("common", "codepde", technique))


def _repairs(genesis: str, config: RunConfig, prompts: Mapping[str, str]) -> list[Any]:
    """Return what decides how the programs of genesis are debugged: how they run, and what is told of it."""
    return [
        genesis,
        config.evaluation.model_dump(mode="json"),
        (config.target, config.objective),
        config.feedback.model_dump(mode="json"),
        config.sampling.debug.model_dump(mode="json"),
        config.synthesis.repairs,
        _of_stages(prompts, ("common", "debug")),
    ]


def _of_stages(prompts: Mapping[str, str], stages: tuple[str, ...]) -> dict[str, str]:
    return {name: digest for name, digest in prompts.items() if name.partition("/")[0] in stages}


def _part(card: BaseModel, fields: tuple[str, ...]) -> dict[str, Any]:
    return card.model_dump(mode="json", include=set(fields))


def _hash(value: Any) -> str:
    return sha256(canonical_json(value).encode()).hexdigest()[:16]
