"""The few things about a run that may change after it began: its budgets, and where its models are served."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sharp.config import Budget, RunConfig, to_plain
from sharp.errors import ConfigurationError
from sharp.runs.configure import override
from sharp.runs.creation import with_servers
from sharp.runs.directory import Run
from sharp.yaml_documents import Document, hint, validate


def amended(run: Run, budgets: Iterable[str] = (), servers: Iterable[str] = ()) -> Run:
    """Return the run with new budgets (`calls=500`) and servers (`qwen3-32b=http://node7:8000/v1`).

    Nothing is written; `Run.freeze` does that. Raises ConfigurationError naming the option and what is valid.
    """
    document = Document(to_plain(run.config), {(): str(run.path / "run.yaml")})
    for text in budgets:
        _check_name(text, "--budget", "a budget", Budget.model_fields)
        document = override(document, text, "--budget", below=("budget",))
    for text in servers:
        model = _check_name(text, "--server", "a model of this run", run.cards)
        place = ("models", "servers", model, "base_url")
        document = document.with_value(place, text.partition("=")[2], "--server")
    config = validate(document, RunConfig, ConfigurationError, "a run configuration")
    return replace(run, config=config, cards=with_servers(run.cards, config))


def _check_name(text: str, option: str, what: str, valid: Iterable[str]) -> str:
    name, sign, _ = text.partition("=")
    if not sign:
        raise ConfigurationError(f"{option} {text!r}: expected NAME=VALUE{hint(name, valid)}")
    if name not in valid:
        raise ConfigurationError(f"{option} {text}: {name!r} is not {what}{hint(name, valid)}")
    return name
