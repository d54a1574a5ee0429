"""What agents answer, read strictly: every refusal is a sentence that is sent back to the model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from sharp.agent.plans import PlanStep, ToolPlan, check_plan, read_plan
from sharp.agent.tools import Tool, ToolError, Toolkit
from sharp.error_messages import describe, valid_values
from sharp.errors import ReplyError
from sharp.llm import (
    BOOLEAN,
    REASONING,
    TEXT,
    JsonSchema,
    checked,
    extract_json,
    form,
    listing,
    one_of,
    texts_of,
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


def read_next(text: str, plan: ToolPlan, toolkit: Toolkit) -> NextAction:
    """Return the next step `{"step": {…}}`, or `{"finish": true}`, `{"ask_user": "…"}`, `{"reject": "…"}`.

    Raises `ReplyError` where the step does not fit what was done.
    """
    data = extract_json(text)
    known = sorted(data.keys() & {"step", "finish", "ask_user", "reject"})
    if len(known) != 1:
        raise ReplyError(
            f"expected exactly one of step, finish, ask_user, reject, found {', '.join(data) or 'nothing'}"
        )
    match known[0]:
        case "ask_user":
            return NextAction(questions=texts_of(data["ask_user"]))
        case "reject":
            return NextAction(refusal=str(data["reject"]))
        case "finish":
            return NextAction()
    step = read_plan([data["step"]]).steps[0]
    faults = check_plan(ToolPlan((*plan.steps, step)), toolkit)
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
    plan = read_plan(extract_json(text, {"steps": ("steps", "plan")}).get("steps"))
    faults = check_plan(plan, toolkit)
    if faults:
        raise ReplyError("The plan cannot be carried out: " + "; ".join(faults) + ".")
    giving = [tool.name for tool in toolkit.values() if tool.output(wanted)]
    if not any(step.tool in giving for step in plan.steps):
        raise ReplyError(f"The plan leads to no {wanted}; expected a step with {' or '.join(giving)}.")
    return plan


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
    data = extract_json(text)
    known = sorted(data.keys() & _CHOICES)
    if not data.keys() <= _CHOICES and data.keys() <= tool.parameters.model_fields.keys():
        return _parameters(data, tool, others)
    if len(known) != 1:
        found = ", ".join(known) or ", ".join(data) or "nothing"
        raise ReplyError(f"expected exactly one of parameters, need_help, ask_user, found {found}")
    given = data[known[0]]
    if known == ["parameters"]:
        return _parameters(given, tool, others)
    said = texts_of(given)
    if isinstance(given, dict | bool) or not said:
        raise ReplyError(f"expected {known[0]} as a sentence, found {describe(given)}")
    return ParameterChoice(help=" ".join(said)) if known == ["need_help"] else ParameterChoice(questions=said)


_CHOICES = {"parameters", "need_help", "ask_user"}


def _parameters(given: Any, tool: Tool, others: Mapping[str, Mapping[str, Any]]) -> ParameterChoice:
    if not isinstance(given, dict):
        raise ReplyError(f"expected parameters as an object, found {describe(given)}")
    try:
        checked = tool.checked(given).model_dump(mode="json", exclude_defaults=True)
    except ToolError as error:
        raise ReplyError(str(error)) from None
    if misfit := tool.fits(checked, others):
        raise ReplyError(f"{tool.name}: {misfit}")
    return ParameterChoice(parameters=checked)


def read_verdict(text: str, steps: Collection[str]) -> Review:
    """Return the verdict `{"verdict", "reason", "fixes": [{"step", "advice"}], "questions": […], "replan"}`."""
    data = extract_json(text, {"verdict": ("verdict", "judgement")})
    try:
        judgement: Judgement = checked(data.get("verdict"), JUDGEMENTS)
        replan = bool(checked(data.get("replan") or False, bool))
    except ValueError:
        found = data.get("verdict")
        raise ReplyError(
            f"verdict: found {describe(found)}; {valid_values('verdicts', str(found), JUDGEMENTS)}; "
            f"replan: true or false, found {describe(data.get('replan'))}"
        ) from None
    fixes = tuple(_fix(entry, steps) for entry in _fixes_in(data.get("fixes") or []))
    questions = texts_of(data.get("questions"))
    if judgement == "invalid" and not fixes and not replan:
        raise ReplyError("an invalid verdict needs fixes, or replan: true")
    if judgement == "clarify" and not questions:
        raise ReplyError("the verdict clarify needs questions")
    return Review(judgement, str(data.get("reason", "")), fixes, questions, replan)


def _fix(entry: Any, steps: Collection[str]) -> Correction:
    if not isinstance(entry, dict) or not isinstance(entry.get("advice"), str):
        raise ReplyError(f"fixes: expected objects with step and advice, found {describe(entry)}")
    step = str(entry.get("step"))
    if step not in steps:
        raise ReplyError(f"fixes: there is no step '{step}'; {valid_values('steps', step, steps)}")
    return Correction(step, entry["advice"])


def _fixes_in(value: Any) -> list[Any]:
    """Return the entries of `fixes`, which models also write as one, or as an object of steps and advice."""
    if isinstance(value, dict) and "step" not in value:
        return [{"step": step, "advice": advice} for step, advice in value.items()]
    return value if isinstance(value, list) else [value]
