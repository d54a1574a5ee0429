"""How far a program's outputs are from those of programs that were written independently of it.

Every recorded run carries a sketch of its outputs (`sharp.evaluation.sketch`), so that agreement is a function of what
is recorded, whichever run ended first. Programs of one ancestry share their mistakes: of every other ancestry the
program counts that is nearest, and of these distances the (lower) median, which half of all ancestries would have to be
wrong in the same way to mislead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from statistics import median_low

from sharp.evaluation import AGREEMENT, sketch_distance
from sharp.tournament.run_context import RunContext
from sharp.tournament.state import Candidate, Execution, Tournament


def with_agreement(session: RunContext, state: Tournament) -> Tournament:
    """Return the state with every run's distance from the others as they now are, ranked by it where that counts.

    Judges are always told of it, other methods where it is among the kinds of feedback that are configured.
    """
    kinds = session.config.feedback.metrics
    if AGREEMENT not in kinds and (session.config.method != "pde-sharp" or "none" in kinds):
        return state
    sketches: defaultdict[str, list[str]] = defaultdict(list)
    for execution in state.executions:
        if sketch := _sketch(execution):
            sketches[root(state.candidates, execution.candidate)].append(sketch)
    executions = tuple(
        _compared(session, execution, sketches, root(state.candidates, execution.candidate))
        for execution in state.executions
    )
    return replace(state, executions=executions)


def root(candidates: Mapping[str, Candidate], name: str) -> str:
    """Return the program that the bases of a program lead back to: its ancestry."""
    parents = candidates[name].parents
    return root(candidates, parents[0]) if parents and parents[0] in candidates else name


def _sketch(execution: Execution) -> str:
    scores = execution.evaluation.scores
    return scores.sketch if scores else ""


def _compared(
    session: RunContext, execution: Execution, sketches: Mapping[str, list[str]], own: str
) -> Execution:
    scores, sketch = execution.evaluation.scores, _sketch(execution)
    if scores is None or not sketch:
        return execution
    # Outputs that are the same to the last bit are those of a copy, and no evidence.
    independent = (
        [other for other in others if other != sketch]
        for ancestry, others in sketches.items()
        if ancestry != own
    )
    nearest = [min(sketch_distance(sketch, other) for other in others) for others in independent if others]
    if not nearest:
        return execution
    note = "relative distance from one independent program"
    if len(nearest) > 1:
        note = f"median of the relative distances from {len(nearest)} independent programs"
    scores = replace(
        scores,
        measures={**scores.measures, AGREEMENT: median_low(nearest)},
        measure_notes={**scores.measure_notes, AGREEMENT: note},
    )
    evaluation = replace(execution.evaluation, scores=scores)
    return replace(execution, evaluation=evaluation, metric=session.metric(evaluation))
