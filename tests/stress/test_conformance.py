"""A part of the conformance programs, each on one tier; `python -m tests.helpers.conformance` runs all on all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack

import pytest

from hpc.sandbox import probe_tiers
from tests.helpers.conformance.candidates import ALL, COLD, GOOD, OUTCOMES, THEMES, Candidate
from tests.helpers.conformance.conformance_page import TARGET, outcomes_in
from tests.helpers.conformance.trial import (
    TIERS,
    Station,
    checked_for_remains,
    cold,
    conformance_ground,
    try_candidate,
    warm,
)
from tests.helpers.conformance.variations import variations

MOVED = variations(seed=0, number=30)
Kind = Callable[..., AbstractContextManager[Station]]


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    with conformance_ground(tmp_path_factory.mktemp("conformance")) as made:
        yield made


@pytest.fixture(scope="module")
def stations(ground):
    """Yield a function that gives the station of a kind on a tier; one stands at a time, and nothing of it is left."""
    with ExitStack() as standing:
        known: dict[tuple[Kind, str], Station] = {}

        def station(kind: Kind, tier: str) -> Station:
            probed = next(probed for probed in probe_tiers() if probed.tier == tier)
            if not probed.usable:
                pytest.skip(f"{tier} cannot be used here: {probed.reason}")
            if (kind, tier) not in known:
                known.clear()
                standing.close()
                standing.enter_context(checked_for_remains(ground))
                known[kind, tier] = standing.enter_context(kind(tier, probed.reason, ground))
            return known[kind, tier]

        yield station


@pytest.fixture
def station(stations, kind, tier):
    return stations(kind, tier)


def in_turns(kind: Kind, candidates: Sequence[Candidate]) -> pytest.MarkDecorator:
    """Let a test have each candidate with a station of a kind, on the tiers in turns."""
    pairs = sorted(
        ((TIERS[number % len(TIERS)], one) for number, one in enumerate(candidates)), key=lambda pair: pair[0]
    )
    return pytest.mark.parametrize(
        ("kind", "tier", "candidate"),
        [pytest.param(kind, tier, one, id=f"{tier}-{one.name}") for tier, one in pairs],
    )


@in_turns(warm, [*ALL, *MOVED])
def test_candidate_and_what_follows(station, ground, candidate) -> None:
    check(candidate, station, ground)
    assert station.evaluate(GOOD).scores == station.good.scores


@in_turns(warm, THEMES["Legitimate"][1:] + THEMES["Legitimate"][:1])
def test_a_legitimate_program_works_on_another_tier_too(station, ground, candidate) -> None:
    check(candidate, station, ground)


@in_turns(cold, COLD)
def test_candidate_in_a_fresh_interpreter(station, ground, candidate) -> None:
    check(candidate, station, ground)


def check(candidate: Candidate, station: Station, ground) -> None:
    """Evaluate a candidate; its outcome is right, nothing is told, nothing is left."""
    if not station.admits(candidate):
        pytest.skip(f"its tier says that programs can {candidate.do}")
    _, wrong = try_candidate(candidate, station, ground)
    assert wrong == []


def test_every_theme_is_tried_on_every_tier() -> None:
    assert all(len(theme) >= len(TIERS) for theme in THEMES.values())


def test_page_has_every_program_with_a_right_outcome_on_every_tier() -> None:
    rows = [
        line.strip("| ").split(" | ") for line in TARGET.read_text().splitlines() if line.startswith("| ")
    ]
    found = {row[0]: outcomes_in(row[-1], TIERS) for row in rows}
    for candidate in ALL:
        right = {*candidate.outcome, *(["not run"] if candidate.do else [])}
        assert found[candidate.name].keys() == {*TIERS}, candidate.name
        told = {word for cell in found[candidate.name].values() for word in cell.split(", ")}
        assert told <= right, candidate.name
    assert len(rows) >= 250


def test_candidates_have_names_and_outcomes_of_their_own() -> None:
    assert len({candidate.name for candidate in ALL}) == len(ALL)
    assert all(candidate.outcome for candidate in ALL)
    assert all(candidate.outcome == set(OUTCOMES) for candidate in MOVED)
