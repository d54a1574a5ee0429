"""What must be known before figures of different runs are held against each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from sharp.comparison.entry import Entry
from sharp.llm.cards import ModelCard


def notes(group: Sequence[Entry]) -> Iterator[str]:
    """Yield a sentence for everything that makes runs of one problem less comparable than their figures look."""
    yield from _unfinished(group)
    yield from _without_baseline(group)
    yield from _played(group)
    yield from _differing(group)
    yield from _prices(group)
    yield from _without_gpu(group)


def _unfinished(group: Sequence[Entry]) -> Iterator[str]:
    for entry in group:
        if not entry.finished:
            yield f"{_called(entry)} is not finished: its errors and costs are those so far."
        elif not entry.has_error and not entry.row.note:
            yield f"{_called(entry)} has no error: {_why_none(entry)}."
        if entry.row.note:
            yield f"{_called(entry)}: {entry.row.note}."


def _why_none(entry: Entry) -> str:
    return "none of its programs ran" if entry.row.winner is None else "its winner failed on test data"


def _without_baseline(group: Sequence[Entry]) -> Iterator[str]:
    first, *others = group
    if others and not first.has_error:
        yield (
            f"There is no break-even, for {_called(first)}, the first of these runs, has no error to be held against: "
            "give another run first."
        )


def _played(group: Sequence[Entry]) -> Iterator[str]:
    for share, words in (("all", "all models"), ("some", "some of the models")):
        played = [entry for entry in group if entry.row.playbook == share]
        if played:
            who = "every run" if len(played) == len(group) else _listed(played)
            yield f"The rule-based playbook played {words} of {who}: these results are no language model's."


def _differing(group: Sequence[Entry]) -> Iterator[str]:
    """Yield what is not the same in all runs, though errors, times or costs depend on it."""
    measures: tuple[tuple[str, Callable[[Entry], Hashable]], ...] = (
        (
            "Programs ran on different devices, so that times and GPU-seconds are not comparable",
            lambda e: tuple(sorted(e.devices)),
        ),
        ("The data sets differ, so that errors are not comparable", lambda e: e.row.data),
        (
            "Errors rest on different numbers of validation and test samples",
            lambda e: " and ".join(map(str, e.samples)),
        ),
        ("Programs were ranked by different feedback", lambda e: e.feedback),
        ("Versions of pde-sharp differ", lambda e: e.row.software),
        ("Prompts differ", lambda e: e.row.prompts),
    )
    for sentence, value in measures:
        groups: dict[Hashable, list[Entry]] = defaultdict(list)
        for entry in group:
            groups[value(entry)].append(entry)
        if len(groups) > 1:
            listed = "; ".join(f"{_value(known)}: {_listed(entries)}" for known, entries in groups.items())
            yield f"{sentence} ({listed})."


def _prices(group: Sequence[Entry]) -> Iterator[str]:
    """Yield which models have other prices, or prices of another day, in different runs."""
    known: dict[str, dict[str, list[Entry]]] = defaultdict(lambda: defaultdict(list))
    for entry in group:
        for name, card in entry.cards.items():
            known[name][price_text(card)].append(entry)
    for name, prices in known.items():
        if len(prices) > 1:
            listed = "; ".join(f"{price}: {_listed(entries)}" for price, entries in prices.items())
            yield f"{name} was paid at different prices ({listed})."


def price_text(card: ModelCard) -> str:
    """Return a price with its date."""
    if card.gpu_price is not None:
        return f"${card.gpu_price.dollars_per_gpu_hour:g} for a GPU-hour as of {card.gpu_price.date}"
    if card.price is None:
        return "no price"
    return (
        f"${card.price.prompt:g} and ${card.price.completion:g} as of {card.price.date}"
        if _known(card)
        else "unknown"
    )


def _known(card: ModelCard) -> bool:
    return card.price is not None and card.price.prompt is not None and card.price.completion is not None


def _without_gpu(group: Sequence[Entry]) -> Iterator[str]:
    priced = [entry for entry in group if entry.gpu_price is not None]
    if priced and not any(entry.row.whole_gpu_seconds for entry in priced):
        yield "No program ran on a GPU, so that the price of a GPU-hour adds nothing."


def _value(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _called(entry: Entry) -> str:
    return f"#{entry.number} {entry.name}"


def _listed(entries: Sequence[Entry]) -> str:
    return ", ".join(f"#{entry.number}" for entry in entries)


def cards_of(entries: Sequence[Entry]) -> Mapping[str, ModelCard]:
    """Return the cards of all models that were asked, a model with different prices once for each."""
    found: dict[tuple[str, str], ModelCard] = {}
    for entry in entries:
        for name, card in sorted(entry.cards.items()):
            found.setdefault((name, price_text(card)), card)
    return {f"{name} ({price})": card for (name, price), card in found.items()}
