from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sharp.llm.patching import Patched, PatchFailure, apply_patch, failure_text, render_diff
from sharp.llm.patching_hunks import search_replace_regions
from sharp.llm.replies import Kind, Revision, read_revision
from sharp.llm.replies_text import normalise

LINES = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            "a",
            "b",
            "    a",
            "\ta",
            "-- a",
            "++ b",
            "@@",
            "\\",
            "```",
            "=======",
            "x\x0cy",
            "\u2028",
            "  return u",
        ]
    ),
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff\u200b\u2060"), max_size=12
    ),
)
TEXTS = st.builds(
    lambda lines, end: "\n".join(lines) + end, st.lists(LINES, max_size=14), st.sampled_from(["", "\n"])
)
SETTINGS = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])


def apply(base: str, body: str, kind: Kind) -> Patched | PatchFailure:
    return apply_patch(base, Revision("c001", (), kind, body))


@SETTINGS
@given(TEXTS, TEXTS)
def test_rendered_diffs_apply_exactly(old: str, new: str) -> None:
    diff = render_diff(old, new, "solver.py")
    if old == new:
        assert diff == ""
        return
    result = apply(old, diff, "unified-diff")
    assert isinstance(result, Patched), result
    assert (result.code, result.match_level) == (new, "exact")


@SETTINGS
@given(TEXTS, TEXTS)
def test_diffs_survive_a_whole_reply(old: str, new: str) -> None:
    assume(old != new)
    header = '{"changes": [{"what": "a", "why": "b"}]}'
    reply = f"Now.\n```json\n{header}\n```\n```diff\n{render_diff(old, new, 'solver.py')}```\nThat is it."
    revision = read_revision(reply, ["c001"], default_base="c001")
    result = apply_patch(old, revision)
    assert isinstance(result, Patched), result
    assert result.code == new


@st.composite
def edited(draw: st.DrawFn) -> tuple[list[str], list[tuple[int, int, list[str]]]]:
    """Draw the lines of a base and separate regions of it with their new lines."""
    base = draw(st.lists(LINES, min_size=1, max_size=14))
    cuts = sorted(draw(st.sets(st.integers(0, len(base)), max_size=6)))
    regions = [(a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    return base, [(a, b, draw(st.lists(LINES, max_size=3))) for a, b in regions]


def unique_context(base: list[str], first: int, stop: int) -> tuple[int, int]:
    """Widen a region until its lines stand at one place of the base only and are not all blank."""
    while True:
        wanted = base[first:stop]
        places = [n for n in range(len(base)) if base[n : n + len(wanted)] == wanted]
        if len(places) == 1 and any(line.strip() for line in wanted):
            return first, stop
        assume(first > 0 or stop < len(base))
        first, stop = max(first - 1, 0), min(stop + 1, len(base))


@SETTINGS
@given(edited(), st.sampled_from(["", "\n"]))
def test_search_replace_blocks_apply_exactly(
    edit: tuple[list[str], list[tuple[int, int, list[str]]]], end: str
) -> None:
    base, regions = edit
    expected = list(base)
    for first, stop, new in reversed(regions):
        expected[first:stop] = new
    body, before = "", 0
    for first, stop, new in regions:
        left, right = unique_context(base, first, stop)
        assume(left >= before)  # a wider block must not repeat what another one changes
        before = right
        block = ["<<<<<<< SEARCH", *base[left:right], "=======", *base[left:first], *new, *base[stop:right]]
        assume(block.count("=======") == 1)
        body += "\n".join([*block, ">>>>>>> REPLACE", ""])
    assume(regions)
    assert len(search_replace_regions(body.split("\n"))) == len(regions)
    old = "\n".join(base) + end
    assume(base[-1] or end)
    result = apply(old, body, "search-replace")
    assert isinstance(result, Patched), result
    assert result.code == ("\n".join(expected) + end if expected else "")
    assert result.match_level == "exact"


NAMES = ["flux", "speed", "dt", "left", "right", "u", "rho", "energy"]


@st.composite
def programs(draw: st.DrawFn) -> list[str]:
    """Draw the lines of a valid program with nested blocks; every statement is unique."""
    lines = ["def solver(u):"]
    depth = 1
    for number in range(draw(st.integers(3, 12))):
        name = draw(st.sampled_from(NAMES))
        opens = draw(st.booleans())
        lines.append("    " * depth + (f"if {name} > {number}:" if opens else f"{name} = {name} + {number}"))
        depth = depth + 1 if opens else draw(st.integers(1, depth))
        if opens:
            lines.append("    " * depth + f"{name} = {number} * 2")
        if draw(st.booleans()):
            lines.append("")
    return lines


MANGLERS = {
    "tabs": lambda line: line.replace("    ", "\t"),
    "two columns": lambda line: line.replace("    ", "  "),
    "trailing": lambda line: line + "  \t",
    "deeper": lambda line: "    " + line if line else line,
    "inner": lambda line: line.replace(" = ", "  =\t"),
}


@SETTINGS
@given(programs(), st.data(), st.sampled_from(sorted(MANGLERS)), st.booleans())
def test_mangled_white_space_gives_the_same_program(
    lines: list[str], data: st.DataObject, mangler: str, drop_blank: bool
) -> None:
    solid = [number for number, line in enumerate(lines) if line and not line.endswith(":")]
    target = data.draw(st.sampled_from(solid))
    first = data.draw(st.integers(0, target))
    stop = data.draw(st.integers(target + 1, len(lines)))
    indent = lines[target][: len(lines[target]) - len(lines[target].lstrip())]
    new_lines = [*lines[:target], f"{indent}changed = 1", f"{indent}again = 2", *lines[target + 1 :]]
    mangle = MANGLERS[mangler]
    old = [mangle(line) for line in lines[first:stop] if line or not drop_blank]
    new = [mangle(line) for line in new_lines[first : stop + 1] if line or not drop_blank]
    body = "\n".join(["<<<<<<< SEARCH", *old, "=======", *new, ">>>>>>> REPLACE"])
    result = apply("\n".join(lines) + "\n", body, "search-replace")
    assert isinstance(result, Patched), result
    assert words(result.code.split("\n")) == words(new_lines)


def words(lines: list[str]) -> list[tuple[str, list[str]]]:
    """Return the indentation and the words of all lines that are not blank."""
    return [(line[: len(line) - len(line.lstrip())], line.split()) for line in lines if line.strip()]


@SETTINGS
@given(programs(), st.data())
def test_misquoted_line_is_found_or_nothing_happens(lines: list[str], data: st.DataObject) -> None:
    number = data.draw(st.sampled_from([n for n, line in enumerate(lines) if line]))
    at = data.draw(st.integers(0, len(lines[number]) - 1))
    wrong = [line for line in lines if line]
    quoted = lines[number][:at] + "q" + lines[number][at + 1 :]
    wrong[wrong.index(lines[number])] = quoted
    body = "\n".join(["<<<<<<< SEARCH", *wrong, "=======", *wrong, "    return 99", ">>>>>>> REPLACE"])
    base = "\n".join(lines) + "\n"
    result = apply(base, body, "search-replace")
    if isinstance(result, Patched):
        assert result.code.rstrip("\n") == base.rstrip("\n") + "\n    return 99"
    else:
        assert result.hunk == 1


GARBAGE = st.lists(
    st.sampled_from(
        ["<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "@@ -1 +1 @@", "@@", "--- a", "+++ b", "-a", "+b"]
    )
    | st.sampled_from([" a", "a", "\\", "", "```"])
    | st.text(max_size=6),
    max_size=16,
).map("\n".join)  # fmt: skip


def filled(code: str) -> list[str]:
    return [line.rstrip() for line in code.split("\n") if line.strip()]


@SETTINGS
@given(TEXTS | st.text(), GARBAGE, st.sampled_from(["search-replace", "unified-diff", "whole-file", "keep"]))
def test_garbage_is_applied_or_refused(base: str, body: str, kind: Kind) -> None:
    result = apply(base, body, kind)
    if isinstance(result, PatchFailure):
        assert failure_text(result).startswith(result.sentence)
        assert all(line == normalise(base).split("\n")[number - 1] for number, line in result.nearest)
    else:
        assert 0 <= result.changed_share <= 1
        same = sorted(filled(result.code)) == sorted(filled(normalise(base)))
        assert (result.changed_share == 0) == same


@SETTINGS
@given(programs(), GARBAGE)
def test_one_bad_block_refuses_the_whole_patch(lines: list[str], garbage: str) -> None:
    good = f"<<<<<<< SEARCH\n{lines[0]}\n=======\ndef solver(v):\n>>>>>>> REPLACE\n"
    bad = "<<<<<<< SEARCH\nnothing of the kind stands anywhere\n=======\n\n>>>>>>> REPLACE\n"
    assert isinstance(apply("\n".join(lines), good, "search-replace"), Patched)
    for body in (good + bad, bad + good, good + bad + garbage):
        assert isinstance(apply("\n".join(lines), body, "search-replace"), PatchFailure)
