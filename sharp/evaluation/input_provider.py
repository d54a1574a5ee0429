"""Handing over the inputs of a call at the moment when a candidate's process says that it is ready for them.

The clock of the call runs from there: what a module does while it is loaded cannot be about inputs that it has not got.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sharp.evaluation.calls import CallPlan, SolverCall, input_file
from sharp.evaluation.machine import check_still_space


class InputProvider:
    """Answers `ready <call>` of the harness by `call <call>`, once the inputs of that call are in its folder.

    Where the candidate's process prevents that, by something in their place or by filling the disk, the answer is
    `refused <call>: <why>`; where the machine does, it is an `InfrastructureError`.
    """

    def __init__(self, scratch: Path, work: CallPlan) -> None:
        self._scratch, self._work = scratch, work
        self._calls = dict(work.sequence())
        self._there: set[str] = set()

    def __call__(self, line: str) -> str | None:
        """Answer a line; what is not a word of the harness has no answer."""
        word, _, name = line.partition(" ")
        if word != "ready" or name not in self._calls:
            return None
        try:
            self._write(self._calls[name])
        except OSError as error:
            why = error.strerror or str(error)
            check_still_space(self._scratch, self._work, f"{self._scratch} could not be filled: {why}.")
            return f"refused {name}: {why}"
        return f"call {name}"

    def _write(self, call: SolverCall) -> None:
        for port, array in call.arrays.items():
            file = input_file(call, port)
            if file not in self._there:
                with (self._scratch / file).open("xb") as stream:  # nothing that lies there is written to
                    np.save(stream, array, allow_pickle=False)
                self._there.add(file)
