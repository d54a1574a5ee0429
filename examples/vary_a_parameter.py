"""How long until the middle of a rod has cooled? One question for several materials, as a table.

python examples/vary_a_parameter.py
"""

import tempfile
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

import sharp

DIFFUSIVITY = {"steel": 1.2e-5, "brass": 3.4e-5, "aluminium": 9.7e-5}
LIMIT_K = 330.0
rod = Path(__file__).with_name("rod.yaml").read_text()

print(f"material    verified   middle below {LIMIT_K:.0f} K after")
for material, alpha in DIFFUSIVITY.items():
    with tempfile.TemporaryDirectory() as folder:
        specification = Path(folder) / "rod.yaml"
        specification.write_text(rod.replace("1.2e-5", f"{alpha:g}"))
        solution = sharp.solve(specification)

    def above(t: float, solution: sharp.Solution = solution) -> float:
        """Return how far the middle is above the limit."""
        return float(solution(0.2, t=t)) - LIMIT_K

    times = np.linspace(0, 3600, 361)
    values = solution(0.2, t=times)
    first = int(np.argmax(values < LIMIT_K))
    moment = brentq(above, times[first - 1], times[first])
    print(f"{material:10}  {solution.verdict.verified!s:8}  {moment:8.1f} s")
