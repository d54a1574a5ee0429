import pytest

from sharp.evaluation.strategy import strategy_of
from sharp.llm.patching import Patched, apply_patch
from sharp.llm.patching_hunks import MAX_HUNKS, MAX_PATCH
from sharp.llm.replies import (
    Revision,
    extract_code,
    read_revision,
    read_selection,
    read_verdict,
)
from sharp.llm.replies_text import MAX_CODE, MAX_REPLY, fenced_blocks
from tests.helpers import ROOT

PAGE = (ROOT / "docs" / "reference" / "reply-formats.md").read_text(encoding="utf-8")
EXAMPLES = {
    block.fence.label.removeprefix("text "): block.body
    for block in fenced_blocks(PAGE)
    if block.fence.label.startswith("text ")
}
BASE = """import numpy as np

CFL = 0.8


def solver(u0_batch, t_coordinate, beta):
    u = u0_batch
    dx = 1.0 / u.shape[1]
    speed = np.abs(u).max()
    dt = CFL * dx / speed
    return dt
"""


def revision(form: str) -> Revision:
    return read_revision(
        EXAMPLES[f"revision {form}"], ["h1.1.2", "c011"], default_base="h1.1.2", donors=["c019"]
    )


def patched(form: str) -> str:
    result = apply_patch(BASE, revision(form))
    assert isinstance(result, Patched)
    return result.code


def test_the_page_has_an_example_of_every_form() -> None:
    kinds = {"search-replace", "unified-diff", "whole-file", "keep"}
    assert set(EXAMPLES) == {"program", "verdict", "selection", *(f"revision {kind}" for kind in kinds)}


def test_program() -> None:
    code = extract_code(EXAMPLES["program"])
    assert strategy_of(code) == "analytical"
    assert "np.fft.irfft" in code


def test_verdict() -> None:
    verdict = read_verdict(
        EXAMPLES["verdict"], {"order": int, "type": ("hyperbolic", "parabolic"), "properties": list}
    )
    assert (verdict["order"], verdict["type"], verdict["linearity"]) == (1, "hyperbolic", "linear")


def test_selection() -> None:
    reply = read_selection(EXAMPLES["selection"], ["c007", "c011", "c019"], max_shortlist=2)
    assert [name for name, _ in reply.shortlist] == ["c019", "c007"]
    assert (reply.nominee, reply.notes) == ("c019", ())
    assert reply.criteria == ("phase error", "cost of one step")


def test_search_replace_revision() -> None:
    reply = revision("search-replace")
    assert (reply.base_id, reply.kind) == ("h1.1.2", "search-replace")
    assert [sources for _, _, sources in reply.changes] == [("c011",), ()]
    code = patched("search-replace")
    assert code == BASE.replace("CFL = 0.8", "CFL = 0.4").replace("/ speed", "/ max(speed, 1e-12)")


def test_unified_diff_revision() -> None:
    assert revision("unified-diff").kind == "unified-diff"
    assert patched("unified-diff") == BASE.replace("CFL = 0.8", "CFL = 0.4")


def test_whole_file_revision() -> None:
    reply = revision("whole-file")
    assert (reply.base_id, reply.kind) == ("c011", "whole-file")
    assert patched("whole-file") == reply.body
    assert "np.roll" in reply.body


def test_keeping_the_base() -> None:
    assert revision("keep").kind == "keep"
    assert patched("keep") == BASE


@pytest.mark.parametrize("limit", [MAX_REPLY, MAX_CODE, MAX_PATCH, MAX_HUNKS])
def test_the_page_states_the_limits(limit: int) -> None:
    assert f"{limit:,}" in PAGE
