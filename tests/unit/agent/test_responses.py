"""What agents answer, as it is read: parameters without their wrapper, formulas in strings, what does not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from sharp.agent.responses import read_choice, read_planning, read_verdict
from sharp.agent.toolkit import standard_toolkit
from sharp.errors import ReplyError

TOOLKIT = standard_toolkit()


def fenced(text: str) -> str:
    return f"So be it.\n```json\n{text}\n```"


def test_parameters_may_stand_without_their_wrapper() -> None:
    initial = TOOLKIT["define_initial_condition"]
    bare = read_choice(fenced('{"field": "w", "value": -0.6243}'), initial)
    assert bare == read_choice(fenced('{"parameters": {"field": "w", "value": -0.6243}}'), initial)
    whole = '{"coordinates": {"space": ["x"]}, "fields": ["u"], "parameters": {"k": 2}, "equations": ["k*u_xx = 1"]}'
    equations = TOOLKIT["define_equations"]
    assert read_choice(fenced(whole), equations) == read_choice(
        fenced(f'{{"parameters": {whole}}}'), equations
    )


def test_formulas_in_strings_are_no_escapes() -> None:
    said = r'{"parameters": {"title": "Rate \frac{1}{\tau}, \nu and \beta of $\theta$"}}'
    found = read_choice(fenced(said), TOOLKIT["assemble_problem"])
    assert found.parameters == {"title": r"Rate \frac{1}{\tau}, \nu and \beta of $\theta$"}


def test_parameters_that_do_not_fit_are_sent_back_with_place_and_valid_values() -> None:
    equations = {"coordinates": {"space": ["x"]}, "fields": ["u"], "equations": ["u_xx = 1"]}
    domain = {"domain": {"type": "box", "bounds": {"x": ["0", "1"]}}}
    given = '{"parameters": {"type": "dirichlet", "field": "u", "where": "left", "value": "0"}}'
    with pytest.raises(
        ReplyError, match=r"boundary\[0\]\.where: expected one of the places all, x = 0, x = 1; found"
    ):
        read_choice(
            fenced(given),
            TOOLKIT["define_boundary_condition"],
            {"define_equations": equations, "define_domain": domain},
        )


@pytest.mark.parametrize("said", ['{"need_help": ""}', '{"parameters": []}', '{"why": "so"}', "{}"])
def test_what_is_no_choice_is_sent_back(said: str) -> None:
    with pytest.raises(ReplyError):
        read_choice(fenced(said), TOOLKIT["define_mean"])


STEPS = [
    {"id": "s1", "tool": "define_equations"},
    {"id": "s2", "tool": "define_domain"},
    {
        "id": "s3",
        "tool": "assemble_problem",
        "inputs": {"equations": ["s1.equations"], "domain": ["s2.domain"]},
    },
]
QUESTION = "What is the temperature at the right end?"
GIVEN = {
    "define_equations": {"coordinates": {"space": ["x"]}, "fields": ["u"], "equations": ["u_xx = 1"]},
    "define_domain": {"domain": {"type": "box", "bounds": {"x": ["0", "1"]}}},
}
WRITTEN = [
    (stage, one["reply"].replace("«STEPS»", json.dumps(STEPS)), one["means"])
    for stage, replies in yaml.safe_load(
        Path(__file__).with_name("written_replies.yaml").read_bytes()
    ).items()
    for one in replies
]


def meaning(stage: str, text: str) -> str:
    if stage == "plan":
        plan = read_planning(text, TOOLKIT, "problem")
        wired = {"equations": ["s1.equations"], "domain": ["s2.domain"]}
        return "PLAN" if plan.ids == ("s1", "s2", "s3") and plan.step("s3").wiring == wired else repr(plan)
    if stage == "choice":
        choice = read_choice(text, TOOLKIT["define_boundary_condition"], GIVEN)
        meant = {"type": "dirichlet", "where": "x = 0", "field": "u", "value": "0"}
        said = "QUESTION" if choice.questions == (QUESTION,) else repr(choice)
        return "PARAMETERS" if choice.parameters == meant else said
    review = read_verdict(text, ["s1", "s2", "s3"])
    assert review.questions in ((), (QUESTION,))
    assert all(fix.advice == "the sign is wrong" for fix in review.fixes)
    return " ".join(
        [review.judgement, *(fix.step for fix in review.fixes), *(["replan"] if review.replan else [])]
    )


@pytest.mark.parametrize(("stage", "text", "meant"), WRITTEN)
def test_answers_in_the_habits_of_real_models_are_read_or_sent_back(
    stage: str, text: str, meant: str | None
) -> None:
    if meant is None:
        with pytest.raises(ReplyError):
            meaning(stage, text)
    else:
        assert meaning(stage, text) == meant
