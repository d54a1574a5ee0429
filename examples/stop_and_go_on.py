"""A budget ends a run; it is resumed with a larger one, and nothing is asked twice.

python examples/stop_and_go_on.py [FOLDER]
"""

import sys
from pathlib import Path

import sharp
from sharp.errors import BudgetExceeded

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs") / "stopped"
few = {"genesis": {"candidates": 2}, "evaluation": {"validation": 2, "test": 2, "coarsen": 8}}
try:
    sharp.run("advection", folder, method="codepde", budget={"calls": 1}, **few)
except BudgetExceeded as stopped:
    print("stopped:", stopped)

run = sharp.resume(folder, budgets={"calls": 100})
print("finished:", run.best, "with error", run.test_error)
print("the record alone gives the same:", sharp.replay(folder).same)
