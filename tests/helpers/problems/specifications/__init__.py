"""Specifications that several tests use, one file each, and variations of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def specification(name: str, **changes: Any) -> str:
    """Return the text of a specification, with some keys replaced; `None` leaves a key out."""
    text = (Path(__file__).parent / f"{name}.yaml").read_text()
    if not changes:
        return text
    content = {**yaml.safe_load(text), **changes}
    return yaml.safe_dump(
        {key: value for key, value in content.items() if value is not None}, sort_keys=False
    )
