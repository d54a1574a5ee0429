# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---
# %% [markdown]
# # Looking into a run
# A small run of the embedded rule-based model, and what its record holds. Nothing here says anything of language models.

# %%
import sharp

run = sharp.run(
    "advection",
    "runs/looked-into",
    method="codepde",
    genesis={"candidates": 2},
    evaluation={"validation": 2, "test": 2, "coarsen": 8, "convergence_check": False},
)
run

# %% [markdown]
# The candidates, which of them was chosen, and its program.

# %%
print("candidates:", ", ".join(run.state.candidates), "- best:", run.best)
print(run.code.splitlines()[0])
for error in (run.test_error, run.test_error_reference, run.data_error):
    print(f"{error:.2e}")

# %% [markdown]
# A record is all that a run is: played again without a model, it is the same.

# %%
assert sharp.replay("runs/looked-into").same
sharp.compare([run]).rows[["method", "calls", "prompt_tokens", "evaluations", "nrmse"]]
