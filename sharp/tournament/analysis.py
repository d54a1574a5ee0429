"""Stage 1, Analysis: checks in one conversation that decide how solvers are built (paper section 3.1).

A model can write the prompts of the checks itself (appendix B.2.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sharp.errors import ReplyError, SpecificationError
from sharp.llm import Conversation, Message, Strategy, read_verdict, render
from sharp.problems import Scope, evaluate_tree, names_in, parse_tree
from sharp.tournament.run_context import RunContext, ask_and_read, system_prompt
from sharp.tournament.state import Analysis, AnalysisStep, GeneratedPrompts, StabilityBound

YES_NO = ("yes", "no")
VERDICTS: Mapping[str, Mapping[str, Any]] = {
    "classification": {"type": ("hyperbolic", "parabolic", "elliptic", "mixed")},
    "analytical": {"verdict": YES_NO},
    "transformation": {"verdict": YES_NO},
    "hybrid": {"verdict": YES_NO},
    "stability": {"bounds": list},
}
SINGLE = "analysis"
"""The name of the one prompt that asks for everything."""

# A "yes" of these checks sends genesis down a branch of its own and ends the search for a better one.
BRANCHES: Mapping[str, Strategy] = {
    "analytical": "analytical",
    "transformation": "transformed",
    "hybrid": "hybrid",
}


@dataclass(frozen=True)
class _Dialogue:
    conversation: Conversation
    steps: tuple[AnalysisStep, ...] = ()

    @property
    def branch(self) -> Strategy | None:
        for step in self.steps:
            if step.name in BRANCHES and step.verdict.get("verdict") == "yes":
                return BRANCHES[step.name]
        return None


async def analyse(
    session: RunContext, path: str = "analysis", written: GeneratedPrompts | None = None
) -> Analysis:
    """Run the analysis of the problem, with the prompts given or, where the configuration says so, newly written ones.

    The checks come in the paper's order; a positive analytical or transformation check skips the rest, and the
    stability analysis runs before hybrid and numerical generation. An answer that stays unreadable after one more
    try counts as "continue" and is recorded as such.
    """
    options = session.config.analysis
    if options.written and written is None:
        checks = tuple(name for name in VERDICTS if name != "stability" or options.stability)
        written = await generate_prompts(session, path, checks)
    prompts = written.prompts if written else {}
    dialogue = await (_merged if options.single else _one_by_one)(session, path, prompts)
    stability = next((step.verdict for step in dialogue.steps if step.name == "stability"), {})
    listed = stability.get("bounds", ())
    bounds = tuple(_bound(session, item) for item in listed if isinstance(item, Mapping))
    return Analysis(dialogue.steps, dialogue.branch or "numerical", bounds, written)


async def _one_by_one(session: RunContext, path: str, prompts: Mapping[str, str]) -> _Dialogue:
    dialogue = _Dialogue((system_prompt(),))
    for name in ("classification", "analytical", "transformation", "hybrid"):
        dialogue = await _step(session, path, dialogue, name, prompts)
        if dialogue.branch in ("analytical", "transformed"):
            return dialogue
    if session.config.analysis.stability:
        dialogue = await _step(session, path, dialogue, "stability", prompts)
    return dialogue


def bound_names(session: RunContext) -> list[str]:
    """Return the names that a stability bound may use."""
    names = ["dx", "u_max", *session.problem.parameters]
    return names if session.problem.time is None else [*names, "dt"]


async def _step(
    session: RunContext, path: str, dialogue: _Dialogue, name: str, prompts: Mapping[str, str]
) -> _Dialogue:
    prompt = render(
        f"analysis/{name}",
        written=prompts.get(name),
        description=session.description,
        steps=5 if session.config.analysis.stability else 4,
        step=len(dialogue.steps) + 1,
        names=bound_names(session),
    )
    asked = (*dialogue.conversation, Message("user", prompt))
    verdict, conversation = await _verdict(session, f"{path}/{name}", asked, VERDICTS[name])
    step = AnalysisStep(name, _answered(conversation), verdict)
    # What stays unreadable is left out of the dialogue: models copy what they see in it.
    return _Dialogue(conversation if step.text else dialogue.conversation, (*dialogue.steps, step))


async def _verdict(
    session: RunContext, path: str, conversation: Conversation, schema: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Conversation]:
    try:
        return await ask_and_read(
            session,
            path,
            session.config.models.analyst,
            "analysis",
            conversation,
            lambda text: read_verdict(text, schema),
        )
    except ReplyError as error:
        return {"verdict": "no", "unreadable": str(error)}, conversation


def _answered(conversation: Conversation) -> str:
    """Return the answer that ends a conversation; an empty text where none could be read."""
    return conversation[-1].content if conversation[-1].role == "assistant" else ""


async def _merged(session: RunContext, path: str, prompts: Mapping[str, str]) -> _Dialogue:
    prompt = render(
        "analysis/merged",
        written=prompts.get(SINGLE),
        description=session.description,
        names=bound_names(session),
        stability=session.config.analysis.stability,
    )
    conversation: Conversation = (system_prompt(), Message("user", prompt))
    verdict, conversation = await _verdict(session, f"{path}/merged", conversation, {"classification": dict})
    text = _answered(conversation)
    steps = tuple(
        AnalysisStep(name, text, verdict[name]) for name in VERDICTS if isinstance(verdict.get(name), Mapping)
    ) or (AnalysisStep("classification", text, verdict),)
    return _Dialogue(conversation, steps)


def _bound(session: RunContext, item: Mapping[str, Any]) -> StabilityBound:
    """Parse a bound and evaluate it on the data's grid; u_max has no value before data are seen."""
    scheme, text = str(item.get("scheme", "unnamed scheme")), str(item.get("bound", ""))
    try:
        tree = parse_tree(text, Scope.of(bound_names(session)))
        values = {"dx": min(session.problem.spacing.values()), **session.problem.parameters}
        if names_in(tree) <= set(values):
            return StabilityBound(scheme, text, evaluate_tree(tree, values))
        return StabilityBound(scheme, text, None, "depends on the solution")
    except SpecificationError as error:
        return StabilityBound(scheme, text, None, str(error))


def findings(analysis: Analysis) -> list[dict[str, str]]:
    """Return one line for each check, for the prompts that follow."""
    listed = []
    for step in analysis.steps:
        told = (
            f"{key}: {_inline(value)}" for key, value in step.verdict.items() if key != "bounds" and value
        )
        finding = "no readable verdict" if "unreadable" in step.verdict else "; ".join(told)
        listed.append({"name": step.name, "finding": finding})
    return listed


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_inline(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(_inline(item) for item in value)
    return str(value)


async def generate_prompts(session: RunContext, path: str, checks: Sequence[str]) -> GeneratedPrompts:
    """Let `models.writer` write a prompt for each check, or one for all of them.

    It is told the problem and what the analysis has to find out, and none of our prompts. A reply that stays unreadable
    after one more try gives no prompts, and the reason.
    """
    options = session.config.analysis
    names = (SINGLE,) if options.single else tuple(checks)
    prompt = render(
        "analysis/write",
        description=session.description,
        single=options.single,
        stability="stability" in checks,
        names=names,
    )
    try:
        prompts, _ = await ask_and_read(
            session,
            f"{path}/write",
            session.config.models.writer,
            "analysis",
            (system_prompt(), Message("user", prompt)),
            lambda text: read_prompts(text, names),
        )
    except ReplyError as error:
        return GeneratedPrompts(unreadable=str(error))
    return GeneratedPrompts(prompts)


def read_prompts(text: str, names: Sequence[str]) -> dict[str, str]:
    """Return the prompts of a reply by name; raises ReplyError unless there is a text for each name."""
    verdict = read_verdict(text, dict.fromkeys(names, str))
    prompts = {name: str(verdict[name]).strip() for name in names}
    empty = [f'"{name}"' for name, prompt in prompts.items() if not prompt]
    if empty:
        raise ReplyError(f"The prompts cannot be used: {', '.join(empty)} must not be empty.")
    return prompts
