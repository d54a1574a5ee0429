"""From model cards to server jobs on a cluster: which models are served by jobs, and by what command."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

from hpc.serving import OFFLINE, ServerPlan, VllmModel, vllm_command
from hpc.slurm import ClusterProfile
from sharp.errors import ConfigurationError
from sharp.llm.cards import ModelCard, Vllm


def is_hosted(card: ModelCard) -> bool:
    """Return whether jobs serve this model: it says how (`vllm`), and nothing says where it is served already."""
    return card.vllm is not None and card.base_url is None


def server_plans(
    cards: Iterable[ModelCard], cluster: ClusterProfile, *, replicas: int | None = None
) -> dict[str, ServerPlan]:
    """Return how each hosted model is served on a cluster, by card; `replicas` None takes the profile's number.

    Raises ConfigurationError where the GPUs of a card cannot be spread over the cluster's nodes.
    """
    return {
        card.name: _plan(card, card.vllm, cluster, replicas or cluster.serving.replicas)
        for card in cards
        if card.vllm is not None and is_hosted(card)
    }


def _plan(card: ModelCard, vllm: Vllm, cluster: ClusterProfile, replicas: int) -> ServerPlan:
    nodes = _nodes(card, vllm, cluster)
    served_name = card.served_name or card.name
    model = VllmModel(
        weights=cluster.model_paths.get(card.name, vllm.weights),
        served_name=served_name,
        dtype=vllm.dtype,
        gpus=vllm.gpus,
        # Layers are shared within a node, whose GPUs are close to each other, and follow one another across nodes.
        tensor_parallel=min(vllm.tensor_parallel, vllm.gpus // nodes),
        arguments=vllm.arguments,
    )
    return ServerPlan(
        model=card.name,
        served_name=served_name,
        command=vllm_command(cluster.serving.command, model, nodes=nodes),
        timing=cluster.serving,
        replicas=replicas,
        nodes=nodes,
        gpus_per_node=vllm.gpus // nodes if cluster.roles.server.gpus else 0,
        environment=OFFLINE,
        remarks=(f"Serves the model {card.name} on {cluster.name}.",),
    )


def _nodes(card: ModelCard, vllm: Vllm, cluster: ClusterProfile) -> int:
    """Return how many nodes a replica takes; a cluster whose servers have no GPUs serves from one."""
    of_a_node = cluster.roles.server.gpus
    nodes = ceil(vllm.gpus / of_a_node) if of_a_node else 1
    if vllm.gpus % nodes:
        raise ConfigurationError(
            f"model {card.name!r} wants {vllm.gpus} GPUs, which {nodes} nodes with at most {of_a_node} each "
            f"(roles.server.gpus of cluster {cluster.name!r}) cannot share evenly: serve it on another cluster, or "
            "with other `gpus` in a card of your own"
        )
    return nodes
