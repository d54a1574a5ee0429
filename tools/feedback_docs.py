"""Writes docs/feedback.md from the registered measures: python tools/feedback_docs.py."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from sharp.reference.feedback import all_metrics
from sharp.reference.metrics import FeedbackMetric

TARGET = Path(__file__).parent.parent / "docs" / "feedback.md"

HEAD = """# Feedback to judges

What judges learn of a program that was run is chosen by `feedback.metrics`: `none` (only whether it runs), or one or
more of the measures below (`sharp metrics --problem burgers` lists those of a problem). Every measure is dimensionless
and at least 0; smaller is better, and a perfect solution has 0 up to what the output grid can tell. `nrmse` ranks
programs if it is among the kinds, otherwise the first kind does; with weights a combined score does:

```yaml
feedback:
  kinds: [residual, initial_condition, two_grid]
  weights: {residual: 1, two_grid: 0.5}
```

Kinds without a weight are shown but do not count. Where a number that ranks is not available (the reason is shown) a
program ranks behind all that have it, and where none has it there is no winner. Where no kind needs reference data,
nothing that judges see of a run is derived from any.

Judges are told what each kind is, what it is normalised by, and what ranks. Measures see only what they need: the
reference solution, or the solver's answer on a coarser grid, is computed and handed to those alone that ask for it.

This page is generated from `sharp.reference.feedback` by `tools/feedback_docs.py`; a test keeps it true.
"""


def main() -> None:
    """Write the page."""
    TARGET.write_text(page())


def page() -> str:
    """Return the page's Markdown."""
    groups: dict[str, list[FeedbackMetric]] = defaultdict(list)
    for measure in all_metrics().values():
        groups[_whom(measure)].append(measure)
    return "\n".join([HEAD, *(_part(whom, measures) for whom, measures in groups.items())])


def _part(whom: str, measures: Iterable[FeedbackMetric]) -> str:
    return "\n".join([f"## For {whom}\n", *(line for measure in measures for line in _lines(measure))])


def _lines(measure: FeedbackMetric) -> Iterator[str]:
    needs = ["reference data"] * measure.needs_data + [
        "a second call on a coarser grid"
    ] * measure.needs_coarse_run
    yield f"### {measure.name}: {measure.title}\n"
    yield f"{measure.description}\n"
    yield f"- Looks at: {measure.shape}."
    yield f"- Measured as: {measure.normalisation}."
    yield f"- Needs: {' and '.join(needs) or 'nothing besides the solution'}."
    yield f"- Source: {measure.source}.\n"


def _whom(measure: FeedbackMetric) -> str:
    return ", ".join(measure.families) or "every problem"


if __name__ == "__main__":
    main()
