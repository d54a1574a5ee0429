"""Candidates that write where they must not, and leave odd folders behind."""

from __future__ import annotations

from tests.helpers.conformance.hostile import CHANGE_FILES, HONEST, USE_NETWORK, Candidate, outcomes, within

_REPLAY = """
import sysconfig
PLACES = [
    *(os.path.join(folder, "@MARK@-replay") for folder in (
        ".", "..", "/tmp", "/var/tmp", "/dev/shm",
        os.path.expanduser("~"), "@HOME@", "@OUTSIDE@", "@RUN@", sysconfig.get_path("purelib"),
        os.path.dirname(np.__file__), os.path.dirname(tempfile.gettempdir()),
    )),
    "/proc/%d/cwd/@MARK@-replay" % os.getppid(),
]
"""


FILES = (
    Candidate(
        "writing outside",
        "creates files in the home, a temporary folder, the data's folder, the run's and the packages'",
        within(
            """
for folder in (
    '@HOME@', '@OUTSIDE@', os.path.dirname('@REFERENCE@'), '@RUN@', '@PACKAGE@', os.path.dirname(np.__file__),
    os.path.expanduser('~'), '/tmp', '/var/tmp', '/dev/shm', '/', '..',
):
    with contextlib.suppress(OSError): open(os.path.join(folder, '@MARK@'), 'x').close()
    with contextlib.suppress(OSError): os.mkdir(os.path.join(folder, '@MARK@-folder'))
"""
        ),
        outcomes(HONEST),
        do=CHANGE_FILES,
    ),
    Candidate(
        "damaging the reference",
        "overwrites, truncates, renames, removes and changes the rights of the data set",
        within(
            """
for act in (
    lambda: open('@REFERENCE@', 'r+b').write(bytes(64)),
    lambda: os.truncate('@REFERENCE@', 0),
    lambda: os.chmod('@NEIGHBOUR@', 0o777),
    lambda: os.utime('@NEIGHBOUR@', (0, 0)),
    lambda: os.setxattr('@NEIGHBOUR@', 'user.word', b'text'),
    lambda: os.rename('@NEIGHBOUR@', '@NEIGHBOUR@.old'),
    lambda: os.unlink('@NEIGHBOUR@'),
    lambda: shutil.rmtree('@OUTSIDE@'),
):
    with contextlib.suppress(OSError): act()
"""
        ),
        outcomes(HONEST),
        do=CHANGE_FILES,
    ),
    Candidate(
        "damaging the libraries",
        "opens files of NumPy, of the interpreter and of this package for writing",
        within(
            """
for path in (np.__file__, os.__file__, sys.executable, '@PACKAGE@/__init__.py', '@PACKAGE@/evaluation/harness.py'):
    with contextlib.suppress(OSError): open(path, 'r+b').close(); breach('may write', path)
"""
        ),
        outcomes(HONEST),
        do=CHANGE_FILES,
    ),
    Candidate(
        "kernel settings",
        "opens settings of the kernel, block devices and the control groups for writing",
        within(
            """
import glob
for path in ('/proc/sys/kernel/core_pattern', '/proc/sys/vm/overcommit_memory', '/proc/sysrq-trigger', '/dev/mem',
             *glob.glob('/dev/[sv]d[a-z]'), *glob.glob('/sys/fs/cgroup/cgroup.procs')):
    with contextlib.suppress(OSError): os.close(os.open(path, os.O_WRONLY)); breach('may write', path)
"""
        ),
        outcomes(HONEST),
        do=CHANGE_FILES,
    ),
    Candidate(
        "replay of an earlier run",
        "hides its input in every place it can think of and looks for that of an earlier run",
        within(
            """
for path in PLACES:
    with contextlib.suppress(OSError): open(path).close(); breach('found', path)
for path in PLACES:
    with contextlib.suppress(OSError): open(path, 'w').close()
""",
            _REPLAY,
        ),
        outcomes(HONEST),
        do=CHANGE_FILES,
        runs=2,
    ),
    Candidate(
        "replay by shared memory",
        "leaves a System V shared memory segment and looks for that of an earlier run",
        within("""
libc = ctypes.CDLL(None)
if libc.shmget(@SHM@, 4096, 0o600) != -1: breach('found')
libc.shmget(@SHM@, 4096, 0o1600)
"""),
        outcomes(HONEST),
        do=USE_NETWORK,
        runs=2,
    ),
    Candidate(
        "replay by the interpreter",
        "patches every module it can and looks for the patches of an earlier run",
        within(
            """
modules = list(sys.modules.values())
if any(vars(module).get('left_behind') for module in modules): breach('found a patch')
for module in modules: module.left_behind = '@MARK@'
os.environ['LEFT_BEHIND'] = '@MARK@'
""",
            "if os.environ.get('LEFT_BEHIND'): breach('variable')",
        ),
        outcomes(HONEST),
        runs=2,
    ),
    Candidate(
        "changed tools",
        "overwrites the program, its inputs and the harness in its folder",
        within("""
for name in os.listdir('.'):
    with contextlib.suppress(OSError): open(name, 'wb').write(b'raise SystemExit')
"""),
        outcomes(HONEST),
    ),
    Candidate(
        "other working folder",
        "changes its working folder and its file mask",
        within("os.chdir('/')\nos.umask(0o777)"),
        outcomes(HONEST, "exception"),
    ),
    Candidate(
        "no working folder",
        "removes its working folder with all that is in it",
        within("shutil.rmtree(os.getcwd(), ignore_errors=True)"),
        outcomes("exception", HONEST),
    ),
    Candidate(
        "closed working folder",
        "takes all rights to its working folder away",
        within("""
os.makedirs('a/b')
os.chmod('a', 0)
os.chmod('.', 0)
"""),
        outcomes(HONEST, "exception"),
    ),
    Candidate(
        "deep folders",
        "leaves folders nested 1,200 deep, longer than any path may be",
        within("""
home = os.open('.', 0)
for _ in range(1200): os.mkdir('deeper'); os.chdir('deeper')
os.fchdir(home)
"""),
        outcomes(HONEST, "sandbox_violation"),
    ),
    Candidate(
        "odd names",
        "leaves files with names that are no text",
        within("for name in (b'\\xff', b'\\n', b' ', b'-rf', b'*', b'\\x1b[2J'): os.mkdir(name)"),
        outcomes(HONEST),
    ),
    Candidate(
        "undeletable file",
        "makes a file immutable",
        within("""
import fcntl
with contextlib.suppress(OSError), open('stone', 'w') as file:
    fcntl.ioctl(file, 0x40086602, (0x10).to_bytes(8, 'little'))
"""),
        outcomes(HONEST),
    ),
)
