"""The tones of a round drum: eigenvalues, checked against the zeros of Bessel functions.

python examples/tones_of_a_drum.py
"""

import numpy as np
from scipy.special import jn_zeros

import sharp

drum = sharp.solve("drum-tones", cross_check=False)
print(drum.problem.title, "-", drum.verdict.status)
exact = sorted(
    zero**2 for order in range(8) for zero in np.repeat(jn_zeros(order, 5), 1 if order == 0 else 2)
)
v, radius = drum.problem.parameters["v"], drum.problem.parameters["R"]
pairs = zip(drum.eigenvalues, exact, strict=False)
largest = max(abs(found * (radius / v) ** 2 / known - 1) for found, known in pairs)
for number, value in enumerate(drum.eigenvalues, 1):
    print(f"tone {number}: frequency ratio {np.sqrt(value / drum.eigenvalues[0]):.4f}")
print(f"largest relative distance from the zeros of Bessel functions: {largest:.0e}")
