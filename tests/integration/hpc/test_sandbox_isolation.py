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

ATTEMPTS = '''
import contextlib, ctypes, glob, json, os, resource, shutil, signal, socket, subprocess, sys
given = json.loads(os.environ["GIVEN"])
outside, secret, port, victim = given["outside"], given["secret"], given["port"], given["victim"]
libc = ctypes.CDLL(None, use_errno=True)
results = {"descriptors": len(os.listdir("/proc/self/fd"))}

def attempt(action):
    """Record what an attempt yields; what the sandbox refuses yields False."""
    try:
        results[action.__name__] = action() or True
    except (OSError, ValueError):
        results[action.__name__] = False

def call(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")

@attempt
def read_a_file(): return open(outside + "/secret").read()
@attempt
def read_through_a_link():
    os.symlink(outside + "/secret", "link")
    return open("link").read()
@attempt
def read_through_a_hard_link():
    os.link(outside + "/secret", "hard")
    return open("hard").read()
@attempt
def read_through_the_parent(): return open(f"/proc/{os.getppid()}/root{outside}/secret").read()
@attempt
def list_a_folder(): return os.listdir(outside)
@attempt
def list_the_home(): return os.listdir(given["home"])
@attempt
def read_the_project(): return open(given["project"]).read()
@attempt
def write_a_file(): open(outside + "/written", "w").write("x")
@attempt
def append_to_a_file(): open(outside + "/secret", "a").write("x")
@attempt
def make_a_folder(): os.mkdir(outside + "/made")
@attempt
def delete_a_file(): os.unlink(outside + "/secret")
@attempt
def rename_a_file(): os.rename(outside + "/secret", "stolen")
@attempt
def truncate_a_file(): os.truncate(outside + "/secret", 0)
@attempt
def write_to_the_interpreter(): open(os.path.join(sys.prefix, "written"), "w").write("x")
@attempt
def truncate_the_interpreter(): os.close(os.open(given["library"], os.O_RDONLY | os.O_TRUNC))
@attempt
def write_to_tmp(): open("/tmp/written-by-a-candidate", "w").write("x")
@attempt
def write_to_shared_memory(): open("/dev/shm/written-by-a-candidate", "w").write("x")
@attempt
def write_to_run(): open("/run/written-by-a-candidate", "w").write("x")
for action in (
    lambda: os.chmod(outside + "/secret", 0o777),
    lambda: os.utime(outside + "/secret", (0, 0)),
    lambda: os.setxattr(outside + "/secret", "user.x", b"x"),
    lambda: os.chmod(given["library"], 0o777),
):
    with contextlib.suppress(OSError):  # whether it was in vain is looked at outside
        action()

@attempt
def connect_by_tcp(): socket.create_connection(("127.0.0.1", port), 5).close()
@attempt
def listen_on_tcp(): socket.create_server(("127.0.0.1", 0)).close()
@attempt
def send_by_udp(): socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", port))
@attempt
def send_by_udp_6(): socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b"x", ("::1", port))
@attempt
def resolve_a_name(): socket.getaddrinfo("example.com", 80)
@attempt
def open_a_netlink_socket(): socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()
@attempt
def connect_to_a_local_socket():
    with socket.socket(socket.AF_UNIX) as local: local.connect(outside + "/socket")
@attempt
def connect_to_an_abstract_socket():
    with socket.socket(socket.AF_UNIX) as local: local.connect("\\0" + given["abstract"])
@attempt
def turn_a_datagram_pair():
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    near.connect(outside + "/socket")
@attempt
def set_up_io_uring(): call(libc.syscall(425, 8, ctypes.create_string_buffer(256)))

@attempt
def signal_the_launcher(): os.kill(os.getppid(), 0) if os.getppid() > 1 else os.kill(1, 0)
@attempt
def signal_the_caller(): os.kill(given["caller"], 0)
@attempt
def kill_a_process(): os.kill(victim, signal.SIGKILL)
@attempt
def kill_a_process_by_handle(): signal.pidfd_send_signal(os.pidfd_open(victim), signal.SIGKILL)
@attempt
def kill_everything(): os.kill(-1, signal.SIGKILL)
@attempt
def trace_the_launcher(): call(libc.ptrace(16, os.getppid(), 0, 0))
@attempt
def trace_a_process(): call(libc.ptrace(16, victim, 0, 0))
@attempt
def limit_the_launcher(): resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (3, 3))
@attempt
def limit_a_process(): resource.prlimit(victim, resource.RLIMIT_NOFILE, (3, 3))
@attempt
def pin_the_launcher(): os.sched_setaffinity(os.getppid(), {0})
@attempt
def slow_down_all(): os.setpriority(os.PRIO_USER, 0, 19)
@attempt
def raise_a_limit(): resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY,) * 2)
@attempt
def keep_shared_memory(): call(libc.shmget(0x5AFE, 4096, 0o1666))
@attempt
def keep_a_queue(): call(libc.msgget(0x5AFE, 0o1666))
@attempt
def keep_a_key(): call(libc.syscall(248, b"user", b"k", b"v", 1, -4) if os.uname().machine == "x86_64" else -1)
@attempt
def mount_something(): call(libc.mount(b"none", b".", b"tmpfs", 0, None))

def look(name):
    found = []
    for path in glob.glob(f"/proc/[0-9]*/{name}"):
        if int(path.split("/")[2]) != os.getpid():
            with contextlib.suppress(OSError):
                with open(path, "rb") as file: found.append(path) if file.read(100) else None
    return found
results["environments"], results["memories"] = look("environ"), look("mem")
results["own environment"] = sorted(os.environ.items())

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
'''


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


REFUSED = sorted(
    line.split()[1].partition("(")[0]
    for before, line in zip(ATTEMPTS.splitlines(), ATTEMPTS.splitlines()[1:], strict=False)
    if before == "@attempt"
)


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
