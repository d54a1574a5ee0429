"""FunSearch's database of programs: islands of clusters, as values and pure functions (Nature 625, 468, 2024).

A score is a whole number, larger is better. The signature of a program holds its scores; the last one ranks it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log10
from random import Random

Signature = tuple[int, ...]
NOISE = 1e-6  # breaks ties between islands at a reset


@dataclass(frozen=True)
class Member:
    """A program on an island: its id, the number of lines of its code, and its scores."""

    id: str
    length: int
    signature: Signature

    @property
    def score(self) -> int:
        """The score that ranks the program."""
        return self.signature[-1]


Island = tuple[Member, ...]
"""The programs of an island in the order in which they were registered."""

Islands = tuple[Island, ...]


@dataclass(frozen=True)
class IslandReset:
    """A wiped island and what it begins with again; islands are counted from 0."""

    island: int
    founder: Member
    source: int


def bucket(value: float) -> int:
    """Return CodePDE's score of an error: ten times its negative decimal logarithm, without the decimals."""
    return int(-log10(min(1e9, max(1e-30, value))) * 10)


def clusters(island: Island) -> Mapping[Signature, Island]:
    """Return the programs with the same scores together, by their signature."""
    signatures = dict.fromkeys(member.signature for member in island)
    return {wanted: tuple(m for m in island if m.signature == wanted) for wanted in signatures}


def temperature(count: int, initial: float, period: int) -> float:
    """Return the temperature of the choice of a cluster on an island with `count` programs.

    It falls from `initial` in equal steps and starts again after `period` programs; the lowest is `initial / period`,
    so that it is never zero.
    """
    return initial * (1 - (count % period) / period)


def softmax(values: Sequence[float], at: float) -> tuple[float, ...]:
    """Return the probabilities exp(v / T) / sum(exp(v / T)) of some values at a temperature T > 0."""
    highest = max(values)
    weights = [exp((value - highest) / at) for value in values]
    return tuple(weight / sum(weights) for weight in weights)


def cluster_chances(island: Island, at: float) -> Mapping[Signature, float]:
    """Return how probable the choice of each cluster is at a temperature."""
    signatures = tuple(clusters(island))
    return dict(zip(signatures, softmax([signature[-1] for signature in signatures], at), strict=True))


def member_chances(cluster: Island) -> tuple[float, ...]:
    """Return how probable the choice of each program of a cluster is: short ones are preferred."""
    lengths = [member.length for member in cluster]
    shortest, longest = min(lengths), max(lengths)
    return softmax([-(length - shortest) / (longest + 1e-6) for length in lengths], 1.0)


def draw(island: Island, rng: Random, most: int, at: float) -> Island:
    """Draw programs for a prompt, worst first: as many as there are clusters, `most` at most.

    Clusters are drawn with replacement, as published, so that a program can come twice.
    """
    by_signature, chances = clusters(island), cluster_chances(island, at)
    drawn = rng.choices(tuple(chances), tuple(chances.values()), k=min(len(chances), most))
    alike = [by_signature[signature] for signature in drawn]
    members = [rng.choices(cluster, member_chances(cluster))[0] for cluster in alike]
    return tuple(sorted(members, key=lambda member: member.score))


def register(islands: Islands, index: int, member: Member) -> Islands:
    """Return the islands with one more program on one of them."""
    return (*islands[:index], (*islands[index], member), *islands[index + 1 :])


def best_of(island: Island) -> Member:
    """Return the best program of an island, the first of several."""
    return max(island, key=lambda member: member.score)


def reset(islands: Islands, rng: Random) -> tuple[Islands, tuple[IslandReset, ...]]:
    """Wipe the worse half of the islands; each begins anew with the best program of a surviving one."""
    noisy = [best_of(island).score + NOISE * rng.gauss(0, 1) for island in islands]
    order = sorted(range(len(islands)), key=noisy.__getitem__)
    wiped, kept = order[: len(order) // 2], order[len(order) // 2 :]
    sources = [rng.choice(kept) for _ in wiped]
    foundings = tuple(
        IslandReset(index, best_of(islands[source]), source)
        for index, source in zip(wiped, sources, strict=True)
    )
    begun = {founding.island: (founding.founder,) for founding in foundings}
    return tuple(begun.get(index, island) for index, island in enumerate(islands)), foundings
