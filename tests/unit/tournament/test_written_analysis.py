"""Prompts of the analysis that a model writes: who is asked what, and what happens when it writes none."""

import json

import pytest

from sharp.config import RunConfig
from sharp.llm import form
from sharp.runs.directory import models_of
from sharp.runs.plan import plan
from sharp.tournament.analysis import FORMS, VERDICTS, analyse, findings
from sharp.tournament.genesis import generate
from sharp.tournament.state import Analysis, AnalysisStep
from tests.helpers.models.scripted import ANALYSIS, ScriptedEffects, fenced, program, script, session, verdict

PROMPTS = {name: f"What about the {name} of this equation?" for name in ANALYSIS}
MERGED = verdict(classification={"type": "hyperbolic"}, analytical={"verdict": "no"})
WRITER = {"analyst": "deepseek-r1", "writer": "gpt-4o"}


async def analysed(
    reply, prompting="written-multi", *, again="Still nothing.", stability=True, merged=MERGED
):
    rules = {r"analysis/write$": reply, r"analysis/write/retry": again, r"analysis/merged$": merged}
    effects = ScriptedEffects(script(rules=rules))
    options = {"prompting": prompting, "stability": stability}
    found = await analyse(session(effects, analysis=options, models=WRITER))
    return found, effects.chats


def asked(chats, path):
    return chats[path].messages[-1].content


async def test_the_writer_is_told_the_problem_and_the_aims_and_none_of_our_prompts():
    _, chats = await analysed(verdict(**PROMPTS))
    _, own = await analysed(verdict(**PROMPTS), "multi-step")
    request = chats["analysis/write"]
    assert (request.model, request.purpose) == ("gpt-4o", "analysis")
    assert len(request.messages) == 2
    assert asked(chats, "analysis/write").startswith("# Linear advection")
    assert (
        '{"classification": "…", "analytical": "…", "transformation": "…", "hybrid": "…", "stability": "…"}'
        in (asked(chats, "analysis/write"))
    )
    ours = {
        line for path in own for line in asked(own, path).split("\n## ")[-1].splitlines() if len(line) > 60
    }
    assert len(ours) > 8
    assert not [line for line in ours if line in asked(chats, "analysis/write")]


async def test_five_written_prompts_are_asked_one_after_the_other_in_one_conversation_with_our_forms():
    found, chats = await analysed(verdict(**PROMPTS))
    _, own = await analysed(verdict(**PROMPTS), "multi-step")
    assert list(chats) == ["analysis/write", *own]
    for name, prompt in PROMPTS.items():
        path = f"analysis/{name}"
        assert prompt in asked(chats, path)
        assert asked(chats, path).split("```json")[1] == asked(own, path).split("```json")[1]
        assert chats[path].model == "deepseek-r1"
    assert len(chats["analysis/stability"].messages) == 10
    assert "Decide whether" not in asked(chats, "analysis/analytical")
    assert found.written.prompts == PROMPTS
    assert found.bounds[0].scheme == "upwind"


async def test_one_written_prompt_asks_for_everything():
    found, chats = await analysed(verdict(analysis="Look at it from all sides."), "written-single")
    assert list(chats) == ["analysis/write", "analysis/merged"]
    assert '{"analysis": "…"}' in asked(chats, "analysis/write")
    assert "Look at it from all sides." in asked(chats, "analysis/merged")
    assert "Analyse this problem in one answer" not in asked(chats, "analysis/merged")
    assert "dx, N, u_max, u_min, beta" in asked(chats, "analysis/merged")
    assert found.steps[0].verdict == {"type": "hyperbolic"}


async def test_nobody_is_asked_to_write_of_stability_where_it_is_left_out():
    four = {name: text for name, text in PROMPTS.items() if name != "stability"}
    found, chats = await analysed(verdict(**four), stability=False)
    assert "`stability`" not in asked(chats, "analysis/write")
    assert '"hybrid": "…"}' in asked(chats, "analysis/write")
    assert "analysis/stability" not in chats
    assert found.written.prompts == four


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        ("I would ask about everything.", "no JSON object"),
        (verdict(**{**PROMPTS, "hybrid": " "}), '"hybrid" must not be empty'),
        (verdict(**{**PROMPTS, "hybrid": ["a", "b"]}), '"hybrid" must be a string, found'),
        (verdict(classification="Classify."), '"stability" must be a string, but it is missing'),
    ],
)
async def test_a_reply_of_the_wrong_form_is_answered_once_with_what_is_wrong(reply, complaint):
    found, chats = await analysed(reply, again=verdict(**PROMPTS))
    assert complaint in asked(chats, "analysis/write/retry-1")
    assert found.written.prompts == PROMPTS


@pytest.mark.parametrize("prompting", ["written-multi", "written-single"])
async def test_without_readable_prompts_our_own_are_asked_and_the_reason_is_kept(prompting):
    found, chats = await analysed("Nothing.", prompting)
    _, own = await analysed("", {"written-multi": "multi-step", "written-single": "merged"}[prompting])
    assert list(chats) == ["analysis/write", "analysis/write/retry-1", *own]
    assert [chats[path].messages for path in own] == [own[path].messages for path in own]
    assert found.written.prompts == {}
    assert "no JSON object" in found.written.unreadable


async def test_analyses_of_single_candidates_use_the_prompts_that_were_written_once():
    rules = {
        r"analysis/write$": verdict(**PROMPTS),
        r"genesis/c\d+/analysis/(\w+)$": lambda path, _: ANALYSIS[path.split("/")[-1]],
        r"genesis/c\d+/code$": fenced(program(0.1)),
    }
    effects = ScriptedEffects(script(rules=rules))
    options = {"prompting": "written-multi", "per_candidate": True}
    played = session(effects, analysis=options, genesis={"candidates": 2})
    await generate(played, await analyse(played))
    assert [path for path in effects.chats if "write" in path] == ["analysis/write"]
    assert PROMPTS["hybrid"] in asked(effects.chats, "genesis/c002/analysis/hybrid")


async def test_a_copied_choice_is_sent_back_with_its_values_and_the_form_and_does_not_stay():
    copied = verdict(order=1, linearity="linear | semilinear | quasilinear", type="hyperbolic")
    rules = {r"analysis/classification$": copied, r"classification/retry": ANALYSIS["classification"]}
    effects = ScriptedEffects(script(rules=rules))
    found = await analyse(session(effects))
    complaint = asked(effects.chats, "analysis/classification/retry-1")
    assert '"linearity" must be one of linear, semilinear, quasilinear, found all of them' in complaint
    assert '"boundary": "periodic | dirichlet | neumann | robin | mixed"' in complaint
    assert found.steps[0].verdict["linearity"] == "linear"
    later = effects.chats["analysis/analytical"].messages
    assert [message.role for message in later] == ["system", "user", "assistant", "user"]
    assert "semilinear | quasi" not in later[2].content


def test_the_reasoning_of_an_answer_by_a_schema_reaches_genesis():
    answer = {"reasoning": "## The flux is linear.", "verdict": "no", "solution": "", "reason": "no"}
    step = AnalysisStep("analytical", json.dumps(answer), answer)
    (told,) = findings(Analysis((step,), "numerical"))
    assert told["reasoning"] == "The flux is linear."
    assert told["finding"] == "verdict: no"


def test_schemas_ask_for_what_verdicts_need():
    for name, needed in VERDICTS.items():
        schema = form(**FORMS[name])
        assert set(needed) <= set(schema["required"]) == set(FORMS[name])
    assert VERDICTS["analytical"] == {"verdict": ["yes", "no"]}
    assert VERDICTS["stability"] == {"bounds": list}


def test_the_writer_belongs_to_a_run_only_where_it_is_asked():
    def models(prompting):
        effects = ScriptedEffects(script())
        return models_of(session(effects, models=WRITER, analysis={"prompting": prompting}).config)

    assert models("merged") == ["deepseek-r1", "rule-based"]
    assert models("written-single") == ["deepseek-r1", "gpt-4o", "rule-based"]


@pytest.mark.parametrize(
    ("prompting", "calls"), [("multi-step", 5), ("written-multi", 6), ("merged", 1), ("written-single", 2)]
)
def test_the_plan_counts_the_call_that_writes_the_prompts(prompting, calls):
    config = RunConfig.model_validate({"problem": "advection", "analysis": {"prompting": prompting}})
    assert plan(config)["calls"]["analysis"]["expected"] == calls
