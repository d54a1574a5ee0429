"""Tool chains for the tests of metrics, and strategies that draw some."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st

from sharp.experiments.agent_benchmark.metrics.graphs import ChainGraph, Edge, ToolUse

drawn = settings(max_examples=60, deadline=None, derandomize=True)
"""How often properties are tried: always on the same examples, however busy the machine is."""

TOOLKIT = {
    1: "define_pde",
    2: "define_reference_solution",
    3: "define_domain",
    4: "define_initial_condition",
    5: "define_boundary_condition",
    6: "create_training_data",
    7: "create_network",
    8: "train_model",
    9: "train_model_LBFGS",
    10: "visualize_and_save",
}
"""The toolkit that the paper's authors published, by their numbers."""

ARCS = [(1, 6), (3, 4), (3, 5), (3, 6), (4, 6), (5, 6), (6, 8), (7, 8), (8, 9), (9, 10)]
"""What flows where in their toolkit, for a problem with time, trained with L-BFGS last, without a reference."""


def chain(order: Iterable[int], arcs: Iterable[tuple[int, int]]) -> ChainGraph:
    """Build a chain of the published toolkit; their edges have no ports."""
    return ChainGraph(
        tuple(ToolUse(TOOLKIT[number]) for number in order),
        frozenset(Edge(f"{TOOLKIT[a]}#1", "result", f"{TOOLKIT[b]}#1", "input") for a, b in arcs),
    )


ORDER = [1, 3, 4, 5, 6, 7, 8, 9, 10]
GOLD = chain(ORDER, ARCS)
LINEAR = chain(ORDER, pairwise(ORDER))
REVERSED = chain(ORDER[::-1], [(b, a) for a, b in ARCS])
NO_EDGES = chain(ORDER, [])
NO_INITIAL_CONDITION = chain([n for n in ORDER if n != 4], [arc for arc in ARCS if 4 not in arc])
NO_LBFGS = chain([n for n in ORDER if n != 9], [*(arc for arc in ARCS if 9 not in arc), (8, 10)])


@st.composite
def chains(draw: st.DrawFn, tools: Sequence[str] = "abcde") -> ChainGraph:
    """Draw a chain of one to six steps, in which any step may take any results of earlier ones by two ports."""
    names = draw(st.lists(st.sampled_from(list(tools)), min_size=1, max_size=6))
    uses = [ToolUse(name, names[: place + 1].count(name)) for place, name in enumerate(names)]
    pairs = [(a, b) for place, b in enumerate(uses) for a in uses[:place]]
    joined = draw(st.lists(st.sampled_from(pairs), max_size=10)) if pairs else []
    ports = draw(st.lists(st.sampled_from("pq"), min_size=len(joined), max_size=len(joined)))
    edges = (Edge(a.id, "out", b.id, port) for (a, b), port in zip(joined, ports, strict=True))
    return ChainGraph(tuple(uses), frozenset(edges))
