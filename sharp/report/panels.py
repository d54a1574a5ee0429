"""What the figures of studies show, before anything is drawn: small panels side by side, one for each column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["error", "count", "level"]


@dataclass(frozen=True)
class Cited:
    """A published value, and whose it is."""

    value: float
    name: str


@dataclass(frozen=True)
class Bar:
    """One line of a panel: single values, their median (None without any), published values, and a remark.

    `remark` says what is missing; `flagged` that the median is below the data's own floor.
    """

    label: str
    values: tuple[float, ...]
    median: float | None
    cited: tuple[Cited, ...] = ()
    remark: str = ""
    flagged: bool = False


@dataclass(frozen=True)
class BarPanel:
    """Values by label: errors as dots on a logarithmic scale, counts as bars from zero, levels as dots.

    `floor` is the data's own distance from the true solution, None where that has no meaning.
    """

    title: str
    bars: tuple[Bar, ...]
    kind: Kind
    floor: float | None = None


@dataclass(frozen=True)
class Stack:
    """What something consists of: shares by part, which add up to one, or none at all."""

    label: str
    shares: Mapping[str, float]
    remark: str = ""


@dataclass(frozen=True)
class StackPanel:
    """Shares by label."""

    title: str
    stacks: tuple[Stack, ...]


@dataclass(frozen=True)
class Point:
    """A place of a curve: the median of several values, and the least and the most of them."""

    x: float
    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Curve:
    """A median with its range, over x."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class CurvePanel:
    """Curves on a logarithmic scale; so is x, by powers of two, where `doubling` says so."""

    title: str
    curves: tuple[Curve, ...]
    floor: float | None = None
    doubling: bool = False


@dataclass(frozen=True)
class Spot:
    """One run: what it took, and its error against the data set and (None: unknown) against the true solution.

    Runs of one `name` look alike; `label` stands beside the mark, `tip` appears under the pointer. `flagged` says that
    the error is below the data's own floor.
    """

    name: str
    label: str
    tip: str
    x: float
    error: float
    truth: float | None = None
    flagged: bool = False


@dataclass(frozen=True)
class ScatterPanel:
    """Errors against what they took, both on logarithmic scales; what took nothing stands at the left end."""

    title: str
    spots: tuple[Spot, ...]
    floor: float | None = None


Panel = BarPanel | StackPanel | CurvePanel | ScatterPanel


@dataclass(frozen=True)
class Panels:
    """A figure: its name in the page, what its axis shows, its panels, and what stands on the other axis of curves.

    `middle` says what the median of a bar is, where it is something else.
    """

    anchor: str
    title: str
    axis: str
    panels: tuple[Panel, ...]
    across: str = ""
    middle: str = "median"
