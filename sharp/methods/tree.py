"""AIDE's tree of programs and its search policy, as values and pure functions (arXiv 2502.13138)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from random import Random

from sharp.config import AideOptions
from sharp.tournament.state import SearchAction, SearchStep


@dataclass(frozen=True)
class Node:
    """A program of the tree; `parent` is None for drafts. `debug_depth` counts debugging steps one after the other."""

    id: str
    parent: str | None
    metric: float
    debug_depth: int

    @property
    def is_buggy(self) -> bool:
        """Whether the program has no result, by the scorer's word."""
        return not isfinite(self.metric)


@dataclass(frozen=True)
class Decision:
    """What a step does: draft, debug a node or improve a node."""

    move: SearchAction
    node: Node | None = None


def tree(steps: Sequence[SearchStep]) -> tuple[Node, ...]:
    """Return the nodes that a trace has led to, oldest first; steps whose reply held no program left none."""
    nodes: dict[str, Node] = {}
    for step in steps:
        if step.candidate is not None:
            parent = nodes[step.parents[0]] if step.parents else None
            depth = parent.debug_depth + 1 if parent and step.move == "debug" else 0
            above = None if parent is None else parent.id
            nodes[step.candidate] = Node(step.candidate, above, step.metric, depth)
    return tuple(nodes.values())


def decide(nodes: Sequence[Node], rng: Random, options: AideOptions) -> Decision:
    """Return what comes next: drafts first; then, as often as configured, debugging; else the best node is improved."""
    if sum(node.parent is None for node in nodes) < options.drafts:
        return Decision("draft")
    if rng.random() < options.debug_probability:
        broken = debuggable(nodes, options.max_debug_depth)
        if broken:
            return Decision("debug", rng.choice(broken))
    good = [node for node in nodes if not node.is_buggy]
    return Decision("improve", min(good, key=lambda node: node.metric)) if good else Decision("draft")


def debuggable(nodes: Sequence[Node], max_depth: int) -> list[Node]:
    """Return the buggy leaves that were not debugged too often already."""
    inner = {node.parent for node in nodes}
    return [n for n in nodes if n.is_buggy and n.id not in inner and n.debug_depth <= max_depth]
