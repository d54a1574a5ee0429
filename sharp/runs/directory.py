"""A run directory: the frozen configuration with everything it refers to, and where its files are.

    RUN/run.yaml        the resolved configuration, versions, hashes of prompts, model cards, the data set
    RUN/problem.yaml    the problem specification as it was
    RUN/prior.md        what an earlier run found, if one was given (genesis.prior_report)
    RUN/journal*.jsonl, RUN/checkpoints/, RUN/lease/    see hpc.journal
    RUN/tasks/          evaluation tasks and their results
    RUN/report.html, RUN/report.md, RUN/solver/         what the user came for

Once a run has begun, only its budgets and where its models are served may change.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from hpc.errors import RunDirectoryError
from hpc.files import make_directory, write_atomic, writing
from sharp import __version__
from sharp.config import RunConfig, to_plain
from sharp.documents import Document, validate
from sharp.errors import ConfigurationError, DataError, SpecificationError
from sharp.evaluation.datasets import DataSet, Splits, make_splits, open_dataset
from sharp.llm.backends import make_backend
from sharp.llm.cards import ModelCard, load_card, played
from sharp.llm.hosting import is_hosted
from sharp.numerics.reference import ProgressCallback, ensure_dataset
from sharp.problems import Problem, load_problem
from sharp.runs.configure import problem_of, unknown_kinds
from sharp.runs.manifest import FORMAT, read_manifest
from sharp.runs.prior import keep_prior, recorded_prior
from sharp.stages.prompts import prompt_hashes


@dataclass(frozen=True)
class Run:
    """An existing run directory, read and checked. `manifest` is `run.yaml`, `prior` the text of `prior.md`."""

    path: Path
    config: RunConfig
    problem: Problem
    cards: Mapping[str, ModelCard]
    manifest: Mapping[str, Any]
    prior: str = ""

    def dataset(self) -> DataSet:
        """Open the run's data set; raises DataError if it is gone or not the one the run began with."""
        recorded = self.manifest["data"]
        dataset = open_dataset(Path(recorded["path"]), self.problem)
        if dataset.label != recorded["label"]:
            raise DataError(
                f"{dataset.path}: the data have changed since the run began "
                f"(found {dataset.label}, expected {recorded['label']}); put the original file back or start a new run"
            )
        return dataset

    def splits(self, dataset: DataSet) -> Splits:
        """Return which samples are test, validation and smoke samples."""
        return _splits(self.config, dataset)

    def freeze(self) -> Run:
        """Write `run.yaml` anew where budgets or servers are no longer those in it; for the controller alone."""
        manifest = {**self.manifest, "config": to_plain(self.config), "models": _plain_cards(self.cards)}
        if manifest != self.manifest:
            write_atomic(self.path / "run.yaml", _to_yaml(manifest))
        return replace(self, manifest=manifest)


class _Identity(BaseModel):
    id: str
    hash: str


class _Data(BaseModel):
    path: str
    label: str


class _Prior(BaseModel):
    hash: str


class _Record(BaseModel):
    """What has to be right in `run.yaml` for a run to go on."""

    config: RunConfig
    problem: _Identity
    data: _Data
    models: dict[str, ModelCard]
    prompts: dict[str, str]
    prior: _Prior | None = None


def create_run(
    config: RunConfig, path: Path, progress: ProgressCallback | None = None, *, on_cluster: bool = False
) -> Run:
    """Make a run directory: resolve the problem, the models and the data, and freeze them all into `run.yaml`.

    Generates the data set if the configuration names none and it is not there yet. Raises InputError for anything
    that cannot be used, before the directory is touched, and RunDirectoryError if a run is there already. `on_cluster`
    says that jobs will serve the models that tell how.
    """
    from sharp.runs.digest import digest_of, earlier_run  # plays runs, and so needs this module

    check_unused(path)
    config = with_absolute_paths(config)
    problem = problem_of(config)
    check_feedback(config, problem)
    cards = load_cards(config)
    if config.models.recorded is None:
        check_models(card for card in cards.values() if not (on_cluster and is_hosted(card)))
    prior = earlier_run(config, problem)
    dataset = resolve_dataset(config, problem, progress)
    _splits(config, dataset)
    return _begin(path, config, problem, cards, dataset, digest_of(prior, dataset) if prior else "")


def check_feedback(config: RunConfig, problem: Problem) -> None:
    """Raise ConfigurationError where a problem has no feedback of a kind that is asked for, such as a residual."""
    for _, text in unknown_kinds(config, problem):
        raise ConfigurationError(f"feedback.kinds: {text}")


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
    write_atomic(path / "problem.yaml", _to_yaml(problem.specification.model_dump(mode="json")))
    manifest = {**_manifest(config, problem, cards, dataset), **keep_prior(path, prior)}
    write_atomic(path / "run.yaml", _to_yaml(manifest))
    return Run(path, config, problem, cards, manifest, prior)


def check_unused(path: Path) -> None:
    """Raise RunDirectoryError unless a run can begin in this directory."""
    with writing(path):
        run, journal = (path / "run.yaml").exists(), (path / "journal.jsonl").exists()
    if run:
        raise RunDirectoryError(f"{path} already holds a run; continue it with: sharp resume {path}")
    if journal:
        raise RunDirectoryError(
            f"{path} holds the journal of a run whose run.yaml is gone; restore that file or choose another directory"
        )


def load_run(path: Path) -> Run:
    """Read a run directory.

    Raises RunDirectoryError if there is no run or its record was changed, and RunVersionError if another format of
    run directories wrote it.
    """
    manifest = read_manifest(path)
    document = Document(manifest, {(): str(path / "run.yaml")})
    record = validate(document, _Record, RunDirectoryError, "a run's record")
    problem = _recorded_problem(path / "problem.yaml", record.problem.hash)
    prior = recorded_prior(path, record.prior.hash) if record.prior else ""
    return Run(path, record.config, problem, record.models, manifest, prior)


def changed_prompts(run: Run) -> list[str]:
    """Return the names of prompts that differ from those the run began with."""
    now, then = prompt_hashes(), run.manifest["prompts"]
    return sorted(name for name in {*now, *then} if now.get(name) != then.get(name))


def load_cards(config: RunConfig) -> dict[str, ModelCard]:
    """Return the cards of all models in the configuration, with the servers it names."""
    return with_servers({name: load_card(name) for name in models_of(config)}, config)


def models_of(config: RunConfig) -> list[str]:
    """Return the names of the models that a run with this configuration may ask."""
    models = config.models
    if config.method == "pde-sharp":
        writer = models.writer if config.analysis.written else models.analyst
        return sorted({models.analyst, writer, models.generator, *models.judges, models.reporter})
    rater = config.cepo.rating_model if config.method == "cepo" else None
    return sorted({models.generator, rater or models.generator})


def with_servers(cards: Mapping[str, ModelCard], config: RunConfig) -> dict[str, ModelCard]:
    """Return the cards with the servers that the configuration names, or as the playbook plays them all."""
    if config.models.played_by is not None:
        return {name: played(card) for name, card in cards.items()}
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
        kind=options.reference,
        progress=progress,
    )


def _splits(config: RunConfig, dataset: DataSet) -> Splits:
    options = config.evaluation
    return make_splits(dataset.n_samples, options.test, options.validation, options.smoke)


def with_absolute_paths(config: RunConfig) -> RunConfig:
    """Let a run be resumed from any directory."""

    def absolute(section: BaseModel, *keys: str) -> BaseModel:
        paths: dict[str, Path | None] = {key: getattr(section, key) for key in keys}
        return section.model_copy(update={key: path and path.absolute() for key, path in paths.items()})

    return config.model_copy(
        update={
            "models": absolute(config.models, "recorded"),
            "genesis": absolute(config.genesis, "reuse", "prior_report"),
            "evaluation": absolute(config.evaluation, "data", "sandbox_image"),
            "retry": absolute(config.retry, "of"),
        }
    )


def _recorded_problem(path: Path, recorded: str) -> Problem:
    try:
        problem = load_problem(path)
        changed = "" if problem.hash == recorded else "its content differs"
    except SpecificationError as error:
        changed = str(error)
    if changed:
        raise RunDirectoryError(
            f"{path} was changed after the run began ({changed}); restore it, or start a new run with it"
        )
    return problem


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
        "models": _plain_cards(cards),
        "prompts": prompt_hashes(),
    }


def _plain_cards(cards: Mapping[str, ModelCard]) -> dict[str, Any]:
    return {name: card.model_dump(mode="json") for name, card in cards.items()}


def _to_yaml(content: Mapping[str, Any]) -> bytes:
    return yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True, width=110).encode()
