"""Processors that a program has to itself, as far as other programs of sandboxes on this machine are concerned."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

_LEASE = "\0sandbox-processor-"


@contextmanager
def leased_processors(wanted: int) -> Iterator[tuple[int, ...]]:
    """Give the numbers of so many of the processors that this process may run on, of all if there are no more.

    Those that nobody else has leased come first. A lease is the abstract name of a socket: it ends with the process
    that holds it, whatever happens to it.
    """
    allowed = sorted(os.sched_getaffinity(0))
    if wanted >= len(allowed):
        yield tuple(allowed)
        return
    with ExitStack() as leases:
        order = random.sample(allowed, len(allowed))
        free: list[int] = []
        for number in order:
            if len(free) == wanted:
                break
            lease = leases.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            with suppress(OSError):
                lease.bind(f"{_LEASE}{number}")
                free.append(number)
        others = [number for number in order if number not in free]
        yield tuple(sorted([*free, *others][:wanted]))
