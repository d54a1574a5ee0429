"""What configurations refer to, read once for all cells: problems, model cards, prompts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, cached_property

from sharp.config import RunConfig
from sharp.llm.cards import ModelCard, load_card
from sharp.llm.prompts import prompt_hashes
from sharp.problems import Problem, load_problem
from sharp.runs.creation import with_servers
from sharp.runs.directory import models_of


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
