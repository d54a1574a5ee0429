"""Interrupts that end an event loop in order."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hpc.interrupts import run_interruptible

# Where Python drops what a handler raises: each calls `told` there, once.
DROPPING = {
    "destructor": "type('Thing', (), {'__del__': lambda self: told()})()",
    "weak reference": "class Thing: pass\nthing = Thing()\nkept = weakref.ref(thing, lambda _: told())\ndel thing",
    "callback from C": "ctypes.CFUNCTYPE(None)(told)()",
    "collection of garbage": "gc.callbacks.append(lambda *_: told()); gc.collect()",
}


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.default_int_handler])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_cancel_a_coroutine_which_cleans_up(number, handler) -> None:
    ended: list[str] = []

    async def work() -> None:
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), number)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")

    before = signal.signal(signal.SIGTERM, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_interruptible(work())
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended == ["cleaned up"]


def test_a_handler_of_the_programs_own_stays() -> None:
    came: list[int] = []

    async def work() -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0)
        return "finished"

    before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        assert run_interruptible(work()) == "finished"
    finally:
        signal.signal(signal.SIGTERM, before)
    assert came == [signal.SIGTERM]


def test_a_coroutine_that_cancels_itself_is_not_taken_for_an_interrupt() -> None:
    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run_interruptible(work())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("place", DROPPING)
def test_an_interrupt_that_python_drops_comes_again(place: str, number: signal.Signals) -> None:
    program = f"""
        import ctypes, gc, os, time, weakref
        from hpc.interrupts import insist_on_interrupts
        insist_on_interrupts()
        gc.disable()
        sent = []
        def told(*_):
            if not sent:
                sent.append(os.kill(os.getpid(), {int(number)}))
                time.sleep(0)
        try:
            exec({DROPPING[place]!r})
            time.sleep(30)
        except KeyboardInterrupt:
            print("interrupted", end="")
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("interrupted", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupt_waits_until_a_module_is_loaded(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        f"import os, time\nos.kill(os.getpid(), {int(number)})\ntime.sleep(0)\nprint('loaded', end=' ')\n"
    )
    program = (
        "import time\nfrom hpc.interrupts import insist_on_interrupts\ninsist_on_interrupts()\n"
        "try:\n    import slow\n    time.sleep(30)\nexcept KeyboardInterrupt:\n    print('interrupted', end='')\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("loaded interrupted", "")
