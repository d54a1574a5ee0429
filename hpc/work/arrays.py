"""Arrays of elements: their script, their way to Slurm, the files that they need and leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from hpc.files import make_directory
from hpc.slurm.book import Submission
from hpc.slurm.campaign import Campaign
from hpc.slurm.client import Slurm
from hpc.slurm.errors import ScriptError
from hpc.slurm.profile import Cluster, Option
from hpc.slurm.script import Script, log_pattern, python_command, role_script
from hpc.work.pilot import Terms

_PATTERNS = ("%j", "%t", "%A", "%a")
_WARNING_S = 60
_EARLY_S = 60  # Slurm may send a signal by so much earlier than asked


@dataclass(frozen=True)
class Program:
    """What elements run: `function(terms, *arguments)`, with `hpc.work.pilot.Terms` as plain fields.

    The function is found by name in a module that compute nodes can import; arguments are plain values.
    """

    function: Callable[..., None]
    arguments: tuple[object, ...] = ()


@dataclass(frozen=True)
class Arrays:
    """How the arrays of a campaign are sent; `render` makes the text of a script, elements beat every `beat_s`."""

    campaign: Campaign
    slurm: Slurm
    program: Program
    render: Callable[[Script], str]
    beat_s: float

    @property
    def terms(self) -> Terms:
        """How elements work."""
        cluster = self.campaign.cluster
        return Terms(
            queue=str(self.campaign.queue.absolute()),
            time_s=_whole_s(cluster),
            reserve_s=_whole_s(cluster) - usable_s(cluster),
            linger_s=cluster.dispatch.linger,
            beat_s=self.beat_s,
        )

    def folder(self, token: str) -> Path:
        """Return the folder of an array's files and logs."""
        return self.campaign.logs.absolute() / token

    def log(self, token: str, job: str) -> Path:
        """Return the file of what an element (`17_3`) prints."""
        return self.folder(token) / f"{job}.out"

    def script(
        self, token: str, elements: int, *, throttle: int | None = None, exclude: Iterable[str] = ()
    ) -> str:
        """Return the batch script of an array that runs `throttle` elements at once, on other nodes than some.

        Raises `ScriptError` where the campaign's folder or a setting cannot stand in a script.
        """
        cluster, folder = self.campaign.cluster, _without_patterns(self.folder(token))
        avoided = ",".join(name for name in (cluster.role("evaluate").exclude, *exclude) if name)
        at_once = "" if throttle is None else f"%{throttle}"
        directives: dict[str, Option] = {
            "array": f"0-{elements - 1}{at_once}",
            "signal": f"B:USR2@{_warning_s(cluster)}",
            "no-requeue": True,
            **({"exclude": avoided} if avoided else {}),
        }
        script = role_script(
            cluster,
            "evaluate",
            name=self.campaign.job_name("evaluate"),
            token=token,
            command=python_command(cluster, "submitit.core._submit", str(folder)),
            log=log_pattern(folder, "%A_%a.out"),
            directives=directives,
            remarks=("Each element takes work from the queue of a campaign until there is none",),
        )
        return self.render(replace(script, environment={**script.environment, "SUBMITIT_EXECUTOR": "slurm"}))

    def send(self, token: str, script: str, elements: int) -> str:
        """Submit an array and return its id; raises `SlurmError` as `Slurm.submit` does."""
        from hpc.work.executor import ArrayExecutor

        make_directory(self.folder(token))
        executor = ArrayExecutor(self.folder(token), lambda: self.slurm.submit(script, token=token))
        call = (asdict(self.terms), *self.program.arguments)
        jobs = executor.map_array(self.program.function, *([value] * elements for value in call))
        return jobs[0].job_id.partition("_")[0]

    def put_in_place(self, submission: Submission) -> None:
        """Give the elements of an array what they need, where the one who sent it did not come so far."""
        from hpc.work.executor import put_in_place

        if submission.job_id is not None:
            put_in_place(self.folder(submission.token), submission.job_id, submission.elements)

    def clear(self, submission: Submission, failed: Iterable[str]) -> None:
        """Remove the files of an array that is over, but for the logs of some elements (`17_3`)."""
        folder, kept = self.folder(submission.token), {f"{job}.out" for job in failed}
        with suppress(OSError):
            for path in folder.iterdir():
                if path.name not in kept:
                    path.unlink(missing_ok=True)
            folder.rmdir()


def _without_patterns(folder: Path) -> Path:
    """Return a folder whose name submitit takes as it is."""
    if any(pattern in str(folder) for pattern in _PATTERNS):
        found = f"Jobs cannot use {folder}: {', '.join(_PATTERNS)} in a name stand for a job's numbers."
        raise ScriptError(f"{found} Give the run or sweep another folder.")
    return folder


def usable_s(cluster: Cluster) -> float:
    """Return the seconds that an entry may take at most: a job's time but for the end, of which it is warned."""
    return _whole_s(cluster) - _warning_s(cluster) - _EARLY_S


def _whole_s(cluster: Cluster) -> float:
    return 60.0 * cluster.role("evaluate").time


def _warning_s(cluster: Cluster) -> int:
    return int(min(_WARNING_S, _whole_s(cluster) / 10))
