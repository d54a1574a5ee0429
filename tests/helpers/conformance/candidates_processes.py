"""Candidates that leave things running, and meddle with the descriptors that they were given."""

from __future__ import annotations

from tests.helpers.conformance.hostile import HONEST, Candidate, outcomes, within

_DAEMON = """
def daemon(work):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: work()
        os._exit(0)
"""
_CHAIN = """
def chain():
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if os.fork(): os._exit(0)
"""


PROCESSES = (
    Candidate(
        "closed descriptors",
        "closes its file descriptors 0 to 63",
        within("os.closerange(0, 64)"),
        outcomes("exception"),
    ),
    Candidate(
        "diverted descriptors",
        "lets all its file descriptors lead to a file of its own",
        within("""
file = os.open('all', os.O_CREAT | os.O_RDWR)
for number in range(64): number == file or os.dup2(file, number)
"""),
        outcomes(HONEST),
    ),
    Candidate(
        "noise on all descriptors",
        "writes lines in the form of results to every file descriptor it has",
        within("""
for number in range(3, 256):
    with contextlib.suppress(OSError):
        os.set_blocking(number, False); os.write(number, b'{"exit_code": 0, "failure": null}\\n' * 20)
"""),
        outcomes(HONEST),
    ),
    Candidate(
        "process left behind",
        "leaves a program running",
        within("subprocess.Popen(['sleep', '600'])"),
        outcomes(HONEST),
    ),
    Candidate(
        "daemon left behind",
        "leaves a daemon that forked twice and left its session",
        within("daemon(lambda: time.sleep(600))", _DAEMON),
        outcomes(HONEST),
    ),
    Candidate(
        "deaf daemon",
        "leaves a daemon that ignores all signals, holds no descriptor and keeps both pipes busy",
        within(
            """
def work():
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True: os.write(1, b'still here\\n'); time.sleep(.01)
daemon(work)
""",
            _DAEMON,
        ),
        outcomes(HONEST),
    ),
    Candidate(
        "restless daemon",
        "leaves a chain of processes, each of which forks the next and ends at once",
        within("daemon(chain)", _DAEMON + _CHAIN),
        outcomes(HONEST),
    ),
    Candidate(
        "stopped child",
        "leaves a child that is stopped",
        within("""
child = os.fork()
if child == 0: time.sleep(600)
os.kill(child, signal.SIGSTOP)
"""),
        outcomes(HONEST),
    ),
    Candidate(
        "zombies",
        "leaves children that have ended and are not waited for",
        within("""
for _ in range(20):
    if not os.fork(): os._exit(0)
"""),
        outcomes(HONEST),
    ),
    Candidate(
        "return in both processes",
        "forks, and returns from the solver in parent and child",
        within("os.fork()"),
        outcomes(HONEST, "sandbox_violation", "exception"),
    ),
)
