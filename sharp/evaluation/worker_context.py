"""What a worker keeps from one evaluation to the next: interpreter, samples, and JAX's compiled code."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from hpc.errors import InfrastructureError
from hpc.sandbox import DiskUsageMonitor, Interpreter, SandboxPolicy, open_interpreter
from sharp.evaluation.candidate import COMPILED
from sharp.evaluation.interpreter_pool import InterpreterPool, ShardExecutor
from sharp.evaluation.sample_cache import SampleCache
from sharp.evaluation.scratch import remove_tree, scratch_folder

_MOST_COMPILED = 256 << 20


class WorkerContext:
    """A context manager over a folder of its own on a local disk.

    Scratch folders of candidates lie in a folder that holds nothing else. What JAX has compiled is moved from
    the scratch folder of one run to that of the next of the same code, and is never looked into.
    """

    def __init__(
        self,
        policy: SandboxPolicy,
        *,
        warm: bool = True,
        crew: Callable[[Interpreter], ShardExecutor] | None = None,
    ) -> None:
        self.interpreter = open_interpreter(policy, warm=warm)
        self.crew: ShardExecutor = InterpreterPool(policy) if crew is None else crew(self.interpreter)
        self.shelf = SampleCache()
        self._folder = Path(tempfile.mkdtemp(prefix="workshop-"))
        self._scratch, self.compiled = self._folder / "scratch", self._folder / "compiled"
        self._scratch.mkdir()
        self.compiled.mkdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.crew.close()
        self.interpreter.close()
        remove_tree(self._folder)

    @contextmanager
    def scratch(self, code: str, part: int = 0) -> Iterator[Path]:
        """Give a run of a code an empty folder, but for what JAX has compiled of it, and remove it afterwards.

        `part` tells runs of the same code apart that go on at the same time.
        """
        kept = self.compiled / f"{hashlib.sha256(code.encode(errors='surrogatepass')).hexdigest()}-{part}"
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(scratch_folder("candidate-", self._scratch))
            except OSError as error:
                raise InfrastructureError(f"{self._scratch} cannot be used: {error.strerror}.") from error
            compiled = folder / COMPILED
            if kept.exists():
                kept.rename(compiled)
            yield folder
            if _usable(compiled):
                compiled.rename(kept)


def _usable(path: Path) -> bool:
    """Whether this is a folder of moderate size that may be read and written."""
    try:
        allowed = path.is_dir() and not path.is_symlink() and os.access(path, os.R_OK | os.W_OK | os.X_OK)
        return allowed and not DiskUsageMonitor(path, _MOST_COMPILED).exceeds_now(())
    except OSError:  # a candidate may close its folder to us
        return False
