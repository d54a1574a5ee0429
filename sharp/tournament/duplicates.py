"""Programs that were written more than once, and those that differ in constants alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sharp.evaluation import NormalForm, canonical_hash, normal_form
from sharp.tournament.state import Candidate

SameUpTo = Literal["shown", "layout", "names"]
"""How far programs may differ that count as one: not at all, in comments and layout, in names and imports as well."""
_MOST = 4  # differing constants that a note tells of
_LONGEST = 40  # characters of a constant


@dataclass(frozen=True)
class DistinctProgram:
    """A program, its normal form, and the others that are the same."""

    candidate: Candidate
    form: NormalForm
    others: tuple[Candidate, ...] = ()


def distinct(
    candidates: Iterable[Candidate],
    function: str,
    same_up_to: SameUpTo = "names",
    preferred: Collection[str] = (),
) -> list[DistinctProgram]:
    """Return the distinct programs in the order of their first occurrence.

    Programs are the same if they differ in comments and layout alone, or in `names` and the order of imports as well;
    `function` is what is called of them. Of the same ones the first stands for the others, or the first of the ids
    that are `preferred`.
    """
    groups: dict[Hashable, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        form = normal_form(candidate.code, function)
        keys: Mapping[SameUpTo, Hashable] = {
            "shown": candidate.id,
            "layout": canonical_hash(candidate.code),
            "names": form,
        }
        groups[keys[same_up_to]].append(candidate)
    found = []
    for group in groups.values():
        first = next((item for item in group if item.id in preferred), group[0])
        others = tuple(item for item in group if item is not first)
        found.append(DistinctProgram(first, normal_form(first.code, function), others))
    return found


def variants(programs: Sequence[DistinctProgram]) -> list[list[DistinctProgram]]:
    """Return the groups of distinct programs of one structure, whose constants differ; those of one are left out."""
    groups: dict[str, list[DistinctProgram]] = defaultdict(list)
    for program in programs:
        groups[program.form.structure].append(program)
    return [group for group in groups.values() if len(group) > 1]


def differences(program: DistinctProgram, other: DistinctProgram) -> str:
    """Return in words in which constants a variant differs from another."""
    found = [
        f"{place} = {_clipped(own)}, there {_clipped(its)}"
        for place, own, its in program.form.differences(other.form)
    ]
    more = len(found) - _MOST
    return "; ".join(found[:_MOST]) + (f"; and {more} more" if more > 0 else "")


def notes(programs: Sequence[DistinctProgram], *, about_variants: bool) -> dict[str, list[str]]:
    """Return by id what is to be said of programs that others are the same as, or variants of."""
    found: dict[str, list[str]] = defaultdict(list)
    for program in programs:
        if program.others:
            names = ", ".join(other.id for other in program.others)
            found[program.candidate.id].append(
                f"Also written as {names}: the same program, differently laid out or named."
            )
    for first, *rest in variants(programs) if about_variants else ():
        for variant in rest:
            found[variant.candidate.id].append(
                f"A variant of {first.candidate.id}, which differs in constants alone: {differences(variant, first)}."
            )
    return dict(found)


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
