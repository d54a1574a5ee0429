"""What a program in a tier that the kernel enforces cannot do, cold and warm, each attempted for real."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import ROOT
from tests.helpers.sandbox.sandbox_tiers import ENFORCING, answer, interpreter, nothing_left, run_script

SECRET = "key-of-the-caller-1234"

# What is refused: each is run by itself, and raises OSError or ValueError.
REFUSED = {
    "read_a_file": "open(outside + '/secret').read()",
    "read_through_a_link": "os.symlink(outside + '/secret', 'link'); open('link').read()",
    "read_through_a_hard_link": "os.link(outside + '/secret', 'hard'); open('hard').read()",
    "read_through_the_parent": "open(f'/proc/{os.getppid()}/root{outside}/secret').read()",
    "list_a_folder": "os.listdir(outside)",
    "list_the_home": "os.listdir(given['home'])",
    "read_the_project": "open(given['project']).read()",
    "write_a_file": "open(outside + '/written', 'w').write('x')",
    "append_to_a_file": "open(outside + '/secret', 'a').write('x')",
    "make_a_folder": "os.mkdir(outside + '/made')",
    "delete_a_file": "os.unlink(outside + '/secret')",
    "rename_a_file": "os.rename(outside + '/secret', 'stolen')",
    "truncate_a_file": "os.truncate(outside + '/secret', 0)",
    "write_to_the_interpreter": "open(os.path.join(sys.prefix, 'written'), 'w').write('x')",
    "truncate_the_interpreter": "os.close(os.open(given['library'], os.O_RDONLY | os.O_TRUNC))",
    "write_to_what_is_readable": "open(given['granted'], 'a').write('x')",
    "add_to_what_is_readable": "open(os.path.dirname(given['granted']) + '/added', 'w').write('x')",
    "write_to_run": "open('/run/written-by-a-candidate', 'w').write('x')",
    "connect_by_tcp": "socket.create_connection(('127.0.0.1', port), 5).close()",
    "listen_on_tcp": "socket.create_server(('127.0.0.1', 0)).close()",
    "send_by_udp": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', port))",
    "send_by_udp_6": "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b'x', ('::1', port))",
    "resolve_a_name": "socket.getaddrinfo('example.com', 80)",
    "open_a_netlink_socket": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()",
    "connect_to_a_local_socket": "local = socket.socket(socket.AF_UNIX); local.connect(outside + '/socket')",
    "connect_to_an_abstract_socket": "local = socket.socket(socket.AF_UNIX); local.connect('\\0' + given['abstract'])",
    "turn_a_datagram_pair": (
        "near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); near.connect(outside + '/socket')"
    ),
    "set_up_io_uring": "call(libc.syscall(425, 8, ctypes.create_string_buffer(256)))",
    "signal_the_launcher": "os.kill(max(os.getppid(), 1), 0)",
    "signal_the_caller": "os.kill(given['caller'], 0)",
    "kill_a_process": "os.kill(victim, signal.SIGKILL)",
    "kill_a_process_by_handle": "signal.pidfd_send_signal(os.pidfd_open(victim), signal.SIGKILL)",
    "kill_everything": "os.kill(-1, signal.SIGKILL)",
    "trace_the_launcher": "call(libc.ptrace(16, os.getppid(), 0, 0))",
    "trace_a_process": "call(libc.ptrace(16, victim, 0, 0))",
    "limit_the_launcher": "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (3, 3))",
    "limit_a_process": "resource.prlimit(victim, resource.RLIMIT_NOFILE, (3, 3))",
    "pin_the_launcher": "os.sched_setaffinity(os.getppid(), {0})",
    "slow_down_all": "os.setpriority(os.PRIO_USER, 0, 19)",
    "raise_a_limit": "resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY,) * 2)",
    "keep_shared_memory": "call(libc.shmget(0x5AFE, 4096, 0o1666))",
    "keep_a_queue": "call(libc.msgget(0x5AFE, 0o1666))",
    "keep_a_key": "call(libc.syscall(248, b'user', b'k', b'v', 1, -4) if os.uname().machine == 'x86_64' else -1)",
    "mount_something": "call(libc.mount(b'none', b'.', b'tmpfs', 0, None))",
}

ATTEMPTS = """
import contextlib, ctypes, glob, json, os, resource, shutil, signal, socket, subprocess, sys
given = json.loads(os.environ["GIVEN"])
outside, secret, port, victim = given["outside"], given["secret"], given["port"], given["victim"]
libc = ctypes.CDLL(None, use_errno=True)
results = {"descriptors": len(os.listdir("/proc/self/fd"))}

def call(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")

for name, action in given["refused"].items():
    try:
        exec(action)
        results[name] = True
    except (OSError, ValueError):
        results[name] = False
for action in (
    lambda: os.chmod(outside + "/secret", 0o777),
    lambda: os.utime(outside + "/secret", (0, 0)),
    lambda: os.setxattr(outside + "/secret", "user.x", b"x"),
    lambda: os.chmod(given["library"], 0o777),
):
    with contextlib.suppress(OSError):  # whether it was in vain is looked at outside
        action()

def look(name):
    found = []
    for path in glob.glob(f"/proc/[0-9]*/{name}"):
        if int(path.split("/")[2]) != os.getpid():
            with contextlib.suppress(OSError):
                with open(path, "rb") as file: found.append(path) if file.read(100) else None
    return found
results["environments"], results["memories"] = look("environ"), look("mem")
results["own environment"] = sorted(os.environ.items())

for folder in ("/tmp", "/dev/shm"):  # of its own, where the kernel lets it have them
    with contextlib.suppress(OSError):
        open(folder + "/written-by-a-candidate", "w").write("x")
open("own", "w").write("x")
os.chmod("own", 0o600)
os.mkdir("folder")
shutil.copy2("own", "folder/copy")
os.rename("folder/copy", "moved")
os.unlink("moved")
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"])
child.kill()
results["own child"] = child.wait()
results["own file"] = open("own").read()
results["granted"] = open(given["granted"]).read()
results["own socket pair"] = [s.close() for s in socket.socketpair()] == [None, None]
print(json.dumps(results))
"""


class Ground:
    """Files, sockets and a process outside of the sandbox, and what a program made of them."""

    def __init__(self, folder: Path, name: str, warm: bool) -> None:
        outside, granted, library = folder / "outside", folder / "granted", folder / "library"
        for path in (outside, granted, library):
            path.mkdir()
        (outside / "secret").write_text(SECRET)
        (granted / "file").write_text("granted")
        (library / "module.py").write_text("kept = True\n")
        for path in (outside / "secret", library / "module.py"):
            path.chmod(0o640)
        self.outside, self.library = outside, library / "module.py"
        with (
            subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]) as victim,
            ExitStack() as stack,
            socket.create_server(("127.0.0.1", 0)) as tcp,
            socket.socket(socket.AF_UNIX) as local,
            socket.socket(socket.AF_UNIX) as abstract,
        ):
            stack.callback(victim.kill)
            os.chdir(outside)  # the path of a local socket must be short
            local.bind("socket")
            local.listen()
            abstract.bind(f"\0hpc-sandbox-{os.getpid()}")
            abstract.listen()
            given = {
                "outside": str(outside),
                "secret": SECRET,
                "port": tcp.getsockname()[1],
                "victim": victim.pid,
                "caller": os.getpid(),
                "abstract": f"hpc-sandbox-{os.getpid()}",
                "home": str(Path.home()),
                "project": str(ROOT / "setup.cfg"),
                "library": str(self.library),
                "granted": str(granted / "file"),
                "refused": REFUSED,
            }
            with interpreter(name, warm) as used:
                done = run_script(
                    used,
                    folder / "scratch" / "one",
                    ATTEMPTS,
                    environment={"GIVEN": json.dumps(given)},
                    readable=[granted, library],
                )
            self.results: dict[str, Any] = answer(done)
            self.victim_lives = victim.poll() is None


@pytest.fixture(
    scope="module", params=[(name, warm) for name in ENFORCING for warm in (False, True)], ids=str
)
def ground(request, tmp_path_factory):
    """The ground after one program has tried everything, for each tier, cold and warm."""
    here = Path.cwd()
    with pytest.MonkeyPatch.context() as patch, nothing_left():
        patch.setenv("SECRET_OF_THE_CALLER", SECRET)
        yield Ground(tmp_path_factory.mktemp("ground"), *request.param)
        os.chdir(here)


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused(ground, name):
    assert ground.results[name] is False


def test_nothing_outside_has_changed(ground):
    assert sorted(path.name for path in ground.outside.iterdir()) == ["secret", "socket"]
    assert (ground.outside / "secret").read_text() == SECRET
    status = (ground.outside / "secret").stat()
    assert status.st_mode & 0o777 == 0o640
    assert status.st_mtime > 1e9
    assert os.listxattr(ground.outside / "secret") == []
    assert ground.library.read_text() == "kept = True\n"
    assert ground.library.stat().st_mode & 0o777 == 0o640
    assert ground.victim_lives
    assert not Path("/dev/shm/written-by-a-candidate").exists()
    assert not Path("/tmp/written-by-a-candidate").exists()


def test_no_other_process_can_be_looked_into(ground):
    assert ground.results["environments"] == []
    assert ground.results["memories"] == []


def test_environment_and_descriptors_hold_nothing_of_the_caller(ground):
    given = dict(ground.results["own environment"])
    assert json.loads(given.pop("GIVEN"))["secret"] == SECRET
    assert SECRET not in str(given)
    assert ground.results["descriptors"] == 6  # three standard ones, two private pipes, the listing itself


def test_what_a_program_needs_is_allowed(ground):
    assert ground.results["own file"] == "x"
    assert ground.results["own child"] == -9
    assert ground.results["own socket pair"] is True
    assert ground.results["granted"] == "granted"
