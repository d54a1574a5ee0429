"""Solve a specification, read off values with their error, and write a data set and a picture.

python examples/solve_a_problem.py [FOLDER]
"""

import sys
from pathlib import Path

import sharp

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
solution = sharp.solve(Path(__file__).with_name("rod.yaml"), accuracy=1e-8)
print(solution.verdict)
print("temperature in the middle after 10 minutes:", float(solution(0.2, t=600.0)), "K")

solution.plot().savefig(folder / "rod.png")
data = solution.to_xarray(t=[0.0, 600.0, 3600.0])
print("mean temperatures:", data["u"].mean("x").values)
