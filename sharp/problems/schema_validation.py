"""From plain values to the models of the format, with one sentence for everything that does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from sharp.error_messages import describe, valid_values
from sharp.problems.spec import PATTERNS, Specification
from sharp.yaml_source import Path, ValidationIssue, YamlSource


def validate_document(source: YamlSource) -> Specification:
    """Validate the form of a document; raises `SpecificationError` listing all that is wrong."""
    found = _validated(source)
    if not isinstance(found, Specification):
        raise source.error(found)
    return found


def form_faults(source: YamlSource) -> list[ValidationIssue]:
    """Return all that is wrong with the form of a document."""
    found = _validated(source)
    return [] if isinstance(found, Specification) else found


def _validated(source: YamlSource) -> Specification | list[ValidationIssue]:
    if not isinstance(source.value, dict):
        return [ValidationIssue((), f"expected a mapping of keys to values, found {describe(source.value)}")]
    try:
        return Specification.model_validate(source.value)
    except ValidationError as error:
        return [_fault(part, source.value) for part in error.errors(include_url=False)]


def _fault(error: Any, document: Any) -> ValidationIssue:
    path = _without_tag(tuple(part for part in error["loc"] if part != "[key]"), document)
    message = _sentence(error["type"], path, error["input"], error.get("ctx", {}), document)
    return ValidationIssue(_as_written(path, document), message)


def _without_tag(path: Path, document: Any) -> Path:
    """Drop the type of the domain, which pydantic puts into paths below it."""
    domain = document.get("domain")
    if path[:1] == ("domain",) and isinstance(domain, dict) and path[1:2] == (domain.get("type"),):
        return (path[0], *path[2:])
    return path


def _as_written(path: Path, value: Any) -> Path:
    """Drop what stands below a scalar: `nu: 0.1` is short for `nu: {value: 0.1}`."""
    for depth, part in enumerate(path):
        if not isinstance(value, (dict, list)):
            return path[:depth]
        entries = value if isinstance(value, dict) else dict(enumerate(value))
        value = entries.get(part, {})
    return path


def _sentence(kind: str, path: Path, found: Any, context: Mapping[str, Any], document: Any) -> str:
    match kind:
        case "union_tag_not_found":
            return f"expected a key type; {valid_values('values', '', _DOMAINS)}"
        case "union_tag_invalid":
            return (
                f"found type {describe(context['tag'])}; {valid_values('values', context['tag'], _DOMAINS)}"
            )
        case "missing":
            key = "entry" if isinstance(path[-1], int) else "key"
            return f"this {key} is required, and missing"
        case "extra_forbidden":
            return f"unknown key; {valid_values('keys', str(path[-1]), _model_at(path[:-1], document).model_fields)}"
        case "value_error":
            return str(context["error"])
        case "literal_error":
            return f"found {describe(found)}; {valid_values('values', str(found), _choices(path, document))}"
        case "string_pattern_mismatch":
            return f"expected {PATTERNS[context['pattern']]}, found {describe(found)}"
        case "too_short":
            return f"expected at least {context['min_length']} entries, found {context['actual_length']}"
        case "too_long":
            return f"expected at most {context['max_length']} entries, found {context['actual_length']}"
        case _:
            return (
                f"expected {_EXPECTED.get(kind, 'another value').format(**context)}, found {describe(found)}"
            )


_DOMAINS = ("box", "disk", "annulus", "polygon")
_EXPECTED = {
    "string_type": "a text",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "int_from_float": "a whole number",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "a number of at least {ge}",
}


def _choices(path: Path, document: Any) -> tuple[str, ...]:
    """Return the words that the literal at a path admits."""
    annotation = _model_at(path[:-1], document).model_fields[str(path[-1])].annotation
    literals = (annotation, *get_args(annotation))
    return next(tuple(map(str, get_args(part))) for part in literals if "Literal" in str(get_origin(part)))


def _model_at(path: Path, document: Any) -> type[BaseModel]:
    """Return the model of the mapping at a path of the format."""
    model: type[BaseModel] = Specification
    parts = list(path)
    while parts:
        annotation = model.model_fields[str(parts.pop(0))].annotation
        if get_origin(annotation) in (dict, tuple):
            parts.pop(0)
        model = _chosen(_models_in(annotation), document)
    return model


def _chosen(models: list[type[BaseModel]], document: Any) -> type[BaseModel]:
    """Return the only model, or the one of the domain's type."""
    kind = document.get("domain", {}).get("type")
    return next((model for model in models if model.__name__.lower() == kind), models[0])


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]
