# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---
# %% [markdown]
# # Waves that break
# A hump of traffic becomes a shock. No grid makes the error at a jump small in the mean square, so errors are measured in L1.

# %%
from pathlib import Path

import sharp

Path("traffic.yaml").write_text("""
pde_spec: 1
id: traffic
title: A hump of traffic on a ring
coordinates: {space: [x], time: t}
fields: [u]
equations: [u_t + (u**2/2)_x = 0]
domain: {type: box, bounds: {x: [0, 1]}}
boundary: [{type: periodic, axis: x}]
time: [0, 0.5]
initial: {u: 0.5 + 0.25*sin(2*pi*x)}
accuracy: 1e-2
""")
solution = sharp.solve("traffic.yaml", resolution=200, cross_check=False)
print(solution.method)

# %% [markdown]
# The total is conserved, and the wave is steeper at the end than it was.

# %%
import numpy as np

x = np.linspace(0, 1, 200, endpoint=False)
before, after = solution(x, t=[0.0, 0.5])
print("means:", before.mean().round(4), after.mean().round(4))
steepest = [np.abs(np.gradient(values, x)).max() for values in (before, after)]
print("steepest slopes:", np.round(steepest, 2))

# %%
assert abs(after.mean() - before.mean()) < 2e-3
assert steepest[1] > 2 * steepest[0]
