"""`python -P -m hpc.serving … -- COMMAND…`: the program of a server job."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from pathlib import Path

from hpc.serving.supervisor import Order, Supervisor


def main(arguments: list[str]) -> int:
    """Serve what the command line says, and return the exit code of the job."""
    logging.basicConfig(
        stream=sys.stdout,
        level=logging.INFO,
        format="%(asctime)s supervisor: %(message)s",
        datefmt="%H:%M:%S",
    )
    return asyncio.run(_run(order_of(arguments)))


def order_of(arguments: list[str]) -> Order:
    """Return the order that a command line gives."""
    parser = argparse.ArgumentParser(prog="python -P -m hpc.serving", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where servers are announced")
    parser.add_argument(
        "--key-file", type=Path, required=True, help="file of the key, readable for you alone"
    )
    parser.add_argument("--model", required=True, help="what the campaign calls the model")
    parser.add_argument("--served-name", required=True, help="what the server calls it")
    parser.add_argument("--address", default="hostname", help="hostname, fqdn, loopback or interface:NAME")
    parser.add_argument("--nodes", type=int, default=1, help="nodes of this server")
    for name, what in _TIMES.items():
        parser.add_argument(f"--{name}", dest=f"{name}_s", type=float, required=True, metavar="S", help=what)
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="the server's, with {host} and {port}")
    values = vars(parser.parse_args(arguments))
    return Order(**{**values, "command": tuple(values["command"])})


_TIMES = {
    "time": "seconds of this job",
    "ready": "within which the server has to answer",
    "watch": "between one-token probes",
    "idle": "without requests, after which it ends",
    "drain": "before the job's end from which on it takes no requests, and in which it finishes those it has",
}


async def _run(order: Order) -> int:
    return await Supervisor(order).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
