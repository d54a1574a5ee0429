"""How long it takes until an empty program has run in each sandbox tier of this machine, cold and warm.

    python benchmarks/bench_sandbox.py [--repeat 15]

*Cold* starts an interpreter for the program, *warm* forks one that has imported the modules already. Milliseconds of
wall time until the program's end is known and nothing is left of it; medians. The ways take turns, so that other work
on the machine weighs on all of them alike.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from measuring import Table, command_line, scratch, side_by_side

from hpc.sandbox import Interpreter, SandboxLimits, SandboxPolicy, open_interpreter, probe_tiers

NUMERICS = ("numpy", "scipy", "h5py")
BOUNDS = SandboxLimits(wall_s=120, memory_mb=4000)


def main(repeat: int = 15) -> None:
    """Print a row for each tier."""
    ways = ("cold, nothing imported", "cold, NumPy SciPy h5py", "warm, the same", "cold, JAX", "warm, JAX")
    table = Table("tier", *(f"{way}:.0f" for way in ways))
    for probed in probe_tiers():
        if probed.usable:
            table.row(probed.tier, *(1e3 * seconds for seconds in measured(probed.tier, repeat)))
        else:
            print(f"{probed.tier} is not usable here: {probed.reason}")


def measured(tier: str, repeat: int) -> list[float]:
    """Return the median seconds of each way."""
    with ExitStack() as stack:
        home = stack.enter_context(scratch())
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
        works = {str(number): way for number, way in enumerate(ways)}
        side_by_side(works, 1)  # starts launchers, and has files in memory
        return [median(cost.wall_s for cost in costs) for costs in side_by_side(works, repeat).values()]


def program(
    home: Path, interpreter: Interpreter, imports: Sequence[str], preload: Sequence[str] = ()
) -> Callable[[], None]:
    """Return what runs a program that only imports."""
    scratch_dir = Path(tempfile.mkdtemp(dir=home))
    script = scratch_dir / "script.py"
    script.write_text("".join(f"import {name}\n" for name in imports))

    def run() -> None:
        done = interpreter.run(script, scratch=scratch_dir, bounds=BOUNDS, environment={}, preload=preload)
        assert done.exit_code == 0, done

    return run


if __name__ == "__main__":
    command_line(main)
