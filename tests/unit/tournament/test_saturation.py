from math import inf, nan

import pytest

from sharp.config import SynthesisOptions
from sharp.tournament.ranking import relative_gain
from sharp.tournament.saturation import another_cycle, best_metric, decide

DEFAULTS = SynthesisOptions()


def play(
    metrics: list[float], *, cycle: int = 1, incumbent: float = inf, options: SynthesisOptions = DEFAULTS
):
    """Play rounds with the given best metric of each round alone; return the decisions until one stops."""
    decisions, stale, best = [], 0, incumbent
    for number, metric in enumerate(metrics, start=1):
        after = min(best, metric)
        decision = decide(
            options,
            cycle=cycle,
            round_=number,
            before=best,
            after=after,
            gain=relative_gain(best, after),
            stale_before=stale,
            all_kept=False,
        )
        decisions.append(decision)
        stale, best = decision.stale_rounds, after
        if decision.stop:
            break
    return decisions


def test_first_cycle_stops_at_round_3_at_the_earliest():
    decisions = play([0.1, 0.1, 0.1, 0.1])
    assert len(decisions) == 3
    assert decisions[-1].reason.startswith("saturated")


def test_a_gain_of_one_per_cent_keeps_a_cycle_going():
    assert [d.stale_rounds for d in play([1.0, 0.99, 0.985, 0.97])] == [0, 0, 1, 0]


def test_worse_rounds_count_as_stale_and_a_late_gain_resets():
    decisions = play([1.0, 2.0, 0.5, 0.7])
    assert [d.stale_rounds for d in decisions] == [0, 1, 0, 1]
    assert decisions[-1].reason == "round limit reached"


def test_later_cycles_compare_with_the_incumbent_at_once():
    decisions = play([0.2], cycle=2, incumbent=0.1)
    assert decisions[0].stop
    assert decisions[0].gain == 0


def test_failures_alone_never_saturate():
    assert [d.stop for d in play([inf, inf, inf, inf])] == [False, False, False, True]
    assert play([inf, inf, inf, inf])[-1].reason == "round limit reached"


def test_fixed_plays_all_rounds():
    options = SynthesisOptions(next_cycle="fixed", max_rounds=4)
    assert len(play([0.1] * 4, options=options)) == 4


@pytest.mark.parametrize("best", [1.0, inf])
def test_all_judges_keeping_saturates(best):
    decision = decide(
        DEFAULTS, cycle=1, round_=2, before=best, after=best, gain=0.0, stale_before=0, all_kept=True
    )
    assert decision.stop
    assert decision.reason == "saturated: every judge keeps its program"


@pytest.mark.parametrize(
    ("rule", "after_limit", "after_saturation"),
    [("if-not-saturated", True, False), ("never", False, False), ("always", True, True)],
)
def test_when_another_cycle_follows(rule, after_limit, after_saturation):
    options = SynthesisOptions(next_cycle=rule)
    limit = play([1.0, 0.5, 0.25, 0.1], options=options)[-1]
    saturated = play([0.1, 0.1, 0.1], options=options)[-1]
    assert another_cycle(options, limit) is after_limit
    assert another_cycle(options, saturated) is after_saturation


def test_no_cycle_beyond_the_maximum():
    options = SynthesisOptions(next_cycle="always", max_cycles=2)
    assert not another_cycle(options, play([1.0], cycle=2, incumbent=1.0, options=options)[-1])


def test_relative_gain():
    assert relative_gain(inf, 0.3) == 1
    assert relative_gain(inf, inf) == 0
    assert relative_gain(2.0, 1.0) == 0.5
    assert relative_gain(1.0, 2.0) == 0
    assert relative_gain(0.0, 0.0) == 0


def test_nan_never_wins():
    assert best_metric([nan, 0.5, inf]) == 0.5
    assert best_metric([]) == inf
