"""Recognising what a conversation asks, and about which problem."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import isnan

from sharp.llm.playbook.describing import document
from sharp.llm.playbook.library import family_of
from sharp.llm.playbook.library.made import made
from sharp.llm.protocol import Message

# The first pattern that a prompt has outside its code names the question; formal complaints come first, as they quote.
_QUESTIONS = (
    ("again", r"^Your last answer could not be read"),
    ("patch-failed", r"^Your patch could not be applied"),
    ("write-analysis", r"^## Writing the analysis$"),
    # What is said of answers comes before what is asked of them, as it quotes them.
    ("rate", r"^## Rating$"),
    ("rate-pair", r"^## Pairwise rating$"),
    ("critique", r"^## Critique of the answers$"),
    ("synthesise", r"^## Synthesis of the answers$"),
    ("compare", r"^## Comparison of the attempts$"),
    ("conclude", r"^## Final answer$"),
    ("carry-out", r"^## Carrying out the plan$"),
    ("plan", r"^## Plan$"),
    ("refine", r"^## Programs and their results$"),
    ("improve", r"^## Improvement$"),
    ("debug", r"^## Debugging$"),
    ("draft", r"^## Draft$"),
    ("repair", r"^## What happened$"),
    ("summary", r"^## Course of the tournament$"),
    ("revise", r"^## Results of round \d+"),
    ("select", r"^Rank the best \d+"),
    ("criteria", r"write the criteria by which you will judge"),
    ("generate", r"^## Template$"),
    ("derive", r"^## Derivation$"),
    ("merged", r"^## Analysis$"),
    ("classification", r"^## Step \d+ of \d+: classification"),
    ("analytical", r"^## Step \d+ of \d+: is there an analytical solution"),
    ("transformation", r"^## Step \d+ of \d+: is there a helpful transformation"),
    ("hybrid", r"^## Step \d+ of \d+: does the problem decompose"),
    ("stability", r"^## Step \d+ of \d+: numerical stability"),
)
CODE = re.compile(r"^(```+|~~~+)[^\n]*\n.*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_EQUATIONS = re.compile(r"^## Equations?\n+```\n(.*?)```", re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"^`(\w+)\(([^)\n]*)\)` returns ", re.MULTILINE)
_SPACE = re.compile(r"^- Space: `(\w+)` from (\S+) to (\S+)\.$", re.MULTILINE)
_FIXED = re.compile(r"^- Parameter: `(\w+)` = (\S+).*not passed", re.MULTILINE)


@dataclass(frozen=True)
class _Form:
    """An equation that the library solves, without white space, and how its solver is called.

    Groups `p1` and `p2` are the parameters passed after the `arrays`; capitalised groups are values that a program has
    to write down, by the library's name of the constant.
    """

    family: str
    arrays: int
    pattern: str


_FORMS = (
    _Form("advection", 2, r"(?P<u>\w+)_t\+(?P<p1>\w+)\*(?P=u)_x=0"),
    _Form("burgers", 2, r"(?P<u>\w+)_t\+(?:\((?P=u)\*\*2/2\)_x|(?P=u)\*(?P=u)_x)=(?P<p1>\w+)/pi\*(?P=u)_xx"),
    _Form(
        "reaction-diffusion",
        2,
        r"(?P<u>\w+)_t-(?P<p1>\w+)\*(?P=u)_xx=(?P<p2>\w+)\*(?P=u)\*\(1-(?P=u)\)",
    ),
    _Form(
        "navier-stokes-1d",
        4,
        (
            r"density_t\+\(density\*Vx\)_x=0\n"
            r"density\*\(Vx_t\+Vx\*Vx_x\)=-pressure_x\+\(\((?P<p2>\w+)\+4/3\*(?P<p1>\w+)\)\*density\*Vx_x\)_x\n"
            r"\(pressure/\((?P<GAMMA>\w+)-1\)\+density\*Vx\*\*2/2\)_t"
            r"\+\(Vx\*\((?P=GAMMA)\*pressure/\((?P=GAMMA)-1\)\+density\*Vx\*\*2/2\)"
            r"-\((?P=p2)\+4/3\*(?P=p1)\)\*density\*Vx\*Vx_x\)_x=0"
        ),
    ),
    _Form("darcy-2d", 1, r"-div\((?P<a>\w+)\*grad\((?P<u>\w+)\)\)=(?P<FORCING>[\w.]+)"),
)
_PERIODIC = "- Boundary: everything is periodic along `x`."
_ZERO_BOUNDARY = re.compile(r"^- Boundary: `\w+ = 0` on the whole boundary\.$", re.MULTILINE)


@dataclass(frozen=True)
class Task:
    """What a conversation says of its problem.

    `family` names the part of the library that solves exactly this problem, or is empty; `constants` are source texts
    of what the description fixes and a program has to write down. Of any other problem, `described` is the description
    as a specification in JSON, if it can be read.
    """

    family: str = ""
    constants: Mapping[str, str] = field(default_factory=dict)
    described: str = ""

    @property
    def name(self) -> str:
        """The name under which the library has a family of this problem, empty if it has none."""
        return self.family or (self.described if family_of(self.described) else "")

    @property
    def reason(self) -> str:
        """Why the library has no family of this problem."""
        return made(self.described).reason if self.described else "I cannot read its description"


def question(text: str) -> str | None:
    """Return the name of what a prompt asks, or None if it is nothing the playbook knows."""
    prose = CODE.sub("", text)
    return next((name for name, pattern in _QUESTIONS if re.search(pattern, prose, re.MULTILINE)), None)


def open_question(messages: Sequence[Message]) -> tuple[str | None, str]:
    """Return what is asked now and the prompt that asks it, looking past complaints about the form of an answer."""
    for message in reversed(messages):
        if message.role == "user" and (name := question(message.content)) != "again":
            return name, message.content
    return None, ""


def task(messages: Sequence[Message]) -> Task:
    """Return the problem that a conversation is about; a prompt may give its description twice."""
    for message in messages:
        if message.role == "user" and (found := list(islice(_EQUATIONS.finditer(message.content), 2))):
            end = found[1].start() if len(found) == 2 else len(message.content)
            return _task(found[0][1], message.content[:end])
    return Task()


def _task(equations: str, description: str) -> Task:
    text = "\n".join(re.sub(r"\s+", "", line) for line in equations.strip().splitlines())
    for form in _FORMS:
        found = re.fullmatch(form.pattern, text)
        if found and _called_as_expected(form, found, description) and _placed_as_expected(form, description):
            written = _written(found, description)
            if _writable(written):
                return _task_of(form, written, description)
    return Task(described=document(equations, description))


def _called_as_expected(form: _Form, found: re.Match[str], description: str) -> bool:
    """Tell whether the solver's last arguments are the equation's parameters, in the library's order."""
    call, groups = _CALL.search(description), found.groupdict()
    if call is None or call[1] != "solver":
        return False
    arguments = [argument.strip() for argument in call[2].split(",")]
    return arguments[form.arrays :] == [groups[name] for name in ("p1", "p2") if name in groups]


def _placed_as_expected(form: _Form, description: str) -> bool:
    """Tell whether domain and boundary conditions are those of the library's programs."""
    extents = [(number(low), number(high)) for _, low, high in _SPACE.findall(description)]
    if form.family == "darcy-2d":
        return extents == [(0, 1), (0, 1)] and _ZERO_BOUNDARY.search(description) is not None
    return len(extents) == 1 and extents[0][1] > extents[0][0] and _PERIODIC in description


def _written(found: re.Match[str], description: str) -> dict[str, str]:
    """Return the values that a program writes down, as the description has them: numbers or parameters not passed."""
    fixed: dict[str, str] = dict(_FIXED.findall(description))
    return {name: fixed.get(text, text) for name, text in found.groupdict().items() if name.isupper()}


def _writable(written: Mapping[str, str]) -> bool:
    """Tell whether all values are numbers, and those that the library's programs take for granted as they are there."""
    values = {name: number(text) for name, text in written.items()}
    return not any(isnan(value) for value in values.values()) and values.get("FORCING", 1.0) == 1.0


def _task_of(form: _Form, written: Mapping[str, str], description: str) -> Task:
    _, low, high = _SPACE.findall(description)[0]
    values = {
        name: " / ".join(repr(float(part)) for part in text.split("/")) for name, text in written.items()
    }
    return Task(form.family, {"LENGTH": repr(number(high) - number(low)), **values})


def number(text: str) -> float:
    """Return a number as descriptions write it (`0.5`, `5/3`), NaN for anything else."""
    numerator, _, denominator = text.partition("/")
    try:
        return float(numerator) / float(denominator or 1)
    except (ValueError, ZeroDivisionError):
        return float("nan")
