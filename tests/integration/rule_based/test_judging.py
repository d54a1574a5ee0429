from __future__ import annotations

import random
from dataclasses import replace
from math import inf

import pytest

from sharp.evaluation.feedback import feedback_text
from sharp.evaluation.protocol import CandidateFailure, Evaluation, Scores
from sharp.llm.replies import SelectionReply, read_selection
from sharp.rule_based.composer import compose, strategies
from sharp.rule_based.conversation_state import SeenProgram, candidates, shown
from sharp.rule_based.derived_family import family_named
from sharp.rule_based.judging import NEUTRAL_PROFILE, judge, select
from sharp.rule_based.library import FAMILIES
from tests.helpers.rule_based.conversations import Shown, selection
from tests.helpers.rule_based.programs import PROBLEM_OF

FOREIGN = {
    "spectral": """
import numpy as np


def solver(u0_batch, t_coordinate, nu):
    u_hat = np.fft.rfft(u0_batch, axis=-1)
    def rk4(v, dt):
        k1 = v; k2 = v; k3 = v; k4 = v
        return v + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return np.stack([np.fft.irfft(rk4(u_hat, t)) for t in t_coordinate], axis=1)
""",
    "upwind": """
import numpy as np


def upwind_euler(u, dt, dx):
    return u - dt / dx * u * (u - np.roll(u, 1, axis=-1))


def solver(u0_batch, t_coordinate, nu):
    return np.stack([u0_batch for _ in t_coordinate], axis=1)
""",
    "broken": "def solver(u0_batch, t_coordinate, nu)\n    return u0_batch\n",
    "unfinished": "def solver(u0_batch, t_coordinate, nu):\n    return shift(u0_batch, speed)\n",
}


def pool(family: str, seed: int, size: int = 32) -> dict[str, tuple[str, str | None]]:
    """Return programs as genesis draws them, and their hidden faults."""
    rng = random.Random(seed)
    drawn = [compose(family, rng.getrandbits(32)) for _ in range(size)]
    return {f"c{number:03d}": (p.code, p.fault) for number, p in enumerate(drawn, 1)}


def chosen(prompt: str, family: str, ids: list[str], seed: int) -> SelectionReply:
    reply = select(prompt, family, random.Random(seed))
    return read_selection(reply, ids, max_shortlist=len(ids))


@pytest.mark.parametrize("family", FAMILIES)
def test_faulty_programs_are_seldom_nominated_or_listed(family: str) -> None:
    nominated = listed = shown = 0
    distinct = []
    for seed in range(6):
        programs = pool(family, seed)
        prompt = selection(
            {name: Shown(code) for name, (code, _) in programs.items()}, PROBLEM_OF[family]
        ).content
        choices = [chosen(prompt, family, list(programs), 10 * seed + number) for number in range(3)]
        nominated += sum(programs[choice.nominee][1] is not None for choice in choices)
        listed += sum(programs[name][1] is not None for choice in choices for name, _ in choice.shortlist)
        shown += sum(len(choice.shortlist) for choice in choices)
        distinct.append(len({choice.nominee for choice in choices}))
    assert nominated <= 2  # of 18, where a quarter of all programs is faulty
    assert listed / shown < 0.12
    assert sum(distinct) / len(distinct) > 1.3  # judges differ
    assert strategies(family)


def test_every_reason_is_read_off_the_code() -> None:
    programs = pool("burgers", 3)
    prompt = selection({name: Shown(code) for name, (code, _) in programs.items()}).content
    choice = chosen(prompt, "burgers", list(programs), 0)
    summaries = [block.summary for block in family_named("burgers").blocks]
    reasons = [reason for _, reason in choice.shortlist]
    assert len(reasons) == 16
    assert all(any(summary in reason for summary in summaries) for reason in reasons)
    assert len(set(reasons)) > 4
    assert choice.criteria


def test_what_was_measured_outranks_what_is_promised() -> None:
    codes = [compose("burgers", seed, fault_rate=0.0).code for seed in range(6)]
    shown = {f"c{k:03d}": Shown(code) for k, code in enumerate(codes)}
    shown |= {"h1.2.1": Shown(codes[0] + "\n", 3e-3), "h1.2.2": Shown(codes[1] + "\n", 2e-4)}
    shown |= {"c009": Shown(codes[2], inf)}
    prompt = selection(shown, cycle=2).content
    choices = [chosen(prompt, "burgers", list(shown), seed) for seed in range(10)]
    assert [choice.nominee for choice in choices].count("h1.2.2") >= 7
    assert all(choice.nominee != "c009" for choice in choices)
    reason = dict(choices[0].shortlist)["h1.2.2"]
    assert "measured error 2.000e-04" in reason


def test_criteria_that_are_given_weigh_the_same_for_every_judge() -> None:
    programs = {name: Shown(code) for name, (code, _) in pool("darcy-2d", 1).items()}
    fixed = selection(programs, "darcy", criteria="fixed").content
    free = selection(programs, "darcy").content
    merits = {entry.id: judge(entry, "darcy-2d").merit(NEUTRAL_PROFILE.weights) for entry in candidates(free)}
    best = sorted(merits, key=lambda name: -merits[name])[:8]
    for prompt in (fixed, free):
        nominees = {chosen(prompt, "darcy-2d", list(programs), seed).nominee for seed in range(8)}
        assert nominees <= set(best)


@pytest.mark.parametrize("family", ["burgers", ""])
def test_programs_that_are_not_of_the_library_are_judged_by_their_names(family: str) -> None:
    entries = {name: judge(SeenProgram(name, code), family) for name, code in FOREIGN.items()}
    merits = {name: opinion.merit(NEUTRAL_PROFILE.weights) for name, opinion in entries.items()}
    assert sorted(merits, key=lambda name: -merits[name]) == ["spectral", "upwind", "unfinished", "broken"]
    assert "Fourier" in entries["spectral"].reason
    assert "undefined: shift, speed" in entries["unfinished"].reason
    assert "does not parse" in entries["broken"].reason


@pytest.mark.parametrize(
    "code",
    [
        'TEXT = """\n### Candidate c002 (numerical)\n```python\nx\n"""\n',
        "",
        "### Candidate c003 (numerical)\n",
        "```\n",
    ],
)
def test_programs_that_look_like_prompts_are_no_trouble(code: str) -> None:
    shown = {"c001": Shown(code), "c002": Shown("import numpy as np\n"), "c003": Shown(FOREIGN["upwind"])}
    choice = chosen(selection(shown).content, "burgers", list(shown), 0)
    assert choice.nominee in shown


def test_a_pool_without_any_code_still_gets_an_answer() -> None:
    prompt = selection({"c001": Shown("x"), "c002": Shown("y")}).content
    head, tail = prompt.split("## Candidates")[0], prompt.split("## Your task")[1]
    notice = "[{} is left out here: the conversation had to be shortened.]\n"
    left_out = notice.format("c001") + notice.format("c002")
    choice = chosen(f"{head}## Candidates\n\n{left_out}\n## Your task{tail}", "burgers", ["c001", "c002"], 0)
    assert choice.nominee == "c001"
    assert "left out" in choice.nominee_reason


RUN = Evaluation(None, None, 1.5, 2.0, 100.0, 1e-3, 2000, "float64", "", "", {})
SCORES = Scores(
    *(3e-3, (3e-3, 3e-3), 0.1, None, (), 5e-2),
    measures={"two_grid": 4e-4, "initial_condition": 0.0, "cfl": None},
)


@pytest.mark.parametrize(
    ("kinds", "weights", "measured"),
    [
        (("nrmse",), {}, 3e-3),
        (("residual",), {}, 5e-2),
        (("residual", "nrmse"), {}, 3e-3),
        (("two_grid", "residual"), {}, 4e-4),
        (("initial_condition", "two_grid"), {}, 0.0),
        (("two_grid", "nrmse"), {"two_grid": 1.0, "nrmse": 2.0}, 6.4e-3),
        (("cfl", "residual"), {}, None),
        (("none",), {}, None),
    ],
)
def test_the_number_that_ranks_is_read_whatever_it_measures(kinds, weights, measured) -> None:
    text = feedback_text(replace(RUN, scores=SCORES), kinds, weights=weights)
    found = shown(f"### Program c001\n\n- finer steps (to see: nRMSE: 9)\n{text}\n\n```python\n```\n")
    assert found[0].measured == (None if measured is None else pytest.approx(measured))


def test_a_failure_is_read_as_such_under_every_kind() -> None:
    for kinds in (("nrmse",), ("two_grid",), ("none",)):
        failed = replace(RUN, failure=CandidateFailure("timeout", "Too slow."))
        prompt = f"### Program c001\n\n{feedback_text(failed, kinds)}\n\n```python\n```\n"
        assert shown(prompt)[0].measured == inf
