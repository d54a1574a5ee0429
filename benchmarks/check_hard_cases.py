"""What is known of the hard cases, compared with what is found in other ways (`sharp.experiments.hard_cases.checks`).

python benchmarks/check_hard_cases.py [--case ID …]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from measuring import command_line

from sharp.experiments.hard_cases.checks import faults
from sharp.experiments.hard_cases.families import list_hard_cases, load_hard_case


def main(case: Sequence[str] = []) -> None:
    """Print what does not agree; the exit code is 1 where anything does not."""
    names = case or list(list_hard_cases())
    wrong = {name: found for name in names if (found := list(faults(load_hard_case(name))))}
    for name, found in wrong.items():
        print(f"{name}: {'; '.join(found)}")
    print(f"{len(names)} cases, {len(wrong)} with a reference that does not agree")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    command_line(main)
