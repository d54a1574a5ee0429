"""Tool-chain graphs: made from steps, matched with accepted ones, and what of them is right."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharp.errors import DataError
from sharp.experiments.agent_benchmark.metrics.graphs import (
    ChainGraph,
    Edge,
    ExecutedToolCall,
    Overlap,
    ToolUse,
    from_steps,
    matched,
    overlap,
    references_in,
)
from sharp.experiments.agent_benchmark.metrics.structure import score_chain
from tests.helpers.experiments.metrics_chains import (
    ARCS,
    GOLD,
    NO_INITIAL_CONDITION,
    ORDER,
    TOOLKIT,
    chain,
    chains,
    drawn,
)


def two_conditions(first: str, second: str) -> list[ExecutedToolCall]:
    """Steps with two boundary conditions, of which the data name the one and the other."""
    return [
        ExecutedToolCall("s1", "define_domain", {"bounds": [0, 1]}),
        ExecutedToolCall(
            "s2", "define_boundary_condition", {"geometry": {"ref": "s1.geometry"}, "value": "0"}
        ),
        ExecutedToolCall(
            "s3", "define_boundary_condition", {"geometry": {"ref": "s1.geometry"}, "value": "1"}
        ),
        ExecutedToolCall(
            "s4", "create_data", {first: {"ref": "s2.condition"}, second: {"ref": "s3.condition"}}
        ),
    ]


def test_steps_become_numbered_uses_and_references_become_edges_with_ports() -> None:
    graph = from_steps(two_conditions("left", "right"), optional={"s3"})
    assert graph.order == (
        "define_domain#1",
        "define_boundary_condition#1",
        "define_boundary_condition#2",
        "create_data#1",
    )
    first, second = "define_boundary_condition#1", "define_boundary_condition#2"
    assert graph.edges == {
        Edge("define_domain#1", "geometry", first, "geometry"),
        Edge("define_domain#1", "geometry", second, "geometry"),
        Edge(first, "condition", "create_data#1", "left"),
        Edge(second, "condition", "create_data#1", "right"),
    }
    assert [node.id for node in graph.nodes if node.optional] == ["define_boundary_condition#2"]


def test_references_are_found_however_deep_and_texts_that_mention_one_are_none() -> None:
    value = {"a": [{"ref": "s1.x"}, {"b": {"ref": "s2.y"}}], "c": "see s3.z", "d": {"ref": "s4.w", "more": 1}}
    assert list(references_in(value)) == ["s1.x", "s2.y"]


@pytest.mark.parametrize("target", ["s9.geometry", "s2.condition", "s3.condition"])
def test_a_reference_to_no_earlier_step_is_an_error_that_names_it(target: str) -> None:
    steps = [
        ExecutedToolCall("s1", "define_domain", {}),
        ExecutedToolCall("s2", "define_boundary_condition", {"geometry": {"ref": target}}),
        ExecutedToolCall("s3", "define_boundary_condition", {}),
    ]
    with pytest.raises(DataError, match=rf"step 's2', parameter 'geometry': '{target}' is no result .* s1"):
        from_steps(steps)


def test_two_steps_with_one_id_are_an_error() -> None:
    with pytest.raises(DataError, match="'s1': another step"):
        from_steps([ExecutedToolCall("s1", "a", {}), ExecutedToolCall("s1", "b", {})])


def test_precision_recall_and_f1_are_shares_of_what_was_found_and_expected() -> None:
    overlap = Overlap(common=6, found=8, expected=12)
    assert (overlap.precision, overlap.recall) == (0.75, 0.5)
    assert overlap.f1 == pytest.approx(2 * 0.75 * 0.5 / (0.75 + 0.5))


def test_nothing_found_where_nothing_is_expected_is_right_and_anything_found_there_is_wrong() -> None:
    assert (Overlap(0, 0, 0).precision, Overlap(0, 0, 0).recall, Overlap(0, 0, 0).f1) == (1, 1, 1)
    assert (Overlap(0, 2, 0).precision, Overlap(0, 2, 0).recall, Overlap(0, 2, 0).f1) == (0, 0, 0)
    assert (Overlap(0, 0, 2).precision, Overlap(0, 0, 2).recall, Overlap(0, 0, 2).f1) == (0, 0, 0)


def test_an_extra_node_with_two_edges_costs_precision_and_no_recall() -> None:
    extra = chain([1, 2, *ORDER[1:]], [*ARCS, (2, 6), (1, 2)])
    assert (overlap(extra.ids, GOLD.ids).recall, overlap(extra.edges, GOLD.edges).recall) == (1, 1)
    assert overlap(extra.ids, GOLD.ids).precision == pytest.approx(9 / 10)
    assert overlap(extra.edges, GOLD.edges).precision == pytest.approx(10 / 12)


def test_a_second_use_of_a_tool_that_is_needed_once_is_superfluous() -> None:
    twice = ChainGraph((*GOLD.nodes, ToolUse("train_model", 2)), GOLD.edges)
    found, gold = matched(twice, GOLD)
    assert overlap(found.ids, gold.ids) == Overlap(9, 10, 9)


def test_a_wrong_port_is_a_wrong_edge_but_no_wrong_arc() -> None:
    edge = Edge("a#1", "mean", "b#1", "value")
    wrong = replace(edge, source_port="variance")
    one, other = (ChainGraph((ToolUse("a"), ToolUse("b")), frozenset([each])) for each in (wrong, edge))
    assert overlap(one.edges, other.edges).f1 == 0
    assert overlap(one.arcs, other.arcs).f1 == 1


def test_repeated_uses_are_numbered_as_they_fit_best() -> None:
    gold, other = (from_steps(two_conditions(*ports)) for ports in (("left", "right"), ("right", "left")))
    assert overlap(other.edges, gold.edges).f1 == 0.5
    found, same = matched(other, gold)
    assert overlap(found.edges, same.edges).f1 == 1
    assert found.order.index("define_boundary_condition#2") < found.order.index("define_boundary_condition#1")


def test_one_use_of_two_is_compared_with_that_one_it_fits() -> None:
    steps = two_conditions("left", "right")
    gold = from_steps(steps)
    only_right = from_steps(
        [steps[0], steps[2], ExecutedToolCall("s4", "create_data", {"right": {"ref": "s3.condition"}})]
    )
    found, _ = matched(only_right, gold)
    assert overlap(found.edges, gold.edges) == Overlap(2, 2, 4)


def test_a_tool_used_again_and_again_is_scored_without_trying_all_numberings() -> None:
    """Twelve uses have 479,001,600 numberings."""
    uses = [ToolUse("b", use) for use in range(1, 13)]
    edges = frozenset(Edge("a#1", "out", use.id, "in") for use in uses)
    stuck = ChainGraph((ToolUse("a"), *uses), edges)
    assert score_chain(stuck, stuck)["edge F1"] == 1
    only = stuck.without({use.id for use in uses[1:]})
    assert score_chain(stuck, only)["edge precision"] == pytest.approx(1 / 12)


def test_what_is_optional_counts_neither_when_present_nor_when_absent() -> None:
    nodes = tuple(replace(node, optional=node.tool == "train_model_LBFGS") for node in GOLD.nodes)
    gold = replace(GOLD, nodes=nodes)
    without = GOLD.without({"train_model_LBFGS#1"})
    assert matched(GOLD, gold) == matched(without, gold)
    for executed in (GOLD, without):
        found, essential = matched(executed, gold)
        assert (overlap(found.ids, essential.ids).f1, overlap(found.edges, essential.edges).f1) == (1, 1)


def test_all_figures_of_a_score_by_hand() -> None:
    figures = score_chain(NO_INITIAL_CONDITION, GOLD)
    assert (figures["node precision"], figures["node recall"]) == (1, pytest.approx(8 / 9))
    assert (figures["edge precision"], figures["edge recall"]) == (1, pytest.approx(8 / 10))
    assert figures["node F1"] == pytest.approx(16 / 17)
    assert figures["edge recall (eq. 5)"] == pytest.approx(8 / 10)
    assert figures["completeness"] == pytest.approx((16 / 17 + 16 / 18 + figures["structure"]) / 3)


@drawn
@given(chains())
def test_a_chain_has_every_figure_at_its_best_against_itself(graph: ChainGraph) -> None:
    figures = score_chain(graph, graph)
    assert list(figures.values()) == pytest.approx([1] * len(figures))


@drawn
@given(chains(), chains())
def test_all_figures_are_from_0_to_1(one: ChainGraph, other: ChainGraph) -> None:
    assert all(0 <= value <= 1 for value in score_chain(one, other).values())


@drawn
@given(chains(), chains(tools="vwxyz"))
def test_chains_without_a_common_tool_have_nothing_but_what_eq_7_and_10_give_them(
    one: ChainGraph, other: ChainGraph
) -> None:
    figures = score_chain(one, other)
    assert figures.pop("PageRank (eq. 7)") == pytest.approx(0.167, abs=5e-4)
    assert figures.pop("embedding (eq. 10)") == pytest.approx(0.5)
    edges = [name for name in figures if name.startswith("edge")]
    if not (one.edges or other.edges):
        assert [figures.pop(name) for name in edges] == [1] * len(edges)
        figures.pop("completeness")
    assert list(figures.values()) == pytest.approx([0] * len(figures), abs=1e-7)


@drawn
@given(chains(), st.randoms(use_true_random=False))
def test_the_numbers_of_uses_do_not_matter(graph: ChainGraph, random: Random) -> None:
    uses: dict[str, int] = {}
    for tool in {node.tool for node in graph.nodes}:
        ids = [node.id for node in graph.nodes if node.tool == tool]
        numbers = list(range(1, len(ids) + 1))
        random.shuffle(numbers)
        uses |= dict(zip(ids, numbers, strict=True))
    found, gold = matched(graph.renumbered(uses), graph)
    assert (overlap(found.ids, gold.ids).f1, overlap(found.edges, gold.edges).f1) == (1, 1)


def test_the_published_gold_chain_has_nine_tools_and_ten_edges() -> None:
    assert (len(GOLD.nodes), len(GOLD.edges), len(TOOLKIT)) == (9, 10, 10)
