"""The lineage of programs: which of them are shown, in which layers, and the edges between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from sharp.document import Graph, GraphEdge, GraphNode, GraphRow
from sharp.document.text import clip, error_text
from sharp.report.report_data import ReportData, root_of
from sharp.tournament.state import Candidate

# Cycle, round (of a search: generation), and how often repaired: programs with the same place share a layer.
Place = tuple[int, int, int]
LONGEST_TIP = 300


def lineage_of(evidence: ReportData) -> Graph:
    """Return nominees, hybrids, programs of a search, repairs, whatever these were made of, and the winner."""
    shown, generations = _shown(evidence), _generations(evidence)
    layers: dict[Place, list[Candidate]] = defaultdict(list)
    for name, candidate in evidence.state.candidates.items():
        if name in shown:
            layers[_place(candidate, generations)].append(candidate)
    return Graph(
        "lineage-drawing",
        "Lineage of the programs",
        tuple(
            GraphRow(_layer_name(place), tuple(_node(evidence, c) for c in sorted(layers[place], key=_order)))
            for place in sorted(layers)
        ),
        tuple(edge for name in shown for edge in _edges(evidence, name)),
    )


def _shown(evidence: ReportData) -> dict[str, None]:
    state = evidence.state
    names = {selection.nominee for selection in state.selections} | ({state.best} if state.best else set())
    for candidate in state.candidates.values():
        if candidate.parents:
            names |= {candidate.id, *candidate.parents}
    return {name: None for name in state.candidates if name in names}


def _generations(evidence: ReportData) -> dict[str, int]:
    """Return how many programs of a search lie on the longest way to each of them, itself included."""
    found: dict[str, int] = {}
    for candidate in evidence.state.candidates.values():
        if candidate.origin == "search":
            found[candidate.id] = 1 + max((found.get(root_of(p), 0) for p in candidate.parents), default=0)
    return found


def _place(candidate: Candidate, generations: Mapping[str, int]) -> Place:
    root = root_of(candidate.id)
    repairs = candidate.id[len(root) :].count("d")
    return candidate.cycle, generations.get(root, candidate.round), repairs


def _layer_name(place: Place) -> str:
    cycle, round_, repaired = place
    name = f"round {cycle}.{round_}" if cycle else f"generation {round_}" if round_ else "genesis"
    return f"{name}, repair {repaired}" if repaired else name


def _order(candidate: Candidate) -> tuple[int, str]:
    return candidate.judge, candidate.id


def _edges(evidence: ReportData, name: str) -> Iterator[GraphEdge]:
    for position, parent in enumerate(evidence.state.candidates[name].parents):
        if parent in evidence.state.candidates:
            words = "takes ideas from" if position else "was made from"
            yield GraphEdge(parent, name, f"{name} {words} {parent}", minor=position > 0)


def _node(evidence: ReportData, candidate: Candidate) -> GraphNode:
    name, judges = candidate.id, evidence.judges_of(candidate.id)
    evaluation, scores = evidence.evaluation_of(name), evidence.scores_of(name)
    what = clip("; ".join(change.what for change in candidate.changes) or candidate.strategy, LONGEST_TIP)
    if evaluation is None:
        return GraphNode(name, "not run", "open", what, judges)
    if evaluation.failure is not None:
        return GraphNode(name, evaluation.failure.kind, "failed", what, judges)
    result = error_text(scores.nrmse) if scores else "passed"
    return GraphNode(name, result, "best" if name == evidence.state.best else "done", what, judges)
