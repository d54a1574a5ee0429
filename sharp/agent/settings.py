"""What decides a course: the statement, who plays which role, the policy, and what it may cost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, get_args

from sharp.agent.policies import POLICIES, Policy
from sharp.agent.team import Allowance, Role
from sharp.errors import ConfigurationError
from sharp.problems.wording import valid_values

ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True)
class Settings:
    """A statement, and how it is worked on.

    `models` names the model of each role; `mistakes` is the rate at which the playbook errs; `wall_s` bounds each use
    of a tool in seconds, those apart that ask models themselves. With `synthesis` the team may have solver programs
    written.
    """

    statement: str
    models: dict[Role, str] = field(default_factory=lambda: dict.fromkeys(ROLES, "playbook"))
    policy: Policy = "prog-act"
    seed: int = 0
    mistakes: float = 0.0
    wall_s: float = 120.0
    allowance: Allowance = field(default_factory=Allowance)
    synthesis: bool = False

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ConfigurationError(
                f"policy: found '{self.policy}'; {valid_values('policies', self.policy, POLICIES)}"
            )
        if not 0 <= self.mistakes < 1:
            raise ConfigurationError(f"mistakes: expected a rate from 0 to below 1, found {self.mistakes:g}")
        if not self.statement.strip():
            raise ConfigurationError("statement: expected a problem in words, found nothing")

    def to_json(self) -> dict[str, Any]:
        """Return the settings in plain JSON, without what adds nothing to the team's tools."""
        told = asdict(self)
        return (
            told if self.synthesis else {name: value for name, value in told.items() if name != "synthesis"}
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Settings:
        """Rebuild settings from their plain form."""
        return cls(**{**data, "allowance": Allowance(**data["allowance"])})

    @property
    def hash(self) -> str:
        """The SHA-256 (hex) of all settings: a course with other settings is another course."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()
