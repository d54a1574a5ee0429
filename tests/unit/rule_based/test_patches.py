from __future__ import annotations

import random

from hypothesis import assume, given
from hypothesis import strategies as st

from sharp.llm.patching import Patched, apply_patch
from sharp.llm.replies import read_revision
from sharp.rule_based.composer import compose
from sharp.rule_based.patching import SLOPPY_PATCH_RATE, UNIFIED_DIFF_RATE, patch, search_replace

HEADER = '```json\n{"base_id": "c001", "changes": [{"what": "w", "why": "y"}]}\n```\n\n'
LINES = st.lists(st.sampled_from(["a", "b", "    c", "", "d = 1", "return e"]), min_size=1, max_size=12)


def applied(before: str, reply: str) -> Patched | None:
    made = apply_patch(before, read_revision(reply, ["c001"], default_base="c001"))
    return made if isinstance(made, Patched) else None


@given(LINES, LINES)
def test_blocks_turn_one_text_into_the_other_each_in_one_place(before: list[str], after: list[str]) -> None:
    assume(before != after and any(line.strip() for line in before))
    lines, shift = list(before), 0
    for search, replacement in search_replace(before, after):
        places = [k for k in range(len(before) - len(search) + 1) if before[k : k + len(search)] == search]
        assert len(places) == 1
        lines[places[0] + shift : places[0] + shift + len(search)] = replacement
        shift += len(replacement) - len(search)
    assert lines == after


def test_patches_between_programs_apply_to_the_letter_in_every_form() -> None:
    rng, sloppy, diffs = random.Random(0), 0, 0
    for seed in range(120):
        old = compose("burgers", seed, fault_rate=0.0).code
        new = compose("burgers", seed + 1000, fault_rate=0.0).code
        text = patch(old, new, rng)
        diffs += text.startswith("```diff")
        made = applied(old, HEADER + text)
        if "(more of the same)" in text:
            sloppy += 1
        else:
            assert made is not None
            assert made.match_level == "exact"
            assert made.code.strip() == new.strip()
    assert 0 < sloppy < 3 * SLOPPY_PATCH_RATE * 120
    assert 0.5 * UNIFIED_DIFF_RATE < diffs / 120 < 2 * UNIFIED_DIFF_RATE


def test_a_program_that_holds_a_fence_is_given_whole() -> None:
    old = 'TEXT = """\n```\n"""\n\n\ndef solver(u):\n    return u\n'
    new = old.replace("return u", "return 2 * u")
    made = applied(old, HEADER + patch(old, new, random.Random(3)))
    assert made is not None
    assert made.code.strip() == new.strip()
