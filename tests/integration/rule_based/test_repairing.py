from __future__ import annotations

import random
from itertools import pairwise

import pytest

from sharp.evaluation.code import canonical_hash
from sharp.llm.protocol import Message
from sharp.llm.replies import extract_code
from sharp.rule_based.answers import answer
from sharp.rule_based.code_faults import code_faults
from sharp.rule_based.composer import compose
from sharp.rule_based.library import FAMILIES
from sharp.rule_based.program_analysis import read
from sharp.rule_based.repairing import MISSED_REPAIR_RATE, repair, repaired_program
from tests.helpers.rule_based.asking_baselines import answered, complaint, generation, in_tree, reflecting
from tests.helpers.rule_based.conversations import repair as repair_prompt
from tests.helpers.rule_based.described_problems import asked, case
from tests.helpers.rule_based.programs import program, understood

SEEDS = 40
# How each kind of mistake is reported, in the words of the evaluation.
KINDS = {"shape": "shape", "SyntaxError": "syntax", "value": "non_finite", "output": "timeout"}


def reported(fault: str) -> str:
    message = next(f.message for f in code_faults() if f.name == fault)
    kind = KINDS.get(message, "signature" if fault == "extra-parameter" else "exception")
    return f"Status: failed ({kind})\n{message} in the solver"


@pytest.mark.parametrize("family", [*FAMILIES, "heat-rod-two-ends", "wave-spring-end", "checkerboard"])
def test_what_crashes_is_repaired_to_what_it_was_meant_to_be(family: str) -> None:
    name = family if family in FAMILIES else asked(case(family)).name
    crashing = {fault.name for fault in code_faults() if fault.shows == "crash"}
    tried, missed = 0, []
    for seed in range(SEEDS):
        sound, faulty = compose(name, seed, fault_rate=0.0), compose(name, seed, fault_rate=1.0)
        if faulty.fault not in crashing:
            continue
        tried += 1
        _, code = repaired_program(faulty.code, reported(faulty.fault), name)
        if canonical_hash(code) != canonical_hash(sound.code):
            missed.append((seed, faulty.fault))
    assert tried > 10
    assert len(missed) <= (0.1 if name == family else 0.15) * tried, missed


@pytest.mark.parametrize("family", FAMILIES)
def test_repairs_keep_the_method(family: str) -> None:
    failing = {fault.name for fault in code_faults() if fault.shows in ("crash", "unstable")}
    for seed in range(20):
        sound, faulty = compose(family, seed, fault_rate=0.0), compose(family, seed, fault_rate=1.0)
        if faulty.fault not in failing:
            continue
        _, code = repaired_program(faulty.code, reported(faulty.fault), family)
        before, after = read(sound.code, family), read(code, family)
        kept = sum(after.blocks.get(slot) == block for slot, block in before.blocks.items())
        assert kept >= len(before.blocks) - 1, faulty.fault


def test_repairs_miss_at_the_stated_rate() -> None:
    sound, faulty = (compose("burgers", 4, fault_rate=rate) for rate in (0.0, 1.0))
    prompt = [repair_prompt(faulty.code, "Status: failed (exception)\nNameError")]
    rng = random.Random(0)
    codes = [extract_code(repair(prompt, "burgers", rng), "solver") for _ in range(200)]
    missed = sum(canonical_hash(code) != canonical_hash(sound.code) for code in codes)
    assert missed / 200 == pytest.approx(MISSED_REPAIR_RATE, abs=0.07)


def test_a_program_that_ran_out_of_time_is_compiled_then_cheapened() -> None:
    code = program("muscl")
    failure = "Status: failed (timeout)\nIt was stopped at the limit of 120 s, in the solver."
    seconds = []
    for _ in range(4):
        seconds.append(understood(code).scheme.seconds)
        cause, code = repaired_program(code, failure, "burgers")
        assert cause
    assert "import jax" in code
    assert all(after <= before for before, after in pairwise(seconds))
    assert seconds[-1] < 0.3 * seconds[0]


def test_a_program_that_blew_up_takes_shorter_steps_or_gets_back_its_constants() -> None:
    code = compose("reaction-diffusion", 6, fault_rate=0.0).code
    numbers = read(code, "reaction-diffusion").numbers
    failure = "Status: failed (non_finite)\nu has 99 values that are NaN or Inf."
    _, calmer = repaired_program(code, failure, "reaction-diffusion")
    assert read(calmer, "reaction-diffusion").numbers["MAX_STEP"] == pytest.approx(numbers["MAX_STEP"] / 4)
    wild = code.replace(
        f"MAX_STEP = {read(code, 'reaction-diffusion').constants['MAX_STEP']}", "MAX_STEP = 2"
    )
    _, tame = repaired_program(wild, failure, "reaction-diffusion")
    assert read(tame, "reaction-diffusion").numbers["MAX_STEP"] <= 0.01


def test_what_fails_without_a_visible_mistake_moves_to_another_scheme() -> None:
    code = compose("burgers", 6, fault_rate=0.0).code
    cause, other = repaired_program(code, "Status: failed (exception)\nsomething else", "burgers")
    assert understood(other).recipe.name != understood(code).recipe.name
    assert "cannot work here" in cause


@pytest.mark.parametrize("family", ["burgers", ""])
@pytest.mark.parametrize(
    "code", ["", "x = (", "def solver(u):\n    return u\n", "raise SystemExit\n", "```python\n"]
)
def test_what_is_not_recognised_is_returned_as_it_is(code: str, family: str) -> None:
    assert repaired_program(code, "Status: failed (exception)\nRuntimeError", family)[1] == code


def test_names_of_a_foreign_program_are_mended() -> None:
    code = "def solver(u0_batch, t_coordinate, nu):\n    frames = [u0_batch]\n    return np.stack(fraems, axis=1)\n"
    cause, mended = repaired_program(code, "Status: failed (exception)\nNameError", "")
    assert "np, fraems" in cause
    assert "import numpy as np\n" in mended
    assert "np.stack(frames" in mended


class Surely(random.Random):
    """Draws that make no repair miss its cause."""

    def random(self) -> float:
        return 1.0


SOUND, FAULTY = (compose("burgers", 4, fault_rate=rate).code for rate in (0.0, 1.0))
FAILURE = "Status: failed (exception)\nNameError: name 'solutin' is not defined"


def said(messages: list[Message]) -> str:
    return extract_code(answer(messages, Surely()))


@pytest.mark.parametrize("opening", [generation(), reflecting()])
def test_the_program_to_repair_is_the_last_of_its_conversation(opening: list[Message]) -> None:
    other = compose("burgers", 5, fault_rate=0.0).code
    messages = [
        *opening,
        Message("assistant", answered(other)),
        complaint("Status: failed (timeout)"),
        Message("assistant", answered(FAULTY)),
        complaint(FAILURE),
    ]
    assert canonical_hash(said(messages)) == canonical_hash(SOUND)
    assert canonical_hash(said([*messages[:-2], Message("assistant", "I am lost."), messages[-1]])) == (
        canonical_hash(repaired_program(other, FAILURE, "burgers")[1])
    )


def test_the_kind_of_failure_decides_the_repair_in_a_conversation_too() -> None:
    code = compose("reaction-diffusion", 6, fault_rate=0.0).code
    failure = "Status: failed (non_finite)\nu has 99 values that are NaN or Inf."
    opening = generation("reaction-diffusion")
    text = said([*opening, Message("assistant", answered(code)), complaint(failure, non_finite=True)])
    steps = [read(text, "reaction-diffusion").numbers["MAX_STEP"] for text in (code, text)]
    assert steps[1] == pytest.approx(steps[0] / 4)


def test_a_program_of_the_tree_is_repaired_by_its_output() -> None:
    values = {
        "id": "s003",
        "code": FAULTY.strip(),
        "feedback": FAILURE,
        "output": "Traceback",
        "too_costly": False,
    }
    assert canonical_hash(said(in_tree("debug", **values))) == canonical_hash(SOUND)


def test_a_conversation_without_a_program_still_gets_an_answer() -> None:
    assert "can only return it" in answer([*generation(), complaint(FAILURE)], Surely())
