"""The tables of a report for an article: LaTeX with the rules of `booktabs`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sharp.document.blocks import Block, Columns, Details, Report, Table
from sharp.document.text import clean, one_line

_HEAD = """\
% Tables of: {title}
% {headline}
% Needs \\usepackage{{booktabs}}; \\input this file where the tables are to stand.
"""
_SPECIAL = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "≤": "$\\le$",
    "≥": "$\\ge$",
    "≈": "$\\approx$",
    "×": "$\\times$",
    "±": "$\\pm$",
    "→": "$\\to$",
    "−": "$-$",
    "–": "--",
    "…": "\\dots{}",
}
_SIGN = re.compile("|".join(map(re.escape, _SPECIAL)))
_POWER = re.compile(r"(?<![\w.])(-?\d+(?:\.\d+)?)e([+-]?\d+)(?![\w.])")


def render_latex(report: Report) -> str:
    """Return all tables of a report, those of its folded parts too; numbers with exponents as powers of ten."""
    head = _HEAD.format(title=_comment(report.title), headline=_comment(report.headline.sentence))
    found = [_table(table, section.title) for section in report.sections for table in _tables(section.blocks)]
    return "\n".join([head, *found])


def _tables(blocks: Iterable[Block]) -> Iterator[Table]:
    for block in blocks:
        if isinstance(block, Table):
            yield block
        elif isinstance(block, Details | Columns):
            yield from _tables(block.blocks)


def _table(block: Table, title: str) -> str:
    kinds = "".join("r" if name in block.numbers else "l" for name in block.columns)
    return "\n".join(
        [
            "\\begin{table}",
            "  \\centering",
            f"  \\caption{{{_text(block.caption or title)}}}",
            f"  \\begin{{tabular}}{{{kinds}}}",
            "    \\toprule",
            _row(block.columns),
            "    \\midrule",
            *map(_row, block.rows),
            "    \\bottomrule",
            "  \\end{tabular}",
            "\\end{table}",
            "",
        ]
    )


def _row(cells: Iterable[str]) -> str:
    return f"    {' & '.join(map(_text, cells))} \\\\"


def _text(text: str) -> str:
    """Return a text in which nothing is a command of LaTeX."""
    escaped = _SIGN.sub(lambda found: _SPECIAL[found[0]], one_line(clean(text)))
    return _POWER.sub(lambda found: f"${found[1]} \\times 10^{{{int(found[2])}}}$", escaped)


def _comment(text: str) -> str:
    return one_line(clean(text))
