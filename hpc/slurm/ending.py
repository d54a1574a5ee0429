"""How a campaign ended, for whoever comes later: a controller that starts after all, people, `sharp status`.

FOLDER/slurm/outcome.json is there once nobody is to go on with a campaign, and goes when it is launched again.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Literal

from hpc.files import write_atomic
from hpc.slurm.campaign import Campaign


@dataclass(frozen=True)
class Ending:
    """`sentence` says why, and what to do where it failed; `time` is ISO 8601 (UTC)."""

    state: Literal["finished", "failed", "stopped"]
    sentence: str
    time: str


def write_ending(
    campaign: Campaign, state: Literal["finished", "failed", "stopped"], sentence: str
) -> Ending:
    """Record how a campaign ended."""
    ending = Ending(state, sentence, datetime.now(UTC).isoformat(timespec="seconds"))
    write_atomic(campaign.place / "outcome.json", json.dumps(asdict(ending), ensure_ascii=False).encode())
    return ending


def read_ending(campaign: Campaign) -> Ending | None:
    """Return how a campaign ended, None while it has not."""
    try:
        return Ending(**json.loads((campaign.place / "outcome.json").read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def forget_ending(campaign: Campaign) -> None:
    """Let a campaign that has ended go on."""
    (campaign.place / "outcome.json").unlink(missing_ok=True)
