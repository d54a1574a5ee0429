"""An ablation as a sweep: with and without stability analysis, on two problems; here, or on a cluster.

    python examples/cluster_ablation.py                    writes ablation.yaml and shows the plan
    python examples/cluster_ablation.py --yes              carries it out on this machine
    python examples/cluster_ablation.py --cluster NAME     launches it there (add --dry-run to look first)

What follows is handed to `sharp sweep`. The same command goes on after an interruption.
"""

import subprocess
import sys
from pathlib import Path

SWEEP = """
name: ablation
description: Does the analysis of stability help?
base:
  genesis: {candidates: 4}
  evaluation: {validation: 2, test: 2, coarsen: 8}
matrix:
  problem: [advection, burgers]
  analysis.stability: [true, false]
  seed: [0, 1, 2]
"""

if __name__ == "__main__":
    file = Path("ablation.yaml")
    file.write_text(SWEEP)
    options = sys.argv[1:] or ["--dry-run"]
    sys.exit(subprocess.call([sys.executable, "-P", "-m", "sharp.cli", "sweep", str(file), *options]))
