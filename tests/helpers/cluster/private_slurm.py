"""A private, real Slurm cluster on this machine: own munge key, own ports, own folder; several nodes on one host.

Nothing outside its folder is read or changed, and it ends exactly the processes that it started: daemons by
their handles, what jobs left by the path of this cluster's configuration in their environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import getpass
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "sinfo")
INSTALL = "apt-get install -y --no-install-recommends slurmctld slurmd slurm-client munge"
GPUS_PER_NODE = 2

_PR_SET_PDEATHSIG = 1
_START_S = 180.0
_STOP_S = 20.0

_SLURM_CONF = """\
ClusterName=private
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/run/munge.sock,cred_expire=5
FirstJobId={first_job}
MailProg=/bin/true
MpiDefault=none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmdPidFile={folder}/run/slurmd.%n.slurmpid
SlurmdLogFile={folder}/log/slurmd.%n.log
SlurmctldPidFile={folder}/run/slurmctld.slurmpid
SlurmctldLogFile={folder}/log/slurmctld.log
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
GresTypes=gpu
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2,bf_continue
KillWait=1
SlurmdTimeout=300
MinJobAge={min_job_age}
MaxArraySize={max_array}
MaxJobCount={max_jobs}
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
{nodes}
PartitionName=main Nodes=ALL Default=YES DefaultTime=10 MaxTime=1-00:00:00 State=UP PriorityTier=1 GraceTime=5
PartitionName=high Nodes=ALL DefaultTime=10 MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
PartitionName=closed Nodes=ALL DefaultTime=10 MaxTime=10 State=DOWN
"""
_NODE = (
    "NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=4000 Gres=gpu:2"
)


def missing() -> str:
    """Return why no cluster can be started here, or nothing."""
    absent = [program for program in PROGRAMS if _program(program) is None]
    return f"Slurm is not installed (no {', '.join(absent)}): {INSTALL}" if absent else ""


def started(attempts: int = 3, **limits: int) -> PrivateSlurm:
    """Return a running cluster; another program may take a port before Slurm does, so try again."""
    for _ in range(attempts - 1):
        with contextlib.suppress(RuntimeError):
            return _start(PrivateSlurm(**limits))
    return _start(PrivateSlurm(**limits))


def _start(cluster: PrivateSlurm) -> PrivateSlurm:
    cluster.start()
    return cluster


class PrivateSlurm:
    """A cluster with `nodes` nodes of 4 CPUs, 4000 MB and 2 GPUs that are devices without use.

    Partitions: `main` (default, jobs are requeued for those of `high`), `high`, `closed` (down).
    """

    def __init__(
        self, *, nodes: int = 2, max_array: int = 1001, max_jobs: int = 10_000, min_job_age: int = 3600
    ) -> None:
        # Unix socket names must stay below 108 characters: the folder's name has to be short.
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
        self.nodes = tuple(f"n{number}" for number in range(1, nodes + 1))
        self._limits = {"max_array": max_array, "max_jobs": max_jobs, "min_job_age": min_job_age}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._write_files()

    @property
    def configuration(self) -> Path:
        """The file that `SLURM_CONF` names."""
        return self.folder / "slurm.conf"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of this cluster's clients."""
        path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
        return {**os.environ, "SLURM_CONF": str(self.configuration), "PATH": path}

    def start(self) -> None:
        """Start every daemon and wait until all nodes are idle."""
        try:
            if not self._runs("munged"):
                self.start_munged()
            self.start_controller()
            for node in self.nodes:
                self.start_node(node)
            self.wait_until_idle()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process of this cluster and remove its folder."""
        if self._runs("slurmctld"):
            self.command("scancel", "-u", str(os.getuid()))
        for name in (*self.nodes, "slurmctld", "munged"):
            self._end(name)
        _kill(self.processes())
        shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, *arguments: str) -> str:
        """Run a Slurm command against this cluster and return its standard output."""
        done = subprocess.run(
            arguments, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{arguments} failed: {done.stderr}")
        return done.stdout

    def start_controller(self) -> None:
        """Start slurmctld; it knows what it knew when it was stopped."""
        self._spawn("slurmctld", "slurmctld", "-D")
        self._until(lambda: "UP" in self._answer("scontrol", "ping"), "slurmctld answers")

    def stop_controller(self) -> None:
        """Stop slurmctld in good order; jobs run on."""
        self._end("slurmctld")

    def start_node(self, node: str) -> None:
        """Start the daemon of a node."""
        self._spawn(node, "slurmd", "-D", "-N", node)

    def restart_node(self, node: str) -> None:
        """Stop the daemon of a node and start it again; its jobs run on."""
        self._end(node)
        self.start_node(node)

    def crash_node(self, node: str) -> None:
        """Lose a node: its daemon and every process of its jobs are killed, and the controller learns of it."""
        self._daemons[node].kill()
        self._daemons.pop(node).wait()
        _kill(self._processes_of(node))
        self.command("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=crash")

    def revive(self, node: str) -> None:
        """Bring a node back that was lost; do nothing where it runs."""
        if not self._runs(node):
            self.start_node(node)
        self._answer("scontrol", "update", f"NodeName={node}", "State=RESUME")

    def clear(self) -> None:
        """Cancel all jobs and wait until every node is idle again."""
        self.command("scancel", "-u", str(os.getuid()))
        # A node on which a job could not be started is drained; where there is none, this is refused.
        self._answer("scontrol", "update", f"NodeName={','.join(self.nodes)}", "State=RESUME")
        self.wait_until_idle()

    def wait_until_idle(self) -> None:
        """Wait until every node is idle."""
        self._until(self._all_idle, "all nodes are idle")

    def logs(self) -> str:
        """Return the ends of the daemons' logs."""
        files = sorted((self.folder / "log").glob("*.log"))
        return "\n".join(f"== {file.name}\n{file.read_text(errors='replace')[-2000:]}" for file in files)

    def _all_idle(self) -> bool:
        states = self._answer("sinfo", "-h", "-N", "-p", "main", "-o", "%N %t").splitlines()
        return sorted(states) == [f"{node} idle" for node in self.nodes]

    def _write_files(self) -> None:
        for name in ("run", "state", "spool", "log", "dev"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(256))
        key.chmod(0o400)
        port, *ports = free_ports(1 + len(self.nodes))
        lines = [_NODE.format(name=node, port=at) for node, at in zip(self.nodes, ports, strict=True)]
        values = {"port": port, "nodes": "\n".join(lines), "user": getpass.getuser(), **self._limits}
        first = random.SystemRandom().randrange(1_000_000, 60_000_000)
        self.configuration.write_text(_SLURM_CONF.format(folder=self.folder, first_job=first, **values))
        devices = ",".join(map(str, self._devices()))
        gres = [f"NodeName={node} Name=gpu File={devices} Flags=nvidia_gpu_env\n" for node in self.nodes]
        (self.folder / "gres.conf").write_text("".join(gres))

    def _devices(self) -> Sequence[Path]:
        """Slurm wants character devices: copies of /dev/null, or where those may not be made, others."""
        devices = [self.folder / "dev" / f"fakegpu{number}" for number in range(GPUS_PER_NODE)]
        try:
            for device in devices:
                os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            return [Path("/dev/null"), Path("/dev/zero")]
        return devices

    def start_munged(self) -> None:
        """Start the daemon that signs messages, which every other needs."""
        run, log = self.folder / "run", self.folder / "log"
        files = (f"--key-file={self.folder / 'munge.key'}", f"--socket={run / 'munge.sock'}")
        more = (f"--pid-file={run / 'munged.pid'}", f"--seed-file={run / 'munged.seed'}")
        self._spawn("munged", "munged", "-F", "--force", *files, *more, f"--log-file={log / 'munged.log'}")
        self._until((run / "munge.sock").exists, "munged listens")

    def _spawn(self, name: str, program: str, *arguments: str) -> None:
        path = _program(program)
        assert path is not None
        with (self.folder / "log" / f"{name}.out").open("ab") as output:
            self._daemons[name] = subprocess.Popen(
                [path, *arguments],
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=die_with_parent,
            )

    def _runs(self, name: str) -> bool:
        return name in self._daemons and self._daemons[name].poll() is None

    def _end(self, name: str) -> None:
        daemon = self._daemons.pop(name, None)
        if daemon is not None:
            daemon.terminate()
            try:
                daemon.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def _answer(self, *arguments: str) -> str:
        try:
            return self.command(*arguments)
        except RuntimeError:
            return ""

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _START_S
        while not condition():
            ended = [name for name in self._daemons if not self._runs(name)]
            if ended or time.monotonic() > deadline:
                raise RuntimeError(f"Slurm did not come so far that {what} (ended: {ended}).\n{self.logs()}")
            time.sleep(0.1)

    def processes(self, variable: str | None = None) -> list[int]:
        """Return the processes with this cluster's configuration (and a variable) in their environment."""
        wanted = {f"SLURM_CONF={self.configuration}".encode(), *([variable.encode()] if variable else [])}
        daemons = {os.getpid(), *(daemon.pid for daemon in self._daemons.values())}
        return [pid for pid in _all_processes() if pid not in daemons and wanted <= _environment(pid)]

    def _processes_of(self, node: str) -> list[int]:
        """Return what runs for jobs of a node, and the slurmstepd above each."""
        below = self.processes(f"SLURMD_NODENAME={node}")
        above = {parent(pid) for pid in below}.intersection(self.processes())
        return [*above, *below]


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _all_processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _environment(pid: int) -> set[bytes]:
    with contextlib.suppress(OSError):
        return set(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    return set()


def parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    return 0


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on just now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return [int(listener.getsockname()[1]) for listener in sockets]


def die_with_parent() -> None:
    """Have the calling process killed when the one that started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def shadow(folder: Path, program: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program of this name before the real one, which it finds in $REAL."""
    folder.mkdir(exist_ok=True)
    real = next(p for p in os.environ["PATH"].split(":") if (Path(p) / program).is_file())
    (folder / program).write_text(f"#!/bin/sh\nREAL={real}/{program}\n{text}\n")
    (folder / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
