"""From a model card and a profile to a server job."""

from __future__ import annotations

from typing import Any

import pytest

from hpc.slurm import ClusterProfile
from sharp.errors import ConfigurationError
from sharp.llm.cards import list_cards, load_card
from sharp.llm.hosting import is_hosted, server_plans


def cluster(gpus: int = 4, **profile: Any) -> ClusterProfile:
    roles = {name: {"time": "12h"} for name in ("controller", "evaluate")}
    values = {"name": "c", "roles": {**roles, "server": {"time": "12h", "gpus": gpus}}, **profile}
    return ClusterProfile.model_validate(values)


def test_models_with_weights_and_without_an_address_are_served_by_jobs() -> None:
    hosted = {name for name in list_cards() if is_hosted(load_card(name))}
    assert {"qwen3-32b", "deepseek-r1", "llama-3.3-70b"} <= hosted
    assert not hosted & {"rule-based", "local", "gpt-4o", "o3"}
    elsewhere = load_card("qwen3-32b").model_copy(update={"base_url": "http://gpu17:8000/v1"})
    assert not is_hosted(elsewhere)


def test_every_shipped_card_becomes_a_plan() -> None:
    plans = server_plans(map(load_card, list_cards()), cluster(gpus=8))
    assert plans["deepseek-r1"].gpus == 8
    for name, plan in plans.items():
        assert plan.model == name
        assert "{port}" in plan.command


def test_the_profile_says_where_weights_and_vllm_are() -> None:
    serving = {"command": "/opt/vllm/bin/vllm serve", "replicas": 3}
    here = cluster(model_paths={"qwen3-32b": "/models/Qwen3 32B"}, serving=serving)
    plan = server_plans([load_card("qwen3-32b")], here)["qwen3-32b"]
    assert plan.command[:3] == ("/opt/vllm/bin/vllm", "serve", "/models/Qwen3 32B")
    assert plan.command[3:5] == ("--served-model-name", "Qwen/Qwen3-32B")
    assert "--reasoning-parser=qwen3" in plan.command
    assert plan.command.count("--generation-config=vllm") == 1
    assert (plan.replicas, plan.nodes, plan.gpus_per_node) == (3, 1, 2)
    assert plan.environment["HF_HUB_OFFLINE"] == "1"
    assert server_plans([load_card("qwen3-32b")], here, replicas=1)["qwen3-32b"].replicas == 1


def test_a_model_larger_than_a_node_takes_several() -> None:
    plan = server_plans([load_card("deepseek-r1")], cluster(gpus=4))["deepseek-r1"]
    assert (plan.nodes, plan.gpus_per_node) == (2, 4)
    assert plan.command[:2] == ("srun", "--nodes=2")
    line = " ".join(plan.command)
    assert "--tensor-parallel-size 4 --pipeline-parallel-size 2 " in line


def test_without_gpus_a_model_is_served_all_the_same() -> None:
    plan = server_plans([load_card("deepseek-r1")], cluster(gpus=0))["deepseek-r1"]
    assert (plan.nodes, plan.gpus) == (1, 0)


def test_gpus_that_no_nodes_can_share_evenly_are_refused() -> None:
    with pytest.raises(
        ConfigurationError, match=r"'deepseek-r1' wants 8 GPUs, which 3 nodes with at most 3 each"
    ):
        server_plans([load_card("deepseek-r1")], cluster(gpus=3))
