"""The command line of vLLM for a model: pure functions, nothing of vLLM is imported."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

# Nothing is fetched from a hub and nothing reported: compute nodes often have no way out, and would wait for one.
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}

# Sampling is ours alone, not that of the model's files; and usage tells how much of a prompt was in the cache.
_DEFAULTS = ("--generation-config=vllm", "--enable-prompt-tokens-details")


@dataclass(frozen=True)
class VllmModel:
    """What vLLM has to know of a model. `gpus` of one replica, of which `tensor_parallel` share each layer."""

    weights: str
    served_name: str
    dtype: str
    gpus: int
    tensor_parallel: int
    arguments: tuple[str, ...] = ()


def vllm_command(program: str, model: VllmModel, *, nodes: int = 1) -> tuple[str, ...]:
    """Return the command that serves a model on so many nodes; without Ray, by one task on each.

    What is chosen on the node stands as in `ServerPlan.command`. The key is no part of it.
    """
    pipeline = model.gpus // model.tensor_parallel
    own = {argument.partition("=")[0] for argument in model.arguments}
    line = (
        *shlex.split(program),
        model.weights,
        *("--served-model-name", model.served_name),
        *("--host", "{host}", "--port", "{port}"),
        *("--dtype", model.dtype),
        *("--tensor-parallel-size", str(model.tensor_parallel)),
        *(("--pipeline-parallel-size", str(pipeline)) if pipeline > 1 else ()),
        *(flag for flag in _DEFAULTS if flag.partition("=")[0] not in own),
        *model.arguments,
    )
    return line if nodes == 1 else _on_nodes(line, nodes)


def _on_nodes(line: Sequence[str], nodes: int) -> tuple[str, ...]:
    srun = ("srun", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1")
    together = (
        *("--nnodes", str(nodes), "--master-addr", "{name}", "--master-port", "{meeting_port}"),
        *("--distributed-executor-backend", "mp"),
    )
    # When the first node's server goes, the others would wait for it for ever.
    rank = ("{python}", "-P", "-m", "hpc.serving.process_guard", "--rank")
    return (*srun, "--kill-on-bad-exit=1", "--mpi=none", *rank, *line, *together)
