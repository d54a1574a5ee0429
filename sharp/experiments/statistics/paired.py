"""Two methods compared in pairs: the same problem, the same seed, one run of each.

A pair's ratio is the value of the first method over that of the second, so less than one speaks for the first where
small values are good, as errors and costs are. The ratio on a problem is the median over its pairs, the overall ratio
the geometric mean over problems, in which each counts the same however many pairs it has.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb, exp, inf, isclose, isfinite, log
from statistics import geometric_mean, median
from typing import TypeVar

from sharp.experiments.statistics.bootstrap import Interval, interval

Seed = TypeVar("Seed", bound=Hashable)

LEAST_PAIRS = 3
"""Pairs with a ratio that an interval takes on every problem."""
LEAST_IN_ALL = 6
"""Pairs with a ratio that it takes on all problems together."""
LEAST_PROBLEMS = 5
"""Problems with a ratio that an interval for problems like these takes beside."""
LEAST_SIGNS = 6
"""Pairs that are no tie: with fewer, not even winning all of them has a p-value below 0.05."""
_SAME = 1e-9  # values that differ by less, relatively, are a tie


@dataclass(frozen=True)
class OnProblem:
    """One problem.

    `ratios` holds those of the pairs in which both methods have a positive value; `wins`, `ties` and `losses` are the
    first method's and count failures too: who failed alone has lost, both failed is a tie. `failed` and `failed_other`
    are the pairs in which the first, the second failed. `unpaired` and `unpaired_other` are seeds that only one has.
    """

    problem: str
    ratios: tuple[float, ...]
    wins: int
    ties: int
    losses: int
    failed: int
    failed_other: int
    unpaired: tuple[str, ...]
    unpaired_other: tuple[str, ...]

    @property
    def pairs(self) -> int:
        """Pairs of runs, failed ones included."""
        return self.wins + self.ties + self.losses

    @cached_property
    def ratio(self) -> float | None:
        """The median ratio (of its logarithms, which matters for an even number); None where no pair has one."""
        return exp(median(map(log, self.ratios))) if self.ratios else None


@dataclass(frozen=True)
class GeometricMeans:
    """The geometric mean over all problems (`overall`), and by problem that over the others (`without`).

    None where no problem is left. It does not depend on which of two methods is divided by which (Fleming and Wallace,
    Communications of the ACM 29, 1986).
    """

    overall: float | None
    without: Mapping[str, float | None]


@dataclass(frozen=True)
class Comparison:
    """What pairs of runs say of two methods.

    `means` holds the overall ratio, and that without each problem. `these` is its confidence interval for these very
    problems (other seeds), `like_these` that for problems of which these are a sample; None where there are too few
    pairs or problems. `p_value` is that of the sign test, None with too few pairs. `notes` say what is missing, and
    why.
    """

    problems: tuple[OnProblem, ...]
    means: GeometricMeans
    these: Interval | None
    like_these: Interval | None
    p_value: float | None
    notes: tuple[str, ...]

    @property
    def ratio(self) -> float | None:
        """The overall ratio: less than one speaks for the first method."""
        return self.means.overall

    @property
    def pairs(self) -> int:
        """Pairs of runs, failed ones included."""
        return sum(each.pairs for each in self.problems)

    @property
    def wins(self) -> int:
        """Pairs in which the first method has the smaller value, or the second alone failed."""
        return sum(each.wins for each in self.problems)

    @property
    def ties(self) -> int:
        """Pairs with the same value, or in which both failed."""
        return sum(each.ties for each in self.problems)

    @property
    def losses(self) -> int:
        """Pairs in which the second method has the smaller value, or the first alone failed."""
        return sum(each.losses for each in self.problems)

    @property
    def failed(self) -> int:
        """Pairs in which the first method failed."""
        return sum(each.failed for each in self.problems)


def compare(
    first: Mapping[str, Mapping[Seed, float | None]],
    second: Mapping[str, Mapping[Seed, float | None]],
    *,
    level: float = 0.95,
) -> Comparison:
    """Compare two methods by values that are better when smaller, given by problem and by seed.

    None, NaN and infinite values are failures. A pair with a failure, or with a zero, has no ratio: it counts as won,
    lost or tied, and is reported. Seeds and problems that only one method has are listed and used for nothing else.
    Intervals are percentiles of a hierarchical bootstrap with a fixed seed
    (`sharp.experiments.statistics.bootstrap`) at `level`.
    The sign test is over all pairs that are no tie, so it speaks of these problems alone.
    """
    problems = tuple(
        _on_problem(name, first.get(name, {}), second.get(name, {}))
        for name in dict.fromkeys([*first, *second])
    )
    means = without_each({each.problem: each.ratio for each in problems if each.pairs})
    logs = [[log(ratio) for ratio in each.ratios] for each in problems if each.ratios]
    enough = all(len(each) >= LEAST_PAIRS for each in logs) and sum(map(len, logs)) >= LEAST_IN_ALL
    many = enough and len(logs) >= LEAST_PROBLEMS
    wins, losses = sum(each.wins for each in problems), sum(each.losses for each in problems)
    return Comparison(
        problems,
        means,
        interval(logs, level) if enough else None,
        interval(logs, level, of_problems=True) if many else None,
        sign_test(wins, losses) if wins + losses >= LEAST_SIGNS else None,
        tuple(_notes(problems, logs, wins + losses)),
    )


def without_each(values: Mapping[str, float | None]) -> GeometricMeans:
    """Return the geometric mean of ratios by problem, over all and with each left out; None is no ratio.

    Raises ValueError for a ratio that is not positive.
    """
    known = {problem: value for problem, value in values.items() if value is not None}
    others = {name: [value for other, value in known.items() if other != name] for name in known}
    return GeometricMeans(
        geometric_mean(known.values()) if known else None,
        {name: geometric_mean(rest) if rest else None for name, rest in others.items()},
    )


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p-value of the exact sign test; ties are left out beforehand.

    The probability that a fair coin, thrown wins + losses times, comes out at least as uneven (Dixon and Mood, Journal
    of the American Statistical Association 41, 1946). It is `scipy.stats.binomtest` at one half, which takes longer to
    load (0.7 s) than a table of a thousand runs to write.
    """
    thrown, fewer = wins + losses, min(wins, losses)
    as_uneven = sum(comb(thrown, heads) for heads in range(fewer + 1))
    return float(min(1.0, 2 * as_uneven / 2**thrown))


def _on_problem(
    name: str, first: Mapping[Seed, float | None], second: Mapping[Seed, float | None]
) -> OnProblem:
    pairs = [(_value(first[seed]), _value(second[seed])) for seed in first if seed in second]
    signs = [_sign(*pair) for pair in pairs]
    return OnProblem(
        name,
        tuple(one / other for one, other in pairs if one and other and isfinite(one) and isfinite(other)),
        signs.count(-1),
        signs.count(0),
        signs.count(1),
        sum(one == inf for one, _ in pairs),
        sum(other == inf for _, other in pairs),
        tuple(str(seed) for seed in first if seed not in second),
        tuple(str(seed) for seed in second if seed not in first),
    )


def _value(value: float | None) -> float:
    """Return a value, +inf for a failure; raises ValueError where it is negative."""
    if value is None or not isfinite(value):
        return inf
    if value < 0:
        raise ValueError(f"expected values that are not negative, found {value}")
    return value


def _sign(one: float, other: float) -> int:
    if one == other or isclose(one, other, rel_tol=_SAME):
        return 0
    return -1 if one < other else 1


def _notes(problems: Sequence[OnProblem], ratios: Sequence[Sequence[float]], signs: int) -> Iterator[str]:
    compared = [each for each in problems if each.pairs]
    if not compared:
        yield "no pairs: the methods have no problem and seed in common"
        return
    few = [each.problem for each in compared if 0 < len(each.ratios) < LEAST_PAIRS]
    if few or sum(map(len, ratios)) < LEAST_IN_ALL:
        yield (
            f"too few pairs for an interval: {LEAST_PAIRS} with a ratio are needed on every problem, and "
            f"{LEAST_IN_ALL} in all"
        )
    elif len(ratios) < LEAST_PROBLEMS:
        yield f"too few problems for an interval for problems like these: {LEAST_PROBLEMS} are needed"
    if signs < LEAST_SIGNS:
        yield f"too few pairs for a sign test: {LEAST_SIGNS} that are no tie are needed, there are {signs}"
    missing = sum(each.pairs - len(each.ratios) for each in compared)
    if missing:
        yield f"{missing} of {sum(each.pairs for each in compared)} pairs have no ratio and count as won, lost or tied"
    for each in problems:
        if each.unpaired or each.unpaired_other:
            yield f"unpaired on {each.problem}: {', '.join((*each.unpaired, *each.unpaired_other))}"
