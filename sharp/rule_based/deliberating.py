"""Weighing answers that hold programs: critique, synthesis, comparison and ratings, by the reading of judges."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import islice

from sharp.llm.protocol import Message
from sharp.rule_based.conversation_state import SeenProgram, last_program, quoted
from sharp.rule_based.judging import ProgramAssessment, draw_profile, faults, judge, ranking
from sharp.rule_based.patching import whole_file
from sharp.rule_based.program_analysis import read

# So many of the parts in which attempts disagree are named.
NAMED = 6


def critique(prompt: str, family: str, rng: random.Random) -> str:
    """Answer with what is good and what is doubtful in each of the answers that a prompt quotes."""
    profile = draw_profile(prompt, rng)
    said = [f"Answer {entry.id}: {judge(entry, family, profile).reason}." for entry in quoted(prompt)]
    return "\n\n".join(said or ["None of these answers holds a program that I can read."])


def synthesise(prompt: str, family: str, rng: random.Random) -> str | None:
    """Answer with the program that reads best among those quoted; None where there is none."""
    return _best("Answer", quoted(prompt), prompt, family, rng)


def compare(prompt: str, family: str, rng: random.Random) -> str | None:
    """Answer with what the attempts disagree in and the program that reads best; None where there is none."""
    attempts = quoted(prompt)
    differences = "\n".join(islice(_differences(attempts, family), NAMED))
    best = _best("Attempt", attempts, prompt, family, rng)
    told = (
        f"The attempts disagree:\n\n{differences}"
        if differences
        else "The attempts agree in all that I recognise."
    )
    return None if best is None else f"{told}\n\n{best}"


def conclude(messages: Sequence[Message]) -> str | None:
    """Answer with the program of the solution that was worked out; None where there is none."""
    code = last_program(messages)
    return f"This is the program of the solution above.\n\n{whole_file(code)}\n" if code else None


def rate(messages: Sequence[Message], family: str) -> str:
    """Answer 1 for a program in which reading finds no fault, 0 for any other and for none."""
    code = last_program(messages)
    found = faults(code, family) if code else ["there is no program"]
    words = f"This is not right: {'; '.join(found)}." if found else "Reading finds no fault in this program."
    return f"{words}\n\nRating: [[{0 if found else 1}]]\n"


def rate_pair(prompt: str, family: str, rng: random.Random) -> str:
    """Answer with the letter of the program that reads better, A where neither can be read."""
    opinions = _ranked(quoted(prompt), prompt, family, rng)
    words = " ".join(f"{name}: {opinion.reason}." for name, opinion in opinions.items())
    return f"{words or 'I can read neither of them.'}\n\nRating: [[{next(iter(opinions), 'A')}]]\n"


def _best(
    kind: str, entries: Sequence[SeenProgram], prompt: str, family: str, rng: random.Random
) -> str | None:
    for name, opinion in _ranked(entries, prompt, family, rng).items():
        code = next(entry.code for entry in entries if entry.id == name)
        return f"{kind} {name} is the best by reading: {opinion.reason}.\n\n{whole_file(code)}\n"
    return None


def _ranked(
    entries: Sequence[SeenProgram], prompt: str, family: str, rng: random.Random
) -> dict[str, ProgramAssessment]:
    return ranking(entries, family, draw_profile(prompt, rng), rng)


def _differences(entries: Sequence[SeenProgram], family: str) -> Iterator[str]:
    """Yield a line for each part that is not the same in all programs that have it."""
    blocks = {entry.id: read(entry.code, family).blocks for entry in entries}
    for slot in dict.fromkeys(slot for found in blocks.values() for slot in found if slot != "solver"):
        used = {name: found[slot].summary for name, found in blocks.items() if slot in found}
        if len(set(used.values())) > 1:
            yield f"- {slot}: " + "; ".join(f"{summary} in {name}" for name, summary in used.items())
