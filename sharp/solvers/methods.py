"""The numerical methods, found by entry points of the group `sharp.solvers` (docs/extending.md)."""

from __future__ import annotations

from typing import Any

from sharp.plugins import load_plugin, load_plugins
from sharp.solvers.method import NumericalMethod


def load_method(name: str) -> NumericalMethod:
    """Return the method of a name; raises `ConfigurationError` where there is none or it cannot be loaded."""
    method: NumericalMethod = load_plugin("sharp.solvers", name, _made)
    return method


def all_methods() -> list[NumericalMethod]:
    """Return every method that can be loaded, the built-in ones first."""
    return list(load_plugins("sharp.solvers", _made).values())


def _made(factory: Any) -> NumericalMethod:
    method: NumericalMethod = factory()
    for name in ("name", "unsupported_reason", "resolution_sequence", "solve"):
        if not hasattr(method, name):
            raise TypeError(f"a numerical method has `{name}` (see sharp.solvers.method.NumericalMethod)")
    return method
