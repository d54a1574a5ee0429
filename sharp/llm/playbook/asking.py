"""Writing the prompts of an analysis: what the playbook would ask about a family of equations."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sharp.llm.playbook.library import FAMILIES


@dataclass(frozen=True)
class Focus:
    """Where the checks of an analysis have to look first in one family of equations."""

    equation: str
    closed_form: str
    substitution: str
    parts: str
    limit: str


_ANY = Focus(
    equation="this equation",
    closed_form="characteristics, similarity forms and expansions that end on the grid",
    substitution="changes of variables or of the unknown that make it linear or take out a term",
    parts="each of its terms on its own",
    limit="each term on its own, and all together",
)
_FOCUS: Mapping[str, Focus] = {
    "advection": Focus(
        equation="the transport equation with constant speed",
        closed_form="the characteristics, and what a shift by a fraction of a cell means for data known at points",
        substitution="a frame that moves with the profile",
        parts="its only term in space",
        limit="the distance that the profile travels in a step, in cells",
    ),
    "burgers": Focus(
        equation="Burgers' equation with this small viscosity",
        closed_form="the convolution that is left for arbitrary data",
        substitution="the Cole-Hopf substitution, and how large its exponent gets here",
        parts="the convection and the diffusion",
        limit="the convection and the diffusion on their own, and both together",
    ),
    "reaction-diffusion": Focus(
        equation="the heat equation with a logistic source",
        closed_form="the flow of each term alone, and of both together",
        substitution="the log odds of the unknown, and what they make of the diffusion",
        parts="the diffusion in Fourier space and the reaction at each point",
        limit="the explicit diffusion, the reaction, and what is left where the diffusion is exact",
    ),
    "navier-stokes-1d": Focus(
        equation="the equations of a viscous gas",
        closed_form="special flows, and whether any of them covers arbitrary data",
        substitution="characteristic variables",
        parts="the inviscid fluxes and the viscous stress",
        limit="the fastest wave, and the viscosity where the density is smallest",
    ),
    "darcy-2d": Focus(
        equation="the steady diffusion equation with a coefficient that jumps",
        closed_form="expansions, and what the jumps make of them",
        substitution="scalings of the unknown by the coefficient",
        parts="the part with a constant coefficient, which has a fast inverse, and the rest",
        limit="the condition number instead of a time step",
    ),
}
_QUESTIONS: Mapping[str, str] = {
    "classification": (
        "Say what kind of equation {equation} is: its order in space and in time, whether and how it is nonlinear, "
        "whether it is hyperbolic, parabolic, elliptic or mixed, which boundary conditions it has, and what its exact "
        "solutions conserve or never exceed. Those who write programs choose their schemes by it."
    ),
    "analytical": (
        "Can the solution of {equation} for arbitrary data be written down and evaluated on the grid, as accurately as "
        "a good scheme would? Look at {closed_form}. Say yes only if nothing is left to a scheme."
    ),
    "transformation": (
        "Is there a substitution after which all of {equation} is solved exactly or far more cheaply? Look at "
        "{substitution}. Say yes only if it is well conditioned in floating-point arithmetic at the given parameters."
    ),
    "hybrid": (
        "Does the operator of {equation} split into parts of which one has an exact or unconditionally stable "
        "solution? Look at {parts}. Say for each part how it is to be treated."
    ),
    "stability": (
        "For the schemes that you would consider for {equation}, derive symbolic bounds on the time step. Look at "
        "{limit}. Recommend the schemes whose bound does not force them to steps far below what accuracy needs."
    ),
}


def write_analysis(prompt: str, family: str) -> str:
    """Answer with the prompts of the analysis that a prompt asks for: one for each check, or one for all."""
    focus = _FOCUS[family] if family in FAMILIES else _ANY
    questions = {
        name: text.format(**vars(focus)) for name, text in _QUESTIONS.items() if f"- `{name}`" in prompt
    }
    names = _names(prompt)
    prompts = {name: questions.get(name) or " ".join(_numbered(questions)) for name in names}
    known = "I know this equation" if family in FAMILIES else "This equation is none that I know"
    form = f"```json\n{json.dumps(prompts, indent=1)}\n```"
    return f"{known}; these are the questions that decide how it is solved.\n\n{form}\n"


def _names(prompt: str) -> Sequence[str]:
    """Return the names in the last form of an answer that a prompt shows."""
    forms = re.findall(r"^```json\n(.*?)^```", prompt, re.MULTILINE | re.DOTALL)
    return re.findall(r'"(\w+)":', forms[-1]) if forms else list(_QUESTIONS)


def _numbered(questions: Mapping[str, str]) -> list[str]:
    return [f"({number}) {text}" for number, text in enumerate(questions.values(), 1)]
