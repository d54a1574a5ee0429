"""The trials of a benchmark: which there are, of what team on which statement, their results, and the log of these.

A row stands for each trial that has ended, a check for each case. Lines of the log are appended by the holder of the
folder's lease. What is damaged is done again.
"""

# ruff: noqa: RUF009 - `column` makes a field

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, cast, get_args

from sharp.agent import POLICIES, ROLES, AgentConfig, Policy
from sharp.error_messages import valid_values
from sharp.errors import ConfigurationError, SpecificationError
from sharp.experiments.hard_cases.families import list_hard_cases, load_hard_case
from sharp.experiments.log import RecordWriter, read_log
from sharp.experiments.run_summary import column
from sharp.llm import RULE_BASED
from sharp.problems import (
    ILL_POSED,
    BenchmarkCase,
    IllPosedCase,
    ProblemStatement,
    in_other_styles,
    list_cases,
    list_ill_posed,
    load_case,
    load_ill_posed,
)

_STYLES: tuple[str, ...] = get_args(ProblemStatement.model_fields["style"].annotation)


@dataclass(frozen=True)
class Arm:
    """What is compared: a policy, the model of each role in the order of `ROLES`, the rule-based model's error rate."""

    policy: Policy
    models: tuple[str, ...]
    error_rate: float = 0.0

    @property
    def played(self) -> bool:
        """Whether the rule-based model stands in for a model in some role."""
        return RULE_BASED in self.models

    @property
    def team(self) -> str:
        """The models in words: one name, or one for each role."""
        if len(set(self.models)) == 1:
            return self.models[0]
        return ", ".join(f"{role}={model}" for role, model in zip(ROLES, self.models, strict=True))

    @property
    def label(self) -> str:
        """The arm in words, unique among all arms."""
        erring = f", error rate {self.error_rate:g}" if self.error_rate else ""
        return f"{self.policy} ({self.team}{erring})"


def short_names(arms: Collection[Arm]) -> dict[str, str]:
    """Return by label what tells arms apart: the policy, and models and error rates where these differ."""
    teams = len({arm.models for arm in arms}) > 1
    rates = len({arm.error_rate for arm in arms}) > 1
    return {
        arm.label: ", ".join(
            (
                arm.policy,
                *([arm.team] if teams else []),
                *([f"error rate {arm.error_rate:g}"] if rates else []),
            )
        )
        for arm in arms
    }


@dataclass(frozen=True)
class BenchmarkTrial:
    """One course: an arm works on one statement of a case.

    `seed` counts courses of one kind; the course's own differs from case to case, and is the same for all arms.
    """

    arm: Arm
    case: BenchmarkCase | IllPosedCase
    statement: ProblemStatement
    seed: int

    @property
    def settings(self) -> AgentConfig:
        """The settings of the course."""
        models = dict(zip(ROLES, self.arm.models, strict=True))
        # With one seed for all, what is drawn would be the same at the same step of every case.
        own = zlib.crc32(f"{self.case.id}/{self.statement.style}/{self.seed}".encode())
        return AgentConfig(self.statement.text, models, self.arm.policy, own, self.arm.error_rate)

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits for the settings of the course and the problem that it is scored by."""
        text = f"{self.settings.hash} {problem_hash(self.case)}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def problem_hash(case: BenchmarkCase | IllPosedCase) -> str:
    """Return what names the problem of a case, well posed or not."""
    if isinstance(case, BenchmarkCase):
        return case.problem.hash
    return hashlib.sha256(json.dumps(case.problem.value, sort_keys=True).encode()).hexdigest()


def read_models(text: str) -> tuple[str, ...]:
    """Return the model of each role from `NAME`, or from `ROLE=NAME,…` with all roles.

    Raises `ConfigurationError` for a role that is unknown, and where a role has no model.
    """
    if "=" not in text:
        return (text,) * len(ROLES)
    given = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    for role in given:
        if role not in ROLES:
            raise ConfigurationError(
                f"model '{text}': unknown role '{role}'; {valid_values('roles', role, ROLES)}"
            )
    missing = [role for role in ROLES if not given.get(role)]
    if missing:
        raise ConfigurationError(
            f"model '{text}': expected a model for each role, found none for {missing[0]}"
        )
    return tuple(given[role] for role in ROLES)


def arms_of(
    policies: Sequence[str], teams: Sequence[tuple[str, ...]], rates: Sequence[float]
) -> tuple[Arm, ...]:
    """Return all combinations, each once; who is no rule-based model makes mistakes of its own, at no stated rate.

    Raises `ConfigurationError` for an unknown policy, and for a rate where no model is the rule-based model.
    """
    _check_known("policy", "policies", policies, POLICIES)
    if any(rates) and not any(RULE_BASED in models for models in teams):
        raise ConfigurationError(
            "an error rate is the rule-based model's, and no model is the rule-based model"
        )
    arms = (
        Arm(cast(Policy, policy), models, rate if RULE_BASED in models else 0.0)
        for models in teams
        for rate in rates
        for policy in policies
    )
    return tuple(dict.fromkeys(arms))


def _check_known(what: str, plural: str, names: Iterable[str], valid: Collection[str]) -> None:
    for name in names:
        if name not in valid:
            raise ConfigurationError(f"unknown {what} '{name}'; {valid_values(plural, name, valid)}")


def choose_cases(names: Sequence[str]) -> tuple[BenchmarkCase | IllPosedCase, ...]:
    """Return the cases of these ids and categories, each once: all but the hard ones where none is named.

    `hard` and `ill-posed` are categories, too.

    Raises `SpecificationError` for a name that is neither, and as `load_case` does.
    """
    known = list_cases()
    by_category: dict[str, list[str]] = {}
    for case, path in known.items():
        by_category.setdefault(path.parent.name, []).append(case)
    hard, ill_posed = list_hard_cases(), list_ill_posed()
    groups = {**by_category, ILL_POSED: list(ill_posed), "hard": list(hard)}
    chosen: list[str] = []
    for name in names or [*by_category, ILL_POSED]:
        if name not in {*known, *hard, *ill_posed, *groups}:
            valid = valid_values("cases and categories", name, [*groups, *known, *hard, *ill_posed])
            raise SpecificationError(f"unknown case or category '{name}'; {valid}")
        chosen += groups.get(name, [name])

    def load(name: str) -> BenchmarkCase | IllPosedCase:
        if name in ill_posed:
            return load_ill_posed(name)
        return load_hard_case(name).case if name in hard else load_case(name)

    return tuple(map(load, dict.fromkeys(chosen)))


def list_trials(
    cases: Sequence[BenchmarkCase | IllPosedCase],
    arms: Sequence[Arm],
    seeds: int,
    styles: Sequence[str] = (),
) -> tuple[BenchmarkTrial, ...]:
    """Return all courses, case by case: of the first statement of each, or of all those in given styles.

    Raises `ConfigurationError` for an unknown style, and where no case has a statement in any of them.
    """
    _check_known("style", "styles", styles, _STYLES)
    tasks = tuple(
        BenchmarkTrial(arm, case, statement, seed)
        for case in cases
        for arm in arms
        for statement in _statements(case, styles)
        for seed in range(seeds)
    )
    if not tasks:
        raise ConfigurationError(f"no case that was chosen has a statement in style {' or '.join(styles)}")
    return tasks


def _statements(case: BenchmarkCase | IllPosedCase, styles: Sequence[str]) -> Iterator[ProblemStatement]:
    if not styles:
        yield case.statements[0]
    said = in_other_styles(case.statements) if isinstance(case, IllPosedCase) else case.statements
    yield from (statement for statement in said if statement.style in styles)


Ending = Literal["solved", "specified", "unsolved", "needs_clarification", "rejected", "failed"]
"""How a trial ended by its own account; `failed` is a fault of the machinery, and the trial is run again."""


@dataclass(frozen=True)
class TrialResult:
    """One trial: what it was, how it ended, what its solution is worth, and what it took."""

    key: str = column("hash of the settings of the trial and of its problem", ...)
    arm: str = column("policy, models and rate of mistakes", ...)
    policy: str = column("policy of the team", ...)
    team: str = column("models of the team", ...)
    error_rate: float = column("rate of mistakes of the rule-based model", ..., "1")
    case: str = column("id of the case", ...)
    category: str = column("category of the case", ...)
    style: str = column("style of the statement", ...)
    seed: int = column("number of the trial among those of its kind", ...)
    ending: Ending = column("how the trial ended by its own account", ...)
    reason: str = column("why it ended so", ...)
    solved: bool = column("whether the error on the held-out set is within tolerance", False)
    error: float | None = column("relative L2 error on the held-out set", unit="1")
    maximum: float | None = column("largest error over the largest value, on the held-out set", unit="1")
    matched_by_position: bool = column("whether fields or coordinates had other names than the case's", False)
    failed_checks: int | None = column("findings that were not passed and steps that failed, in the end")
    calls: int = column("calls of models", 0)
    prompt_tokens: int = column("prompt tokens", 0)
    completion_tokens: int = column("completion tokens", 0)
    seconds: float = column("time of all calls of models and tools", 0.0, "s")
    tool_calls: int = column("calls of tools", 0)
    corrections: int = column("steps whose parameters were chosen again", 0)
    plans: int = column("plans", 0)
    figures: Mapping[str, float] = column("scores of the tool chain by name", dict, "1")
    parameters: float | None = column("share of the chain's parameters that are right", unit="1")
    parameter_errors: tuple[str, ...] = column("what is wrong with its parameters", ())

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TrialResult:
        """Rebuild a row from its plain form."""
        return cls(**{**data, "parameter_errors": tuple(data["parameter_errors"])})


IllPosedOutcome = Literal["question", "refusal", "solved wrongly", "invented", "gave up", "failed"]
"""What a team does with a problem that cannot be solved as it stands: it asks, refuses, takes a solution of it for
right, solves one that the statement does not state, or ends without an answer. `failed` is a fault of the machinery."""


@dataclass(frozen=True)
class IllPosedResult:
    """One trial on a problem that is ill posed: what the team did, and what is right to do."""

    key: str = column("hash of the settings of the trial and of its problem", ...)
    arm: str = column("policy, models and rate of mistakes", ...)
    case: str = column("id of the case", ...)
    kind: str = column("what is wrong with the problem", ...)
    style: str = column("style of the statement", ...)
    seed: int = column("number of the trial among those of its kind", ...)
    expected: Literal["question", "refusal"] = column("what is right to do", ...)
    outcome: IllPosedOutcome = column("what the team did", ...)
    reason: str = column("its words", ...)
    calls: int = column("calls of models", 0)
    prompt_tokens: int = column("prompt tokens", 0)
    completion_tokens: int = column("completion tokens", 0)


@dataclass(frozen=True)
class WellPosednessCheck:
    """The verdict of the deterministic check of a well-posed case: `solve`, or a false alarm with its reason."""

    key: str
    case: str
    verdict: str
    reason: str = ""


@dataclass(frozen=True)
class BenchmarkRecord:
    """All rows and checks by key, and what was wrong with the log."""

    rows: Mapping[str, TrialResult] = field(default_factory=dict)
    checks: Mapping[str, WellPosednessCheck] = field(default_factory=dict)
    ill_posed: Mapping[str, IllPosedResult] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def finished(self) -> frozenset[str]:
        """The keys of all trials that need not be run again."""
        sound = (key for key, row in self.rows.items() if row.ending != "failed")
        return frozenset([*sound, *(key for key, row in self.ill_posed.items() if row.outcome != "failed")])


Found = TrialResult | WellPosednessCheck | IllPosedResult


def log_file(folder: Path) -> Path:
    """Return the path of a benchmark's log."""
    return folder / "trials.jsonl"


def read_record(folder: Path) -> BenchmarkRecord:
    """Read the log of a benchmark; lines that are damaged or torn are left out with a warning."""
    events, warnings = read_log(log_file(folder))
    rows = [TrialResult.from_json(event["row"]) for event in events if event["event"] == "row"]
    checks = [WellPosednessCheck(**event["check"]) for event in events if event["event"] == "check"]
    ill_posed = [IllPosedResult(**event["ill-posed"]) for event in events if event["event"] == "ill-posed"]
    return BenchmarkRecord(
        {row.key: row for row in rows},
        {check.key: check for check in checks},
        {row.key: row for row in ill_posed},
        warnings,
    )


class ResultsWriter(RecordWriter[BenchmarkRecord]):
    """Appends to the log of a benchmark."""

    def __init__(self, folder: Path) -> None:
        super().__init__(log_file(folder), read_record)

    def add(self, found: Found) -> None:
        """Keep a row or a check."""
        name = {TrialResult: "row", WellPosednessCheck: "check", IllPosedResult: "ill-posed"}[type(found)]
        self._log.append([{"event": name, name: asdict(found)}])
