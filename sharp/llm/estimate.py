"""What a run will need, before it starts: calls, tokens and evaluations, with the assumptions behind them.

How often each method asks a model and runs a program rests on the paper: 493 rounds in 148 cycles over the 105
tournaments of the structure ablation (Table 19: 3 judges, at most 4 rounds a cycle), that is 4.70 rounds, 1.41 cycles
and 14.1 evaluations on average; 0.33 repairs an executed program after analysis, and 0.9 to 1.4 without, of which the
middle is taken. A method never asks or runs more than it may at most. Sizes of prompts follow from the length of the
problem's description (`prompt_sizes`); those of answers are orders of magnitude.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, comb
from typing import Protocol

from sharp.llm.cards import Price, Purpose
from sharp.llm.ledger import dollars
from sharp.llm.protocol import TokenUsage


@dataclass(frozen=True)
class EstimateRange:
    """What is expected, and what it may come to at most."""

    expected: float
    most: float

    def __add__(self, other: EstimateRange) -> EstimateRange:
        return EstimateRange(self.expected + other.expected, self.most + other.most)

    def __mul__(self, other: EstimateRange) -> EstimateRange:
        return EstimateRange(self.expected * other.expected, self.most * other.most)

    def __str__(self) -> str:
        return format(self, "g")

    def __format__(self, spec: str) -> str:
        return f"{self.expected:{spec}} (at most {self.most:{spec}})"

    def at_most(self, limit: float) -> EstimateRange:
        """Return the span, neither end above a limit."""
        return EstimateRange(min(self.expected, limit), min(self.most, limit))


def exactly(value: float) -> EstimateRange:
    """Return a span of one value."""
    return EstimateRange(value, value)


NOTHING = exactly(0)
ANSWER_TOKENS = EstimateRange(2500, 8000)
# What a judge's first prompt says beside the problem and the programs: place, criteria, score and task.
_FRAME_TOKENS = 700
# Of the description and this frame: other prompts have the analysis, a template or results besides. A judge reads of a
# program 0.55 in records of a strong model (two problems), and of the embedded model, whose programs share most
# functions, 0.28 to 0.5 (five).
_OTHER_TEXT = EstimateRange(1.4, 2.8)
_PROGRAM = EstimateRange(0.6, 1.3)
_ALIKE = 0.75

MEAN_CYCLES = 148 / 105
# Of all rounds that one cycle may have; many cycles end before their last round.
MEAN_ROUNDS_OF_A_CYCLE = 493 / 105 / 4
REPAIRS_PER_PROGRAM = 0.33
BASELINE_REPAIRS_PER_PROGRAM = 1.15
# Of a program's length: what AIDE tells of one that has worked.
_REMEMBERED = 0.1


@dataclass(frozen=True)
class PromptSizes:
    """Tokens of a program that a prompt shows, of all other text of a prompt, and of a judge's first prompt without
    programs.
    """

    program: EstimateRange
    other: EstimateRange
    first: float


def prompt_sizes(description: float, *, alike: bool = False) -> PromptSizes:
    """Return the sizes of prompts for a problem whose description has so many tokens.

    The authors' programs are `alike` where they share most of their functions, which judges read once.
    """
    first = description + _FRAME_TOKENS
    program = exactly(first * (_ALIKE if alike else 1)) * _PROGRAM
    return PromptSizes(program, exactly(first) * _OTHER_TEXT, first)


TYPICAL_SIZES = prompt_sizes(500)
"""Sizes where the problem is not known: those of an equation for one field in one dimension."""


@dataclass(frozen=True)
class CallEstimate:
    """Calls of one kind: what for, how many, the programs that each prompt shows, and the tokens of what comes back."""

    purpose: Purpose
    calls: EstimateRange
    programs: EstimateRange = NOTHING
    answer: EstimateRange = ANSWER_TOKENS

    def prompt_tokens(self, sizes: PromptSizes) -> EstimateRange:
        """Return the tokens of all prompts of these calls."""
        return self.calls * (sizes.other + sizes.program * self.programs)

    @property
    def completion_tokens(self) -> EstimateRange:
        """Tokens of all answers to these calls."""
        return self.calls * self.answer


class CostModel(Protocol):
    """What a method does with its configuration; plans are values, so that equal ones are estimated once."""

    def asks(self) -> Sequence[CallEstimate]:
        """Return all calls, each kind once."""
        ...

    def evaluations(self) -> EstimateRange:
        """Return the runs on validation data."""
        ...

    def assumptions(self) -> Sequence[str]:
        """Return in words what these numbers rest on."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class Estimate:
    """Calls and tokens by purpose, evaluations, and the assumptions in words."""

    calls: Mapping[Purpose, EstimateRange]
    prompt_tokens: Mapping[Purpose, EstimateRange]
    completion_tokens: Mapping[Purpose, EstimateRange]
    evaluations: EstimateRange
    assumptions: tuple[str, ...]

    def dollars(self, prices: Mapping[Purpose, Sequence[Price | None]]) -> EstimateRange | None:
        """Return what the calls of the given purposes cost, or None if a model has no known price.

        `prices` holds the models of each purpose, which share its calls evenly; a model that is asked more often than
        others stands there more often. No token is taken as cached.
        """
        shares = [
            _price(self.prompt_tokens[purpose], self.completion_tokens[purpose], price, len(models))
            for purpose, models in prices.items()
            if self.calls.get(purpose, NOTHING).most
            for price in models
        ]
        known = [share for share in shares if share is not None]
        return sum(known, NOTHING) if len(known) == len(shares) else None


def estimate(plan: CostModel, sizes: PromptSizes = TYPICAL_SIZES) -> Estimate:
    """Return what a run of this plan needs with prompts of these sizes."""
    calls, prompts, completions = (defaultdict[Purpose, EstimateRange](lambda: NOTHING) for _ in range(3))
    for ask in plan.asks():
        calls[ask.purpose] += ask.calls
        prompts[ask.purpose] += ask.prompt_tokens(sizes)
        completions[ask.purpose] += ask.completion_tokens
    assumed = (
        f"{sizes.program:.0f} tokens a program, {sizes.other:.0f} of other text a prompt",
        f"{ANSWER_TOKENS} tokens an answer; a reasoning model may need several times that",
        "no prompt token is served from a cache",
    )
    return Estimate(
        dict(calls), dict(prompts), dict(completions), plan.evaluations(), (*plan.assumptions(), *assumed)
    )


def _price(
    prompt: EstimateRange, completion: EstimateRange, price: Price | None, models: int
) -> EstimateRange | None:
    expected, most = (
        dollars(TokenUsage(prompt=max(1, round(asked / models)), completion=round(answered / models)), price)
        for asked, answered in ((prompt.expected, completion.expected), (prompt.most, completion.most))
    )
    return None if expected is None or most is None else EstimateRange(expected, most)


@dataclass(frozen=True)
class PdeSharp:
    """PDE-SHARP; the defaults are the paper's.

    `analysis_steps` counts the prompts of the analysis, and the call that writes them where a model does;
    `derivation` allows a call before each program (section 3.2), `written_criteria` one in which a judge writes its
    criteria (B.2.5). Without `tournament` every candidate is run (best-of-N). With `prior_run` each prompt for a
    program shows another, of an earlier run. With `smoke_run` every candidate has a short run before it is judged.
    Where judges are `reading_only`, they select once and nothing is run.
    """

    candidates: int = 32
    samples_per_call: int = 1
    tournament: bool = True
    judges: int = 3
    rounds: int = 4
    cycles: int = 3
    analysis_steps: int = 5
    derivation: bool = False
    written_criteria: bool = False
    repairs: int = 4
    patch_retries: int = 2
    prior_run: bool = False
    smoke_run: bool = False
    reading_only: bool = False

    def asks(self) -> tuple[CallEstimate, ...]:
        """Return all calls, each kind once; whatever is unreadable is asked for once more."""
        writing = ceil(self.candidates / self.samples_per_call)
        return (
            CallEstimate("analysis", EstimateRange(self.analysis_steps, 2 * self.analysis_steps)),
            CallEstimate(
                "genesis",
                EstimateRange(writing, writing * (1 + self.derivation) + self.candidates),
                exactly(self.prior_run),
            ),
            CallEstimate("judge", self._judging() if self.tournament else NOTHING, exactly(self._shown())),
            CallEstimate("debug", _repairs(self._programs(), REPAIRS_PER_PROGRAM, self.repairs), exactly(1)),
            CallEstimate("reporter", EstimateRange(1, 2)),
        )

    def evaluations(self) -> EstimateRange:
        """Count one run a program, and at most one more for each repair."""
        return _runs(self._programs(), self.repairs)

    def assumptions(self) -> tuple[str, ...]:
        """Return in words what these numbers rest on."""
        cycles, rounds = self._cycles().expected, self._rounds().expected
        judged = (
            f"{cycles:.3g} cycles, {rounds:.3g} rounds on average, as in the paper; at most {self.cycles} cycles",
            f"a judge's conversation holds all {self.candidates} candidates throughout a cycle",
        )
        smoke = (f"{self.candidates} smoke runs before judging: executions, no evaluations",)
        return (
            *(judged if self.tournament else ()),
            *(smoke if self.smoke_run else ()),
            _describe_repairs(REPAIRS_PER_PROGRAM, self.repairs),
        )

    def _shown(self) -> int:
        """Count programs in a judge's prompt: each turn adds results and changes, about as long as two programs."""
        return self.candidates + self.rounds - 1

    def _cycles(self) -> EstimateRange:
        return EstimateRange(MEAN_CYCLES, self.cycles).at_most(self.cycles)

    def _rounds(self) -> EstimateRange:
        """Count the rounds of all cycles together."""
        return EstimateRange(MEAN_ROUNDS_OF_A_CYCLE, self.cycles).at_most(self.cycles) * exactly(self.rounds)

    def _programs(self) -> EstimateRange:
        """Count the programs that are run: rounds x judges, or all candidates without a tournament."""
        if self.reading_only:
            return NOTHING
        if not self.tournament:
            return exactly(self.candidates)
        return self._rounds() * exactly(self.judges)

    def _judging(self) -> EstimateRange:
        """Count a judge's calls: in a cycle it selects once, and revises in every round after the nominees' own.

        An unreadable selection is asked for once more, a patch that fails as often as configured.
        """
        criteria = self.judges * self.written_criteria
        selections, revisions = self.judges + criteria, self.judges * (self.rounds - 1)
        most = self.cycles * (2 * selections + (1 + self.patch_retries) * revisions)
        expected = self._rounds().expected * self.judges + self._cycles().expected * criteria
        return EstimateRange(expected, most)


@dataclass(frozen=True)
class Technique:
    """One way to answer a request for a program: all calls for one program, whose purpose is genesis."""

    asks: tuple[CallEstimate, ...]
    assumptions: tuple[str, ...] = ()


def single_call(longest: int | None = None) -> Technique:
    """Return CodePDE's technique, one call; with the length of an answer given, CoT-reflection's."""
    answer = ANSWER_TOKENS if longest is None else ANSWER_TOKENS.at_most(longest)
    return Technique((CallEstimate("genesis", exactly(1), answer=answer),))


def mixture_of_agents(proposals: int, tokens: int, critique_tokens: int, synthesis_tokens: int) -> Technique:
    """Return MoA's technique: one call for all proposals, a critique and a synthesis; lengths are in tokens.

    Proposals that a server leaves out of its answer are asked for one by one: three calls, or five for three proposals.
    """
    proposed, shown = ANSWER_TOKENS.at_most(tokens), exactly(proposals)
    return Technique(
        (
            CallEstimate("genesis", exactly(1), answer=proposed * exactly(proposals)),
            CallEstimate("genesis", EstimateRange(0, proposals - 1), answer=proposed),
            CallEstimate("genesis", exactly(1), shown, exactly(critique_tokens)),
            CallEstimate("genesis", exactly(1), shown, ANSWER_TOKENS.at_most(synthesis_tokens)),
        ),
        (
            f"servers give all {proposals} proposals in one call; at most all but the first are asked for one by one",
        ),
    )


def cepo(best_of: int, plans: int, attempts: int, tokens: int, *, pairwise: bool) -> Technique:
    """Return CePO's technique: for each answer plans, each carried out, a comparison and a conclusion; then ratings."""
    answer, carried_out = ANSWER_TOKENS.at_most(tokens), EstimateRange(plans, attempts) * exactly(best_of)
    ratings = 2 * comb(best_of, 2) if pairwise else best_of
    return Technique(
        (
            CallEstimate("genesis", carried_out, answer=answer),
            CallEstimate("genesis", carried_out, exactly(1), answer),
            CallEstimate("genesis", exactly(best_of), exactly(plans), answer),
            CallEstimate("genesis", exactly(best_of), exactly(1), answer),
            CallEstimate("genesis", exactly(ratings), exactly(2 if pairwise else 1), answer),
        ),
        (f"every plan is carried out at the first attempt; at most {attempts} attempts for {plans} of them",),
    )


@dataclass(frozen=True)
class Sampled:
    """Programs written independently with a technique, each debugged and run (CodePDE and OptiLLM's techniques).

    `refinements` holds, for each further call, how many programs it is shown (CodePDE-R, FunSearch); what they write is
    debugged and run as well.
    """

    candidates: int = 32
    technique: Technique = single_call()  # noqa: RUF009 - a frozen value
    refinements: tuple[int, ...] = ()
    repairs: int = 4

    def asks(self) -> tuple[CallEstimate, ...]:
        """Return all calls, each kind once; a reply without a program is sent back once."""
        writing = (
            CallEstimate(ask.purpose, ask.calls * exactly(self.candidates), ask.programs, ask.answer)
            for ask in self.technique.asks
        )
        sent_back = CallEstimate("genesis", EstimateRange(0, self.candidates), exactly(1))
        search = (
            CallEstimate("search", _with_retry(self.refinements.count(shown)), exactly(shown))
            for shown in sorted(set(self.refinements))
        )
        programs = exactly(self.candidates + len(self.refinements))
        debugging = _repairs(programs, BASELINE_REPAIRS_PER_PROGRAM, self.repairs)
        return (
            *writing,
            sent_back,
            *search,
            CallEstimate("debug", debugging, EstimateRange(1, max(1, self.repairs))),
        )

    def evaluations(self) -> EstimateRange:
        """Count one run a program, and at most one more for each repair."""
        return _runs(exactly(self.candidates + len(self.refinements)), self.repairs)

    def assumptions(self) -> tuple[str, ...]:
        """Return in words what these numbers rest on."""
        return (
            *self.technique.assumptions,
            _describe_repairs(BASELINE_REPAIRS_PER_PROGRAM, self.repairs),
            "a program is debugged in the conversation that wrote it, which holds all that was tried",
        )


@dataclass(frozen=True)
class Aide:
    """AIDE: a fixed number of steps, each a call and a run; which of them improve and which debug is found out."""

    steps: int = 96
    drafts: int = 24
    debugging: bool = True

    def asks(self) -> tuple[CallEstimate, ...]:
        """Return all calls: a step's prompt shows at most one program, and in words all that have worked before."""
        based, remembered = 1 - min(self.drafts, self.steps) / self.steps, _REMEMBERED * self.steps
        shown = EstimateRange(based + remembered / 2, 1 + remembered)
        return (CallEstimate("search", _with_retry(self.steps), shown),)

    def evaluations(self) -> EstimateRange:
        """Count one run of a program that works; those that fail in their short run have none."""
        share = BASELINE_REPAIRS_PER_PROGRAM / (1 + BASELINE_REPAIRS_PER_PROGRAM)
        drafted = min(self.drafts, self.steps)
        repairing = min(self.steps - drafted, share * self.steps) if self.debugging else 0.0
        return EstimateRange(self.steps - repairing, self.steps)

    def assumptions(self) -> tuple[str, ...]:
        """Return in words what these numbers rest on."""
        repairs = (
            f"{BASELINE_REPAIRS_PER_PROGRAM} debugging steps a program, as far as drafts leave steps for them"
        )
        return (repairs,) if self.debugging else ()


def _repairs(programs: EstimateRange, per_program: float, most: int) -> EstimateRange:
    """Count the calls that correct programs; each may be asked for once more."""
    return programs * EstimateRange(min(per_program, most), 2 * most)


def _with_retry(calls: int) -> EstimateRange:
    return EstimateRange(calls, 2 * calls)


def _runs(programs: EstimateRange, repairs: int) -> EstimateRange:
    return EstimateRange(programs.expected, programs.most * (1 + repairs))


def _describe_repairs(per_program: float, most: int) -> str:
    return f"{per_program} repairs an executed program on average; at most {most}"
