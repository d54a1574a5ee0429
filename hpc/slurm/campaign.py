"""A campaign: a run or a sweep together with the cluster that it is carried out on, as files beside it.

FOLDER/slurm/campaign.json    what it is called in Slurm, and the cluster's profile as it was at the launch
FOLDER/slurm/jobs.jsonl       the book of its jobs (`hpc.slurm.book`)
FOLDER/slurm/control.json     what people have asked of it since (`Wishes`)
FOLDER/slurm/queue/           work for jobs to take (`hpc.work.queue`)
FOLDER/slurm/services/        language-model servers that answer
FOLDER/slurm/logs/            what jobs print
"""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from hpc.errors import RunDirectoryError
from hpc.files import make_directory, write_atomic
from hpc.slurm.book import Book
from hpc.slurm.profile import Cluster, RoleName

_LETTERS = {"controller": "c", "server": "s", "evaluate": "e"}


@dataclass(frozen=True)
class Campaign:
    """`id` tells the jobs of this campaign from all others; `created` is ISO 8601 (UTC)."""

    folder: Path
    id: str
    cluster: Cluster
    created: str

    @property
    def place(self) -> Path:
        """The folder of everything that has to do with Slurm."""
        return self.folder / "slurm"

    @property
    def book(self) -> Path:
        """The file of the book of jobs."""
        return self.place / "jobs.jsonl"

    @property
    def queue(self) -> Path:
        """The folder of work to take."""
        return self.place / "queue"

    @property
    def services(self) -> Path:
        """The folder of servers that answer."""
        return self.place / "services"

    @property
    def logs(self) -> Path:
        """The folder of what jobs print."""
        return self.place / "logs"

    @property
    def prefix(self) -> str:
        """How the names of all jobs of this campaign begin."""
        return f"sharp-{self.id}-"

    def job_name(self, role: RoleName) -> str:
        """Return the name of this campaign's jobs of a role."""
        return f"{self.prefix}{role}"

    def next_token(self, book: Book, role: RoleName) -> str:
        """Return a token that no submission of the book carries: `3f9a1c2b-e4` is the fourth for evaluations."""
        return f"{self.id}-{_LETTERS[role]}{len(book.of_role(role)) + 1}"


@dataclass(frozen=True)
class Wishes:
    """What people have asked of a campaign: to stop, how many evaluations to run at once (None: no limit)."""

    stop: bool = False
    throttle: int | None = None


def create_campaign(folder: Path, cluster: Cluster) -> Campaign:
    """Make a campaign of a run or sweep; raises `RunDirectoryError` where it has one already."""
    campaign = Campaign(
        folder, secrets.token_hex(4), cluster, datetime.now(UTC).isoformat(timespec="seconds")
    )
    if (campaign.place / "campaign.json").exists():
        raise RunDirectoryError(f"{folder} has been launched already; go on with: sharp launch {folder}")
    for place in (campaign.place, campaign.queue, campaign.services, campaign.logs):
        make_directory(place)
    _write(campaign)
    return campaign


def change_profile(campaign: Campaign, cluster: Cluster) -> Campaign:
    """Go on with a campaign by another profile, that of the same cluster as it is now, say."""
    changed = replace(campaign, cluster=cluster)
    _write(changed)
    return changed


def find_campaign(folder: Path) -> Campaign | None:
    """Return the campaign of a run or sweep, None where it has none; raises `RunDirectoryError` if it is damaged."""
    path = folder / "slurm" / "campaign.json"
    try:
        content = json.loads(path.read_bytes())
        return Campaign(folder, content["id"], Cluster(**content["cluster"]), content["created"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunDirectoryError(f"{path} cannot be read: {error}") from error


def _write(campaign: Campaign) -> None:
    cluster = campaign.cluster.model_dump(mode="json")
    content = {"id": campaign.id, "created": campaign.created, "cluster": cluster}
    write_atomic(campaign.place / "campaign.json", json.dumps(content, indent=1).encode())


def read_wishes(campaign: Campaign) -> Wishes:
    """Return what people have asked; nothing where nobody has."""
    try:
        return Wishes(**json.loads((campaign.place / "control.json").read_bytes()))
    except (OSError, ValueError, TypeError):
        return Wishes()


def wish(campaign: Campaign, **changes: bool | int | None) -> Wishes:
    """Change what is asked of a campaign, and return it."""
    wishes = replace(read_wishes(campaign), **changes)  # type: ignore[arg-type]
    write_atomic(campaign.place / "control.json", json.dumps(asdict(wishes)).encode())
    return wishes
