"""Have a model behind your own OpenAI-compatible server write a solver, and look at what it cost.

python examples/own_model_server.py http://127.0.0.1:8000/v1 [FOLDER]
"""

import sys
from pathlib import Path

import sharp

if len(sys.argv) < 2:
    sys.exit("name the server: python examples/own_model_server.py http://127.0.0.1:8000/v1")
folder = Path(sys.argv[2] if len(sys.argv) > 2 else "runs") / "own-server"
run = sharp.run(
    "advection",
    folder,
    model="local",
    base_url=sys.argv[1],
    method="codepde",
    genesis={"candidates": 2},
    evaluation={"validation": 2, "test": 2, "coarsen": 8},
)
print(run)
print(
    sharp.compare([run])
    .rows[["roles", "calls", "prompt_tokens", "evaluations", "nrmse"]]
    .to_string(index=False)
)
print("program:", run.solver)
