"""From a problem to an answer: the check of the problem, methods in turn, refinement, verification, one sentence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal

from sharp.problems.concerns import Concern
from sharp.problems.problem import Problem
from sharp.problems.wellposed import concerns
from sharp.solving.method import Deadline, Method
from sharp.solving.methods import all_methods
from sharp.solving.recommend import Choice, Recommendation, recommend
from sharp.solving.refine import Attempt, Refinement, refine
from sharp.solving.second import Opinion, opinion_of, second_opinion
from sharp.solving.sentence import attempt_text, error_sentence, unsolved_sentence
from sharp.solving.solution import Solution
from sharp.solving.system import System, system_of
from sharp.solving.verification import (
    BALANCE,
    Check,
    Limits,
    Verdict,
    limits_of,
    verdict_of,
    verify,
    with_opinion,
)

Outcome = Literal["verified", "doubtful", "failed", "unsolved", "refused", "asked"]
Listener = Callable[[str], None]

# Where checks doubt a solution whose refinements agree, it is refined further, to this share of the accuracy.
STRICTER = 0.03
# What one method may take of the time that is left, while there are others to try.
SHARE = 0.6
# What the last of them may take: the checks take their time as well.
LAST = 0.9
_RANKS: tuple[Verdict, ...] = ("verified", "doubtful", "failed")


@dataclass(frozen=True)
class Options:
    """What a user may ask for: a method, an accuracy, a resolution, a limit of time in seconds, fewer checks.

    Without `compare` an exact solution in the specification is left aside, as if it were not known.
    """

    method: str | None = None
    accuracy: float | None = None
    resolution: int | None = None
    time_limit: float | None = None
    cross_check: bool = True
    compare: bool = True


@dataclass(frozen=True)
class Trial:
    """What one method came to: its refinement, and the checks of its solution (none where it has none)."""

    refinement: Refinement
    checks: tuple[Check, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The verdict of the checks."""
        return verdict_of(self.checks) if self.checks else "failed"

    @property
    def heard(self) -> bool:
        """Whether the solution may bear witness for another: it is not wrong, of known error, and keeps its balance."""
        kept = (check.verdict == "verified" for check in self.checks if check.name == BALANCE)
        return self.verdict != "failed" and isfinite(self.refinement.error) and all(kept)


@dataclass(frozen=True)
class Answer:
    """All that is known in the end: what was thought of the problem, what was tried, the solution and its checks.

    `trials` are those of all methods that were tried, `trial` is the best of them. `sentence` says how large the error
    is, or why there is no solution.
    """

    problem: Problem
    accuracy: float
    outcome: Outcome
    sentence: str
    concerns: tuple[Concern, ...] = ()
    choice: Choice | None = None
    trials: tuple[Trial, ...] = ()
    trial: Trial | None = None
    opinion: Opinion | None = None
    seconds: float = 0.0

    @property
    def solution(self) -> Solution | None:
        """The solution, whatever the checks say of it."""
        return self.trial.refinement.solution if self.trial else None

    @property
    def checks(self) -> tuple[Check, ...]:
        """All checks of the solution."""
        return self.trial.checks if self.trial else ()

    @property
    def recommendation(self) -> Recommendation | None:
        """The recommendation of the method that gave the solution."""
        if self.choice is None or self.trial is None:
            return None
        return self.choice.named(self.trial.refinement.method)


@dataclass(frozen=True)
class _Task:
    system: System
    options: Options
    limits: Limits
    deadline: Deadline
    listener: Listener

    def say(self, attempt: Attempt) -> None:
        self.listener(attempt_text(attempt))


def answer(
    problem: Problem,
    options: Options | None = None,
    listener: Listener = lambda _: None,
    methods: Sequence[Method] | None = None,
    known: Sequence[Concern] | None = None,
) -> Answer:
    """Return the answer to a problem; one that cannot be solved or has open questions is not solved.

    `known` is what the check of the problem has found, where it has been made before.

    Raises `Unsupported` for equations that no method here can treat, and `ConfigurationError` for a method that is
    unknown or cannot treat them.
    """
    start, options = time.perf_counter(), options or Options()
    accuracy = options.accuracy or problem.specification.accuracy
    found = tuple(concerns(problem) if known is None else known)
    begun = Answer(problem, accuracy, "unsolved", "", found)
    refused, asked = ([each.message for each in found if each.verdict == word] for word in ("refuse", "ask"))
    if refused:
        return replace(begun, outcome="refused", sentence="; ".join(refused))
    if asked:
        return replace(begun, outcome="asked", sentence="; ".join(asked))
    system = system_of(problem)
    limits = limits_of(system, accuracy)
    deadline = Deadline.within(options.time_limit or problem.limits.wall_s)
    task = _Task(system, options, limits, deadline, listener)
    available = all_methods() if methods is None else methods
    solved = _solved(task, recommend(system, available, options.method), begun)
    return replace(solved, seconds=time.perf_counter() - start)


def _solved(task: _Task, choice: Choice, begun: Answer) -> Answer:
    trials = tuple(_trials(task, choice))
    best = min((trial for trial in trials if trial.checks), key=_rank, default=None)
    tried = replace(begun, choice=choice, trials=trials)
    if best is None:
        return replace(tried, sentence=unsolved_sentence(choice, [trial.refinement for trial in trials]))
    opinion = _opinion(task, choice, trials, best.refinement) if task.options.cross_check else None
    best = replace(best, checks=(*best.checks, *with_opinion(opinion, task.limits)))
    sentence = error_sentence(best.refinement, best.checks, opinion)
    return replace(tried, trial=best, opinion=opinion, outcome=best.verdict, sentence=sentence)


def _rank(trial: Trial) -> tuple[int, float]:
    return _RANKS.index(trial.verdict), trial.refinement.error


def _trials(task: _Task, choice: Choice) -> Iterator[Trial]:
    """Yield trials of one method after the other, until one is verified or time is over."""
    able = choice.recommendations[:1] if task.options.method else choice.recommendations
    for number, recommended in enumerate(able, start=1):
        if task.deadline.left <= 0:
            return
        task.listener(f"{recommended.method.name}: {recommended.reason}")
        share = LAST if number == len(able) else SHARE
        trial = _trial(task, recommended.method, Deadline.within(share * task.deadline.left))
        yield trial
        if trial.checks and trial.verdict == "verified":
            return


def _trial(task: _Task, method: Method, deadline: Deadline) -> Trial:
    resolutions = _resolutions(task, method)
    accuracy = task.limits.accuracy
    trial = _checked(task, refine(method, task.system, accuracy, deadline, resolutions, task.say))
    if trial.verdict == "verified" or not trial.refinement.agreed:
        return trial
    task.listener(f"checks are not kept: {_complaints(trial)}")
    before = trial.refinement
    further = refine(method, task.system, STRICTER * accuracy, deadline, resolutions, task.say, before)
    return _checked(task, further)


def _resolutions(task: _Task, method: Method) -> tuple[int, ...]:
    """Return the resolutions to try; one that is asked for is compared with one of two thirds of it."""
    wanted = task.options.resolution
    return (2 * wanted // 3, wanted) if wanted else method.resolutions(task.system)


def _checked(task: _Task, refinement: Refinement) -> Trial:
    if refinement.solution is None:
        return Trial(refinement)
    return Trial(refinement, verify(task.system.problem, refinement, task.limits, task.options.compare))


def _complaints(trial: Trial) -> str:
    return ", ".join(
        f"{check.name} {check.value:.1e}" for check in trial.checks if check.verdict != "verified"
    )


def _opinion(task: _Task, choice: Choice, trials: Sequence[Trial], chosen: Refinement) -> Opinion | None:
    """Return the opinion of a method that has been tried and was not found wrong, or else of another one."""
    assert chosen.solution is not None
    for trial in trials:
        found = trial.refinement
        if found.solution is not None and found.method != chosen.method and trial.heard:
            return opinion_of(task.system, found, chosen.solution)
    tried = {trial.refinement.method for trial in trials}
    others = [each.method for each in choice.recommendations if each.method.name not in tried]
    if others:
        task.listener("second method, to compare with")
    return second_opinion(
        task.system,
        others,
        chosen.solution,
        chosen.seconds,
        task.limits.accuracy,
        task.deadline,
        task.say,
        lambda found: _checked(task, found).heard,
    )
