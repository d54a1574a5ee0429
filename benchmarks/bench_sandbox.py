"""How long it takes until an empty program has run in each sandbox tier of this machine, cold and warm.

    python benchmarks/bench_sandbox.py [--repeat 15]

*Cold* starts an interpreter for the program, *warm* forks one that has imported the modules already. Milliseconds of
wall time until the program's end is known and nothing is left of it; medians. The ways take turns, so that other work
on the machine weighs on all of them alike.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from hpc.sandbox import Interpreter, SandboxLimits, SandboxPolicy, open_interpreter, probe_tiers

COLUMNS = "cold, nothing imported", "cold, NumPy SciPy h5py", "warm, the same", "cold, JAX", "warm, JAX"
NUMERICS = ("numpy", "scipy", "h5py")
BOUNDS = SandboxLimits(wall_s=120, memory_mb=4000)


def main() -> None:
    """Print a row for each tier."""
    parser = argparse.ArgumentParser(description="Time an empty program in each sandbox tier.")
    parser.add_argument("--repeat", type=int, default=15)
    repeat = parser.parse_args().repeat
    print(f"{'tier':12}" + "".join(f"{name:>24}" for name in COLUMNS))
    for probed in probe_tiers():
        if probed.usable:
            row = measured(probed.tier, repeat)
            print(f"{probed.tier:12}" + "".join(f"{1e3 * seconds:24.0f}" for seconds in row), flush=True)
        else:
            print(f"{probed.tier:12} not usable here: {probed.reason}")


def measured(tier: str, repeat: int) -> list[float]:
    """Return the median seconds of each column."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        warm = stack.enter_context(open_interpreter(SandboxPolicy(tier), warm=True))
        assert warm.warm, "this kernel cannot keep forks apart"
        cold = stack.enter_context(open_interpreter(SandboxPolicy(tier), warm=False))
        ways = [
            program(home, cold, ()),
            program(home, cold, NUMERICS),
            program(home, warm, (), NUMERICS),
            program(home, cold, ("jax",)),
            program(home, warm, (), ("numpy", "jax")),
        ]
        for way in ways:
            way()  # starts launchers, and has files in memory
        rounds = [[way() for way in ways] for _ in range(repeat)]
    return [statistics.median(column) for column in zip(*rounds, strict=True)]


def program(
    home: Path, interpreter: Interpreter, imports: Sequence[str], preload: Sequence[str] = ()
) -> Callable[[], float]:
    """Return what runs a program that only imports, and returns the seconds that it took."""
    scratch = Path(tempfile.mkdtemp(dir=home))
    script = scratch / "script.py"
    script.write_text("".join(f"import {name}\n" for name in imports))

    def run() -> float:
        started = time.monotonic()
        done = interpreter.run(script, scratch=scratch, bounds=BOUNDS, environment={}, preload=preload)
        assert done.exit_code == 0, done
        return time.monotonic() - started

    return run


if __name__ == "__main__":
    main()
