"""Draw a solution beside the errors of two methods that check one another.

python examples/picture_for_a_page.py [FOLDER]
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import sharp

ROD = Path(__file__).with_name("rod.yaml")
TIMES = [0, 300, 900, 1800, 3600]
RESOLUTIONS = {"chebyshev": (8, 10, 12, 14, 16), "fd": (10, 20, 40, 80, 160)}


def errors(best: sharp.Solution, method: str) -> list[float]:
    """Return the relative errors of a method at its resolutions, against a far better solution."""
    x = np.linspace(0, 0.4, 101)
    exact = best(x, t=TIMES)
    found = []
    for resolution in RESOLUTIONS[method]:
        solution = sharp.solve(ROD, method=method, resolution=resolution, cross_check=False)
        found.append(float(np.linalg.norm(solution(x, t=TIMES) - exact) / np.linalg.norm(exact)))
    return found


def draw(path: Path) -> None:
    """Write the picture, in the format of the file's ending."""
    best = sharp.solve(ROD, accuracy=1e-9, cross_check=False)
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    x = np.linspace(0, 0.4, 201)
    for t, values in zip(TIMES, best(x, t=TIMES), strict=True):
        left.plot(x, values, label=f"t = {t} s")
    left.set(xlabel="x in m", ylabel="temperature in K", title="A steel rod between two temperatures")
    left.legend(frameon=False, fontsize="small")
    for method, sizes in RESOLUTIONS.items():
        right.loglog(sizes, errors(best, method), "o-", label=method)
    right.set(xlabel="resolution", ylabel="relative error", title="Two methods check one another")
    right.legend(frameon=False)
    with mpl.rc_context({"svg.hashsalt": "pde-sharp"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    draw(folder / "rod.svg")
    print("picture:", folder / "rod.svg")
