"""FunSearch's database of programs: probabilities by hand, draws, and resets."""

from __future__ import annotations

from collections import Counter
from math import inf, sqrt
from random import Random

import pytest

from sharp.methods.islands import (
    Island,
    Member,
    best_of,
    bucket,
    cluster_chances,
    clusters,
    draw,
    member_chances,
    register,
    reset,
    softmax,
    temperature,
)


def island(*scores: int) -> Island:
    """Programs p0, p1, … with these scores and equal lengths."""
    return tuple(Member(f"p{place}", 100, (score,)) for place, score in enumerate(scores))


@pytest.mark.parametrize(
    ("error", "score"), [(0.01, 20), (2.5e-3, 26), (1.0, 0), (2.0, -3), (inf, -90), (0.0, 300)]
)
def test_an_error_counts_by_tenths_of_its_power_of_ten(error: float, score: int) -> None:
    assert bucket(error) == score


def test_the_temperature_falls_in_equal_steps_starts_again_and_is_never_zero() -> None:
    found = [temperature(count, 0.1, 5) for count in range(1, 8)]
    assert found == pytest.approx([0.08, 0.06, 0.04, 0.02, 0.1, 0.08, 0.06])
    assert min(temperature(count, 0.1, 30_000) for count in (29_999, 30_000, 59_999)) > 0


def test_probabilities_are_those_of_the_softmax() -> None:
    assert softmax([1, 2], 1.0) == pytest.approx([0.26894142, 0.73105858])
    assert softmax([1, 2], 0.5) == pytest.approx([0.11920292, 0.88079708])
    assert softmax([-90, 300], 0.02) == pytest.approx([0, 1])
    assert softmax([7], 0.02) == (1.0,)


def test_clusters_hold_programs_with_the_same_scores_and_the_last_score_ranks() -> None:
    members = (
        Member("a", 9, (1, 20)),
        Member("b", 9, (2, 20)),
        Member("c", 9, (1, 20)),
        Member("d", 9, (9, 21)),
    )
    assert [[m.id for m in cluster] for cluster in clusters(members).values()] == [["a", "c"], ["b"], ["d"]]
    chances = cluster_chances(members, 1.0)
    # exp(20) : exp(20) : exp(21) = 1 : 1 : e
    assert chances == pytest.approx({(1, 20): 0.21194156, (2, 20): 0.21194156, (9, 21): 0.57611688})
    assert cluster_chances(members, 0.1)[9, 21] == pytest.approx(0.99990921)
    assert best_of(members).id == "d"


def test_short_programs_of_a_cluster_are_preferred() -> None:
    cluster = (Member("short", 100, (1,)), Member("long", 200, (1,)))
    # exp(0) : exp(-100 / 200) = 1 : 0.60653
    assert member_chances(cluster) == pytest.approx([0.62245933, 0.37754067])
    assert member_chances(cluster[:1]) == (1.0,)


def test_draws_follow_the_probabilities_of_clusters_and_of_their_programs() -> None:
    members = (Member("a", 100, (20,)), Member("b", 200, (20,)), Member("c", 100, (21,)))
    rng, number = Random("draws"), 20_000
    found = Counter(draw(members, rng, 1, 1.0)[0].id for _ in range(number))
    expected = {"a": 0.26894 * 0.62246, "b": 0.26894 * 0.37754, "c": 0.73106}
    for name, chance in expected.items():
        spread = sqrt(chance * (1 - chance) / number)
        assert abs(found[name] / number - chance) < 4 * spread, name


def test_as_many_are_drawn_as_there_are_clusters_but_no_more_than_asked_for_worst_first() -> None:
    rng = Random(0)
    assert len(draw(island(1, 1, 1), rng, 2, 1.0)) == 1
    assert len(draw(island(1, 2, 3), rng, 2, 1.0)) == 2
    pairs = [draw(island(1, 2, 3), rng, 2, 10.0) for _ in range(200)]
    assert all(first.score <= second.score for first, second in pairs)


def test_clusters_are_drawn_with_replacement() -> None:
    pairs = [draw(island(1, 2), Random(seed), 2, 10.0) for seed in range(50)]
    assert {tuple(member.id for member in pair) for pair in pairs} == {
        ("p0", "p0"),
        ("p0", "p1"),
        ("p1", "p1"),
    }


def test_registering_changes_one_island_and_leaves_the_value_as_it_was() -> None:
    before = (island(1), island(2))
    after = register(before, 1, Member("new", 5, (9,)))
    assert [[m.id for m in one] for one in after] == [["p0"], ["p0", "new"]]
    assert [len(one) for one in before] == [1, 1]


def test_a_reset_wipes_the_worse_half_and_founds_each_anew_with_the_best_of_a_survivor() -> None:
    before = (island(5, 1), island(30, 31), island(7), island(20, 40, 3))
    sources = set()
    for seed in range(40):
        after, foundings = reset(before, Random(seed))
        assert {founding.island for founding in foundings} == {0, 2}
        assert (after[1], after[3]) == (before[1], before[3])
        for founding in foundings:
            assert founding.source in (1, 3)
            assert after[founding.island] == (founding.founder,)
            assert founding.founder == best_of(before[founding.source])
            sources.add(founding.source)
    assert sources == {1, 3}


def test_islands_that_are_equally_good_are_wiped_by_chance_and_of_five_two() -> None:
    wiped = {frozenset(f.island for f in reset((island(5),) * 5, Random(seed))[1]) for seed in range(60)}
    assert {len(islands) for islands in wiped} == {2}
    assert len(wiped) > 5


def test_a_single_island_is_never_wiped() -> None:
    assert reset((island(1, 2),), Random(0)) == ((island(1, 2),), ())
