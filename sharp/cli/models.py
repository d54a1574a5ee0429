"""`sharp models`: list and show model cards."""

from __future__ import annotations

import click

from sharp.cli.options import SharpGroup, echo_blocks, echo_json, json_option


@click.group(cls=SharpGroup)
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
    from sharp.document import Table
    from sharp.llm.cards import list_cards, load_card

    cards = [load_card(path) for path in list_cards().values()]
    if as_json:
        echo_json([card.model_dump(mode="json") for card in cards])
        return
    columns = ("model", "kind", "context", "GPUs", "description")
    rows = (
        (
            card.name,
            card.kind,
            f"{card.context} tokens",
            str(card.vllm.gpus) if card.vllm else "",
            card.description,
        )
        for card in cards
    )
    echo_blocks(Table(columns, tuple(rows), columns[2:4]))


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
