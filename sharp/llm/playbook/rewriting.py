"""Writing a better program from programs that were run: a change by the rules of judges, given as a whole file."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sharp.llm.playbook.composer import compose
from sharp.llm.playbook.improving import Option, variations
from sharp.llm.playbook.judging import NEUTRAL_TASTE, judge
from sharp.llm.playbook.library import family_of
from sharp.llm.playbook.patching import whole_file
from sharp.llm.playbook.remembering import Entry, Memory, shown, to_improve
from sharp.llm.playbook.revising import BUILDS_ON_BEST, all_options, checked, made, worth_trying
from sharp.llm.playbook.understanding import understand

# How often an author tries what promises nothing though something does, and joins a second change where it may.
EXPLORES, JOINS = 0.2, 0.5

Rewriting = tuple[Sequence[Option], str]


def refine(prompt: str, family: str, rng: random.Random) -> str | None:
    """Answer a prompt that shows programs with their results; None where it shows none."""
    programs = shown(prompt)
    if not programs:
        return None
    base = _base(programs, family, rng)
    memory = Memory({entry.id: entry for entry in programs})
    changes, code = _rewritten(base, memory, family, rng)
    seen = "\n".join(f"- {name}: {judge(entry, family).reason}." for name, entry in memory.programs.items())
    reasons = " ".join(f"My change is this: {option.what}. The reason: {option.why}." for option in changes)
    rationale = f"I build on {base.id}. {reasons}" if changes else _nothing_left(family)
    return f"What was seen:\n\n{seen}\n\nRationale: {rationale}\n\n{whole_file(code)}\n"


def improve(prompt: str, family: str, rng: random.Random) -> str | None:
    """Answer a prompt that asks for one change to a program, none of those that it remembers; None without one."""
    base, designs = to_improve(prompt)
    if base is None:
        return None
    memory = Memory({base.id: base})
    known = all_options(base, memory, family)
    tried = frozenset((base.id, option.what) for option in known if option.what in designs)
    changes, code = _rewritten(base, replace(memory, tried=tried), family, rng, single=True)
    sketch = _sketch(changes[0]) if changes else _nothing_left(family)
    return f"{sketch}\n\n{whole_file(code)}\n"


def _base(programs: Sequence[Entry], family: str, rng: random.Random) -> Entry:
    """Return the best program as often as judges do, otherwise another that ran; by reading where none was measured."""
    usable = [entry for entry in programs if entry.usable] or programs
    merit = {entry.id: judge(entry, family).merit(NEUTRAL_TASTE.weights) for entry in usable}
    best, *others = sorted(usable, key=lambda entry: -merit[entry.id])
    return best if rng.random() < BUILDS_ON_BEST or not others else rng.choice(others)


def _rewritten(
    base: Entry, memory: Memory, family: str, rng: random.Random, *, single: bool = False
) -> Rewriting:
    """Return the changes to a program and what comes of them; another program where none is left to try."""
    for options in _ideas(base, memory, family, rng):
        alone = single or rng.random() >= JOINS
        if (change := made(base, _drawn_first(options, rng), memory, single=alone)) is not None:
            return change
    return (), compose(family, rng.getrandbits(32)).code if family_of(family) else base.code


def _ideas(base: Entry, memory: Memory, family: str, rng: random.Random) -> Iterator[list[Option]]:
    """Yield what promises something, and, now and then before it, what is tried though it does not."""
    explores = rng.random() < EXPLORES
    if not explores:
        yield worth_trying(base, memory, family, rng)
    yield _trials(base, memory, family, rng)
    if explores:
        yield worth_trying(base, memory, family, rng)


def _trials(base: Entry, memory: Memory, family: str, rng: random.Random) -> list[Option]:
    """Return tests whether the error is the scheme's at all, and parts that merely differ."""
    choices = understand(base.code, family)
    others = [] if choices is None else [option for option in variations(choices) if option.gain > 0]
    untried = [option for option in others if (base.id, option.what) not in memory.tried]
    return [*checked(base, memory, family, rng), *untried]


def _drawn_first(options: Sequence[Option], rng: random.Random) -> list[Option]:
    """Put one of the changes before the others, the more often the more it promises."""
    if not options:
        return []
    drawn = rng.choices(options, [option.gain for option in options])[0]
    return [drawn, *(option for option in options if option is not drawn)]


def _sketch(option: Option) -> str:
    promised = (
        "Reading promises nothing here, so the result has to tell."
        if option.kind == "trial"
        else f"By reading it should gain about {option.gain:.1f} digits."
    )
    return f"I change one thing: {option.what}. The reason is this: {option.why}. {promised} All else stays as it is."


def _nothing_left(family: str) -> str:
    if family_of(family):
        return "I know no change to it that was not tried, so I write another program."
    return "This equation is none that I know and I see nothing to tune, so I return the program as it is."
