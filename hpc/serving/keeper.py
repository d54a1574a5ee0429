"""Keeps one server: ends it when told to, and leaves nothing of it when it or its supervisor is gone.

    python -P -m hpc.serving.keeper [--pass-on] COMMAND…      standard input: a pipe from the supervisor

A byte on the pipe is a signal for the server; with `--pass-on` it is handed to the command's standard input, which srun
brings to keepers on other nodes. The end of the pipe, however the supervisor went, has every process below killed;
so has the end of the server's first process, because a killed server leaves engines behind that hold the GPUs' memory.
Signals that reach a whole job are left to the supervisor.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from hpc.processes import Tree

PASS_ON = "--pass-on"  # noqa: S105 - an option

_LOOK_S = 0.1
_KILL_S = 30.0
_SHARED = "/dev/shm/psm_"  # noqa: S108 - where servers' processes share memory; killed ones leave it there
_OF_THE_JOB = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class Keeper:
    """Runs one command; `told` says whether it was told to end it."""

    def __init__(self, command: Sequence[str], *, pass_on: bool = False) -> None:
        self._command, self._pass_on = command, pass_on
        self.told = False
        for number in _OF_THE_JOB:  # unlike ignored signals, these work again in what is started from here
            signal.signal(number, lambda *_: None)

    def keep(self) -> int:
        """Run the command until it ends; return its exit code, or 128 and the number of the signal that ended it."""
        stdin = subprocess.PIPE if self._pass_on else subprocess.DEVNULL
        with Tree(os.getpid()) as tree:
            server = subprocess.Popen(self._command, stdin=stdin, start_new_session=True)
            try:
                server.returncode = self._watch(server)
            finally:
                leave_nothing(tree)
        return server.returncode if server.returncode >= 0 else 128 - server.returncode

    def _watch(self, server: subprocess.Popen[bytes]) -> int:
        """Return how the server ended, -9 when the supervisor is gone."""
        while True:
            ended = _bury()
            if server.pid in ended:
                return ended[server.pid]
            if select.select([0], [], [], _LOOK_S)[0]:
                order = os.read(0, 1)
                if not order:
                    return -signal.SIGKILL
                self._deliver(server, order)

    def _deliver(self, server: subprocess.Popen[bytes], order: bytes) -> None:
        self.told = True
        if server.stdin is None:
            os.kill(server.pid, order[0])
        else:
            with suppress(BrokenPipeError):
                os.write(server.stdin.fileno(), order)


def _bury() -> dict[int, int]:
    """Wait for the children that have ended, orphans of the server among them; return their exit codes."""
    ended = {}
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = os.waitstatus_to_exitcode(found[1])
    return ended


def leave_nothing(tree: Tree) -> None:
    """Kill all that is below, and give back the memory that it shared."""
    deadline = time.monotonic() + _KILL_S
    shared = _shared_memory(tree.members())
    while tree.members() and time.monotonic() < deadline:
        tree.send(signal.SIGKILL)
        _bury()
        time.sleep(0.01)
    for path in shared:
        path.unlink(missing_ok=True)


def _shared_memory(pids: Iterable[int]) -> set[Path]:
    found = set()
    for pid in pids:
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
            found |= {
                Path(line[line.index(_SHARED) :])
                for line in lines
                if _SHARED in line and "deleted" not in line
            }
    return found


if __name__ == "__main__":
    passes_on = sys.argv[1] == PASS_ON
    sys.exit(Keeper(sys.argv[1 + passes_on :], pass_on=passes_on).keep())
