"""Accounting for a private cluster: a slurmdbd over a MariaDB server of its own, both in the cluster's folder."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.helpers.cluster.private_slurm import PrivateSlurm, die_with_parent, free_ports

PROGRAMS = ("slurmdbd", "mariadbd", "mariadb-install-db", "sacct", "sacctmgr")
INSTALL = "apt-get install -y --no-install-recommends slurmdbd mariadb-server"

_START_S = 180.0

_SLURM_CONF = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/run/munge.sock
AccountingStorageTRES=gres/gpu
AccountingStoreFlags=job_comment
"""
_SLURMDBD_CONF = """\
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.sock
DbdHost=localhost
DbdPort={port}
SlurmUser={user}
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageLoc=accounting
StorageUser={user}
LogFile={folder}/log/slurmdbd.log
PidFile={folder}/run/slurmdbd.slurmpid
"""


def missing() -> str:
    """Return why there can be no accounting here, or nothing."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    absent = [program for program in PROGRAMS if shutil.which(program, path=path) is None]
    return f"Slurm's accounting is not installed (no {', '.join(absent)}): {INSTALL}" if absent else ""


@contextlib.contextmanager
def accounting(cluster: PrivateSlurm) -> Iterator[None]:
    """Give a cluster that has not been started accounting."""
    folder, (port,) = cluster.folder, free_ports(1)
    values = {"folder": folder, "port": port, "user": getpass.getuser()}
    with cluster.configuration.open("a") as file:
        file.write(_SLURM_CONF.format(**values))
    (folder / "slurmdbd.conf").write_text(_SLURMDBD_CONF.format(**values))
    (folder / "slurmdbd.conf").chmod(0o600)
    cluster.start_munged()
    socket = folder / "run" / "maria.sock"
    with _mariadb(cluster, socket), _daemon(cluster, ["slurmdbd", "-D"], {"MYSQL_UNIX_PORT": str(socket)}):
        log = folder / "log" / "slurmdbd.out"
        _until(lambda: b"started" in log.read_bytes(), log)
        yield


@contextlib.contextmanager
def _mariadb(cluster: PrivateSlurm, socket: Path) -> Iterator[None]:
    data, user = cluster.folder / "maria", f"--user={getpass.getuser()}"
    method = "--auth-root-authentication-method=socket"
    subprocess.run(
        ["mariadb-install-db", f"--datadir={data}", method, user, "--skip-test-db"],
        env=cluster.environment,
        check=True,
        capture_output=True,
    )
    options = ("--no-defaults", f"--datadir={data}", f"--socket={socket}", "--skip-networking", user)
    with _daemon(cluster, ["mariadbd", *options]):
        _until(socket.exists, cluster.folder / "log" / "mariadbd.out")
        yield


@contextlib.contextmanager
def _daemon(
    cluster: PrivateSlurm, argv: Sequence[str], variables: dict[str, str] | None = None
) -> Iterator[None]:
    environment = {**cluster.environment, **(variables or {})}
    path = shutil.which(argv[0], path=environment["PATH"])
    assert path is not None
    with (cluster.folder / "log" / f"{argv[0]}.out").open("wb") as output:
        daemon = subprocess.Popen(
            [path, *argv[1:]], env=environment, stdout=output, stderr=output, preexec_fn=die_with_parent
        )
    try:
        yield
    finally:
        daemon.terminate()
        try:
            daemon.wait(60)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def _until(condition: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"Accounting did not start:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.1)
