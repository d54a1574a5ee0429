"""Typed parameter accuracy: the share of a chain's parameters that are right, and what is wrong with the others.

A gold value says what kind of value it is, and so how a given one is compared: expressions and equations by their
values (`equivalence`), choices exactly, lists and mappings part by part. Every value that is not a list or a mapping
counts the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sharp.error_messages import clip, describe
from sharp.errors import SpecificationError
from sharp.experiments.agent_benchmark.metrics.equivalence import Symbols, same_equation, same_expression
from sharp.experiments.agent_benchmark.metrics.graphs import (
    ChainGraph,
    ExecutedToolCall,
    best_renumberings,
    from_steps,
)

_MISSING = object()
_MAX_WAYS = 120  # to number repeated uses that are equally good by their edges; five uses have as many


@dataclass(frozen=True)
class ExpressionGold:
    """An expression of the grammar; a number may be given for it."""

    text: str


@dataclass(frozen=True)
class EquationGold:
    """An equation of the grammar, up to its sign and a constant factor."""

    text: str


@dataclass(frozen=True)
class ExactGold:
    """A choice, a name or a truth value, which has no second way of writing."""

    value: str | bool | int | None


@dataclass(frozen=True)
class ListGold:
    """A list; where it is not `ordered`, as with boundary conditions, items are paired so that most are right."""

    items: tuple[Gold, ...]
    ordered: bool = True


@dataclass(frozen=True)
class MappingGold:
    """A mapping that has to hold these entries; any others are free, and judged by nobody."""

    entries: Mapping[str, Gold]


Gold = ExpressionGold | EquationGold | ExactGold | ListGold | MappingGold


@dataclass(frozen=True)
class Wrong:
    """One wrong value: where it is, what was expected and found, and a sentence with the reason."""

    path: str
    expected: str
    found: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True)
class Accuracy:
    """How many of `total` values are right, and those that are not."""

    total: int
    wrong: tuple[Wrong, ...]

    @property
    def share(self) -> float:
        """The share of values that are right, 1 where there is none to give."""
        return 1 - len(self.wrong) / self.total if self.total else 1.0


def parameter_accuracy(gold: Gold, given: Any, symbols: Symbols) -> Accuracy:
    """Compare a given value with a gold one, or all parameters of a chain, as mappings by node and parameter.

    A given text that cannot be read is wrong. Raises `SpecificationError` where a gold text cannot be read.
    """
    verdicts = list(_verdicts(gold, given, symbols, ""))
    return Accuracy(len(verdicts), tuple(verdict for verdict in verdicts if verdict is not None))


def chain_accuracy(
    gold: Mapping[str, MappingGold], steps: Sequence[ExecutedToolCall], accepted: ChainGraph, symbols: Symbols
) -> Accuracy:
    """Compare the parameters of executed steps with gold ones, given by the ids of an accepted graph's nodes.

    What is optional and was left out has no parameters to be right. Where uses of a tool can be numbered in several
    ways (`graphs.best_renumberings`) that one counts with which most is right. Raises like `parameter_accuracy`, and
    `DataError` like `graphs.from_steps`.
    """
    executed = from_steps(steps)

    def numbered(uses: Mapping[str, int]) -> Accuracy:
        ids = (f"{node.tool}#{uses[node.id]}" for node in executed.nodes)
        given = {name: step.parameters for step, name in zip(steps, ids, strict=True)}
        due = {name: part for name, part in gold.items() if name in accepted.essential.ids or name in given}
        return parameter_accuracy(MappingGold(due), given, symbols)

    ways = islice(best_renumberings(executed, accepted), _MAX_WAYS)
    return max(map(numbered, ways), key=lambda accuracy: accuracy.share)


def _verdicts(gold: Gold, given: Any, symbols: Symbols, path: str) -> Iterator[Wrong | None]:
    """Yield for every value None where it is right."""
    match gold:
        case MappingGold(entries):
            values = given if isinstance(given, Mapping) else {}
            for name, part in entries.items():
                yield from _verdicts(part, values.get(name, _MISSING), symbols, f"{path}.{name}".lstrip("."))
        case ListGold():
            yield from _list_verdicts(gold, given if isinstance(given, (list, tuple)) else (), symbols, path)
        case _:
            reason = "is missing" if given is _MISSING else _reason(gold, given, symbols)
            yield Wrong(path, _shown(gold), _described(given), reason) if reason else None


def _list_verdicts(
    gold: ListGold, given: Sequence[Any], symbols: Symbols, path: str
) -> Iterator[Wrong | None]:
    places = range(len(gold.items)) if gold.ordered else _pairing(gold.items, given, symbols)
    for place, item in zip(places, gold.items, strict=True):
        value = given[place] if place < len(given) else _MISSING
        yield from _verdicts(item, value, symbols, f"{path}[{place}]")
    for place in sorted(set(range(len(given))) - set(places)):
        yield Wrong(f"{path}[{place}]", "no further item", _described(given[place]), "is superfluous")


def _pairing(items: Sequence[Gold], given: Sequence[Any], symbols: Symbols) -> list[int]:
    """Return for each gold item the place of the given one it is compared with; places beyond the end are missing."""
    from scipy.optimize import linear_sum_assignment

    size = max(len(items), len(given))
    padded = [*given, *[_MISSING] * (size - len(given))]
    right = [[list(_verdicts(item, value, symbols, "")).count(None) for value in padded] for item in items]
    if not right:
        return []
    _, places = linear_sum_assignment(right, maximize=True)
    return [int(place) for place in places]


def _reason(gold: Gold, given: Any, symbols: Symbols) -> str | None:
    """Return why a value is wrong, None where it is right."""
    match gold:
        case ExpressionGold(text):
            return _text_reason(given, text, symbols, same_expression)
        case EquationGold(text):
            return _text_reason(given, text, symbols, same_equation)
        case ExactGold(value):
            same = given == value and isinstance(given, bool) == isinstance(value, bool)
            return None if same else "is another value"
        case _:
            return "is not a single value"


def _text_reason(
    given: Any, gold: str, symbols: Symbols, same: Callable[[str, str, Symbols], bool]
) -> str | None:
    if isinstance(given, bool) or not isinstance(given, (str, int, float)):
        return "is not a text"
    if not same(gold, gold, symbols):
        raise SpecificationError(f"gold value '{clip(gold)}': has too few points with a value to be compared")
    try:
        return None if same(gold, str(given), symbols) else "is not equivalent"
    except SpecificationError as error:
        return f"cannot be read ({error})"


def _shown(gold: Gold) -> str:
    match gold:
        case ExpressionGold(text) | EquationGold(text):
            return clip(text)
        case ExactGold(value):
            return repr(value)
        case ListGold() | MappingGold():
            return "several values"


def _described(given: Any) -> str:
    match given:
        case {"ref": str(reference)}:
            return f"a reference to {reference}"
        case _ if given is _MISSING:
            return "nothing"
        case _:
            return describe(given)
