"""Prompt tokens of finished runs by stage, and how much of a judge's prompts its servers' prefix caches can hold.

    python benchmarks/bench_prompts.py RUN

`prompt tokens` are estimated from the recorded requests alike for every run (bytes / 3.5, and 4 a message), whatever a
server counted. `prefix` is the share of a judge's later prompts, in bytes, that begins them as the prompt of its turn
before: what a server that keeps that conversation has computed already. `stages before judging` share their prompts.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from measuring import Table, command_line

from hpc.journal import read_run
from sharp.llm import Message, count_tokens


class Call(NamedTuple):
    """A recorded call: where it was asked, its purpose, its prompt as one text, and the estimated tokens of that."""

    path: str
    purpose: str
    prompt: bytes
    tokens: int


def main(run: Path) -> None:
    """Print the tables of a run."""
    calls = [call_of(effect) for effect in read_run(run).effects.values() if effect.kind == "chat"]
    by_stage = defaultdict[str, list[Call]](list)
    for call in calls:
        by_stage[call.purpose].append(call)
    table = Table("stage", "calls", "prompt tokens:,", "mean:,.0f")
    for stage, listed in [*by_stage.items(), ("all", calls)]:
        tokens = sum(call.tokens for call in listed)
        table.row(stage, str(len(listed)), tokens, tokens / len(listed))
    later = prefixes(by_stage["judge"])
    print(
        f"\n{len(later)} later prompts of judges: {sum(a for a, _ in later) / sum(b for _, b in later):.1%} prefix"
    )


def call_of(effect: Any) -> Call:
    """Read a call."""
    messages = [Message(**message) for message in effect.request["messages"]]
    prompt = "".join(f"<{message.role}>{message.content}" for message in messages).encode()
    return Call(effect.path, effect.request["purpose"], prompt, count_tokens(messages))


def prefixes(calls: list[Call]) -> list[tuple[int, int]]:
    """Return for each later prompt of a conversation the bytes that it shares with the one before, and its own."""
    before: dict[tuple[str, str], bytes] = {}
    found = []
    for call in sorted(calls, key=lambda call: len(call.prompt)):
        cycle, judge = (
            call.path.split("/")[0],
            next(p for p in call.path.split("/") if p.startswith("judge-")),
        )
        if (earlier := before.get((cycle, judge))) is not None:
            found.append((common(earlier, call.prompt), len(call.prompt)))
        before[cycle, judge] = call.prompt
    return found


def common(one: bytes, other: bytes) -> int:
    """Return how many bytes two texts begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


if __name__ == "__main__":
    command_line(main)
