"""Prompt tokens of finished runs by stage, and how much of a judge's prompts its servers' prefix caches can hold.

    python benchmarks/bench_prompts.py RUN
    python benchmarks/bench_prompts.py RUN --server http://127.0.0.1:8000

`prompt tokens` are estimated from the recorded requests alike for every run (bytes / 3.5, and 4 a message), whatever a
server counted. `prefix` is the share of a judge's later prompts, in bytes, that begins them as the prompt of its turn
before: what a server that keeps that conversation has computed already. `stages before judging` share their prompts.
With `--server`, a vLLM server gets the judges' prompts in the order of the record, and its counters say how many of
their tokens its prefix cache held; the model does not matter, if its context is long enough.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

from measuring import Table, command_line

from hpc.journal import read_run
from sharp.llm import Message, count_tokens


class Call(NamedTuple):
    """A recorded call: where it was asked, its purpose, its prompt as one text, and the estimated tokens of that."""

    path: str
    purpose: str
    prompt: bytes
    tokens: int


COUNTERS = re.compile(r"^vllm:prefix_cache_(queries|hits)_total\{.*\} (\S+)$", re.MULTILINE)


def main(run: Path, server: str = "") -> None:
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
    if server:
        print(by_counters(server, [effect for effect in read_run(run).effects.values() if is_judges(effect)]))


def is_judges(effect: Any) -> bool:
    """Whether a record is a judge's call."""
    return bool(effect.kind == "chat" and effect.request["purpose"] == "judge")


def by_counters(server: str, judged: list[Any]) -> str:
    """Have a server read the prompts of judges; return what its prefix cache held of first and of later turns."""
    with urlopen(f"{server}/v1/models") as answer:
        model = json.load(answer)["data"][0]["id"]
    sums = {"first": [0.0, 0.0], "later": [0.0, 0.0]}
    before = counted(server)
    for effect in judged:
        body = {"model": model, "messages": effect.request["messages"], "max_tokens": 1}
        headers = {"Content-Type": "application/json"}
        urlopen(Request(f"{server}/v1/chat/completions", json.dumps(body).encode(), headers)).close()
        after = counted(server)
        turn = sums["first" if "/select/" in effect.path else "later"]
        turn[:] = [known + new - old for known, new, old in zip(turn, after, before, strict=True)]
        before = after
    return "; ".join(
        f"{name} turns: {asked:,.0f} tokens, {hit / asked:.1%} from the cache"
        for name, (asked, hit) in sums.items()
    )


def counted(server: str) -> list[float]:
    """Return how many tokens of prompts a server has looked up in its prefix cache, and how many it has found."""
    with urlopen(f"{server}/metrics") as answer:
        found = dict(COUNTERS.findall(answer.read().decode()))
    return [float(found[name]) for name in ("queries", "hits")]


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
