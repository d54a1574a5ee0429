"""The values a tournament is made of. Everything a report, a table or a checkpoint shows is a view of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sharp.evaluation import Convergence, Evaluation
from sharp.llm import Strategy

Action = Literal["nominee", "patch", "rewrite", "no-op", "keep", "forfeit"]
SearchAction = Literal["refine", "evolve", "reset", "draft", "improve", "debug"]


OTHERS = "others"
"""Where in a cycle candidates run that no judge nominated, because no nominee works."""


@dataclass(frozen=True)
class AnalysisStep:
    """One check of the analysis: its name, the model's whole text and the verdict read from it."""

    name: str
    text: str
    verdict: Mapping[str, Any]


@dataclass(frozen=True)
class StabilityBound:
    """A symbolic time-step bound (paper section 3.1): the scheme, the bound as written and its value on the grid.

    `value` is None where the expression could not be evaluated; `note` then says why.
    """

    scheme: str
    expression: str
    value: float | None
    note: str = ""


@dataclass(frozen=True)
class GeneratedPrompts:
    """The prompts of the analysis as a model wrote them; `unreadable` says why our own were asked instead."""

    prompts: tuple[str, ...] = ()
    unreadable: str = ""


@dataclass(frozen=True)
class Analysis:
    """What the analysis found and which branch genesis takes; `written` is None where it was asked our own prompts.

    Answers to prompts that a model wrote take no branch: `strategy` is None.
    """

    steps: tuple[AnalysisStep, ...]
    strategy: Strategy | None
    bounds: tuple[StabilityBound, ...] = ()
    written: GeneratedPrompts | None = None


@dataclass(frozen=True)
class Change:
    """One change a judge made: what, why, and the candidates the idea came from."""

    what: str
    why: str
    sources: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.what} ({self.why})"


@dataclass(frozen=True)
class Assignment:
    """The method that the author of a candidate was asked for, part by part; for steady problems the integrator is what
    solves the discrete equations.
    """

    discretisation: str
    integrator: str
    transformation: str
    library: str

    def __str__(self) -> str:
        return "; ".join(vars(self).values())


@dataclass(frozen=True)
class Candidate:
    """One solver program.

    Ids: `u001` (given as a start), `c017` (genesis), `h1.2.3` (hybrid of cycle 1, round 2, judge 3), `s023` (step 23 of
    a search without judges), with `d1`, `d2`, … appended by repairs. `author` is a model card, empty for a program that
    was given. `parents` names the base first, then the donors of ideas. `changed_share` is the share of lines that
    differ from the base; `patch_match_level` the step of the application ladder that succeeded. `assignment` is the
    method that was asked for, if one was.
    """

    id: str
    origin: Literal["start", "genesis", "hybrid", "search", "debug"]
    strategy: Strategy
    author: str
    code: str
    explanation: str
    parents: tuple[str, ...] = ()
    cycle: int = 0
    round: int = 0
    judge: int = 0
    changes: tuple[Change, ...] = ()
    changed_share: float | None = None
    patch_match_level: str | None = None
    assignment: Assignment | None = None


@dataclass(frozen=True)
class Execution:
    """One scored run. `reused_from` names the executed candidate whose result was reused (no evaluation was paid)."""

    candidate: str
    path: str
    split: str
    evaluation: Evaluation
    metric: float
    reused_from: str | None = None


@dataclass(frozen=True)
class Selection:
    """One judge's reading of the pool: ranked short list with reasons, and the nominee.

    `shown` are the programs that it has read in full, in its order; of the `summarised` it has read a summary, and of
    the `unread` nothing, as its context does not hold more.
    """

    cycle: int
    judge: int
    model: str
    shown: tuple[str, ...]
    criteria: tuple[str, ...]
    shortlist: tuple[tuple[str, str], ...]
    nominee: str
    nominee_reason: str
    summarised: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class JudgeTurn:
    """One judge's turn in one round. `metric` is +inf where the solver failed or the turn was forfeited."""

    cycle: int
    round: int
    judge: int
    action: Action
    candidate: str | None
    base: str | None
    metric: float
    note: str = ""
    repairs: int = 0


@dataclass(frozen=True)
class SearchStep:
    """One step of a search without judges (CodePDE-R, FunSearch, AIDE).

    `parents` are the programs that the prompt showed, `candidate` the one that was written (None where the reply held
    none, and for steps that write none); `metric` is +inf where it failed. `note` tells the method's own particulars,
    `author` the model that wrote, empty for steps that write nothing.
    """

    number: int
    move: SearchAction
    parents: tuple[str, ...]
    candidate: str | None
    metric: float
    note: str = ""
    author: str = ""


@dataclass(frozen=True)
class Saturation:
    """The inputs and outcome of one saturation decision."""

    cycle: int
    round: int
    best_before: float
    best_by_evaluation: float
    gain: float
    stale_rounds: int
    patience: int
    stop: bool
    reason: str


@dataclass(frozen=True)
class ReporterText:
    """What the reporter model wrote about a finished run. It is a model's text: no figure is taken from it.

    `unfounded` are the figures in it that are none of those that it was given.
    """

    summary: str
    findings: tuple[str, ...]
    efficiency: str
    conclusions: str
    unfounded: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tournament:
    """The whole state of a run: a value, replaced and never changed in place.

    `smoke` has the short runs that candidates had before they were judged, of which only that they passed counts. `x64`
    has the finalists' scores in 64-bit mode on validation data, the winner's first, `convergence` the winner's order of
    accuracy, where it was measured.
    """

    problem: str
    analysis: Analysis | None = None
    candidates: Mapping[str, Candidate] = field(default_factory=dict)
    discarded: Mapping[str, str] = field(default_factory=dict)
    smoke: Mapping[str, Execution] = field(default_factory=dict)
    selections: tuple[Selection, ...] = ()
    entries: tuple[JudgeTurn, ...] = ()
    executions: tuple[Execution, ...] = ()
    saturations: tuple[Saturation, ...] = ()
    search: tuple[SearchStep, ...] = ()
    best: str | None = None
    best_per_judge: Mapping[int, str] = field(default_factory=dict)
    test: Evaluation | None = None
    convergence: Convergence | None = None
    x64: Mapping[str, Evaluation] = field(default_factory=dict)
    prose: ReporterText | None = None

    def with_candidates(self, *new: Candidate) -> Tournament:
        """Add candidates."""
        return replace(self, candidates={**self.candidates, **{c.id: c for c in new}})

    def latest_version(self, name: str) -> str:
        """Return the id of a program as last repaired."""
        repairs = [c.id for c in self.candidates.values() if c.origin == "debug" and c.parents == (name,)]
        return self.latest_version(repairs[-1]) if repairs else name

    def execution_of(self, candidate: str) -> Execution | None:
        """Return the validation (or smoke-only) run that stands for a candidate, the last if there are several."""
        runs = [e for e in self.executions if e.candidate == candidate and e.split != "test"]
        return runs[-1] if runs else None
