"""Running many solver programs in one fresh process, so that JAX starts once for all of them."""

from __future__ import annotations

import contextlib
import io
import pickle
import signal
import subprocess
import sys
import types
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.helpers import finding_helpers

# How long one program may compute on the tests' small grids, in seconds of processor time.
PATIENCE_S = 40

Array = NDArray[Any]


@dataclass(frozen=True)
class Outcome:
    """What one program returned, as arrays; or the names of the classes of its exception; and how much it printed."""

    arrays: tuple[Array, ...] = ()
    error: tuple[str, ...] = ()
    message: str = ""
    printed: int = 0

    @property
    def finite(self) -> bool:
        return all(np.isfinite(array).all() for array in self.arrays)


def run_programs(folder: Path, codes: Sequence[str], arguments: tuple[Any, ...]) -> list[Outcome]:
    """Call every program's `solver(*arguments)`, each from JAX's default precision."""
    return run_calls(folder, [(code, arguments) for code in codes])


def run_calls(folder: Path, calls: Sequence[tuple[str, tuple[Any, ...]]]) -> list[Outcome]:
    """Call `solver(*arguments)` of each program with arguments of its own."""
    task, result = folder / "calls.pickle", folder / "outcomes.pickle"
    task.write_bytes(pickle.dumps(calls))
    done = subprocess.run(
        [sys.executable, "-m", __spec__.name, str(task), str(result)],
        env=finding_helpers(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [Outcome(**fields) for fields in pickle.loads(result.read_bytes())]


def _expire(*_: object) -> None:
    raise TimeoutError


def _arrays(value: Any) -> tuple[Array, ...]:
    return tuple(np.asarray(item) for item in (value if isinstance(value, tuple) else (value,)))


def _outcome(code: str, arguments: tuple[Any, ...]) -> dict[str, Any]:
    module = types.ModuleType("candidate")
    printed = io.StringIO()
    signal.setitimer(signal.ITIMER_PROF, PATIENCE_S)
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "candidate.py", "exec"), module.__dict__)
            arrays = _arrays(module.solver(*arguments))
    except Exception as error:  # noqa: BLE001 - any exception of a program is its outcome
        names = tuple(kind.__name__ for kind in type(error).__mro__)
        return {"error": names, "message": str(error)[:500]}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return {"arrays": arrays, "printed": len(printed.getvalue())}


def _main(task: Path, result: Path) -> None:
    import jax

    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _expire)
    outcomes = []
    for code, arguments in pickle.loads(task.read_bytes()):
        jax.config.update("jax_enable_x64", False)  # type: ignore[no-untyped-call]
        outcomes.append(_outcome(code, arguments))
    result.write_bytes(pickle.dumps(outcomes))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Path(sys.argv[2]))
