"""Tools that programs leave: what belongs to one, how a later program finds it, and which are kept."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from sharp.agent.built_tools import (
    LONGEST_TOOL,
    MOST_TOOLS,
    grown,
    signature,
    tools_built,
    tools_imported,
    with_tools,
)
from sharp.agent.programs.generated import parse_program, prompt_for
from sharp.errors import ReplyError

PROGRAM = '''from __future__ import annotations
import math as m
from functools import lru_cache

SCALE, LENGTH = 2.0, 7.0

def helper(x):
    return m.sqrt(x) * SCALE  # scaled

@lru_cache
def area(x: float, *, n=3):
    """Return the area
    of x.

    More of it."""
    return helper(x) + n

def solve(points, times):
    return area(LENGTH)
'''
STATED = '```json\n{"bounds": [[0, 1]], "time": null, "fields": ["u"], "tools": ["area"]}\n```'


@pytest.fixture(autouse=True)
def _no_module_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tools", raising=False)
    monkeypatch.setitem(sys.modules, "tools", None)


def run(code: str) -> dict[str, Any]:
    space: dict[str, Any] = {}
    exec(code, space)
    return space


def test_a_tool_stands_alone_with_what_it_needs_and_nothing_else() -> None:
    (source,) = tools_built(PROGRAM, ["area", "area"], {}).values()
    assert run(source)["area"](9.0) == 9.0
    assert "# scaled" in source
    assert not any(name in source for name in ("solve", "annotations", "LENGTH = 7.0\n\n"))
    assert signature("area", source) == 'def area(x: float, *, n=3):\n    """Return the area of x."""'


def test_what_is_no_function_of_the_program_or_too_long_is_no_tool() -> None:
    assert tools_built(PROGRAM, ["SCALE", "nobody"], {}) == {}
    assert tools_built("def f(:", ["f"], {}) == {}
    assert tools_built(f"def f():\n    return '{'x' * LONGEST_TOOL}'\n", ["f"], {}) == {}


@pytest.mark.parametrize(
    "use",
    [
        "from tools import area\n\ndef solve():\n    return area(9.0)\n",
        "import tools\n\ndef solve():\n    return tools.area(9.0)\n",
        "def solve():\n    from tools import (\n        area as other,\n    )\n    return other(9.0)\n",
        "from __future__ import annotations; from tools import *\n\ndef solve():\n    return area(9.0)\n",
    ],
)
def test_a_program_finds_a_tool_however_it_imports_it_and_keeps_its_lines(use: str) -> None:
    library = tools_built(PROGRAM, ["area"], {})
    assert tools_imported(use, library) == ("area",)
    code = with_tools(use, library)
    assert run(code)["solve"]() == 9.0
    assert len(code.splitlines()) == len(use.splitlines())


def test_a_tool_that_uses_tools_takes_them_along() -> None:
    library = tools_built(PROGRAM, ["area"], {})
    second = "from tools import area\n\ndef twice(x):\n    return 2 * area(x)\n"
    (source,) = tools_built(second, ["twice"], library).values()
    assert run(source)["twice"](9.0) == 18.0


def test_a_library_keeps_what_was_used_last_and_the_newest_of_a_name() -> None:
    library = {"a": "1", "b": "2", "c": "3"}
    assert list(grown(library, ["a"], {"b": "4"}).items()) == [("c", "3"), ("a", "1"), ("b", "4")]
    many = {f"t{number}": "" for number in range(MOST_TOOLS)}
    assert list(grown(many, ["t0"], {"new": ""}))[-2:] == ["t0", "new"]
    assert len(grown(many, ["t0"], {"new": ""})) == MOST_TOOLS


def test_an_answer_names_its_tools_and_may_import_known_ones_alone() -> None:
    answer = f"```python\n{PROGRAM}```\n{STATED}"
    written = parse_program(answer, {}).parameters
    assert written is not None
    assert list(written["built"]) == ["area"]
    alone = parse_program(answer).parameters  # whoever builds no tools leaves none
    assert alone is not None
    assert "built" not in alone
    importing = (
        "```python\nfrom tools import aera\n\ndef solve(points, times):\n    return aera(1)\n```\n" + STATED
    )
    with pytest.raises(ReplyError, match="unknown tool 'aera'; did you mean 'area'"):
        parse_program(importing, written["built"])
    said = prompt_for("A wall.", written["built"])
    assert "from tools import NAME" in said
    assert "def area(x: float, *, n=3):" in said
    assert "tools" not in prompt_for("A wall.")
