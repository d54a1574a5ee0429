"""A course in which a solver program is written, in a process that can be killed.

python -m tests.helpers.agent.synthesis_process FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from sharp.agent.sessions import run_session
from sharp.agent.settings import AgentConfig
from sharp.problems.cases import load_case
from sharp.report import write_report
from sharp.runs.synthesis import synthesis_by_runs

SETTINGS = AgentConfig(
    f"{load_case('heat-rod-two-ends').statements[0].text}\n\nWrite a solver program for it, accurate to 1e-3.",
    synthesis=True,
)

if __name__ == "__main__":
    run_session(Path(sys.argv[1]), SETTINGS, synthesis=synthesis_by_runs(write_report))
