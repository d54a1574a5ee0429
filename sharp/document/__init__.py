"""Documents of plain values, and what writes them: HTML, Markdown and text for terminals.

A document is composed of blocks, its figures of charts; the writers alone know how these look. Nothing here knows of
PDEs, runs or models, and jinja2, matplotlib and rich are imported where they are used. Texts for numbers, counts and
time spans are in `sharp.document.text`.
"""

from __future__ import annotations

from sharp.document.blocks import (
    Block,
    Bullets,
    Code,
    Details,
    Diff,
    Facts,
    Figure,
    Heading,
    Headline,
    Link,
    ModelText,
    Note,
    Paragraph,
    Report,
    Section,
    Table,
)
from sharp.document.charts import (
    Bar,
    BarPanel,
    Chart,
    Curve,
    CurvePanel,
    CurvePoint,
    CurveStyle,
    Graph,
    GraphEdge,
    GraphNode,
    GraphRow,
    Level,
    MapPanel,
    Panel,
    Panels,
    PublishedMark,
    Scale,
    ScatterPanel,
    Spot,
    Stack,
    StackPanel,
)
from sharp.document.html import render_html
from sharp.document.markdown import markdown_environment, render_markdown
from sharp.document.svg import svg_file
from sharp.document.terminal import render_terminal

__all__ = [
    "Bar",
    "BarPanel",
    "Block",
    "Bullets",
    "Chart",
    "Code",
    "Curve",
    "CurvePanel",
    "CurvePoint",
    "CurveStyle",
    "Details",
    "Diff",
    "Facts",
    "Figure",
    "Graph",
    "GraphEdge",
    "GraphNode",
    "GraphRow",
    "Heading",
    "Headline",
    "Level",
    "Link",
    "MapPanel",
    "ModelText",
    "Note",
    "Panel",
    "Panels",
    "Paragraph",
    "PublishedMark",
    "Report",
    "Scale",
    "ScatterPanel",
    "Section",
    "Spot",
    "Stack",
    "StackPanel",
    "Table",
    "markdown_environment",
    "render_html",
    "render_markdown",
    "render_terminal",
    "svg_file",
]
