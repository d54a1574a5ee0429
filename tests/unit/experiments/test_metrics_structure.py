"""Structure of tool chains, against values worked out by hand and those of the published toolkit's gold chain.

The gold chain has the nine tools of a problem with time and without a reference solution, and the edges of the
published toolkit (`metrics_chains.ARCS`); the others are changes of it.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from scipy.spatial.distance import jensenshannon

from sharp.errors import DataError
from sharp.experiments.agent_benchmark.metrics.graphs import ChainGraph, Edge, ToolUse
from sharp.experiments.agent_benchmark.metrics.structure import (
    ConstantBaseline,
    connectivity,
    constant_baselines,
    critical_path,
    critical_path_similarity,
    edit_distance,
    embedding,
    embedding_cosine,
    execution_order,
    exponential_rescale,
    logistic_rescale,
    pagerank,
    pagerank_similarity,
    reachability,
    role,
    role_agreement,
    score_chain,
    structure,
)
from tests.helpers.experiments.metrics_chains import (
    GOLD,
    LINEAR,
    NO_EDGES,
    NO_INITIAL_CONDITION,
    NO_LBFGS,
    ORDER,
    REVERSED,
    TOOLKIT,
    chain,
    chains,
    drawn,
)

BASES: tuple[tuple[Literal["2", "e"], float], ...] = (("2", 2.0), ("e", math.e))
RENAMED = ChainGraph(
    tuple(ToolUse(f"other_{node.tool}") for node in GOLD.nodes),
    frozenset(Edge(f"other_{e.source}", "result", f"other_{e.target}", "input") for e in GOLD.edges),
)


@pytest.mark.parametrize(
    ("executed", "expected"),
    [
        (GOLD, (1, 1, 1, 1)),
        (LINEAR, (0.75, 0.56, 0.80, 1)),
        (REVERSED, (0, 0.33, 0.17, 0)),
        (NO_INITIAL_CONDITION, (1, 0.89, 1, 0.81)),
        (NO_LBFGS, (1, 0.89, 0.91, 0.70)),
        (NO_EDGES, (0, 0, 0, 1)),
        (RENAMED, (0, 0, 0, 0)),
    ],
)
def test_structure_against_the_published_gold_chain(
    executed: ChainGraph, expected: tuple[float, ...]
) -> None:
    found = structure(executed, GOLD)
    assert tuple(found.values()) == pytest.approx(expected, abs=0.0051)
    assert score_chain(executed, GOLD)["structure"] == pytest.approx(sum(found.values()) / 4)


@pytest.mark.parametrize(
    ("executed", "expected"), [(GOLD, 1), (RENAMED, 0), (REVERSED, 0.68), (LINEAR, 0.91)]
)
def test_embeddings_of_chains_share_one_space(executed: ChainGraph, expected: float) -> None:
    assert embedding_cosine(executed, GOLD) == pytest.approx(expected, abs=0.0051)


@pytest.mark.parametrize(
    ("executed", "expected"), [(NO_EDGES, 0.69), (REVERSED, 0.63), (GOLD, 1), (RENAMED, 0)]
)
def test_pagerank_similarity_is_high_without_any_edge(executed: ChainGraph, expected: float) -> None:
    assert pagerank_similarity(executed, GOLD) == pytest.approx(expected, abs=0.0051)


def test_pagerank_of_two_nodes_by_hand() -> None:
    """With rank r of a and 1 - r of b = a's child: r = 0.15/2 + 0.85*(1 - r)/2, as b leads anywhere."""
    r = 0.5 / (1 + 0.85 / 2)
    assert pagerank(chain([6, 8], [(6, 8)])) == pytest.approx(
        {"create_training_data#1": r, "train_model#1": 1 - r}
    )


@drawn
@given(chains())
def test_pagerank_is_the_limit_of_the_walk_that_defines_it(graph: ChainGraph) -> None:
    ranks = dict.fromkeys(graph.order, 1 / len(graph.order))
    for _ in range(200):
        idle = sum(rank for name, rank in ranks.items() if not graph.digraph.out_degree(name))
        ranks = {
            name: (0.15 + 0.85 * idle) / len(graph.order)
            + 0.85
            * sum(
                ranks[parent] / graph.digraph.out_degree(parent)
                for parent in graph.digraph.predecessors(name)
            )
            for name in graph.order
        }
    assert pagerank(graph) == pytest.approx(ranks, abs=1e-10)
    assert sum(ranks.values()) == pytest.approx(1)


@drawn
@given(chains(), chains())
def test_pagerank_similarity_is_that_of_scipys_jensen_shannon_distance(
    one: ChainGraph, other: ChainGraph
) -> None:
    names = sorted(one.ids | other.ids)
    p, q = ([pagerank(graph).get(name, 0.0) for name in names] for graph in (one, other))
    for base, number in BASES:
        expected = 1 - float(np.nan_to_num(jensenshannon(p, q, base=number)))
        assert pagerank_similarity(one, other, base) == pytest.approx(expected, abs=1e-7)


def test_with_base_e_chains_without_a_common_tool_are_still_similar() -> None:
    assert pagerank_similarity(RENAMED, GOLD, base="e") == pytest.approx(1 - math.sqrt(math.log(2)))


def test_the_edit_distance_counts_insertions_and_deletions_and_no_renaming() -> None:
    assert edit_distance(GOLD, GOLD) == 0
    assert edit_distance(RENAMED, GOLD) == 1
    assert edit_distance(NO_LBFGS, GOLD) == pytest.approx(4 / (8 + 9 + 9 + 10))  # a node, 8-9, 9-10, 8-10
    assert score_chain(RENAMED, GOLD)["edit"] == pytest.approx(0)


@pytest.mark.parametrize(
    ("distance", "similarity"),
    [(0, 1), (0.05, 0.89), (0.1, 0.79), (0.24, 0.56), (0.25, 0.55), (0.5, 0.27), (0.75, 0.10), (1, 0)],
)
def test_similarity_falls_with_edit_distance_as_in_eq_9(distance: float, similarity: float) -> None:
    assert exponential_rescale(distance) == pytest.approx(similarity, abs=0.0055)


def test_eq_10_is_almost_linear_and_gives_a_half_for_nothing_in_common() -> None:
    assert [logistic_rescale(s) for s in (-1, 0, 1)] == pytest.approx([0, 0.5, 1])
    largest = max(abs(logistic_rescale(s) - (s + 1) / 2) for s in np.linspace(-1, 1, 2001))
    assert largest == pytest.approx(0.015, abs=5e-4)
    assert logistic_rescale(0.5, steepness=5) > 0.9


def test_ancestors_are_those_of_the_published_gold_chain() -> None:
    assert len(reachability(GOLD)) == 27
    assert len(reachability(LINEAR)) == 36
    assert not reachability(NO_EDGES)


def test_roles_follow_from_the_arcs_in_and_out() -> None:
    arcs = ["ab", "bc", "bd", "ce", "de", "he", "ef", "eg", "fg"]
    edges = {Edge(f"{a}#1", "out", f"{b}#1", "p") for a, b in arcs} | {Edge("a#1", "out", "b#1", "q")}
    graph = ChainGraph(tuple(map(ToolUse, "abcdefghi")), frozenset(edges))
    roles = {name: role(graph, f"{name}#1") for name in "abcdefghi"}
    assert roles == {
        "a": "source",  # two ports, one arc
        "b": "fork",
        "c": "relay",
        "d": "relay",
        "e": "hub",
        "f": "relay",
        "g": "sink",
        "h": "source",
        "i": "isolated",
    }
    assert role(GOLD, "create_training_data#1") == "merge"


def test_the_critical_path_is_the_longest_and_of_equals_the_first_in_the_alphabet() -> None:
    assert critical_path(GOLD) == tuple(f"{TOOLKIT[number]}#1" for number in (3, 5, 6, 8, 9, 10))
    assert critical_path(NO_EDGES) == ()


def test_single_tools_have_all_of_the_structure_there_is() -> None:
    single = chain([1], [])
    assert set(structure(single, single).values()) == {1}
    assert set(structure(chain([2], []), single).values()) == {0}


def test_a_chain_in_another_order_that_respects_what_flows_loses_nothing() -> None:
    other = chain(
        [7, 3, 5, 4, 1, 6, 8, 9, 10],
        [(1, 6), (3, 4), (3, 5), (3, 6), (4, 6), (5, 6), (6, 8), (7, 8), (8, 9), (9, 10)],
    )
    assert execution_order(other, GOLD) == 1


def test_nothing_is_similar_to_an_empty_chain() -> None:
    empty = ChainGraph(())
    for other in (GOLD, empty):
        assert edit_distance(empty, other) == 1
        for measure in (pagerank_similarity, embedding_cosine, connectivity, role_agreement):
            assert measure(empty, other) == pytest.approx(0)


def test_a_node_of_the_embedding_is_its_rank_times_its_walks() -> None:
    """a -> b: walks from a are at a, and then at b for one of four steps; b stays where it is."""
    graph = chain([6, 8], [(6, 8)])
    a, b = pagerank(graph).values()
    expected = [a, a / 4, 0, 0, b, 0, 0, 0, 0]
    assert embedding(graph, [*graph.order, "absent#1"]) == pytest.approx(np.array(expected))


@drawn
@given(chains(), chains())
def test_a_larger_vocabulary_changes_no_cosine(one: ChainGraph, other: ChainGraph) -> None:
    vocabulary = [*sorted(one.ids | other.ids), "x#1", "y#1"]
    first, second = (embedding(graph, vocabulary) for graph in (one, other))
    cosine = first @ second / (np.linalg.norm(first) * np.linalg.norm(second))
    assert embedding_cosine(one, other) == pytest.approx(float(cosine))


@drawn
@given(chains(), chains())
def test_what_does_not_ask_for_an_order_is_symmetric(one: ChainGraph, other: ChainGraph) -> None:
    for measure in (
        pagerank_similarity,
        edit_distance,
        connectivity,
        role_agreement,
        critical_path_similarity,
        embedding_cosine,
    ):
        assert measure(one, other) == pytest.approx(measure(other, one))


@drawn
@given(chains(), chains(), chains())
def test_the_edit_distance_without_its_scale_is_a_metric(
    one: ChainGraph, other: ChainGraph, third: ChainGraph
) -> None:
    def edits(a: ChainGraph, b: ChainGraph) -> float:
        return edit_distance(a, b) * sum(len(g.nodes) + len(g.edges) for g in (a, b))

    assert edits(one, third) <= edits(one, other) + edits(other, third) + 1e-9
    assert (edits(one, other) < 0.5) == (one.ids == other.ids and one.edges == other.edges)


def test_the_order_of_the_published_chain_respects_its_own_edges() -> None:
    assert execution_order(GOLD, GOLD) == 1
    assert execution_order(chain(ORDER[::-1], []), GOLD) == 0


def floors(cases: dict[str, ChainGraph]) -> dict[str, ConstantBaseline]:
    return constant_baselines(cases, lambda template, case: score_chain(cases[template], cases[case]))


def test_the_floor_is_the_mean_over_all_pairs_of_different_cases() -> None:
    cases = {"heat": GOLD, "poisson": NO_INITIAL_CONDITION, "wave": NO_LBFGS}
    expected = [
        score_chain(cases[template], cases[case])["edge F1"]
        for template in cases
        for case in cases
        if case != template
    ]
    floor = floors(cases)["edge F1"]
    assert len(expected) == 6
    assert floor.mean == pytest.approx(sum(expected) / 6)
    assert floor.template == "heat"
    assert floor.best == pytest.approx((16 / 18 + 2 * 8 / 19) / 2)


def test_the_best_template_is_at_least_as_good_as_the_mean() -> None:
    cases = {"a": GOLD, "b": LINEAR, "c": NO_LBFGS, "d": GOLD}
    for floor in floors(cases).values():
        assert floor.best >= floor.mean - 1e-12


def test_where_all_cases_have_one_chain_the_floor_is_the_ceiling() -> None:
    found = floors(dict.fromkeys("abcd", GOLD))
    assert [floor.mean for floor in found.values()] == pytest.approx([1] * len(found))
    assert [floor.best for floor in found.values()] == pytest.approx([1] * len(found))


def test_where_cases_have_nothing_in_common_a_fixed_chain_scores_nothing() -> None:
    found = floors({name: ChainGraph((ToolUse(name),)) for name in "abc"})
    assert (found["node F1"].mean, found["structure"].best) == (0, 0)


def test_a_floor_takes_two_cases() -> None:
    with pytest.raises(DataError, match="at least two cases, found 1"):
        floors({"heat": GOLD})
