"""The form of a candidate of the conformance suite, and the texts that candidates have in common.

A candidate announces what it should not have been able to do by printing `BREACH`, and prints every canary
(a secret that the suite has laid out) that it finds. Words between @ signs stand for what differs from run
to run: paths, process ids, ports.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import indent

from sharp.evaluation.protocol import FAILURE_KINDS
from sharp.problems.limits import ResourceLimits

HONEST = "honest"
"""The score of the exact solution, to the last bit."""
WORSE = "worse"
"""A finite score above that of the exact solution."""
OUTCOMES = (HONEST, WORSE, *FAILURE_KINDS)

# What a tier may say that programs can do, in its own words (`hpc.sandbox.probe_tiers`).
CHANGE_FILES = "read and change your files"
SIGNAL_OTHERS = "signal your other processes"
USE_NETWORK = "use the network"  # said where the kernel filters no system calls

ENOUGH = ResourceLimits(wall_s=300, memory_mb=1500)
NARROW = ResourceLimits(wall_s=300, memory_mb=400)
WIDE = ResourceLimits(wall_s=300, memory_mb=50_000)
SHORT = ResourceLimits(wall_s=1, memory_mb=1500)

PRELUDE = """\
import contextlib, ctypes, gc, os, re, shutil, signal, socket, subprocess, sys, tempfile, threading, time
import numpy as np

CANARY = re.compile(rb"canary-[0-9a-f]{32}")

def exact(u0, t, beta):
    n = u0.shape[1]
    wave = np.exp(-2j * np.pi * np.fft.rfftfreq(n, 1 / n) * beta * t[:, None])
    return np.fft.irfft(np.fft.rfft(u0.astype(float))[:, None] * wave, n)

def breach(*what):
    print("BREACH", *what, flush=True)

def show(data):
    print(*(word.decode() for word in set(CANARY.findall(data))), flush=True)

"""
SOLVER = "def solver(u0_batch, t_coordinate, beta):\n    u = exact(u0_batch, t_coordinate, beta)\n"


@dataclass(frozen=True)
class Candidate:
    """One hostile or broken program.

    `outcome` is every outcome that is right. The candidate is not run on a tier that says that programs can
    `do` what it tries. It is evaluated `runs` times in a row. A score is only right with a measured time of
    the call of at least `seconds`.
    """

    name: str
    tries: str
    code: str
    outcome: frozenset[str]
    limits: ResourceLimits = ENOUGH
    do: str | None = None
    runs: int = 1
    seconds: float | None = None

    @property
    def stopped(self) -> bool:
        """Whether the time limit has to end it."""
        return self.outcome == {"timeout"}


def within(body: str, setup: str = "") -> str:
    """Return a program that solves exactly, then does `body`, then returns its solution `u`."""
    return f"{PRELUDE}{setup.strip()}\n\n{SOLVER}{indent(body.strip(), '    ')}\n    return u\n"


def on_import(body: str) -> str:
    """Return a program that does `body` while it is imported, and solves exactly."""
    return within("", body)


def outcomes(*words: str) -> frozenset[str]:
    """Return a set of outcomes; raises `ValueError` on a word that is none."""
    if unknown := set(words) - set(OUTCOMES):
        raise ValueError(f"Expected outcomes among {', '.join(OUTCOMES)}, found {', '.join(unknown)}.")
    return frozenset(words)
