"""A course in which a solver program is written, in a process that can be killed.

python synthesis_process.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from sharp.agent.runs import run_course
from sharp.agent.settings import Settings
from sharp.agentbench.cases import load_case

SETTINGS = Settings(
    f"{load_case('heat-rod-two-ends').statements[0].text}\n\nWrite a solver program for it, accurate to 1e-3.",
    synthesis=True,
)

if __name__ == "__main__":
    run_course(Path(sys.argv[1]), SETTINGS)
