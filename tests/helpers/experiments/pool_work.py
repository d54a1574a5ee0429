"""Work for the processes of `sharp.experiments.agent_benchmark.process_pool`; they import it from here."""

from __future__ import annotations

import os
import time


def square(number: int) -> int:
    """Return the square of a number; die at 3, and of a signal at a negative one."""
    if number < 0:
        os.kill(os.getpid(), 9)
    if number == 3:
        os._exit(7)
    return number * number


def asleep(seconds: int) -> int:
    time.sleep(seconds)
    return os.getpid()


def threads(_: int) -> str:
    return os.environ["OMP_NUM_THREADS"]
