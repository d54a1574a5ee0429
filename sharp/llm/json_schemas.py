"""JSON schemas of answers that are JSON: servers that can hold an answer to one.

Texts and lists are bounded, so that no weak model writes without end. What all servers take is small: llama.cpp refuses
bounds of 2000 characters and more, OpenAI keys that are not required.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sharp.llm.replies import Allowed

JsonSchema = Mapping[str, Any]

TEXT: JsonSchema = {"type": "string", "maxLength": 300}
REASONING: JsonSchema = {"type": "string", "maxLength": 1500}
"""What a model thinks before it decides; it stands first, as an answer by a schema has no room for prose."""
INTEGER: JsonSchema = {"type": "integer"}
BOOLEAN: JsonSchema = {"type": "boolean"}


def one_of(words: Sequence[str]) -> JsonSchema:
    """Return the schema of one of some words."""
    return {"type": "string", "enum": [*words]}


def listing(item: JsonSchema, most: int = 12) -> JsonSchema:
    """Return the schema of a list of some things."""
    return {"type": "array", "items": item, "maxItems": most}


def form(**properties: JsonSchema) -> JsonSchema:
    """Return the schema of an object with these keys, all of them required."""
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def allowed_by(schema: JsonSchema) -> Allowed:
    """Return what `read_verdict` admits for a value of a schema."""
    return schema["enum"] if "enum" in schema else {"array": list, "object": dict}[schema["type"]]


def selection_form(ids: Sequence[str], *, max_shortlist: int) -> JsonSchema:
    """Return the schema of what `read_selection` reads."""
    name = one_of(ids)
    return form(
        reasoning=REASONING,
        criteria=listing(TEXT),
        shortlist=listing(form(id=name, reason=TEXT), max_shortlist),
        nominee=name,
        nominee_reason=TEXT,
    )
