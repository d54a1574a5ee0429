"""What the figures of a report show, before anything is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from sharp.report.panels import Panels

Array = NDArray[Any]


@dataclass(frozen=True)
class Dot:
    """One validation run, the `number`-th of the run, with the judges it was made for (none in best-of-N).

    `error` and `truth` are None where the program failed or no true solution is known; `won` marks the winner's.
    """

    number: int
    candidate: str
    judges: tuple[int, ...]
    error: float | None
    truth: float | None
    won: bool


@dataclass(frozen=True)
class Level:
    """A horizontal line across a chart: a short name for its end and a whole one for the legend."""

    name: str
    short: str
    value: float


@dataclass(frozen=True)
class ErrorChart:
    """Errors against evaluations; `leaders` holds the best program's dot after each evaluation."""

    dots: tuple[Dot, ...]
    leaders: tuple[Dot | None, ...]
    levels: tuple[Level, ...]
    judges: Mapping[int, str]
    winner: str | None


@dataclass(frozen=True)
class Node:
    """A program in the lineage: its error, or in words why it has none."""

    id: str
    result: str
    state: Literal["winner", "ran", "failed", "unrun"]
    judges: tuple[int, ...]
    description: str


@dataclass(frozen=True)
class Edge:
    """`child` was made from `parent`; `donor` tells ideas from the base."""

    parent: str
    child: str
    donor: bool


@dataclass(frozen=True)
class Layer:
    """The programs of one round, or their repairs."""

    name: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Lineage:
    """Who came from whom, oldest first."""

    layers: tuple[Layer, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True)
class Panel:
    """Curves over the same points [N]: `{name: values}`."""

    title: str
    x: Array
    curves: Mapping[str, Array]
    differences: Mapping[str, Array]


@dataclass(frozen=True)
class Curves:
    """One field at several times, as small multiples on one scale."""

    field: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class HeatMaps:
    """Values of one field on a plane, `{name: [points, points]}`, and differences."""

    field: str
    planes: Mapping[str, Array]
    differences: Mapping[str, Array]


@dataclass(frozen=True)
class Lines:
    """Functions of one coordinate in one chart, `{name: values [N]}` over x [N]; `across` names the coordinate."""

    anchor: str
    title: str
    across: str
    x: Array
    curves: Mapping[str, Array]


@dataclass(frozen=True)
class Task:
    """A step of a plan: its id, its tool, how it stands, and a description."""

    id: str
    tool: str
    state: Literal["done", "failed", "open"]
    description: str


@dataclass(frozen=True)
class Flow:
    """Steps in order, and which uses a result of which: pairs `(source, target)` with the names of what flows."""

    tasks: tuple[Task, ...]
    uses: Mapping[tuple[str, str], str]


Drawing = ErrorChart | Lineage | Curves | HeatMaps | Lines | Panels | Flow
