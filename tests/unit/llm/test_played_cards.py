"""The rule-based model under other models' names: for trying what needs several models where there is none."""

from __future__ import annotations

from typing import get_args

import pytest

from sharp.config import RunConfig
from sharp.llm.backends import make_backend
from sharp.llm.cards import Purpose, as_rule_based, load_card
from sharp.llm.hosting import is_hosted
from sharp.llm.ledger import dollars
from sharp.llm.protocol import TokenUsage
from sharp.rule_based.backend import RuleBasedBackend
from sharp.runs.creation import load_cards

JUDGES = ("o3", "gpt-4o", "deepseek-r1")


def config(**models: object) -> RunConfig:
    return RunConfig.model_validate({"problem": "burgers", "models": {"judges": JUDGES, **models}})


def test_every_model_keeps_its_name_and_needs_neither_key_nor_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    cards = load_cards(config(override="rule-based"))
    assert {name: card.name for name, card in cards.items()} == {
        name: name for name in (*JUDGES, "rule-based")
    }
    for card in cards.values():
        assert isinstance(make_backend(card), RuleBasedBackend)
        assert not is_hosted(card)
        assert dollars(TokenUsage(prompt=1000, completion=1000), card.price) == 0
    assert "no language model" in cards["o3"].description


def test_without_it_models_are_what_their_cards_say() -> None:
    assert load_cards(config())["o3"].kind == "openai"


def test_replies_are_drawn_as_the_card_says() -> None:
    card = load_card("o3")
    assert [as_rule_based(card).sampling_for(each) for each in get_args(Purpose)] == [
        card.sampling_for(each) for each in get_args(Purpose)
    ]
