"""Candidates that look for what they must not see, and speak to whom they must not reach."""

from __future__ import annotations

from tests.helpers.conformance.hostile import (
    CHANGE_FILES,
    HONEST,
    SIGNAL_OTHERS,
    USE_NETWORK,
    Candidate,
    on_import,
    outcomes,
    within,
)

_HOME = """
import pwd
HOMES = {os.path.expanduser("~"), "@HOME@"}
with contextlib.suppress(KeyError): HOMES.add(pwd.getpwuid(os.getuid()).pw_dir)
"""
_MEMORY = """
def scan(pid):
    for line in open(f"/proc/{pid}/maps"):
        where, rights, *_ = line.split()
        begin, end = (int(part, 16) for part in where.split("-"))
        if "r" in rights and end - begin < 1 << 28 and "[v" not in line:
            with contextlib.suppress(OSError, OverflowError), open(f"/proc/{pid}/mem", "rb", 0) as memory:
                memory.seek(begin)
                show(memory.read(end - begin))
"""
_LISTEN = """
def reach(family, kind, address):
    with contextlib.suppress(OSError), socket.socket(family, kind) as link:
        link.settimeout(5)
        link.connect(address)
        link.send(b"hello")
        if kind == socket.SOCK_STREAM: breach("connected to", address)
"""
_NAMESPACE = """
libc = ctypes.CDLL(None, use_errno=True)
libc.unshare(0x10000000 | 0x00020000)  # user and mount namespaces
libc.mount(b"/", b"/mnt", None, 0x1000, None)
"""

SECRETS = (
    Candidate(
        "reference by path",
        "opens the data set, its neighbour and the run's folder by their paths",
        within("""
for path in ('@REFERENCE@', '@NEIGHBOUR@'):
    with contextlib.suppress(OSError): show(open(path, 'rb').read()); breach('read', path)
with contextlib.suppress(OSError): breach('listed', os.listdir('@RUN@'))
"""),
        outcomes(HONEST),
        do=CHANGE_FILES,
    ),
    Candidate(
        "search of the disk",
        "searches the temporary, home and enclosing folders for HDF5 files",
        within(
            """
for top in {'/tmp', '/home', '/root', '/var/tmp', '/mnt', os.path.expanduser('~'), '../..', '@RUN@/..'}:
    for folder, _, files in os.walk(top):
        for name in files:
            if name.endswith(('.hdf5', '.h5')):
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError): show(open(path, 'rb').read()); breach('read', path)
"""
        ),
        outcomes(HONEST),
        do=CHANGE_FILES,
    ),
    Candidate(
        "files of the home",
        "reads every file of the home folder",
        within(
            """
for home in HOMES:
    for folder, _, files in os.walk(home):
        for name in files:
            with contextlib.suppress(OSError): show(open(os.path.join(folder, name), 'rb').read())
""",
            _HOME,
        ),
        outcomes(HONEST),
        do=CHANGE_FILES,
    ),
    Candidate(
        "environment",
        "prints its own environment, and the block that its process was started with",
        within("""
print(dict(os.environ))
show(open('/proc/self/environ', 'rb').read())
if set(os.environ) & {'OPENAI_API_KEY', 'PYTHONPATH'}: breach('variables')
"""),
        outcomes(HONEST),
    ),
    Candidate(
        "environments of others",
        "reads the environments of all processes",
        within("""
for pid in filter(str.isdigit, os.listdir('/proc')):
    with contextlib.suppress(OSError): show(open(f'/proc/{pid}/environ', 'rb').read())
"""),
        outcomes(HONEST),
        do=CHANGE_FILES,
    ),
    Candidate(
        "memory of others",
        "reads the memory of its parent and of another process of the user",
        within(
            """
for pid in (os.getppid(), @VICTIM@):
    with contextlib.suppress(OSError): scan(pid); breach('read the memory of', pid)
""",
            _MEMORY.replace("contextlib.suppress(OSError, OverflowError), ", ""),
        ),
        outcomes(HONEST),
        do=CHANGE_FILES,
    ),
    Candidate(
        "memory of its own",
        "searches its own memory for what an earlier owner left there",
        within("scan('self')", _MEMORY),
        outcomes(HONEST),
    ),
    Candidate(
        "tracing of others",
        "attaches to its parent and to another process with ptrace",
        within("""
for pid in (os.getppid(), @VICTIM@):
    if ctypes.CDLL(None).ptrace(16, pid, 0, 0) == 0: breach('traced', pid)
"""),
        outcomes(HONEST),
        do=SIGNAL_OTHERS,
    ),
    Candidate(
        "memory written into others",
        "writes into the memory of its parent and of another process with process_vm_writev",
        within(
            """
class Span(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
libc, here = ctypes.CDLL(None), ctypes.create_string_buffer(8)
near, far = Span(ctypes.addressof(here), 8), Span(ctypes.addressof(here), 8)
for pid in (os.getppid(), @VICTIM@):
    if libc.process_vm_writev(pid, ctypes.byref(near), 1, ctypes.byref(far), 1, 0) > 0: breach('wrote into', pid)
    with contextlib.suppress(OSError): open(f'/proc/{pid}/mem', 'r+b', 0).close(); breach('may write into', pid)
"""
        ),
        outcomes(HONEST),
        do=CHANGE_FILES,
    ),
    Candidate(
        "killing others",
        "kills its parent and another process of the user",
        within("""
for pid in (os.getppid(), @VICTIM@):
    with contextlib.suppress(OSError): os.kill(pid, signal.SIGKILL)
time.sleep(.1)
"""),
        outcomes(HONEST),
        do=SIGNAL_OTHERS,
    ),
    Candidate(
        "killing everybody",
        "kills every process that it may, where it has a process namespace of its own",
        within("""
with contextlib.suppress(OSError):
    if os.readlink('/proc/self/ns/pid') != '@PIDNS@': os.kill(-1, signal.SIGKILL)
time.sleep(.1)
"""),
        outcomes(HONEST),
    ),
    Candidate(
        "stopping others",
        "stops its parent by SIGSTOP, so that nobody watches it",
        within("""
os.kill(os.getppid(), signal.SIGSTOP)
breach('stopped')
"""),
        outcomes("exception"),
        do=SIGNAL_OTHERS,
    ),
    Candidate(
        "network by TCP",
        "connects to a listener on this machine",
        within("reach(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', @TCP@))", _LISTEN),
        outcomes(HONEST),
        do=USE_NETWORK,
    ),
    Candidate(
        "network by UDP",
        "sends a datagram to a listener on this machine",
        within("reach(socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', @UDP@))", _LISTEN),
        outcomes(HONEST),
        do=USE_NETWORK,
    ),
    Candidate(
        "network by DNS",
        "asks the name service, and a listener in its place, for a name that carries a message",
        within(
            """
with contextlib.suppress(OSError): socket.getaddrinfo('message.invalid', 80); breach('resolved')
reach(socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', @UDP@))
""",
            _LISTEN,
        ),
        outcomes(HONEST),
        do=USE_NETWORK,
    ),
    Candidate(
        "network by a local socket",
        "connects to an abstract Unix socket and to one in a folder",
        within(
            """
reach(socket.AF_UNIX, socket.SOCK_STREAM, b'\\0@ABSTRACT@')
reach(socket.AF_UNIX, socket.SOCK_STREAM, '@SOCKET@')
""",
            _LISTEN,
        ),
        outcomes(HONEST),
        do=USE_NETWORK,
    ),
    Candidate(
        "listening",
        "opens a port for others to connect to",
        within("""
with contextlib.suppress(OSError), socket.socket() as door:
    door.bind(('127.0.0.1', @FREE@)); door.listen(); time.sleep(.3)
"""),
        outcomes(HONEST),
        do=USE_NETWORK,
    ),
    Candidate(
        "namespaces",
        "makes itself root of a new user namespace, mounts, and reads the reference",
        within(
            """
with contextlib.suppress(OSError): show(open('@NEIGHBOUR@', 'rb').read()); breach('read')
with contextlib.suppress(OSError): show(open('/mnt@NEIGHBOUR@', 'rb').read()); breach('read')
""",
            _NAMESPACE,
        ),
        outcomes(HONEST),
        do=CHANGE_FILES,
    ),
    Candidate(
        "memory of the program",
        "searches all objects of the interpreter for arrays of the solution's shape",
        within(
            """
for item in gc.get_objects():
    for inner in gc.get_referents(item):
        if isinstance(inner, np.ndarray) and inner.shape == u.shape and inner is not u: breach('an array')
"""
        ),
        outcomes(HONEST),
    ),
    Candidate(
        "frames of its callers",
        "searches the variables of its callers for arrays of the solution's shape and for canaries",
        within(
            """
frame = sys._getframe()
while frame := frame.f_back:
    for name, value in {**frame.f_globals, **frame.f_locals}.items():
        if isinstance(value, np.ndarray) and value.shape == u.shape: breach(name)
        with contextlib.suppress(Exception): show(repr(value).encode())
"""
        ),
        outcomes(HONEST),
    ),
    Candidate(
        "open descriptors",
        "reads from every file descriptor that it has inherited, and looks where they lead",
        within(
            """
for number in range(256):
    with contextlib.suppress(OSError):
        os.set_blocking(number, False)
        show(os.readlink(f'/proc/self/fd/{number}').encode()); show(os.read(number, 1 << 20))
"""
        ),
        outcomes(HONEST),
    ),
    Candidate(
        "the harness' own packages",
        "imports `sharp` and `hpc` and reads the data set through them",
        within(
            """
with contextlib.suppress(Exception):
    import h5py, hpc, sharp.reference.datasets
    from pathlib import Path
    from sharp.problems import load_problem
    sharp.reference.datasets.open_dataset(Path('@REFERENCE@'), load_problem('advection'))
    breach('opened the data set')
"""
        ),
        outcomes(HONEST),
        do=CHANGE_FILES,
    ),
    Candidate(
        "the package's own files",
        "reads prompts, problems and model cards beside the packages, and the source of the scorer",
        on_import("""
for path in ('@PACKAGE@/evaluation/scoring.py', '@PACKAGE@/../setup.cfg', '@PACKAGE@/../data'):
    with contextlib.suppress(OSError):
        os.listdir(path) if path.endswith('data') else open(path).read()
        breach('read', path)
"""),
        outcomes(HONEST),
        do=CHANGE_FILES,
    ),
)
