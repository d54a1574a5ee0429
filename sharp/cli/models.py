"""`sharp models`: list and show model cards."""

from __future__ import annotations

import click

from sharp.cli.options import Verbs, echo_json, json_option


@click.group(cls=Verbs)
def models() -> None:
    """List and show model cards.

    \b
    Examples:
      sharp models list
      sharp models show qwen3-32b
    """


@models.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the shipped model cards (and your own in $SHARP_RESOURCES/models).

    \b
    Examples:
      sharp models list
      sharp models list --json
    """
    from sharp.llm.cards import list_cards, load_card

    cards = [load_card(path) for path in list_cards().values()]
    if as_json:
        echo_json([card.model_dump(mode="json") for card in cards])
        return
    for card in cards:
        gpus = f"{card.vllm.gpus} GPU" if card.vllm else ""
        click.echo(f"{card.name:28} {card.kind:9} {card.context:>8} tokens  {gpus:6} {card.description}")


@models.command()
@click.argument("model")
@json_option
def show(model: str, as_json: bool) -> None:
    """Show one model card, by name or from a file.

    \b
    Examples:
      sharp models show local
      sharp models show my-model.yaml --json
    """
    import yaml

    from sharp.llm.cards import load_card

    card = load_card(model).model_dump(mode="json")
    if as_json:
        echo_json(card)
    else:
        click.echo(yaml.safe_dump(card, sort_keys=False, allow_unicode=True).rstrip())
