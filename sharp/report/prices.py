"""The prices that a run was frozen with, each with its date and source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sharp.document import Table
from sharp.document.text import MISSING, number_text
from sharp.llm.cards import RULE_BASED, ModelCard, Price

COLUMNS = ("model", "prompt", "of it cached", "completion", "GPU-hour", "as of", "source")
NUMBERS = COLUMNS[1:5]


def price_table(cards: Iterable[ModelCard]) -> Table:
    """Return the prices of models: dollars for a million tokens, or for an hour of one GPU."""
    rows = tuple(_row(card) for card in cards)
    return Table(COLUMNS, rows, NUMBERS, "Prices in dollars: for a million tokens, or for an hour of one GPU")


def _row(card: ModelCard) -> tuple[str, ...]:
    name = card.name if card.kind != RULE_BASED or card.name == "rule-based" else f"{card.name} (rule-based)"
    if card.gpu_price is not None:
        gpu = card.gpu_price
        dated = (str(gpu.date), gpu.source)
        return (name, *[MISSING] * 3, f"{gpu.dollars_per_gpu_hour:g}", *dated)
    if card.price is None:
        return (name, *["unknown"] * 3, MISSING, MISSING, "the model card names no price")
    return (name, *_tokens(card.price), MISSING, str(card.price.date), card.price.source)


def _tokens(price: Price) -> Iterator[str]:
    cached = price.prompt if price.cached is None else price.cached
    for dollars in (price.prompt, cached, price.completion):
        yield "unknown" if dollars is None else number_text(dollars)
