"""Tool-chain graphs: which tools ran, in which order, and what flowed from one to another.

A node is one use of a tool, `define_boundary_condition#2` being the second. An edge goes from a result of one use to
a parameter of another: `define_domain#1.geometry -> create_training_data#1.geomtime`. Numbers of uses are arbitrary
(two boundary conditions may be stated in either order), so before two graphs are compared the uses of the executed one
are numbered like those of the gold one, in the way that makes them agree most (`matched`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, permutations, product
from typing import Any

import networkx as nx

from sharp.error_messages import valid_values
from sharp.errors import DataError

MAX_RENUMBERINGS = 720
"""Ways to number repeated uses that are tried; six uses of one tool have as many."""


@dataclass(frozen=True)
class ToolUse:
    """The `use`-th use of a tool, counted from 1. An `optional` one counts neither when present nor when absent."""

    tool: str
    use: int = 1
    optional: bool = False

    @property
    def id(self) -> str:
        """The name of the node, as `train_model#1`."""
        return f"{self.tool}#{self.use}"


@dataclass(frozen=True)
class Edge:
    """A result (`source_port`) of one node that is a parameter (`target_port`) of another; both by their ids."""

    source: str
    source_port: str
    target: str
    target_port: str


@dataclass(frozen=True)
class ChainGraph:
    """A tool chain: its nodes in the order of execution, and its edges, which form no cycle."""

    nodes: tuple[ToolUse, ...]
    edges: frozenset[Edge] = frozenset()

    @cached_property
    def ids(self) -> frozenset[str]:
        """The ids of all nodes."""
        return frozenset(self.order)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The ids in the order of execution."""
        return tuple(node.id for node in self.nodes)

    @cached_property
    def arcs(self) -> frozenset[tuple[str, str]]:
        """Pairs of nodes that an edge joins, whatever its ports."""
        return frozenset((edge.source, edge.target) for edge in self.edges)

    @cached_property
    def digraph(self) -> nx.DiGraph:
        """The nodes by their ids and the arcs, in an order that does not depend on the hashes of texts."""
        graph = nx.DiGraph()
        graph.add_nodes_from(self.order)
        graph.add_edges_from(sorted(self.arcs))
        return graph

    @cached_property
    def essential(self) -> ChainGraph:
        """The graph without its optional nodes and without their edges."""
        return self.without({node.id for node in self.nodes if node.optional})

    def without(self, ids: Collection[str]) -> ChainGraph:
        """Return the graph without some nodes and without every edge at one of them."""
        return ChainGraph(
            tuple(node for node in self.nodes if node.id not in ids),
            frozenset(edge for edge in self.edges if edge.source not in ids and edge.target not in ids),
        )

    def renumbered(self, uses: Mapping[str, int]) -> ChainGraph:
        """Return the graph with another number of use for every id."""
        nodes = {node.id: replace(node, use=uses[node.id]) for node in self.nodes}
        edges = (
            replace(edge, source=nodes[edge.source].id, target=nodes[edge.target].id) for edge in self.edges
        )
        return ChainGraph(tuple(nodes.values()), frozenset(edges))


@dataclass(frozen=True)
class ExecutedToolCall:
    """One executed step: a parameter, or anything within it, may be a reference `{"ref": "<step id>.<result>"}`."""

    id: str
    tool: str
    parameters: Mapping[str, Any]


def from_steps(steps: Iterable[ExecutedToolCall], optional: Collection[str] = ()) -> ChainGraph:
    """Return the graph of steps in the order of their execution; those with an id in `optional` are optional.

    A step that was run again stands here once. Raises `DataError` where a step has the id of another, or refers to
    anything but a result of an earlier step: what has run has had its parameters.
    """
    nodes: dict[str, ToolUse] = {}
    edges: set[Edge] = set()
    uses: Counter[str] = Counter()
    for step in steps:
        if step.id in nodes:
            raise DataError(f"step '{step.id}': another step has this id")
        uses[step.tool] += 1
        node = ToolUse(step.tool, uses[step.tool], step.id in optional)
        found = ((name, ref) for name, value in step.parameters.items() for ref in references_in(value))
        for parameter, reference in found:
            source, _, port = reference.partition(".")
            if source not in nodes:
                raise DataError(
                    f"step '{step.id}', parameter '{parameter}': '{reference}' is no result of an earlier step; "
                    f"{valid_values('steps', source, nodes)}"
                )
            edges.add(Edge(nodes[source].id, port, node.id, parameter))
        nodes[step.id] = node
    return ChainGraph(tuple(nodes.values()), frozenset(edges))


def references_in(value: Any) -> Iterator[str]:
    """Yield the targets of all references in a value, however deep in lists and mappings."""
    match value:
        case {"ref": str(target), **rest} if not rest:
            yield target
        case Mapping():
            for part in value.values():
                yield from references_in(part)
        case list() | tuple():
            for part in value:
                yield from references_in(part)


@dataclass(frozen=True)
class Overlap:
    """How many things two sets have in `common`, of those `found` and those `expected`.

    What is divided by nothing is 1 where both sets are empty, and 0 where one is.
    """

    common: int
    found: int
    expected: int

    @property
    def precision(self) -> float:
        """The share of what was found that was expected: what is superfluous costs."""
        return self._share(self.common, self.found)

    @property
    def recall(self) -> float:
        """The share of what was expected that was found; alone it is eq. 5 of the paper."""
        return self._share(self.common, self.expected)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return self._share(2 * self.common, self.found + self.expected)

    def _share(self, part: int, whole: int) -> float:
        return part / whole if whole else float(self.found == self.expected)


def overlap(found: Collection[Any], expected: Collection[Any]) -> Overlap:
    """Compare two sets: the ids of graphs (a second use of a tool that needs one is superfluous), edges, or arcs."""
    return Overlap(len(frozenset(found) & frozenset(expected)), len(found), len(expected))


def matched(executed: ChainGraph, gold: ChainGraph) -> tuple[ChainGraph, ChainGraph]:
    """Return both graphs as they are compared: uses numbered alike, and without what is optional in the gold one.

    Of equally good numberings it is the first, the executed one before all.
    """
    executed = executed.renumbered(best_renumberings(executed, gold)[0])
    return executed.without(gold.ids - gold.essential.ids), gold.essential


def best_renumberings(executed: ChainGraph, gold: ChainGraph) -> list[dict[str, int]]:
    """Return the numbers of use, by id, with which the executed graph has most nodes and edges of the gold one.

    All that are equally good; at most `MAX_RENUMBERINGS` are tried.
    """
    target = gold.essential

    def agreement(uses: Mapping[str, int]) -> int:
        ids = {node.id: f"{node.tool}#{uses[node.id]}" for node in executed.nodes}
        edges = {Edge(ids[e.source], e.source_port, ids[e.target], e.target_port) for e in executed.edges}
        return len(target.ids.intersection(ids.values())) + len(target.edges & edges)

    tried = [(agreement(uses), uses) for uses in islice(_renumberings(executed, gold), MAX_RENUMBERINGS)]
    most = max(agreed for agreed, _ in tried)
    return [uses for agreed, uses in tried if agreed == most]


def _renumberings(executed: ChainGraph, gold: ChainGraph) -> Iterator[dict[str, int]]:
    """Yield all numberings by id; a tool's uses may take any numbers up to the larger count of the two graphs."""
    found, expected = (Counter(node.tool for node in graph.nodes) for graph in (executed, gold))
    numbers = [permutations(range(1, max(found[tool], expected[tool]) + 1), found[tool]) for tool in found]
    ways = [islice(each, MAX_RENUMBERINGS) for each in numbers]  # product takes all of each into memory
    ids = [node.id for tool in found for node in executed.nodes if node.tool == tool]
    for way in product(*ways):
        yield dict(zip(ids, (use for uses in way for use in uses), strict=True))
