"""The checks as a job runs them: `python -P -m hpc.doctor ORDER REPORT`, both JSON files."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from hpc.doctor.machine import CheckRequest, examine, host_info
from hpc.files import write_atomic


def main() -> None:
    """Carry out an order and write the report of this machine."""
    order, report = map(Path, sys.argv[1:])
    start = host_info()
    findings = [asdict(finding) for finding in examine(CheckRequest(**json.loads(order.read_text())))]
    write_atomic(report, json.dumps({**start, "findings": findings}).encode())


if __name__ == "__main__":
    main()
