"""What an earlier run on the same problem tried and found, in words for those who write programs (paper section 3).

Nothing here derives from test data: the winner was chosen by validation runs, and no others are told of. The report's
prose is left out, as its author knew the test result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import inf

from sharp.config import RunConfig
from sharp.evaluation import feedback_described, feedback_text
from sharp.llm import render
from sharp.tournament.execution import clipped
from sharp.tournament.ranking import best_first
from sharp.tournament.state import Execution, Tournament

_MOST = 12
"""Programs of a list; of longer ones the best are told of."""
_LONGEST = 240
"""Characters that are told of a program's changes."""


def digest(config: RunConfig, state: Tournament) -> str:
    """Return the digest of a run that has a winner, in Markdown.

    Results are told by the kinds of feedback that the run's own judges had. The winner's code and the course of the run
    are marked as what may be dropped where a conversation outgrows a context.
    """
    assert state.best is not None
    best_run = state.execution_of(state.best)
    assert best_run is not None
    # The last run of each program; those on test data are not among them.
    last = {run.candidate: run for run in state.executions if run.split != "test" and run.reused_from is None}
    runs, options = list(last.values()), config.feedback
    failed = Counter(run.evaluation.failure.kind for run in runs if run.evaluation.failure is not None)
    leaders = _leaders(runs)
    others = [name for name in best_first(state) if name not in leaders]
    return render(
        "genesis/prior",
        method=f"An earlier run by the method {config.method}",
        written=len(state.candidates),
        run=sum(run.split == "validation" for run in runs),
        failed=failed.total(),
        failures=", ".join(f"{count} by {kind}" for kind, count in sorted(failed.items())),
        ranking=feedback_described(options.metrics, options.weights)[-1],
        best=state.best,
        feedback=feedback_text(
            best_run.evaluation.seen_from(config.target), options.metrics, None, options.weights
        ),
        code=state.candidates[state.best].code.strip(),
        leaders=[_trial(config, state, name) for name in leaders[-_MOST:]],
        others=[_trial(config, state, name) for name in others[:_MOST]],
    ).strip()


def _leaders(runs: Sequence[Execution]) -> list[str]:
    """Return the programs that were better than all that were run before them."""
    best, names = inf, list[str]()
    for run in runs:
        if run.metric < best:
            best = run.metric
            names.append(run.candidate)
    return names


def _trial(config: RunConfig, state: Tournament, name: str) -> str:
    candidate, run = state.candidates[name], state.execution_of(name)
    assert run is not None
    result = "passed" if "none" in config.feedback.metrics else f"{run.metric:.3e}"
    parents = f", from {' and '.join(candidate.parents)}" if candidate.parents else ""
    said = "; ".join(map(str, candidate.changes)) or candidate.explanation
    return f"`{name}` ({candidate.strategy}{parents}): {result}. {clipped(said, _LONGEST)}".rstrip()
