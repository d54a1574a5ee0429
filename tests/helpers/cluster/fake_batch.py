"""Commands of PBS, LSF and Flux for one test: jobs are processes, states lie in a folder, faults come by files.

`qsub`, `bsub` and `flux` submit; `qstat`, `bjobs` and `flux jobs` list; `qdel`, `bkill` and `flux cancel` end. A
file `fault` in the folder makes the next submission fail: `lost` (taken, not answered), `away`, `full`, `refused`.
A file `down` lets the system answer nothing. What a job prints lands where it was submitted.
Job ids and outputs have the form that PSI/J expects of the real commands.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TextIO

FOLDER = Path(__file__).resolve().parent
FAULTS = {
    "lost": "Connection timed out",
    "away": "cannot connect to server pbs01",
    "full": "qsub: Maximum number of jobs already in queue",
    "refused": "qsub: Unknown queue",
}
OWN = {"qsub": "PBS_JOBID", "bsub": "LSB_JOBID", "flux": "FLUX_ENCLOSING_ID"}


def say(line: str, stream: TextIO | None = None) -> None:
    (stream or sys.stdout).write(f"{line}\n")


def fail(text: str, code: int = 1) -> None:
    say(text, sys.stderr)
    sys.exit(code)


def submit(command: str, script: str) -> None:
    number = len(list(FOLDER.glob("*.job"))) + 1
    job = f"{number}.server" if command == "qsub" else str(number) if command == "bsub" else f"ƒ{number}abc"
    fault = FOLDER / "fault"
    what = fault.read_text() if fault.exists() else ""
    fault.unlink(missing_ok=True)
    if what in ("away", "full", "refused"):
        fail(FAULTS[what])
    (FOLDER / f"{job}.job").write_text(script)
    with Path(f"{job}.o").open("w") as output:
        process = subprocess.Popen(
            ["bash", str(FOLDER / f"{job}.job")],
            env={**os.environ, OWN[command]: job},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    (FOLDER / f"{job}.pid").write_text(str(process.pid))
    if what == "lost":
        fail(FAULTS[what])
    say(f"Job <{job}> is submitted to queue <normal>." if command == "bsub" else job)


def states(ids: list[str]) -> dict[str, str]:
    """`Q` is not seen here: R while the process is there, F afterwards, and nothing once the job is forgotten."""
    found = {}
    for job in ids:
        path = next(iter(FOLDER.glob(f"*{job.removeprefix('f')}.pid")), None)
        if path is None or (FOLDER / f"{path.stem}.forgotten").exists():
            say(f"qstat: Unknown Job Id {job}", sys.stderr)
            continue
        stat = Path(f"/proc/{path.read_text()}/stat")
        ended = not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] in "ZX"
        found[job] = "F" if ended else "R"
    return found


def show(command: str, ids: list[str]) -> None:
    found = states(ids)
    if command == "qstat":
        say(json.dumps({"Jobs": {job: {"job_state": state} for job, state in found.items()}}))
    elif command == "bjobs":
        reasons = dict.fromkeys(("EXIT_REASON", "KILL_REASON", "SUSPEND_REASON"), "")
        rows = [{"JOBID": job, "STAT": {"R": "RUN", "F": "EXIT"}[s], **reasons} for job, s in found.items()]
        rows = [{**row, "EXIT_REASON": "TERM_OWNER"} if row["STAT"] == "EXIT" else row for row in rows]
        say(json.dumps({"COMMAND": "bjobs", "JOBS": len(rows), "RECORDS": rows}))
    else:
        for job, state in found.items():
            say(f"{job.replace('f', 'ƒ', 1)} {'RUN' if state == 'R' else 'FAILED'}")
    if len(found) < len(ids):
        sys.exit(153)


def end(ids: list[str]) -> None:
    for job in ids:
        pid = int(next(FOLDER.glob(f"*{job.removeprefix('f')}.pid")).read_text())
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            fail("qdel: Job has finished")


def main() -> None:
    command, *arguments = Path(sys.argv[0]).name, *sys.argv[1:]
    if (FOLDER / "down").exists():
        fail("cannot connect to server pbs01")
    verb = arguments.pop(0) if command == "flux" else {"q": command[1:], "b": command[1:]}[command[0]]
    ids = [word for word in arguments if re.fullmatch(r"[fƒ]?\d+(abc|\.server)?", word)]
    if verb in ("sub", "batch"):
        submit(command, Path(arguments[-1]).read_text() if arguments else sys.stdin.read())
    elif verb in ("stat", "jobs"):
        show(command, ids)
    else:
        end(ids)


def install(folder: Path) -> None:
    """Put the commands into a folder."""
    folder.mkdir()
    text = f"#!{sys.executable} -P\n" + Path(__file__).read_text()
    for name in ("qsub", "qstat", "qdel", "bsub", "bjobs", "bkill", "flux"):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


if __name__ == "__main__":
    main()
