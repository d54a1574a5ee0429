"""The format reference: its example loads, and it leaves out no key, function, unit or family."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

import sharp
from sharp.problems import parse_problem, render_description
from sharp.problems.families import FAMILIES
from sharp.problems.grammar import RESERVED
from sharp.problems.spec import Sampled, Specification
from sharp.problems.units import COMMON, PREFIXES, matches, parse_unit

DOCUMENT = (Path(sharp.__file__).parents[1] / "docs" / "reference" / "problems.md").read_text(
    encoding="utf-8"
)
CODE = {word for code in re.findall(r"`([^`\n]+)`", DOCUMENT) for word in re.findall(r"\w+", code)}


def test_the_example_is_a_valid_problem() -> None:
    example, outputs, quantities = re.findall(r"```yaml\n(.*?)```", DOCUMENT, flags=re.DOTALL)
    (written,) = re.findall(r"^outputs: .*\n", example, flags=re.MULTILINE)
    longer = example.replace(written, outputs + quantities).replace("time: [0, 300]", "time: [0, 3600]")
    assert [each.name for each in parse_problem(longer, "problems.md").quantities] == [
        "face",
        "loss",
        "hottest",
    ]
    problem = parse_problem(example, "problems.md")
    assert f"`solver({', '.join(problem.interface.arguments)})`" in DOCUMENT
    assert problem.parameters["alpha"] == 237 / (2700 * 900)
    assert "`(h)*u + (k)*d = h*T_air` at `x = L`" in render_description(problem)


def _keys(schema: dict[str, object]) -> set[str]:
    """All property names of a JSON schema."""
    found: set[str] = set()
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            found |= set(value)
        if isinstance(value, dict):
            found |= _keys(value)
    return found


def test_every_key_of_the_format_is_documented() -> None:
    assert _keys(Specification.model_json_schema()) - CODE <= {"expression"}


@pytest.mark.parametrize("name", sorted({*RESERVED, *FAMILIES, *get_args(Sampled)}))
def test_every_word_is_documented(name: str) -> None:
    assert set(name.split("-")) <= {word for code in CODE for word in code.split("-")}


def test_families_are_documented_with_what_they_take_for_granted() -> None:
    for name, family in FAMILIES.items():
        (row,) = re.findall(rf"^\| `{name}` \|(.*)\|$", DOCUMENT, flags=re.MULTILINE)
        names = {*family.fields, *family.coefficients, *family.parameters}
        assert names <= {word.strip(",") for word in row.split()}
        assert all(f"`{equation}`" in row for equation in family.equations)


def test_units_are_documented_with_and_without_prefixes() -> None:
    (prefixes,) = re.findall(r"with the prefixes `([^`]+)`", DOCUMENT)
    (with_prefix, plain) = re.findall(r"(?:prefixes|`): `([^`]+)`\n", DOCUMENT)
    assert [*with_prefix.split(), *plain.split()] == list(COMMON)
    assert prefixes == PREFIXES
    for unit in with_prefix.split():
        assert not any(matches(parse_unit(prefix + unit), parse_unit(unit)) for prefix in prefixes.split())
    for unit in plain.split():
        parse_unit(unit)
