# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---
# %% [markdown]
# # Whose error is it?
# Data sets have errors of their own. A program that solves the equation better than the data were made scores the data's error, not its own.

# %%
import sharp

PROGRAM = """
import numpy as np
def solver(u0_batch, t_coordinate, beta):
    k = 2 * np.pi * np.fft.rfftfreq(u0_batch.shape[1], 1 / u0_batch.shape[1])
    shift = np.exp(-1j * k * beta * t_coordinate[:, None])
    return np.fft.irfft(np.fft.rfft(u0_batch)[:, None] * shift, u0_batch.shape[1])
"""
problem = sharp.load_problem("advection", coarsen=8)
scores = sharp.evaluate(problem, PROGRAM, samples=2).scores
print(f"against the data      {scores.nrmse:.1e}")
print(f"against the solution  {scores.nrmse_reference:.1e}")
print(f"the data's own error  {scores.data_error:.1e}")

# %% [markdown]
# The first number is nearly the third: it says nothing of the program. The second does.

# %%
assert scores.nrmse_reference < scores.nrmse
