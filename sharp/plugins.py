"""Extensions, found by entry points of installed packages; the built-in ones are registered in the same way.

    sharp.chat_backends      kinds of models
    sharp.methods            methods by which a run writes programs
    sharp.feedback_metrics   collections of feedback metrics
    sharp.solvers            numerical methods
    sharp.trackers           where the course of a run is sent

What each entry point has to name is described in docs/guides/extending.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from sharp.error_messages import valid_values
from sharp.errors import ConfigurationError

Group = Literal[
    "sharp.chat_backends", "sharp.methods", "sharp.feedback_metrics", "sharp.solvers", "sharp.trackers"
]
Prepare = Callable[[Any], Any]

_KINDS: Mapping[Group, str] = {
    "sharp.chat_backends": "chat backend",
    "sharp.methods": "method",
    "sharp.feedback_metrics": "collection of feedback metrics",
    "sharp.solvers": "numerical method",
    "sharp.trackers": "tracker",
}
_OWN = "pde-sharp"
_LOG = logging.getLogger(__name__)


def _as_is(loaded: Any) -> Any:
    return loaded


@cache
def _found(group: Group) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name; of two with the same name the built-in one, or else the first."""
    found: dict[str, EntryPoint] = {}
    # Entry points are looked up once: a process sees the packages that were installed when it began.
    for point in sorted(entry_points(group=group), key=lambda point: (_package(point) != _OWN, point.name)):
        known = found.setdefault(point.name, point)
        if known.value != point.value:
            _LOG.warning(
                "the %s %r of the package %s is not used: there is one of that name in %s",
                *(_KINDS[group], point.name, _package(point), _package(known)),
            )
    return found


def plugin_names(group: Group) -> tuple[str, ...]:
    """Return the names in a group, the built-in ones first."""
    return tuple(_found(group))


def load_plugin(group: Group, name: str, prepare: Prepare = _as_is) -> Any:
    """Return what the entry point of a name stands for, after `prepare`.

    Raises `ConfigurationError` for an unknown name, with those that are valid, and for a plug-in that cannot be
    loaded or prepared, with the name of its package.
    """
    found = _found(group)
    if name not in found:
        kind = _KINDS[group]
        hint = (
            valid_values(f"{kind}s", name, found) if found else "install the package first (pip install -e .)"
        )
        raise ConfigurationError(f"there is no {kind} {name!r}; {hint}")
    return _loaded(group, found[name], prepare)


def load_plugins(group: Group, prepare: Prepare = _as_is) -> dict[str, Any]:
    """Return everything in a group by name; a plug-in that cannot be loaded is left out, with a warning in the log."""
    loaded: dict[str, Any] = {}
    for name, point in _found(group).items():
        try:
            loaded[name] = _loaded(group, point, prepare)
        except ConfigurationError as error:
            _warn_once(str(error))
    return loaded


def _loaded(group: Group, point: EntryPoint, prepare: Prepare) -> Any:
    try:
        return prepare(point.load())
    except Exception as error:  # a plug-in is foreign code: whatever goes wrong in it is told of its package
        raise ConfigurationError(
            f"the {_KINDS[group]} {point.name!r} of the package {_package(point)} ({point.value}) cannot be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error


@cache
def _warn_once(sentence: str) -> None:
    _LOG.warning("%s", sentence)


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "of unknown name"
