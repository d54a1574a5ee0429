"""Making a run directory: problem, models, prompts and data are resolved and frozen into `run.yaml`."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from hpc.errors import RunDirectoryError
from hpc.files import make_directory, translate_os_errors, write_atomic
from sharp.config import RunConfig, to_plain
from sharp.errors import ConfigurationError
from sharp.llm.backends import make_backend
from sharp.llm.cards import ModelCard, as_rule_based, load_card
from sharp.llm.hosting import is_hosted
from sharp.llm.prompts import prompt_hashes
from sharp.problems import Problem
from sharp.reference.datasets import DataSet, open_dataset
from sharp.reference.generation import ProgressCallback, ensure_dataset
from sharp.runs.configure import problem_of, unknown_kinds
from sharp.runs.digest import digest_of, earlier_run
from sharp.runs.directory import Run, manifest_yaml, models_of, plain_cards, splits_of
from sharp.runs.manifest import FORMAT
from sharp.runs.prior import keep_prior
from sharp.version import __version__


def create_run(
    config: RunConfig, path: Path, progress: ProgressCallback | None = None, *, on_cluster: bool = False
) -> Run:
    """Make a run directory: resolve the problem, the models and the data, and freeze them all into `run.yaml`.

    Generates the data set if the configuration names none and it is not there yet. Raises InputError for anything
    that cannot be used, before the directory is touched, and RunDirectoryError if a run is there already. `on_cluster`
    says that jobs will serve the models that tell how.
    """
    check_unused(path)
    config = with_absolute_paths(config)
    problem = problem_of(config)
    check_feedback(config, problem)
    cards = load_cards(config)
    if config.models.replay_from is None:
        check_models(card for card in cards.values() if not (on_cluster and is_hosted(card)))
    prior = earlier_run(config, problem)
    dataset = resolve_dataset(config, problem, progress)
    splits_of(config, dataset)
    return _begin(path, config, problem, cards, dataset, digest_of(prior, dataset) if prior else "")


def check_feedback(config: RunConfig, problem: Problem) -> None:
    """Raise ConfigurationError where a problem has no feedback of a kind that is asked for, such as a residual."""
    for _, text in unknown_kinds(config, problem):
        raise ConfigurationError(f"feedback.metrics: {text}")


def check_models(cards: Iterable[ModelCard]) -> None:
    """Raise ConfigurationError now, not after an hour of data, where the server or the key of a model is missing."""
    for card in cards:
        make_backend(card)


def create_alike(run: Run, config: RunConfig, path: Path) -> Run:
    """Make a run directory with all that another run was begun with, as it was frozen.

    Raises DataError where the data are gone or changed, RunDirectoryError if a run is there already.
    """
    check_unused(path)
    return _begin(path, with_absolute_paths(config), run.problem, run.cards, run.dataset(), run.prior)


def _begin(
    path: Path,
    config: RunConfig,
    problem: Problem,
    cards: Mapping[str, ModelCard],
    dataset: DataSet,
    prior: str,
) -> Run:
    make_directory(path)
    write_atomic(path / "problem.yaml", manifest_yaml(problem.specification.model_dump(mode="json")))
    manifest = {**_manifest(config, problem, cards, dataset), **keep_prior(path, prior)}
    write_atomic(path / "run.yaml", manifest_yaml(manifest))
    return Run(path, config, problem, cards, manifest, prior)


def check_unused(path: Path) -> None:
    """Raise RunDirectoryError unless a run can begin in this directory."""
    with translate_os_errors(path):
        run, journal = (path / "run.yaml").exists(), (path / "journal.jsonl").exists()
    if run:
        raise RunDirectoryError(f"{path} already holds a run; continue it with: sharp resume {path}")
    if journal:
        raise RunDirectoryError(
            f"{path} holds the journal of a run whose run.yaml is gone; restore that file or choose another directory"
        )


def load_cards(config: RunConfig) -> dict[str, ModelCard]:
    """Return the cards of all models in the configuration, with the servers it names."""
    return with_servers({name: load_card(name) for name in models_of(config)}, config)


def with_servers(cards: Mapping[str, ModelCard], config: RunConfig) -> dict[str, ModelCard]:
    """Return the cards with the servers that the configuration names, or as the rule-based model plays them all."""
    if config.models.override is not None:
        return {name: as_rule_based(card) for name, card in cards.items()}
    servers = config.models.servers
    return {
        name: card.model_copy(update=servers[name].model_dump(exclude_none=True)) if name in servers else card
        for name, card in cards.items()
    }


def resolve_dataset(config: RunConfig, problem: Problem, progress: ProgressCallback | None = None) -> DataSet:
    """Return the data set a configuration means, generating it if need be."""
    options = config.evaluation
    if options.data is not None:
        return open_dataset(options.data, problem)
    return ensure_dataset(
        problem,
        samples=options.validation + options.test,
        seed=options.data_seed,
        kind=options.data_kind,
        progress=progress,
    )


def with_absolute_paths(config: RunConfig) -> RunConfig:
    """Let a run be resumed from any directory."""

    def absolute(section: BaseModel, *keys: str) -> BaseModel:
        paths: dict[str, Path | None] = {key: getattr(section, key) for key in keys}
        return section.model_copy(update={key: path and path.absolute() for key, path in paths.items()})

    return config.model_copy(
        update={
            "models": absolute(config.models, "replay_from"),
            "genesis": absolute(config.genesis, "replay_from", "prior_run"),
            "evaluation": absolute(config.evaluation, "data", "sandbox_image"),
            "retry": absolute(config.retry, "of"),
        }
    )


def _manifest(
    config: RunConfig, problem: Problem, cards: Mapping[str, ModelCard], dataset: DataSet
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "software": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "config": to_plain(config),
        "problem": {"id": problem.id, "hash": problem.hash},
        "data": {
            "path": str(dataset.path.resolve()),
            "label": dataset.label,
            "kind": dataset.kind,
            "samples": dataset.n_samples,
        },
        "models": plain_cards(cards),
        "prompts": prompt_hashes(),
    }
