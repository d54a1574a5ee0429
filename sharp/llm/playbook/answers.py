"""Answering: from what a conversation asks to the rules that answer it."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence

from sharp.llm.playbook import asking, authoring, deliberating, judging, repairing, revising, rewriting
from sharp.llm.playbook.classifying import analysis_of
from sharp.llm.playbook.knowledge import CAUTIOUS, KNOWLEDGE, Analysis, Verdict
from sharp.llm.playbook.questions import open_question, task
from sharp.llm.protocol import Message

Messages = Sequence[Message]
Handler = Callable[[Messages, str, random.Random], str]


def answer(messages: Messages, rng: random.Random) -> str:
    """Answer the last question of a conversation; the same messages and random state give the same text."""
    asked, prompt = open_question(messages)
    if asked in _STEPS:
        return _step(messages, prompt, asked)
    handler = _HANDLERS.get(asked or "")
    if handler is None:
        return "This is none of the tasks that the playbook's rules cover."
    return handler(messages, prompt, rng)


_STEPS = ("classification", "analytical", "transformation", "hybrid", "stability")


def _family(messages: Messages) -> str:
    """Return the part of the library that solves the problem of a conversation, or an empty string."""
    return task(messages).name


def _analysis(messages: Messages) -> Analysis:
    problem = task(messages)
    known = KNOWLEDGE.get(problem.family)
    return known or (analysis_of(problem.described) if problem.name else CAUTIOUS)


def _step(messages: Messages, prompt: str, name: str) -> str:
    text, verdict = getattr(_analysis(messages), name)
    return f"{text}\n\n{_block(_within(verdict, prompt))}"


def _merged(messages: Messages, prompt: str, _rng: random.Random) -> str:
    analysis = _analysis(messages)
    names = [name for name in _STEPS if name != "stability" or '"stability"' in prompt]
    parts = {name: getattr(analysis, name) for name in names}
    prose = "\n\n".join(text for text, _ in parts.values())
    return f"{prose}\n\n{_block({name: _within(verdict, prompt) for name, (_, verdict) in parts.items()})}"


def _within(verdict: Verdict, prompt: str) -> Verdict:
    """Leave out the bounds that use names which the prompt does not offer."""
    offered = re.search(r"arithmetic of these names: ([\w, ]+)", prompt)
    if "bounds" not in verdict or offered is None:
        return verdict
    names = {*offered[1].replace(" ", "").split(","), "min", "max", "abs", "sqrt", "pi"}
    kept = [item for item in verdict["bounds"] if set(re.findall(r"[A-Za-z_]\w*", item["bound"])) <= names]
    return {**verdict, "bounds": kept}


def _derive(messages: Messages, _prompt: str, _rng: random.Random) -> str:
    analysis = _analysis(messages)
    solution = analysis.analytical[1].get("solution") or analysis.transformation[1].get("transformation")
    return (
        f"{analysis.analytical[0]}\n\nResult: {solution or 'no closed form'}. The initial values are known at the grid "
        "points only: between them a trigonometric or spline interpolation decides the error, and kinks limit its "
        "order."
    )


def _select(messages: Messages, prompt: str, rng: random.Random) -> str:
    return judging.select(prompt, _family(messages), rng)


def _criteria(_messages: Messages, _prompt: str, _rng: random.Random) -> str:
    return judging.criteria()


def _revise(messages: Messages, _prompt: str, rng: random.Random) -> str:
    return revising.revise(messages, _family(messages), rng)


def _patch_failed(messages: Messages, prompt: str, rng: random.Random) -> str:
    whole = "complete improved program" in prompt
    return revising.mend(messages, _family(messages), rng, whole=whole)


def _repair(messages: Messages, _prompt: str, rng: random.Random) -> str:
    return repairing.repair(messages, _family(messages), rng)


def _shown(rule: Callable[[str, str, random.Random], str | None]) -> Handler:
    """Return the handler of a rule that builds on programs in the prompt; where it finds none, one is written."""

    def handler(messages: Messages, prompt: str, rng: random.Random) -> str:
        return rule(prompt, _family(messages), rng) or authoring.generate(messages, prompt, rng)

    return handler


def _conclude(messages: Messages, prompt: str, rng: random.Random) -> str:
    return deliberating.conclude(messages) or authoring.generate(messages, prompt, rng)


def _critique(messages: Messages, prompt: str, rng: random.Random) -> str:
    return deliberating.critique(prompt, _family(messages), rng)


def _rate(messages: Messages, _prompt: str, _rng: random.Random) -> str:
    return deliberating.rate(messages, _family(messages))


def _rate_pair(messages: Messages, prompt: str, rng: random.Random) -> str:
    return deliberating.rate_pair(prompt, _family(messages), rng)


def _write_analysis(messages: Messages, prompt: str, _rng: random.Random) -> str:
    return asking.write_analysis(prompt, task(messages).family)


def _summary(_messages: Messages, prompt: str, _rng: random.Random) -> str:
    course = re.findall(r"^- (cycle .*)$", prompt, re.MULTILINE)
    turns = [line for line in course if "judge" in line]
    measured = re.findall(r", (\d\.\d+e[-+]\d+)(?::|$)", "\n".join(turns), re.MULTILINE)
    ends = [line for line in course if "saturated" in line or "limit" in line]
    data = {
        "summary": f"The judges took {len(turns)} turns. {_progress(measured)}",
        "findings": turns[:12] or ["Every candidate was run once."],
        "efficiency": f"{len(measured)} turns ended with a measured result.",
        "conclusions": f"{ends[-1] if ends else 'The best of all programs that ran was kept'}. "
        "This text was put together by rules from the facts above.",
    }
    return _block(data)


def _progress(measured: Sequence[str]) -> str:
    if not measured:
        return "No error was measured."
    return f"The error went from {measured[0]} in the first measured turn to {min(measured, key=float)} in the best."


def _block(data: Verdict) -> str:
    return f"```json\n{json.dumps(data, indent=1)}\n```\n"


_HANDLERS: Mapping[str, Handler] = {
    "write-analysis": _write_analysis,
    "merged": _merged,
    "derive": _derive,
    "generate": authoring.generate,
    "draft": authoring.draft,
    "plan": authoring.plan,
    "carry-out": authoring.carry_out,
    "critique": _critique,
    "synthesise": _shown(deliberating.synthesise),
    "compare": _shown(deliberating.compare),
    "conclude": _conclude,
    "rate": _rate,
    "rate-pair": _rate_pair,
    "refine": _shown(rewriting.refine),
    "improve": _shown(rewriting.improve),
    "select": _select,
    "criteria": _criteria,
    "revise": _revise,
    "patch-failed": _patch_failed,
    "repair": _repair,
    "debug": _repair,
    "summary": _summary,
}
