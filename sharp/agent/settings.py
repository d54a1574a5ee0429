"""What decides a session: the statement, who plays which role, the policy, and what it may cost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, get_args

from hpc.errors import RunVersionError
from sharp.agent.policies import POLICIES, Policy
from sharp.agent.team import AgentLimits, Role
from sharp.error_messages import valid_values
from sharp.errors import ConfigurationError
from sharp.version import __version__

FORMAT = 5
"""Of `agent.yaml` and the session that it is of."""

_LEFT_OUT = ("synthesis", "sampling", "tools")  # of agent.yaml where they hold nothing
ROLES: tuple[Role, ...] = get_args(Role)


def models_by_role(names: Sequence[str]) -> dict[Role, str]:
    """Return the model of each role: one model plays all, or there is one for each in the order of `ROLES`.

    Raises `ConfigurationError` for another number of models.
    """
    if len(names) not in (1, len(ROLES)):
        raise ConfigurationError(
            f"models: expected one model, or one for each of {', '.join(ROLES)}; found {len(names)}"
        )
    return dict(zip(ROLES, names if len(names) > 1 else [*names] * len(ROLES), strict=True))


def models_of_team(text: str) -> tuple[str, ...]:
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


@dataclass(frozen=True)
class AgentConfig:
    """A statement, and how it is worked on.

    `models` names the model of each role; `error_rate` is the rate at which the rule-based model errs; `wall_s` bounds
    each use of a tool in seconds, those apart that ask models themselves. With `synthesis` the team may have solver
    programs written. `sampling` holds what differs from the model cards' (`temperature`, `max_tokens`).
    `tools` are those that earlier sessions built, for policies whose programs may import them.
    """

    statement: str
    models: dict[Role, str] = field(default_factory=lambda: dict.fromkeys(ROLES, "rule-based"))
    policy: Policy = "prog-act"
    seed: int = 0
    error_rate: float = 0.0
    wall_s: float = 120.0
    allowance: AgentLimits = field(default_factory=AgentLimits)
    synthesis: bool = False
    sampling: dict[Role, dict[str, Any]] = field(default_factory=dict)
    tools: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ConfigurationError(
                f"policy: found '{self.policy}'; {valid_values('policies', self.policy, POLICIES)}"
            )
        if not 0 <= self.error_rate < 1:
            raise ConfigurationError(
                f"error_rate: expected a rate from 0 to below 1, found {self.error_rate:g}"
            )
        if not self.statement.strip():
            raise ConfigurationError("statement: expected a problem in natural language, found nothing")

    def to_json(self) -> dict[str, Any]:
        """Return the settings in plain JSON, without what adds nothing to the team's tools."""
        told = {"format": FORMAT, **asdict(self)}
        return {name: value for name, value in told.items() if name not in _LEFT_OUT or value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> AgentConfig:
        """Rebuild settings from their plain form; raises `RunVersionError` for those of another format."""
        known = dict(data)
        found = known.pop("format", 1)  # the first format had no number
        if found != FORMAT:
            raise RunVersionError(
                f"agent.yaml was written in session format {found}; this is pde-sharp {__version__}, which reads "
                f"format {FORMAT}. Replay it with the version that wrote it, or solve the problem again elsewhere."
            )
        return cls(**{**known, "allowance": AgentLimits(**known["allowance"])})

    @property
    def hash(self) -> str:
        """The SHA-256 (hex) of all settings: a session with other settings is another session.

        How many calls are allowed is not of them: a session goes on when more are.
        """
        told = self.to_json()
        del told["allowance"]["calls"]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
