"""What servers can keep of prompts: whoever asks again begins with the same bytes.

A server's prefix cache holds the beginning of a prompt up to the first byte that differs. So what is the same comes
first, and a conversation only grows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise, takewhile

from sharp.llm.protocol import ChatRequest
from tests.helpers.models.scripted import keep, selection
from tests.unit.tournament.test_pde_sharp import play

AGAIN = {r"cycle-2/select/judge-\d$": selection(["h1.4.1", "c001"]), r"cycle-2/round-\d+/judge": keep()}
TWO_CYCLES = {"synthesis": {"max_cycles": 2}, "genesis": {"candidates": 4}}


def written(request: ChatRequest) -> str:
    """A prompt as one text, as a chat template would lay it out."""
    return "".join(f"<{message.role}>{message.content}" for message in request.messages)


def common_beginning(texts: list[str]) -> str:
    return "".join(
        letters[0] for letters in takewhile(lambda few: len(set(few)) == 1, zip(*texts, strict=False))
    )


async def conversations() -> dict[tuple[str, str], list[str]]:
    """The prompts of each judge in each cycle, in order."""
    _, effects = await play(AGAIN, **TWO_CYCLES)
    found = defaultdict(list)
    for path, request in effects.chats.items():
        place = re.match(r"cycle-(\d+)/(?:select|round-\d+)/judge-(\d+)", path)
        if place is not None:
            found[place[1], place[2]].append(written(request))
    return found


async def test_what_a_judge_was_asked_begins_what_it_is_asked_next() -> None:
    judges = await conversations()
    assert set(judges) == {(cycle, judge) for cycle in "12" for judge in "123"}
    assert all(len(judges["1", judge]) == 4 for judge in "123")
    for prompts in judges.values():
        for earlier, later in pairwise(prompts):
            assert later.startswith(earlier)
            assert later[len(earlier) :].startswith("<assistant>")


async def test_judges_of_a_cycle_share_everything_before_the_first_candidate() -> None:
    judges = await conversations()
    for cycle in "12":
        first = [prompts[0] for (place, _), prompts in judges.items() if place == cycle]
        shared = common_beginning(first)
        assert "## Criteria" in shared
        assert "## How programs are scored" in shared
        # Each judge has its own order of candidates, so the first one's name ends what is the same.
        assert shared.count("### Candidate ") == 1
        assert "\n" not in shared[shared.index("### Candidate ") :]


async def test_a_second_run_asks_the_same_bytes() -> None:
    assert await conversations() == await conversations()


async def test_candidates_are_all_asked_for_with_the_same_prompt() -> None:
    _, effects = await play(AGAIN, **TWO_CYCLES)
    asked = {
        path: request for path, request in effects.chats.items() if re.fullmatch(r"genesis/c\d+/code", path)
    }
    assert len(asked) == 4
    assert len({written(request) for request in asked.values()}) == 1
    assert len({request.seed for request in asked.values()}) == 4
