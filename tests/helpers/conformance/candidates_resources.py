"""Candidates that use too much: processes, memory, disk, output and time."""

from __future__ import annotations

from sharp.problems.limits import ResourceLimits
from tests.helpers.conformance.hostile import (
    HONEST,
    NARROW,
    SHORT,
    WIDE,
    Candidate,
    on_import,
    outcomes,
    within,
)

RESOURCES = (
    Candidate(
        "fork bomb",
        "starts 300 processes that sleep",
        within("""
for _ in range(300):
    if not os.fork(): time.sleep(600)
time.sleep(600)
"""),
        outcomes("sandbox_violation"),
        WIDE,
    ),
    Candidate(
        "doubling fork bomb",
        "forks in every process, 512 in all",
        within("for _ in range(9): os.fork()\ntime.sleep(600)"),
        outcomes("sandbox_violation"),
        WIDE,
    ),
    Candidate(
        "many threads",
        "leaves 300 sleeping threads behind",
        within("for _ in range(300): threading.Thread(target=time.sleep, args=(600,)).start()"),
        outcomes(HONEST),
    ),
    Candidate(
        "memory at once",
        "allocates more than its limit in one array",
        within("kept = np.ones(80_000_000)\ntime.sleep(600)"),
        outcomes("memory"),
        NARROW,
    ),
    Candidate(
        "memory bit by bit",
        "allocates more than its limit in small steps",
        within("""
kept = []
for _ in range(150):
    kept.append(np.ones(1 << 19)); time.sleep(.002)
time.sleep(600)
"""),
        outcomes("memory"),
        NARROW,
    ),
    Candidate(
        "memory in children",
        "stays below its limit itself, and lets four children exceed it together",
        within("""
for _ in range(4):
    if not os.fork():
        kept = np.ones(16_000_000); time.sleep(600)
time.sleep(600)
"""),
        outcomes("memory"),
        NARROW,
    ),
    Candidate(
        "memory in unmapped files",
        "keeps 4 GB in anonymous files that no process maps",
        within("""
for number in range(20):
    os.posix_fallocate(os.memfd_create(str(number)), 0, 200 << 20)
time.sleep(600)
"""),
        outcomes("sandbox_violation"),
    ),
    Candidate(
        "impossible array",
        "asks for an array of 9 petabytes",
        within("np.ones(1 << 50)"),
        outcomes("memory"),
    ),
    Candidate(
        "one big file",
        "writes 700 MB to one file",
        within("""
with open('big', 'wb') as file:
    for _ in range(700): file.write(bytes(1 << 20))
"""),
        outcomes("exception"),
    ),
    Candidate(
        "many big files",
        "takes 6 GB of the disk with 30 files",
        within("""
for n in range(30):
    with open(f'big-{n}', 'wb') as file: os.posix_fallocate(file.fileno(), 0, 200 << 20)
time.sleep(600)
"""),
        outcomes("sandbox_violation"),
    ),
    Candidate(
        "thousand files",
        "leaves 1,000 empty files behind",
        within("for n in range(1000): open(f'file-{n}', 'w').close()"),
        outcomes(HONEST),
    ),
    Candidate(
        "flood on stdout",
        "prints 30 MB in lines",
        within("for _ in range(1000): print('x' * 10_000)"),
        outcomes(HONEST),
    ),
    Candidate(
        "flood on stderr",
        "prints 30 MB in lines to stderr",
        within("for _ in range(1000): print('x' * 10_000, file=sys.stderr)"),
        outcomes(HONEST),
    ),
    Candidate(
        "flood without a newline",
        "writes 30 MB as one line to stdout and stderr",
        within("for n in range(500): os.write(1 + n % 2, bytes(1 << 16))"),
        outcomes(HONEST),
    ),
    Candidate(
        "flood of warnings",
        "issues 20,000 warnings",
        within("""
import warnings
warnings.simplefilter('always')
for n in range(20_000): warnings.warn(f'no {n}')
"""),
        outcomes(HONEST),
    ),
    Candidate(
        "flood on the private pipe",
        "writes 20 MB, some of it lines, to the pipe of the harness",
        within("""
pipe = int(os.environ['SANDBOX_EVENTS_FD'])
for n in range(320): os.write(pipe, (b'done\\n' if n < 50 else b'x') * (1 << 14))
"""),
        outcomes(HONEST),
    ),
    Candidate(
        "endless loop",
        "never returns",
        within("while True: pass"),
        outcomes("timeout"),
        SHORT,
    ),
    Candidate(
        "endless import",
        "never finishes its import",
        on_import("while True: pass"),
        outcomes("timeout"),
        SHORT,
    ),
    Candidate(
        "endless loop in C",
        "never leaves a C function, and so never sees a signal nor yields to a thread",
        within("import itertools\nsum(itertools.repeat(0))"),
        outcomes("timeout"),
        SHORT,
    ),
    Candidate(
        "endless loop in compiled code",
        "never leaves a function compiled by JAX",
        within("""
import jax
turn = lambda y: (y * 5 + 1) % 7
jax.jit(lambda x: jax.lax.while_loop(lambda y: y >= 0, turn, x))(1).block_until_ready()
"""),
        outcomes("timeout"),
        ResourceLimits(wall_s=3, memory_mb=1500),
    ),
    Candidate(
        "deaf to signals",
        "ignores and blocks every signal and sleeps",
        within(
            """
for number in range(1, 65):
    with contextlib.suppress(OSError, ValueError): signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
time.sleep(600)
"""
        ),
        outcomes("timeout"),
        SHORT,
    ),
    Candidate(
        "stopped process",
        "stops itself by SIGSTOP",
        within("os.kill(os.getpid(), signal.SIGSTOP)"),
        outcomes("timeout"),
        SHORT,
    ),
    Candidate(
        "thread that never yields",
        "returns, but leaves a thread that holds the interpreter's lock for ever",
        within("""
import itertools
threading.Timer(.001, lambda: sum(itertools.repeat(0))).start()
time.sleep(.5)
"""),
        outcomes("timeout"),
        SHORT,
    ),
    Candidate(
        "time bomb",
        "returns at once and leaves a thread that is to sleep past the limit",
        within("threading.Thread(target=time.sleep, args=(600,)).start()"),
        outcomes(HONEST),
    ),
    Candidate(
        "raised limits",
        "raises its resource limits and writes 400 MB to one file",
        within(
            """
import resource
for kind in range(resource.RLIM_NLIMITS if hasattr(resource, 'RLIM_NLIMITS') else 16):
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
with open('big', 'wb') as file:
    for _ in range(400): file.write(bytes(1 << 20))
"""
        ),
        outcomes("exception"),
    ),
    Candidate(
        "moved and deprived",
        "pins itself to one core, lowers its priority and drops its limits to nothing",
        within("""
os.nice(19)
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import resource
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
"""),
        outcomes(HONEST),
    ),
)
