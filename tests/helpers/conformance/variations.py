"""Variations of the candidates, drawn by a seed: the same acts, done in other places of a program.

What comes of them is not known beforehand. Whatever it is, it must be one of the outcomes that a program can have,
never a better score than that of the exact solution, nor a fault of the machine; and nothing is told or left.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from textwrap import indent

from tests.helpers.conformance.candidates import ALL, OUTCOMES, PRELUDE, SOLVER, Candidate

_ACT = "def act():\n{body}\n"
PLACES = {
    "in a thread": """
{act}
thread = threading.Thread(target=act)
thread.start()
thread.join(5)
""",
    "in a child": """
{act}
if not os.fork():
    try: act()
    finally: os._exit(0)
time.sleep(0.5)
""",
    "in a daemon": """
{act}
if not os.fork():
    os.setsid()
    if os.fork(): os._exit(0)
    act()
    os._exit(0)
os.wait()
time.sleep(0.5)
""",
    "in a handler of signals": """
{act}
signal.signal(signal.SIGUSR1, lambda *_: act())
os.kill(os.getpid(), signal.SIGUSR1)
""",
    "in a finalizer": """
{act}
class Last:
    def __del__(self): act()
last = Last()
del last
gc.collect()
""",
    "at the exit": """
import atexit
{act}
atexit.register(act)
threading.Timer(0.01, sys.exit).start()
""",
    "in what is returned": """
{act}
class Result:
    def __array__(self, *_, **__): act(); return v
v, u = u, Result()
""",
    "in a profiler": """
{act}
done = []
def profile(*_):
    if not done: done.append(1); act()
sys.setprofile(profile)
len("x")
sys.setprofile(None)
""",
}
# What these look at is their own program's where they are moved.
_OF_THEIR_PLACE = {"frames of its callers", "memory of others"}
IMPORTED = "while it is imported"


def variations(seed: int, number: int) -> tuple[Candidate, ...]:
    """Return so many different variations."""
    every = [(candidate, place) for candidate in _varied(ALL) for place in (*PLACES, IMPORTED)]
    return tuple(_moved(*pair) for pair in random.Random(seed).sample(every, number))


def _varied(candidates: Iterable[Candidate]) -> list[Candidate]:
    return [one for one in candidates if one.body and not one.stopped and one.name not in _OF_THEIR_PLACE]


def _moved(candidate: Candidate, place: str) -> Candidate:
    act = _ACT.format(body=indent(candidate.body.strip(), "    "))
    if place == IMPORTED:
        known = "u0_batch, t_coordinate, beta = np.ones((1, 8)), np.zeros(2), 0.1\nu = np.ones((1, 2, 8))\n"
        code = f"{PRELUDE}{candidate.setup}\n{known}{act}\nact()\n{SOLVER}    return u\n"
    else:
        moved = indent(PLACES[place].format(act=act), "    ")
        code = f"{PRELUDE}{candidate.setup}\n{SOLVER}{moved}\n    return u\n"
    limits = replace(candidate.limits, wall_s=min(candidate.limits.wall_s, 60))
    return replace(
        candidate,
        name=f"{candidate.name}, {place}",
        code=code,
        outcome=frozenset(OUTCOMES),
        limits=limits,
        seconds=None,
    )
