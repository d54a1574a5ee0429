"""How alike two tool chains are in shape: importance of tools, edit distance, structure, embedding.

All functions of two graphs take them as `graphs.matched` returns them, the executed one first, and return 1 for equal
graphs and 0 for graphs without a common tool, unless they say otherwise. Equation numbers are those of the PDE-Agent
paper (arXiv 2512.16214); docs/agent-metrics.md says where and why the figures here differ from what is printed there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean
from typing import Literal

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from sharp.experiments.agent_benchmark.metrics.graphs import ChainGraph, edge_overlap, node_overlap

Array = NDArray[np.float64]

DAMPING = 0.85
WALK_LENGTH = 4
_DECAY = 2.0  # eq. 9
_START = ""
_REMEMBERED = 1024  # graphs: one is compared with many, and each comparison asks several times


@lru_cache(_REMEMBERED)
def pagerank(graph: ChainGraph) -> Mapping[str, float]:
    """Return the PageRank of every node, by id; they add up to 1.

    The stationary distribution of a walk that follows an edge with probability 0.85, and otherwise, or where there is
    no edge, goes anywhere (Brin and Page, Computer Networks 30, 1998).
    """
    ranks: dict[str, float] = nx.pagerank(graph.digraph, DAMPING, max_iter=1000, tol=1e-12)
    return ranks


def pagerank_similarity(executed: ChainGraph, gold: ChainGraph, base: Literal["2", "e"] = "2") -> float:
    """Return 1 less the Jensen-Shannon distance of the PageRanks over the nodes of both graphs (eq. 6 and 7).

    With base e, as printed, graphs without a common tool still have 1 - sqrt(ln 2) = 0.167.
    """
    if not (executed.nodes and gold.nodes):
        return 0.0
    names = sorted(executed.ids | gold.ids)
    p, q = (np.array([ranks.get(name, 0.0) for name in names]) for ranks in map(pagerank, (executed, gold)))
    nats = float(np.sum(rel_entr(p, (p + q) / 2) + rel_entr(q, (p + q) / 2)) / 2)
    divergence = min(1.0, max(0.0, nats / math.log(2)))  # rounding goes beyond
    return 1 - math.sqrt(divergence if base == "2" else divergence * math.log(2))


def edit_distance(executed: ChainGraph, gold: ChainGraph) -> float:
    """Return the normalised edit distance (eq. 8), from 0 for equal graphs to 1 for graphs with nothing in common.

    Nodes and edges are inserted and deleted, never renamed, so the distance is the size of the symmetric differences,
    over that of deleting one graph and inserting the other.
    """
    edits = len(executed.ids ^ gold.ids) + len(executed.edges ^ gold.edges)
    size = sum(len(graph.nodes) + len(graph.edges) for graph in (executed, gold))
    return edits / size if size else 1.0


def edit_similarity(executed: ChainGraph, gold: ChainGraph) -> float:
    """Return the similarity that eq. 9 makes of the edit distance: (exp(-2d) - exp(-2)) / (1 - exp(-2))."""
    return exponential_rescale(edit_distance(executed, gold))


def exponential_rescale(distance: float) -> float:
    """Return eq. 9 of a distance in [0, 1]: from 1 down to 0, convex, so that the first edits cost most."""
    return (math.exp(-_DECAY * distance) - math.exp(-_DECAY)) / (1 - math.exp(-_DECAY))


@lru_cache(_REMEMBERED)
def reachability(graph: ChainGraph) -> frozenset[tuple[str, str]]:
    """Return all pairs of nodes of which the first is an ancestor of the second."""
    return frozenset(nx.transitive_closure_dag(graph.digraph).edges)


def connectivity(executed: ChainGraph, gold: ChainGraph) -> float:
    """Return the Jaccard index of who is an ancestor of whom, among common nodes."""
    common = executed.ids & gold.ids
    one, other = ({pair for pair in reachability(g) if common.issuperset(pair)} for g in (executed, gold))
    if not common:
        return 0.0
    return len(one & other) / len(one | other) if one | other else 1.0


def role(graph: ChainGraph, name: str) -> str:
    """Return what a node is by its arcs: isolated, source, sink, relay (1 in, 1 out), fork, merge or hub."""
    match graph.digraph.in_degree(name), graph.digraph.out_degree(name):
        case 0, 0:
            return "isolated"
        case 0, _:
            return "source"
        case _, 0:
            return "sink"
        case 1, 1:
            return "relay"
        case 1, _:
            return "fork"
        case _, 1:
            return "merge"
        case _:
            return "hub"


def role_agreement(executed: ChainGraph, gold: ChainGraph) -> float:
    """Return the share of the nodes of both graphs that have the same role in both."""
    same = [name for name in executed.ids & gold.ids if role(executed, name) == role(gold, name)]
    return len(same) / len(executed.ids | gold.ids) if same else 0.0


def critical_path(graph: ChainGraph) -> tuple[str, ...]:
    """Return the longest path; of several that one whose ids come first in the alphabet. Empty without edges."""
    # Of paths of one length networkx takes the first predecessor. Reversed and from one start, that is the alphabet.
    turned = nx.DiGraph([(target, source) for source, target in sorted(graph.arcs)])
    turned.add_edges_from((name, _START) for name in sorted(graph.ids))
    path = nx.dag_longest_path(turned)[-2::-1]
    return tuple(path) if len(path) > 1 else ()


def critical_path_similarity(executed: ChainGraph, gold: ChainGraph) -> float:
    """Return twice the longest common subsequence of the critical paths over the sum of their lengths."""
    if not executed.ids & gold.ids:
        return 0.0
    one, other = critical_path(executed), critical_path(gold)
    return 2 * _common_length(one, other) / (len(one) + len(other)) if one or other else 1.0


def _common_length(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest common subsequence, row by row of the usual table."""
    row = [0] * (len(other) + 1)
    for name in one:
        above = row
        row = [0]
        for index, each in enumerate(other):
            row.append(above[index] + 1 if each == name else max(above[index + 1], row[index]))
    return row[-1]


def execution_order(executed: ChainGraph, gold: ChainGraph) -> float:
    """Return the share of pairs (ancestor, descendant) of the gold graph that were executed in this order.

    A pair of which a node is missing is violated.
    """
    if not executed.ids & gold.ids:
        return 0.0
    place = {name: index for index, name in enumerate(executed.order)}
    pairs = reachability(gold)
    kept = [a for a, b in pairs if place.get(a, math.inf) < place.get(b, -math.inf)]
    return len(kept) / len(pairs) if pairs else 1.0


@dataclass(frozen=True)
class Structure:
    """The four parts of structural similarity, each in [0, 1]."""

    connectivity: float
    roles: float
    critical_path: float
    order: float

    @property
    def score(self) -> float:
        """The mean of the four."""
        return fmean((self.connectivity, self.roles, self.critical_path, self.order))


def structure(executed: ChainGraph, gold: ChainGraph) -> Structure:
    """Return the structural similarity of two graphs in its parts."""
    return Structure(
        connectivity(executed, gold),
        role_agreement(executed, gold),
        critical_path_similarity(executed, gold),
        execution_order(executed, gold),
    )


def completeness(executed: ChainGraph, gold: ChainGraph) -> float:
    """Return the mean of the F1 of nodes, the F1 of edges and the structural similarity."""
    shares = node_overlap(executed, gold).f1, edge_overlap(executed, gold).f1
    return fmean((*shares, structure(executed, gold).score))


def embedding(graph: ChainGraph, vocabulary: Sequence[str]) -> Array:
    """Return the embedding of a graph in a space that all graphs over a vocabulary of ids share, [V * V].

    A node's vector holds how often a walk from it meets each node: itself, and the mean of the first four powers of
    the transition matrix (what node2vec with p = q = 1 factorises). Nodes are weighted by PageRank. Nodes that a graph
    has not are zero, so a larger vocabulary changes no cosine.
    """
    ranks = pagerank(graph)
    everything = graph.digraph.copy()
    everything.add_nodes_from(vocabulary)
    arcs = nx.to_numpy_array(everything, vocabulary)
    steps = arcs / np.maximum(arcs.sum(axis=1, keepdims=True), 1)
    present = np.diag([float(name in ranks) for name in vocabulary])
    powers = [np.linalg.matrix_power(steps, length) for length in range(1, WALK_LENGTH + 1)]
    weights = np.array([ranks.get(name, 0.0) for name in vocabulary])
    return (weights[:, None] * (present + sum(powers) / WALK_LENGTH)).ravel()


def embedding_cosine(executed: ChainGraph, gold: ChainGraph) -> float:
    """Return the cosine of the embeddings, in [0, 1] since no entry is negative."""
    vocabulary = sorted(executed.ids | gold.ids)
    one, other = (embedding(graph, vocabulary) for graph in (executed, gold))
    norms = float(np.linalg.norm(one) * np.linalg.norm(other))
    return min(1.0, float(one @ other) / norms) if norms else 0.0


def logistic_rescale(cosine: float, steepness: float = 1.0) -> float:
    """Return eq. 10 of a cosine: a logistic curve through (-1, 0), (0, 1/2) and (1, 1).

    With steepness 1 it is (cosine + 1)/2 to within 0.015, so that graphs without a common tool have 1/2.
    """
    return (1 + math.tanh(steepness * cosine / 2) / math.tanh(steepness / 2)) / 2
