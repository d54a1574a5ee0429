"""How to get the same run again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import yaml

from hpc.journal import canonical_json, encode_text
from sharp.config import RunConfig, to_plain
from sharp.document import Block, Code, Facts, Paragraph, Section
from sharp.report.report_data import ReportData


def reproduction(evidence: ReportData) -> Section:
    """Return the command of the run, the versions and hashes that it rests on, and how to replay its record."""
    path = shlex.quote(str(evidence.run.path))
    blocks: tuple[Block, ...] = (
        Paragraph("The same run, from the beginning, in a new directory:"),
        Code(command(evidence), "sh", wrap=True),
        Paragraph(
            "The recorded run again, without a call and without running a program, to be compared state by state:"
        ),
        Code(f"sharp replay {path}", "sh", wrap=True),
        Facts(tuple(_hashes(evidence))),
    )
    return Section("reproduction", "How to reproduce", blocks)


def command(evidence: ReportData) -> str:
    """Return the command that repeats a run: the problem, and every key that is not at its default."""
    config, known = evidence.run.config, evidence.run.problem.id
    shipped = config.problem == known
    problem = known if shipped else str(evidence.run.path / "problem.yaml")
    defaults = to_plain(RunConfig(problem=config.problem))
    changes = dict(_changes(to_plain(config), defaults))
    if not shipped:
        # The run's own specification has the coarser grid already.
        changes.pop("evaluation.coarsen", None)
    options = [f"{key}={_yaml(value)}" for key, value in changes.items()]
    words = [
        "sharp",
        "run",
        problem,
        "--run-dir",
        "NEW-RUN",
        *(word for option in options for word in ("--set", option)),
    ]
    return shlex.join(words)


def _changes(
    values: Mapping[str, Any], defaults: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        default, key = defaults.get(name), f"{above}{name}"
        if isinstance(value, dict) and isinstance(default, dict) and default:
            yield from _changes(value, default, f"{key}.")
        elif value != default:
            yield key, value


def _yaml(value: Any) -> str:
    """Return a value as YAML on one line."""
    return yaml.safe_dump(value, default_flow_style=True, width=10**9).removesuffix("...\n").strip()


def _hashes(evidence: ReportData) -> Iterator[tuple[str, str]]:
    manifest = evidence.run.manifest
    yield "Begun", str(manifest["created"])
    yield "Software", f"pde-sharp {manifest['software']}, Python {manifest['python']}"
    yield "Problem", f"{manifest['problem']['id']}, SHA-256 {manifest['problem']['hash']}"
    yield "Data set", str(manifest["data"]["label"])
    prompts = manifest["prompts"]
    yield (
        "Prompts",
        f"{len(prompts)}, SHA-256 of their hashes {sha256(canonical_json(prompts).encode()).hexdigest()}",
    )
    winner = evidence.winner
    if winner is not None:
        yield "Winner's code", f"SHA-256 {sha256(encode_text(winner.code)).hexdigest()}"
    if evidence.record.barriers:
        last = evidence.record.barriers[-1]
        yield "State", f"{last.digest} at checkpoint {last.number}, “{last.name}”"
