"""Work for the processes of `sharp.agentbench.crew`; they import it from here."""

from __future__ import annotations

import os
from collections.abc import Iterator


def squares(number: int) -> Iterator[int]:
    """Yield a number and its square; die before the square of 3, and before anything for a negative one."""
    if number < 0:
        os._exit(9)
    yield number
    if number == 3:
        os._exit(7)
    yield number * number


def threads(_: int) -> Iterator[str]:
    yield os.environ["OMP_NUM_THREADS"]
