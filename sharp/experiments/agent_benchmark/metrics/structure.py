"""All figures of an executed tool chain against the gold one, and what a fixed answer scores in them.

All functions of two graphs take them as `graphs.matched` returns them, the executed one first, and return 1 for equal
graphs and 0 for graphs without a common tool, unless they say otherwise. Equation numbers are those of the PDE-Agent
paper (arXiv 2512.16214); docs/reference/agent-metrics.md says where and why the figures here differ from what is
printed there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean
from typing import Literal

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

from sharp.errors import DataError
from sharp.experiments.agent_benchmark.metrics.graphs import ChainGraph, matched, overlap

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


def exponential_rescale(distance: float) -> float:
    """Return eq. 9 of an edit distance: (exp(-2d) - exp(-2)) / (1 - exp(-2)), so that the first edits cost most."""
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
        above, row = row, [0]
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


def structure(executed: ChainGraph, gold: ChainGraph) -> dict[str, float]:
    """Return the four parts of structural similarity, each in [0, 1]."""
    return {
        "connectivity": connectivity(executed, gold),
        "roles": role_agreement(executed, gold),
        "critical path": critical_path_similarity(executed, gold),
        "execution order": execution_order(executed, gold),
    }


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


def score_chain(executed: ChainGraph, accepted: ChainGraph) -> dict[str, float]:
    """Return all figures in [0, 1], by name, of an executed chain against the one that a case accepts.

    Completeness is the mean of the F1 of nodes, the F1 of edges and structural similarity. Figures with the number of
    an equation are as the paper prints them: recall alone (5), base e (6 and 7), the curve of eq. 10.
    """
    found, gold = matched(executed, accepted)
    nodes, edges = overlap(found.ids, gold.ids), overlap(found.edges, gold.edges)
    parts, cosine = structure(found, gold), embedding_cosine(found, gold)
    shape = fmean(parts.values())
    return {
        "node F1": nodes.f1,
        "node precision": nodes.precision,
        "node recall": nodes.recall,
        "edge F1": edges.f1,
        "edge precision": edges.precision,
        "edge recall": edges.recall,
        "PageRank": pagerank_similarity(found, gold),
        "edit": exponential_rescale(edit_distance(found, gold)),
        **parts,
        "structure": shape,
        "completeness": fmean((nodes.f1, edges.f1, shape)),
        "embedding": cosine,
        "node recall (eq. 5)": nodes.recall,
        "edge recall (eq. 5)": overlap(found.arcs, gold.arcs).recall,
        "PageRank (eq. 7)": pagerank_similarity(found, gold, base="e"),
        "embedding (eq. 10)": logistic_rescale(cosine),
    }


@dataclass(frozen=True)
class ConstantBaseline:
    """What other cases' gold chains score in one figure: chains of different cases are much alike.

    `mean` is over all pairs of different cases, `best` the mean of the case `template` whose chain does best for the
    others: who answers with it, whatever the question, scores as much.
    """

    mean: float
    best: float
    template: str


def constant_baselines(
    cases: Collection[str], scores: Callable[[str, str], Mapping[str, float]]
) -> dict[str, ConstantBaseline]:
    """Return what a fixed answer scores in every figure; `scores` is told a template and the case that it is given for.

    Raises `DataError` with fewer than two cases.
    """
    if len(cases) < 2:
        raise DataError(
            f"a constant-answer baseline needs the tool chains of at least two cases, found {len(cases)}"
        )
    found = {template: [scores(template, case) for case in cases if case != template] for template in cases}
    baselines = {}
    for name in next(iter(found.values()))[0]:
        means = {case: fmean(each[name] for each in of_case) for case, of_case in found.items()}
        template = max(means, key=means.__getitem__)
        baselines[name] = ConstantBaseline(fmean(means.values()), means[template], template)
    return baselines
