"""Programs that were written twice: shown to judges once, and variants of constants marked."""

from __future__ import annotations

from typing import Any

from sharp.tournament.duplicates import distinct, variants
from tests.helpers.models.scripted import fenced, keep, program, selection
from tests.unit.tournament.test_pde_sharp import play

ONCE: dict[str, Any] = {"genesis": {"candidates": 5}, "synthesis": {"max_cycles": 1, "duplicates": "names"}}
# c003 is c001 with other names and words, c004 is c001 with another constant, c005 is c001 as it is.
REWRITTEN = program(0.1, "scheme 1").replace("Scheme", "The scheme").replace("NAME", "TITLE")
WRITTEN = {
    r"^genesis/c003/code$": fenced(REWRITTEN),
    r"^genesis/c004/code$": fenced(program(0.05, "scheme 1")),
    r"^genesis/c005/code$": fenced(program(0.1, "scheme 1") + "\n# The end.\n"),
    r"select/judge-2$": selection(["c002", "c001"]),
    r"select/judge-3$": selection(["c001"]),
}
KEPT = {r"round-\d+/judge-\d+$": keep()}


async def shown(**synthesis: Any) -> tuple[Any, dict[str, str]]:
    options = {**ONCE, "synthesis": {**ONCE["synthesis"], **synthesis}}
    state, effects = await play({**WRITTEN, **KEPT}, **options)
    text = effects.chats["cycle-1/select/judge-1"].messages[-1].content
    return state, {part[:4]: part for part in text.split("### Candidate ")[1:]}


async def test_a_program_that_was_written_three_times_is_shown_once_with_all_its_names() -> None:
    state, told = await shown()
    assert set(told) == {"c001", "c002", "c004"}
    assert "Also written as c003, c005: the same program, differently laid out or named." in told["c001"]
    assert [set(s.shown) for s in state.selections] == [{"c001", "c002", "c004"}] * 3


async def test_a_variant_is_shown_and_says_in_which_constants_it_differs() -> None:
    _, told = await shown()
    assert "A variant of c001, which differs in constants alone: ERROR = 0.05, there 0.1." in told["c004"]
    assert "variant" not in told["c001"]
    # Another scheme by its name and its error.
    assert "A variant of c001" in told["c002"]
    assert "NAME = 'scheme 2', there 'scheme 1'" in told["c002"]


async def test_how_far_equal_programs_may_differ_is_an_option() -> None:
    _, told = await shown(duplicates="shown")
    assert set(told) == {"c001", "c002", "c003", "c004", "c005"}
    assert not [text for text in told.values() if "written as" in text or "variant" in text]
    _, told = await shown(duplicates="layout")
    assert set(told) == {"c001", "c002", "c003", "c004"}
    assert "Also written as c005:" in told["c001"]
    assert not [text for text in told.values() if "variant" in text]


async def test_a_judge_that_names_another_name_of_a_program_means_that_program() -> None:
    named = {r"select/judge-1$": selection(["c005", "c002", "c003"], "c003")}
    state, effects = await play({**WRITTEN, **KEPT, **named}, **ONCE)
    first = state.selections[0]
    assert first.nominee == "c001"
    assert [name for name, _ in first.shortlist] == ["c001", "c002"]
    assert "c003" not in {e.candidate for e in state.executions}
    assert effects.validations()[0] == "cycle-1/round-1/c001/validation"


async def test_later_cycles_show_the_one_that_was_run() -> None:
    rules = {
        **WRITTEN,
        r"cycle-1/select/judge-\d$": selection(["c003", "c002"]),
        r"cycle-2/select/judge-\d$": selection(["c002"]),
        **KEPT,
    }
    options = {"genesis": {"candidates": 5}, "synthesis": {"max_cycles": 2, "next_cycle": "always"}}
    _, plain = await play(rules, **options)
    assert "cycle-1/round-1/c003/validation" in plain.runs
    options["synthesis"]["duplicates"] = "names"
    state, effects = await play(
        {**rules, r"cycle-1/select/judge-\d$": selection(["c001", "c002"])}, **options
    )
    again = effects.chats["cycle-2/select/judge-1"].messages[-1].content
    assert "### Candidate c001 (" in again
    assert "### Candidate c003 (" not in again
    assert "nRMSE: 1.000e-01" in again.split("### Candidate c001")[1].split("```")[0]
    assert state.best == "c001"


async def test_distinct_programs_and_groups_of_variants_are_counted() -> None:
    state, _ = await shown()
    programs = distinct([c for c in state.candidates.values() if c.origin == "genesis"], "solver")
    assert [p.candidate.id for p in programs] == ["c001", "c002", "c004"]
    assert [[p.candidate.id for p in group] for group in variants(programs)] == [["c001", "c002", "c004"]]
