"""What a server needs to know of the node it runs on: under what address it is reached, which ports are free."""

from __future__ import annotations

import fcntl
import random
import re
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hpc.errors import InfrastructureError

WINDOW = 64
"""Ports of one server: the first is the interface's, the last for its nodes to meet, those between its own."""

_LOWEST = 20_000
_SIOCGIFADDR = 0x8915
_TRIES = 200

# A cache on shared storage is a race between jobs; some of these libraries do not survive it.
_CACHES = {
    "VLLM_CACHE_ROOT": "vllm",
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TORCH_EXTENSIONS_DIR": "extensions",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
    "DG_JIT_CACHE_DIR": "deep-gemm",
    "TILELANG_CACHE_DIR": "tilelang",
}


@dataclass(frozen=True)
class Address:
    """Where a server listens (`host`), under what name others reach it, and on which network interface, if on one."""

    host: str
    name: str
    interface: str = ""

    @property
    def inner(self) -> str:
        """Where the server's own processes meet, as these sockets have no key."""
        return "127.0.0.1" if self.host == "0.0.0.0" else self.host  # noqa: S104


def find_address(choice: str) -> Address:
    """Return the address that a profile chooses: hostname, fqdn, loopback or interface:NAME.

    Raises `InfrastructureError` where this node has no such interface.
    """
    if choice == "loopback":
        return Address("127.0.0.1", "127.0.0.1")
    if choice.startswith("interface:"):
        name = choice.removeprefix("interface:")
        address = _interface_address(name)
        return Address(address, address, name)
    return Address("0.0.0.0", socket.gethostname() if choice == "hostname" else socket.getfqdn())  # noqa: S104


def find_ports(host: str, chance: random.Random | None = None) -> int:
    """Return the first of `WINDOW` ports that seem to be free, below those that the system hands out."""
    draw = chance or random.SystemRandom()
    for _ in range(_TRIES):
        first = draw.randrange(_LOWEST, _highest() - WINDOW, WINDOW)
        if all(_is_free(host, port) for port in (first, first + 1, first + WINDOW - 1)):
            return first
    raise InfrastructureError(
        f"no free ports were found between {_LOWEST} and {_highest()} on {socket.gethostname()}; "
        "`ss -tln` lists those in use"
    )


def server_environment(
    given: Mapping[str, str], *, key: str, ports: int, address: Address, scratch: Path, nodes: int
) -> dict[str, str]:
    """Return the environment of a server: key, ports of its own, caches on the node. What is `given` stays."""
    added = {name: str(scratch / folder) for name, folder in _CACHES.items()}
    if address.interface:
        added |= dict.fromkeys(("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"), address.interface)
    if nodes == 1:  # other nodes have other addresses, and other ports may be taken there
        added |= {"VLLM_PORT": str(ports + 1), "VLLM_HOST_IP": address.inner}
    if "SLURM_CPUS_PER_TASK" in given:  # srun does not inherit it
        added["SRUN_CPUS_PER_TASK"] = given["SLURM_CPUS_PER_TASK"]
    return {**added, **given, "VLLM_API_KEY": key}


def _interface_address(name: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            answer = fcntl.ioctl(any_socket.fileno(), _SIOCGIFADDR, struct.pack("256s", name.encode()))
        except OSError:
            known = ", ".join(name for _, name in socket.if_nameindex())
            raise InfrastructureError(
                f"{socket.gethostname()} has no IPv4 address on a network interface {name!r}; it has the interfaces "
                f"{known}. Correct `serving.address` in the cluster profile."
            ) from None
    return socket.inet_ntoa(answer[20:24])


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as listener, suppress(OSError):
        listener.bind((host, port))
        return True
    return False


def _highest() -> int:
    text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
    lowest = int(re.split(r"\s+", text)[0])
    return lowest if lowest > _LOWEST + 1000 else 65_535
