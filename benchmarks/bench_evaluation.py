"""What an evaluation costs beside the candidate's own work.

    python benchmarks/bench_evaluation.py throughput [--candidates 20] [--samples 100] [--rounds 3]
    python benchmarks/bench_evaluation.py overhead   [--repeat 15]
    python benchmarks/bench_evaluation.py scoring
    python benchmarks/bench_evaluation.py cache      [--repeat 200]
    python benchmarks/bench_evaluation.py kill       [--repeat 100]
    python benchmarks/bench_evaluation.py shards     [--repeat 5]

`throughput` evaluates the same distinct candidates with `naive_evaluator.py` (a fresh process each, needs matplotlib)
and with a sandboxed warm worker, and compares evaluations per processor-second: over so many candidates with the start
of the worker, and beyond its first one; medians over rounds. Before that it writes to 4 GB of memory once: a virtual
machine may get its memory from the host only then, which would fall to whichever comes first. `NumPy, no solution` has
a data set alone, as the usual way has; the others are scored against the solution as well.
`overhead` is the wall time of an evaluation beyond the solver call, warm and cold, and of a solver that takes ten
seconds. `scoring` times nRMSE of 100 x 201 x 1024 values in single precision. `cache` times a hit. `kill` stops
candidates that fight back (SIGTERM ignored, daemons in sessions of their own) and reports how long after the limit the
last of their processes was gone. `shards` splits one compute-bound evaluation over two processes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as in a worker; read when NumPy is loaded

import numpy as np

from hpc.processes import descendants
from hpc.sandbox import SandboxLimits, SandboxPolicy, open_interpreter
from sharp.evaluation.cache import CachedEvaluator, EvaluationCache, cache_home
from sharp.evaluation.local import LocalEvaluator
from sharp.evaluation.protocol import Evaluation, EvaluationRequest
from sharp.problems import load_problem
from sharp.problems.limits import ResourceLimits
from sharp.reference.datasets import DataSet, make_splits, open_dataset
from sharp.reference.error_norms import relative_errors
from sharp.reference.generation import make_dataset

PROBLEM = load_problem("advection")
TOUCHED = 4 << 30
NAIVE = Path(__file__).with_name("naive_evaluator.py")

# Characteristics with cubic interpolation; the number makes each candidate a program of its own.
NUMPY = """
import numpy as np

NUMBER = {number}

def solver(u0_batch, t_coordinate, beta):
    n = u0_batch.shape[1]
    out = np.empty((len(u0_batch), len(t_coordinate), n), np.float32)
    for i, t in enumerate(t_coordinate):
        shift = beta * t * n
        j = int(np.floor(shift))
        s = np.float32(shift - j)
        weights = (-s*(s-1)*(s-2)/6, (s+1)*(s-1)*(s-2)/2, -(s+1)*s*(s-2)/2, (s+1)*s*(s-1)/6)
        out[:, i] = sum(w * np.roll(u0_batch, j + o, axis=1) for w, o in zip(weights, (-1, 0, 1, 2)))
    return out
"""

# Lax-Wendroff steps, compiled.
JAX = """
import jax
import jax.numpy as jnp
import numpy as np

NUMBER = {number}

def solver(u0_batch, t_coordinate, beta):
    u0 = jnp.asarray(u0_batch)
    dx = 1.0 / u0.shape[1]
    dt = float(t_coordinate[1] - t_coordinate[0])
    steps = int(np.ceil(dt * beta / (0.8 * dx)))
    c = beta * dt / steps / dx

    def step(u, _):
        left, right = jnp.roll(u, 1, -1), jnp.roll(u, -1, -1)
        return u - 0.5 * c * (right - left) + 0.5 * c * c * (right - 2 * u + left), None

    @jax.jit
    def advance(u, _):
        u, _ = jax.lax.scan(step, u, None, length=steps)
        return u, u

    _, frames = jax.lax.scan(advance, u0, None, length=len(t_coordinate) - 1)
    return jnp.concatenate([u0[:, None], jnp.moveaxis(frames, 0, 1)], axis=1)
"""

# Returns the initial state after a while.
SLEEPING = """
import time
import numpy as np

NUMBER = {number}

def solver(u0_batch, t_coordinate, beta):
    time.sleep({seconds})
    return np.repeat(u0_batch[:, None], len(t_coordinate), axis=1)
"""

# First-order upwind steps in a Python loop, one sample at a time: bound by the processor.
COMPUTING = """
import numpy as np

NUMBER = {number}

def solver(u0_batch, t_coordinate, beta):
    out = np.empty((len(u0_batch), len(t_coordinate), u0_batch.shape[1]))
    for sample, u in enumerate(u0_batch.astype(np.float64)):
        for i, t in enumerate(t_coordinate):
            out[sample, i] = u
            for _ in range(100):
                u = u - 0.02 * (u - np.roll(u, 1)) * beta * len(u) * 0.01 / 2
    return out
"""

FIGHTING = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(3):
    if not os.fork():
        os.setsid()
        if not os.fork():
            time.sleep(600)
        os._exit(0)
while True:
    pass
"""


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description="Measure what an evaluation costs.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run, options in COMMANDS:
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        for option, default in options.items():
            command.add_argument(f"--{option}", type=int, default=default)
    arguments = vars(parser.parse_args())
    del arguments["command"]
    run = arguments.pop("run")
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["SHARP_DATA"] = os.environ["SHARP_CACHE"] = scratch
        run(Path(scratch), **arguments)


def throughput(scratch: Path, candidates: int, samples: int, rounds: int) -> None:
    """Compare evaluations per processor-second."""
    both = make_dataset(PROBLEM, scratch / "advection.hdf5", samples=samples + 2, seed=1, kind="pdebench")
    subprocess.run([sys.executable, "-c", f"bytearray(b'x') * {TOUCHED}"], check=True)
    print("Processor seconds an evaluation, and how many times more evaluations a processor-second yields:")
    print(
        f"{'candidate':18} {'usual way':>10} {'ours':>7} {'times':>6} {'first':>7} {'further':>8} {'times':>6}"
    )
    for name, template, data in (
        ("NumPy", NUMPY, both),
        ("NumPy, no solution", NUMPY, without_solution(both, scratch / "alone")),
        ("JAX", JAX, both),
    ):
        kept = []
        for turn in range(rounds):
            numbers = range(turn * (candidates + 1), (turn + 1) * (candidates + 1))
            first, *codes = [template.format(number=number) for number in numbers]
            kept.append(compared(scratch / f"{name}-{turn}", data, first, codes, samples))
        medians = [statistics.median(values) for values in zip(*kept, strict=True)]
        print(
            "{:18} {:10.3f} {:7.3f} {:6.1f} {:7.3f} {:8.3f} {:6.1f}".format(name, *medians),
            flush=True,
        )


def without_solution(data: DataSet, folder: Path) -> DataSet:
    """Return a copy of a data set that comes, as published files do, without the solution of its samples."""
    folder.mkdir()
    return open_dataset(Path(shutil.copy(data.path, folder)), PROBLEM)


def compared(
    folder: Path, data: DataSet, first: str, codes: Sequence[str], samples: int
) -> tuple[float, float, float, float, float, float]:
    """Return processor seconds in the usual way and in ours, their ratio; those of a first and further evaluations."""
    folder.mkdir()
    usual = processor_costs(lambda: naively(folder, data, codes, samples)) / len(codes)
    alone = processor_costs(lambda: asyncio.run(evaluations(folder / "one", data, [first], samples)))
    ours = processor_costs(lambda: asyncio.run(evaluations(folder / "all", data, codes, samples)))
    each, further = ours / len(codes), (ours - alone) / (len(codes) - 1)
    return usual, each, usual / each, alone, further, usual / further


def overhead(scratch: Path, repeat: int) -> None:
    """Print wall seconds beyond the solver call."""
    data = make_dataset(PROBLEM, scratch / "advection.hdf5", samples=10, seed=1, kind="pdebench")
    quick = [SLEEPING.format(number=number, seconds=0) for number in range(repeat + 1)]
    warm = asyncio.run(beyond(scratch / "warm", data, quick))
    cold = [
        asyncio.run(beyond(scratch / f"cold-{number}", data, [code]))[0]
        for number, code in enumerate(quick[:5])
    ]
    programs = [SLEEPING.format(number=number, seconds=seconds) for number, seconds in enumerate((0, 10))]
    slow = asyncio.run(beyond(scratch / "slow", data, programs))[1]
    print(f"warm  {statistics.median(warm[1:]):.3f} s (most {max(warm[1:]):.3f} s); wanted 0.3 s")
    print(f"cold  {statistics.median(cold):.3f} s (most {max(cold):.3f} s); wanted 1.2 s")
    print(f"a solver of 10 s costs {slow / 10:.1%} extra; wanted 3 %")


def scoring(scratch: Path) -> None:
    """Time the error of a data set of full size."""
    del scratch
    rng = np.random.default_rng(0)
    reference = {"u": rng.standard_normal((100, 201, 1024), np.float32)}
    prediction = {"u": reference["u"] + np.float32(1e-3)}
    times = [timed(lambda: relative_errors(prediction, reference)) for _ in range(9)]
    wall, processor = (statistics.median(values) for values in zip(*times, strict=True))
    print(
        f"scoring 100 x 201 x 1024 float32: {wall:.3f} s ({processor:.3f} s of one processor); wanted 0.1 s"
    )


def cache(scratch: Path, repeat: int) -> None:
    """Time a hit of the evaluation cache."""
    data = make_dataset(PROBLEM, scratch / "advection.hdf5", samples=102, seed=1, kind="pdebench")
    times = asyncio.run(hits(scratch, data, repeat))
    print(f"hit: {statistics.median(times) * 1e3:.2f} ms (most {max(times) * 1e3:.2f} ms); wanted 5 ms")


def kill(scratch: Path, repeat: int) -> None:
    """Stop candidates that fight back."""
    script = scratch / "fighting.py"
    script.write_text(FIGHTING)
    bounds = SandboxLimits(wall_s=0.5, memory_mb=1000)
    for warm in (True, False):
        with open_interpreter(SandboxPolicy(), warm=warm) as interpreter:
            late, left = [], 0
            for number in range(repeat):
                folder = scratch / f"{warm}-{number}"
                folder.mkdir()
                before = set(descendants(os.getpid()))
                started = time.monotonic()
                done = interpreter.run(script, scratch=folder, bounds=bounds, environment={})
                late.append(time.monotonic() - started - bounds.wall_s)
                left += len(set(descendants(os.getpid())) - before) if number else 0
                assert done.timed_out
            kind = "warm" if warm else "cold"
            print(
                f"{interpreter.tier}, {kind}: {sum(s <= 2 for s in late)} of {repeat} gone within 2 s of the limit; "
                f"median {statistics.median(late):.2f} s, most {max(late):.2f} s; {left} processes left",
                flush=True,
            )


def shards(scratch: Path, repeat: int) -> None:
    """Compare one process with two, workers started."""
    data = make_dataset(PROBLEM, scratch / "advection.hdf5", samples=34, seed=1, kind="pdebench")
    times, scores = asyncio.run(sharded(scratch, data, repeat))
    one, two = (statistics.median(kept[1:]) for kept in times.values())
    print(f"one process {one:.2f} s, two {two:.2f} s: {one / two:.2f} times faster; wanted 1.7")
    print(f"scores identical: {len(scores) == 1}")


async def sharded(
    scratch: Path, data: DataSet, repeat: int
) -> tuple[dict[int, list[float]], set[tuple[float, ...]]]:
    """Return the seconds of each evaluation by number of shards, the first to warm up, and the scores seen."""
    splits = make_splits(data.n_samples, 2, 32)
    times: dict[int, list[float]] = {1: [], 2: []}
    scores = set()
    async with LocalEvaluator(scratch / "run", PROBLEM, data, splits, workers=1) as evaluator:
        for number in range(repeat + 1):
            for count, kept in times.items():
                request = replace(ask(data, COMPUTING.format(number=10 * number + count)), shards=count)
                started = time.monotonic()
                result = checked(await evaluator.evaluate(request))
                kept.append(time.monotonic() - started)
                assert result.scores is not None
                scores.add(result.scores.nrmse_per_sample)
    return times, scores


async def hits(scratch: Path, data: DataSet, repeat: int) -> list[float]:
    """Evaluate one program, then ask for it again in as many runs; return the seconds of each answer."""
    splits, times = make_splits(data.n_samples, 2, 100), []
    request = ask(data, NUMPY.format(number=0))
    for number in range(repeat + 1):
        run = scratch / f"run-{number}"
        async with LocalEvaluator(run, PROBLEM, data, splits, workers=1) as inner:
            cache = EvaluationCache(cache_home())
            cached = CachedEvaluator(inner, cache, run_dir=run, policy=SandboxPolicy())
            started = time.monotonic()
            result = checked(await cached.evaluate(request))
            times.append(time.monotonic() - started)
        assert bool(result.environment.get("cached")) == bool(number)
    return times[1:]


def ask(data: DataSet, code: str) -> EvaluationRequest:
    """Return the request for a validation run."""
    return EvaluationRequest(PROBLEM.label, data.label, "validation", code, ResourceLimits(120, 8000, 1))


async def evaluations(
    folder: Path, data: DataSet, programs: Sequence[str | EvaluationRequest], samples: int
) -> list[Evaluation]:
    """Evaluate programs one after the other with one worker."""
    splits = make_splits(data.n_samples, data.n_samples - samples, samples)
    async with LocalEvaluator(folder, PROBLEM, data, splits, workers=1) as evaluator:
        requests = (ask(data, program) if isinstance(program, str) else program for program in programs)
        return [checked(await evaluator.evaluate(request)) for request in requests]


async def beyond(folder: Path, data: DataSet, codes: Sequence[str]) -> list[float]:
    """Return the wall seconds of each evaluation beyond the solver call."""
    splits = make_splits(data.n_samples, 2, 8)
    times = []
    async with LocalEvaluator(folder, PROBLEM, data, splits, workers=1) as evaluator:
        for code in codes:
            started = time.monotonic()
            result = checked(await evaluator.evaluate(ask(data, code)))
            times.append(time.monotonic() - started - (result.run_time_s or 0.0))
    return times


def naively(scratch: Path, data: DataSet, codes: Sequence[str], samples: int) -> None:
    """Evaluate programs in the usual way."""
    for number, code in enumerate(codes):
        solver = scratch / f"solver_{number}.py"
        solver.write_text(code)
        command = [sys.executable, str(NAIVE), str(data.path), str(solver), "--samples", str(samples)]
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NPROC"), "1")
        subprocess.run(command, cwd=scratch, env={**os.environ, **one}, check=True, stdout=subprocess.DEVNULL)


def checked(result: Evaluation) -> Evaluation:
    """Return an evaluation that went well."""
    if not result.ok:
        raise SystemExit(f"A candidate of this benchmark failed: {result.failure}")
    return result


def processor_costs(work: Callable[[], object]) -> float:
    """Return the processor seconds of some work, of child processes included."""
    before = processor_s()
    work()
    return processor_s() - before


def processor_s() -> float:
    """Return the processor seconds of this process and of all its children that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return wall and processor seconds of some work."""
    started, before = time.monotonic(), time.process_time()
    work()
    return time.monotonic() - started, time.process_time() - before


COMMANDS: tuple[tuple[str, Callable[..., None], dict[str, int]], ...] = (
    ("throughput", throughput, {"candidates": 20, "samples": 100, "rounds": 3}),
    ("overhead", overhead, {"repeat": 15}),
    ("scoring", scoring, {}),
    ("cache", cache, {"repeat": 200}),
    ("kill", kill, {"repeat": 100}),
    ("shards", shards, {"repeat": 5}),
)

if __name__ == "__main__":
    main()
