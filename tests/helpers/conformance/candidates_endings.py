"""Candidates that end in odd ways: exits, crashes, exceptions, broken source."""

from __future__ import annotations

from tests.helpers.conformance.hostile import HONEST, PRELUDE, Candidate, on_import, outcomes, within

_DEEP_C = """
class Loop:
    def __repr__(self): return repr([self])
"""
_UNPRINTABLE = """
class Unprintable(Exception):
    def __str__(self): raise RuntimeError("no text for you")
    __repr__ = __str__
"""
_MISNAMED = """
class Meta(type):
    __name__ = property(lambda self: "N" * 10_000_000)
class Misnamed(Exception, metaclass=Meta): pass
"""

ENDINGS = (
    Candidate(
        "quiet exit",
        "ends its process with exit code 0 by `os._exit`",
        within("os._exit(0)"),
        outcomes("exception"),
    ),
    Candidate(
        "quiet exit on import",
        "ends its process while it is imported",
        on_import("os._exit(0)"),
        outcomes("exception"),
    ),
    Candidate("polite exit", "calls `sys.exit(0)`", within("sys.exit(0)"), outcomes("exception")),
    Candidate(
        "polite exit on import",
        "calls `sys.exit()` while it is imported",
        on_import("sys.exit()"),
        outcomes("exception"),
    ),
    Candidate(
        "exit in a thread",
        "ends the process from another thread after the return",
        within("""
threading.Timer(.05, os._exit, (0,)).start()
time.sleep(5)
"""),
        outcomes("exception"),
    ),
    Candidate(
        "interrupt", "raises KeyboardInterrupt", within("raise KeyboardInterrupt"), outcomes("exception")
    ),
    Candidate(
        "interrupt by signal",
        "sends itself SIGINT",
        within("os.kill(os.getpid(), signal.SIGINT); time.sleep(5)"),
        outcomes("exception"),
    ),
    Candidate("generator exit", "raises GeneratorExit", within("raise GeneratorExit"), outcomes("exception")),
    Candidate("abort", "calls `abort()`", within("os.abort()"), outcomes("exception")),
    Candidate(
        "suicide",
        "sends itself SIGKILL",
        within("os.kill(os.getpid(), signal.SIGKILL); time.sleep(60)"),
        outcomes("exception"),
    ),
    Candidate("segmentation fault", "reads address 0", within("ctypes.string_at(0)"), outcomes("exception")),
    Candidate(
        "crash with a handler",
        "enables `faulthandler` with all threads and crashes",
        within("""
import faulthandler
faulthandler.enable(all_threads=True)
ctypes.string_at(0)
"""),
        outcomes("exception"),
    ),
    Candidate(
        "C stack overflow",
        "recurses in C past the end of the stack",
        within("sys.setrecursionlimit(10**9)\nrepr(Loop())", _DEEP_C),
        outcomes("exception"),
    ),
    Candidate(
        "deep recursion",
        "recurses without end",
        on_import("def deeper(n): return deeper(n + 1)\ndeeper(0)"),
        outcomes("exception"),
    ),
    Candidate(
        "huge message",
        "raises an exception with a message of 10 MB",
        within("raise ValueError('y' * 10_000_000)"),
        outcomes("exception"),
    ),
    Candidate(
        "huge notes",
        "raises an exception group of 1,000 with notes of 10 MB",
        within("""
error = ExceptionGroup('many', [ValueError(n) for n in range(1000)])
error.add_note('z' * 10_000_000)
raise error
"""),
        outcomes("exception"),
    ),
    Candidate(
        "unprintable exception",
        "raises an exception whose text raises another",
        within("raise Unprintable", _UNPRINTABLE),
        outcomes("exception"),
    ),
    Candidate(
        "misnamed exception",
        "raises an exception whose class has a name of 10 MB",
        within("raise Misnamed", _MISNAMED),
        outcomes("exception"),
    ),
    Candidate(
        "endless chain of causes",
        "raises an exception that is its own cause's cause",
        within("""
a, b = ValueError(1), ValueError(2)
a.__cause__, b.__cause__ = b, a
raise a
"""),
        outcomes("exception"),
    ),
    Candidate(
        "missing module",
        "imports a module that does not exist",
        on_import("import no_such_module"),
        outcomes("import"),
    ),
    Candidate("missing solver", "defines no solver", PRELUDE, outcomes("signature")),
    Candidate(
        "wrong signature",
        "takes two arguments of three",
        "def solver(u0, t): return u0",
        outcomes("signature"),
    ),
    Candidate("syntax error", "is no Python", "def solver(u0_batch:\n", outcomes("syntax")),
    Candidate("null bytes", "has null bytes in its source", within("") + "\0", outcomes("syntax")),
    Candidate(
        "unpaired surrogate",
        "has text in its source that UTF-8 cannot encode",
        within("") + "# \ud800",
        outcomes("syntax"),
    ),
    Candidate(
        "another encoding",
        "declares an encoding that it does not have",
        "# -*- coding: utf-7 -*-\n" + within(""),
        outcomes(HONEST),
    ),
    Candidate(
        "deep nesting",
        "nests 100,000 minus signs in an expression",
        within("") + "x = " + "-" * 100_000 + "1\n",
        outcomes("syntax"),
    ),
    Candidate("huge source", "has 3 MB of source", within("") + "# filling\n" * 300_000, outcomes(HONEST)),
    Candidate(
        "undecodable output",
        "prints bytes that are no UTF-8, null bytes and terminal escapes",
        within("os.write(1, bytes(range(256)) * 4); os.write(2, b'\\xff\\xfe\\x00\\x1b[2J')"),
        outcomes(HONEST),
    ),
    Candidate(
        "reads standard input",
        "waits for a line from standard input",
        within("input()"),
        outcomes("exception"),
    ),
)
