"""One server process, kept by a keeper, and the end of what it printed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from hpc.processes import Tree
from hpc.serving.keeper import PASS_ON, leave_nothing

_KILL_S = 60.0
_TAIL = 3000


class ServerProcess:
    """A server that runs; it prints where this process prints. A context: nothing is left of it afterwards.

    With `pass_on`, the word to end goes to the command's standard input instead of a signal.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], *, pass_on: bool = False
    ) -> None:
        self._printed = _size(_output())
        options = [PASS_ON] if pass_on else []
        self._keeper = subprocess.Popen(
            [sys.executable, "-P", "-m", "hpc.serving.keeper", *options, *command],
            stdin=subprocess.PIPE,
            env=dict(environment),
            start_new_session=True,
        )
        self._tree = Tree(self._keeper.pid)

    def __enter__(self) -> Self:
        self._tree.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()
        try:
            self._keeper.wait(_KILL_S)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        self._tree.lose_keeper()
        leave_nothing(self._tree)  # of a keeper that was killed, whose processes have fallen to this one
        self._tree.__exit__()

    @property
    def exit_code(self) -> int | None:
        """How the server ended (128 and more: by a signal); None while it runs."""
        return self._keeper.poll()

    async def end(self, limit_s: float) -> None:
        """Ask the server to end in good order, and wait for that as long as told."""
        with suppress(BrokenPipeError):
            os.write(self._pipe, bytes([signal.SIGTERM]))
        with suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._keeper.wait, limit_s)

    def quoted(self) -> str:
        """Return a sentence with the end of what it printed; nothing where this process does not print to a file."""
        path = _output()
        if path is None:
            return ""
        with path.open("rb") as file:
            start = file.seek(max(self._printed, _size(path) - _TAIL))
            text = file.read(_TAIL).decode(errors="replace")
        whole = text if start == self._printed else text.partition("\n")[2]
        return f" The end of its log:\n{whole.strip()}"

    @property
    def _pipe(self) -> int:
        assert self._keeper.stdin is not None
        return self._keeper.stdin.fileno()

    def _close(self) -> None:
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()


def _output() -> Path | None:
    """Return the file that this process prints to, if it is one: a batch job's log."""
    path = Path("/proc/self/fd/1").readlink()
    return path if path.is_file() else None


def _size(path: Path | None) -> int:
    return path.stat().st_size if path else 0
