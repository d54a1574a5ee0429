"""What agents answer, read strictly: every refusal is a sentence that is sent back to the model."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from sharp.agent.plans import PlanStep, ToolPlan, check_plan, completed, read_plan
from sharp.agent.tools import Parameters, Tool, ToolError, Toolkit
from sharp.error_messages import describe, valid_values
from sharp.errors import ReplyError
from sharp.llm import (
    BOOLEAN,
    REASONING,
    TEXT,
    Ids,
    JsonSchema,
    answer,
    checked,
    conform,
    extract_json,
    form,
    listing,
    lower_keys,
    noted_values,
    one_of,
    says_something,
    texts_of,
    told_word,
)

Judgement = Literal["valid", "invalid", "clarify", "reject"]
_MOST_STEPS = 40
JUDGEMENTS: tuple[Judgement, ...] = get_args(Judgement)


@dataclass(frozen=True)
class ParameterChoice:
    """What an agent chose for a step: parameters, or instead a cry for help or a question to the user."""

    parameters: Mapping[str, Any] | None = None
    help: str = ""
    questions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Correction:
    """A step whose parameters are to be chosen anew, and what is wrong with them."""

    step: str
    advice: str


@dataclass(frozen=True)
class Review:
    """What the Orchestrator, or the numbers alone, say of the work so far.

    `helpless` is the step whose agent did not get to parameters: it asks for help, and nothing was measured.
    """

    judgement: Judgement
    reason: str = ""
    fixes: tuple[Correction, ...] = ()
    questions: tuple[str, ...] = ()
    replan: bool = False
    helpless: str = ""

    def __str__(self) -> str:
        advice = "; ".join(f"{fix.step}: {fix.advice}" for fix in self.fixes)
        return f"{self.reason} ({advice})" if advice and advice != self.reason else self.reason


@dataclass(frozen=True)
class NextAction:
    """The next step of a loop without a plan; none where it is finished, refuses, or has a question."""

    step: PlanStep | None = None
    questions: tuple[str, ...] = ()
    refusal: str = ""


@dataclass(frozen=True)
class WrittenProgram:
    """What a programmer answers: the parameters of `run_program`, or instead questions or a refusal."""

    parameters: Mapping[str, Any] | None = None
    questions: tuple[str, ...] = ()
    refusal: str = ""


_OBJECTION = re.compile(r"\[(clarify|reject): [a-z-]+\] (.*?)(?=; \[(?:clarify|reject): |\n|$)")
ASKED_IN_OBJECTION = re.compile(r"\(([^()]*\?[^()]*)\)")
"""The question with which an objection ends."""


def objection_in(text: str) -> Review | None:
    """Return what a tool's words object to in the problem itself, as `objections` writes it; None for anything else."""
    found = _OBJECTION.findall(text)
    if not found:
        return None
    reason = "; ".join(message for _, message in found)
    if any(verdict == "reject" for verdict, _ in found):
        return Review("reject", reason)
    questions = [(ASKED_IN_OBJECTION.findall(message) or [message])[-1] for _, message in found]
    return Review("clarify", reason, questions=tuple(questions))


def read_declined(data: Mapping[str, Any]) -> WrittenProgram | None:
    """Return the questions of `{"ask_user": "…"}` or the refusal of `{"reject": "…"}`, None for anything else."""
    questions, refused = (
        tuple(filter(says_something, texts_of(data.get(key)))) for key in ("ask_user", "reject")
    )
    refusal = " ".join(refused)
    return WrittenProgram(None, questions, refusal) if questions or refusal else None


def read_next(text: str, plan: ToolPlan, toolkit: Toolkit) -> NextAction:
    """Return the next step `{"step": {…}}`, or `{"finish": true}`, `{"ask_user": "…"}`, `{"reject": "…"}`.

    Raises `ReplyError` where the step does not fit what was done.
    """
    data = extract_json(text)
    if {"id", "tool"} <= data.keys():
        data = {"step": data}
    known = _chosen(data, {"step", "finish", "ask_user", "reject"})
    if len(known) != 1:
        raise ReplyError(
            f"expected exactly one of step, finish, ask_user, reject, found {', '.join(data) or 'nothing'}"
        )
    if known[0] in ("ask_user", "reject") and not any(map(says_something, texts_of(data[known[0]]))):
        raise ReplyError(f"expected {known[0]} as a sentence, found {describe(data[known[0]])}")
    match known[0]:
        case "ask_user":
            return NextAction(questions=texts_of(data["ask_user"]))
        case "reject":
            return NextAction(refusal=str(data["reject"]))
        case "finish":
            return NextAction()
    longer = _plan_of([data["step"]], toolkit, plan.steps)
    step, faults = longer.steps[-1], check_plan(longer, toolkit)
    if faults:
        raise ReplyError("The step cannot be carried out: " + "; ".join(faults) + ".")
    return NextAction(step)


def read_stop(text: str) -> bool:
    """Return whether the loop is to end: `{"stop": true}` or `{"stop": false}`."""
    stop = extract_json(text, {"stop": ("stop",)}).get("stop")
    try:
        return bool(checked(stop, bool))
    except ValueError:
        raise ReplyError(f"expected stop as true or false, found {describe(stop)}") from None


def read_planning(text: str, toolkit: Toolkit, wanted: str) -> ToolPlan:
    """Return the plan of an answer `{"steps": […]}` that leads to a result of the name `wanted`, free of faults.

    Raises `ReplyError` listing all faults.
    """
    said = _steps_in(text, toolkit)
    plan = _plan_of(conform(said, plan_form(toolkit), _PLAN_NAMES).get("steps"), toolkit)
    faults = check_plan(plan, toolkit)
    if faults:
        raise ReplyError("The plan cannot be carried out: " + "; ".join(faults) + ".")
    giving = [tool.name for tool in toolkit.values() if tool.output(wanted)]
    if not any(step.tool in giving for step in plan.steps):
        raise ReplyError(f"The plan leads to no {wanted}; expected a step with {' or '.join(giving)}.")
    return plan


def _steps_in(text: str, toolkit: Toolkit) -> dict[str, Any]:
    """Return the object of a plan, else what a reply notes in another way: in YAML, XML, a table, calls, or lines."""
    try:
        return extract_json(text, {"steps": ("steps", "plan")})
    except ReplyError:
        reply = answer(text)
        noted = {key: value for key, value in noted_values(reply).items() if key in ("table", "calls")}
        told = noted or {"steps": _told_steps(reply, toolkit)}
        if not any(told.values()):
            raise
        return told


def _told_steps(reply: str, toolkit: Toolkit) -> list[dict[str, Any]]:
    """Return the steps of lines that name one tool each: "3. s3: `assemble_problem` with domain = s2.domain"."""
    steps: list[dict[str, Any]] = []
    for line in reply.split("\n"):
        tools = [name for name in toolkit if re.search(rf"\b{name}\b", line)]
        before, _, after = line.partition(tools[0]) if len(tools) == 1 else ("", "", line)
        if len(tools) == 1:
            ids = re.findall(r"\b[A-Za-z]+\d+\b", before)
            number = ids[-1] if ids else f"s{len(steps) + 1}"
            steps.append({"id": number, "tool": tools[0], "inputs": []})
        if steps and len(tools) < 2:
            given = re.findall(r"(\w+) *[:=←] *`?(\w+\.\w+)", after)
            steps[-1]["inputs"] += [{"port": port, "from": [source]} for port, source in given]
            steps[-1]["inputs"] += (
                [] if given or not (found := _REFERENCE.findall(after)) else [{"port": "", "from": found}]
            )
    return steps


_REFERENCE = re.compile(r"\b[A-Za-z]+\d+\.\w+")


def _plan_of(listed: Any, toolkit: Toolkit, before: Sequence[PlanStep] = ()) -> ToolPlan:
    """Return a plan with these steps added, as the schema of plans has them; a step alone means its only result."""
    schema = plan_form(toolkit)["properties"]["steps"]
    return completed(ToolPlan((*before, *read_plan(conform(listed, schema, _PLAN_NAMES)).steps)), toolkit)


def plan_form(toolkit: Toolkit) -> JsonSchema:
    """Return the schema of what `read_planning` reads; ports are listed, as schemas name all keys of an object."""
    ports = dict.fromkeys(port.name for tool in toolkit.values() for port in tool.inputs)
    given = listing(form(**{"port": one_of([*ports]), "from": listing(TEXT)}))
    step = form(id=TEXT, tool=one_of([*toolkit]), inputs=given, why=TEXT)
    return form(reasoning=REASONING, steps=listing(step, _MOST_STEPS))


def verdict_form(steps: Sequence[str]) -> JsonSchema:
    """Return the schema of what `read_verdict` reads."""
    fixes = listing(form(step=one_of(steps) if steps else TEXT, advice=TEXT))
    return form(
        reasoning=REASONING,
        verdict=one_of(JUDGEMENTS),
        reason=TEXT,
        fixes=fixes,
        questions=listing(TEXT),
        replan=BOOLEAN,
    )


def read_choice(
    text: str, tool: Tool, others: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
) -> ParameterChoice:
    """Return the choice of an answer: `{"parameters": {…}}`, `{"need_help": "…"}` or `{"ask_user": "…"}`.

    The parameters may stand without their wrapper. `others` are those of the tools that were used before, by name.
    Raises `ReplyError` for what the tool does not take, or what does not fit these.
    """
    fields = tool.parameters.model_fields
    data = _unwrapped(_choice_in(text, tool), {*fields, *_CHOICES})
    if not data.keys() <= _CHOICES and lower_keys(data).keys() <= fields.keys():
        return _parameters(data, tool, others)
    data = conform(data, _CHOICE_FORM, _CHOICE_NAMES)
    known = _chosen(data, _CHOICES)
    if len(known) != 1:
        found = ", ".join(known) or ", ".join(data) or "nothing"
        raise ReplyError(f"expected exactly one of parameters, need_help, ask_user, found {found}")
    given = data[known[0]]
    if known == ["parameters"]:
        return _parameters(given, tool, others)
    said = texts_of(given)
    if isinstance(given, dict | bool) or not any(map(says_something, said)):
        raise ReplyError(f"expected {known[0]} as a sentence, found {describe(given)}")
    return ParameterChoice(help=" ".join(said)) if known == ["need_help"] else ParameterChoice(questions=said)


def _chosen(data: Mapping[str, Any], choices: Collection[str]) -> list[str]:
    """Return the keys that an answer chose; of a form that was filled in what is left empty was not chosen."""
    known = sorted(data.keys() & set(choices))
    if len(known) > 1:
        known = [key for key in known if data[key] not in (None, "", [], {}, False)] or known
    return known


_CHOICES = {"parameters", "need_help", "ask_user"}
_CHOICE_FORM = form(parameters={"type": "object"}, need_help=TEXT, ask_user=listing(TEXT))
_CHOICE_NAMES = {
    "parameters": ("params", "arguments", "args"),
    "ask_user": (
        "question",
        "questions",
        "clarification",
        "clarification_needed",
        "needs_clarification",
        "need_clarification",
        "clarify",
    ),
}
# A question in plain words: "Clarification needed: what is …?", "I have to ask the user: what is …?"
_ASKED = re.compile(
    r"\b(?:ask|question|clarif\w*)\b[^:：?\n{}]{0,40}[:：][\s*_]*([^\n{}]+[?？])", re.IGNORECASE
)


def _unwrapped(value: Mapping[str, Any], keys: Collection[str]) -> Mapping[str, Any]:
    """Return the object with some of these keys that a value is, or alone holds; the value itself where none does."""
    if lower_keys(value).keys() & set(keys):
        return value
    inner = [
        found
        for item in value.values()
        if isinstance(item, dict)
        and (found := _unwrapped(item, keys))
        and lower_keys(found).keys() & set(keys)
    ]
    return inner[0] if len(inner) == 1 else value


def _choice_in(text: str, tool: Tool) -> dict[str, Any]:
    """Return the object of an answer, which may also give its keys in tags or on lines of their own."""
    fields = tool.parameters.model_fields
    required = [name for name, field in fields.items() if field.is_required()]
    try:
        found = extract_json(text)
    except ReplyError:
        for keys in filter(None, (["ask_user"], ["need_help"], required)):
            with suppress(ReplyError):
                named = extract_json(text, {key: (key,) for key in keys})
                return {key: value for key, value in named.items() if key in {*fields, *_CHOICES}}
        if "{" in text or len(asked := set(_ASKED.findall(answer(text)))) != 1:
            raise
        return {"ask_user": asked.pop()}
    return found[tool.name] if [*found] == [tool.name] and isinstance(found[tool.name], dict) else found


def _parameters(given: Any, tool: Tool, others: Mapping[str, Mapping[str, Any]]) -> ParameterChoice:
    if isinstance(given, str):
        given = extract_json(given)
    given = _named_pairs(given)
    if not isinstance(given, dict):
        raise ReplyError(f"expected parameters as an object, found {describe(given)}")
    fields = tool.parameters.model_fields
    given = _unwrapped(given, fields)
    if lower_keys(given).keys() <= fields.keys():
        given = lower_keys(given)
    given = {key: _as_listed(value, tool.parameters, key) for key, value in given.items()}
    try:
        checked = tool.checked(given).model_dump(mode="json", exclude_defaults=True)
    except ToolError as error:
        raise ReplyError(str(error)) from None
    if misfit := tool.fits(checked, others):
        raise ReplyError(f"{tool.name}: {misfit}")
    return ParameterChoice(parameters=checked)


def _named_pairs(given: Any) -> Any:
    """Return the object that a list with one object, or with one name and value each, stands for."""
    if not isinstance(given, list) or not all(isinstance(entry, dict) for entry in given):
        return given
    names = [next((key for key in ("name", "key", "parameter") if key in entry), "") for entry in given]
    if given and all(entry.keys() == {name, "value"} for name, entry in zip(names, given, strict=True)):
        return {str(entry[name]): entry["value"] for name, entry in zip(names, given, strict=True)}
    return given[0] if len(given) == 1 else given


def _as_listed(value: Any, parameters: type[Parameters], key: str) -> Any:
    """Return one of a parameter's words as it is listed, whatever its case; any other value as it is."""
    field = parameters.model_fields.get(key)
    words = get_args(field.annotation) if field else ()
    return next(
        (word for word in words if isinstance(value, str) and str(word).lower() == value.lower()), value
    )


def read_verdict(text: str, steps: Collection[str]) -> Review:
    """Return the verdict `{"verdict", "reason", "fixes": [{"step", "advice"}], "questions": […], "replan"}`."""
    said = _verdict_in(text)
    data = conform(said, verdict_form([*steps]), _NAMES)
    if "fixes" not in data and {"step", "advice"} <= data.keys():
        data = {**data, "fixes": [{"step": data["step"], "advice": data["advice"]}]}
    if data.get("verdict") == "replan":
        data = {**data, "verdict": "invalid", "replan": True}
    try:
        judgement: Judgement = checked(data.get("verdict"), JUDGEMENTS)
        replan = bool(checked(data.get("replan") or False, bool))
    except ValueError:
        found = data.get("verdict")
        raise ReplyError(
            f"verdict: found {describe(found)}; {valid_values('verdicts', str(found), JUDGEMENTS)}; "
            f"replan: true or false, found {describe(data.get('replan'))}"
        ) from None
    fixes = tuple(_fix(entry, steps) for entry in data.get("fixes", []))
    questions = tuple(dict.fromkeys(texts_of(data.get("questions", []))))
    if judgement == "invalid" and not fixes and not replan:
        raise ReplyError("an invalid verdict needs fixes, or replan: true")
    if judgement == "clarify" and not questions:
        raise ReplyError("the verdict clarify needs questions")
    return Review(judgement, str(data.get("reason", "")), fixes, questions, replan)


def _verdict_in(text: str) -> dict[str, Any]:
    """Return the object of a verdict, else what a reply notes beside the one word of it that a sentence gives."""
    try:
        return extract_json(text, {"verdict": ("verdict", "judgement")})
    except ReplyError:
        word = told_word(
            text, ("verdict", "judgement", "result", "answer", "decision", "conclusion"), JUDGEMENTS
        )
        if word is None or "{" in text:
            raise
        return {**noted_values(answer(text)), "verdict": word}


# Names that models give the parts of an answer.
_NAMES = {
    "step": ("step_id", "id"),
    "advice": ("advice", "fix", "problem", "issue", "reason", "what"),
    "questions": ("ask_user",),
    "verdict": ("judgement",),
}
_PLAN_NAMES = {
    "id": ("step", "step_id"),
    "tool": ("name", "tool_name", "action", "function"),
    "inputs": ("input", "uses", "arguments", "parameters", "args"),
    "port": ("name", "input"),
    "from": ("source", "ref", "value"),
    "why": ("reason", "rationale", "purpose", "description"),
}


def _fix(entry: Any, steps: Collection[str]) -> Correction:
    advice = entry.get("advice") if isinstance(entry, dict) else None
    if not isinstance(advice, str) or not says_something(advice):
        raise ReplyError(f"fixes: expected objects with step and advice, found {describe(entry)}")
    named = str(entry.get("step", ""))
    step = Ids(steps).match(named) or Ids(steps).match(named.partition(".")[0])
    if step is None:
        raise ReplyError(f"fixes: there is no step '{named}'; {valid_values('steps', named, steps)}")
    return Correction(step, advice.strip())
