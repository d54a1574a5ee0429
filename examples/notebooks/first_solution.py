# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---
# %% [markdown]
# # A first solution
# From a specification to numbers with an error. Open this file with Jupytext, or convert it:
# `jupytext --to notebook first_solution.py`.

# %%
import numpy as np

import sharp

solution = sharp.solve("heat-rod-two-ends", accuracy=1e-6)
solution

# %% [markdown]
# The verdict has every check with its limit.

# %%
print(solution.verdict)

# %% [markdown]
# A solution is a function; times come first in the result.

# %%
x = np.linspace(0, 0.4, 5)
print(solution(x, t=[0.0, 600.0, 3600.0]).round(2))
print(solution.quantity("u", at={"x": 0.2, "t": 600}))

# %%
assert solution.verdict.verified
