"""All figures of one executed tool chain against a set of accepted ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sharp.experiments.agent_benchmark.metrics.graphs import (
    ChainGraph,
    Overlap,
    arc_overlap,
    best,
    edge_overlap,
    node_overlap,
)
from sharp.experiments.agent_benchmark.metrics.structure import (
    Structure,
    completeness,
    edit_similarity,
    embedding_cosine,
    logistic_rescale,
    pagerank_similarity,
    structure,
)


@dataclass(frozen=True)
class AsPublished:
    """What the equations give as the paper prints them: recall alone (5), base e (6 and 7), the curve of eq. 10."""

    node_recall: float
    edge_recall: float
    pagerank: float
    embedding: float


@dataclass(frozen=True)
class ChainScore:
    """The figures of an executed chain, all against the accepted graph `accepted`: the one with most completeness."""

    accepted: str
    nodes: Overlap
    edges: Overlap
    pagerank: float
    edit: float
    structure: Structure
    completeness: float
    embedding: float
    printed: AsPublished

    def figures(self) -> dict[str, float]:
        """Return the figures in [0, 1] by name."""
        return {
            "node F1": self.nodes.f1,
            "node precision": self.nodes.precision,
            "node recall": self.nodes.recall,
            "edge F1": self.edges.f1,
            "edge precision": self.edges.precision,
            "edge recall": self.edges.recall,
            "PageRank": self.pagerank,
            "edit": self.edit,
            "connectivity": self.structure.connectivity,
            "roles": self.structure.roles,
            "critical path": self.structure.critical_path,
            "execution order": self.structure.order,
            "structure": self.structure.score,
            "completeness": self.completeness,
            "embedding": self.embedding,
            "node recall (eq. 5)": self.printed.node_recall,
            "edge recall (eq. 5)": self.printed.edge_recall,
            "PageRank (eq. 7)": self.printed.pagerank,
            "embedding (eq. 10)": self.printed.embedding,
        }


def score_chain(executed: ChainGraph, accepted: Mapping[str, ChainGraph]) -> ChainScore:
    """Score an executed chain against a set of accepted ones; raises `DataError` where that is empty.

    One graph is chosen and all figures are against it: the best of each figure alone might belong to no graph.
    """
    chosen = best(executed, accepted, completeness)
    found, gold = chosen.executed, chosen.gold
    cosine = embedding_cosine(found, gold)
    return ChainScore(
        accepted=chosen.name,
        nodes=node_overlap(found, gold),
        edges=edge_overlap(found, gold),
        pagerank=pagerank_similarity(found, gold),
        edit=edit_similarity(found, gold),
        structure=structure(found, gold),
        completeness=chosen.value,
        embedding=cosine,
        printed=AsPublished(
            node_overlap(found, gold).recall,
            arc_overlap(found, gold).recall,
            pagerank_similarity(found, gold, base="e"),
            logistic_rescale(cosine),
        ),
    )
