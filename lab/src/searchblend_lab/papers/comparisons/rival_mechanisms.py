"""The mechanisms that ours is compared with, each with its parameters, its promise and how that is known.

All of them see people with one query each, as counts: a draw from the law of the counts is the same experiment as one
of the people (proofs/counted_people.md). Seeded, for evaluations alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.stats import binom, norm

from searchblend.blender.best.stability_histogram import CuratorDesign, named_alone
from searchblend.blender.estimates import Floats
from searchblend.core.privacy import Budget
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection
from searchblend.mechanisms.tally import Ints
from searchblend.mechanisms.threshold import Threshold, least_integer
from searchblend_lab.papers.blender.count_reports import draw_sets

DEPLOYED_ALPHA: Final = 1 / 6
_ALPHAS: Final = (1 / 12, 1 / 8, 1 / 6, 1 / 5, 1 / 4, 1 / 3, 0.4, 0.5, 0.6, 0.7, 0.8)
_CERTAIN: Final = 1e-40
"""below every δ that is looked at"""


def halves(budget: Budget) -> Budget:
    """What must hold under add-or-remove for this budget to hold under replace-one.

    A replacement is a removal and an addition: (ε', δ') for each gives (2ε', (1 + e^ε')δ') for both.
    """
    return Budget(budget.epsilon / 2, budget.delta / (1 + math.exp(budget.epsilon / 2)))


def add_remove_threshold(budget: Budget) -> Threshold:
    """The stability histogram where one person is added or removed: one count moves by one, so the noise has rate ε.

    A count of 0 is never named, so (ε, δ) holds if one person alone is named with probability δ at most; other counts
    differ by a factor of e^ε at most (Korolova et al. 2009; proofs/stability_histogram.md for the argument).
    """
    noise = DiscreteLaplace(Fraction(budget.epsilon))
    spare = budget.delta - (1 + math.exp(budget.epsilon)) * noise.distance
    integer = least_integer(lambda threshold: named_alone(noise, threshold) <= spare, above=1)
    return Threshold(float(integer) - 1, integer, noise)


def replace_one_threshold(budget: Budget) -> Threshold:
    """That of the shipped curator (proofs/stability_histogram.md)."""
    return CuratorDesign.of(budget).threshold


@dataclass(frozen=True)
class SampledThreshold:
    """Each person takes part with probability p; what K or more of them hold is published with its sampled count.

    Sample-and-threshold (Bharadwaj and Cormode, AISTATS 2022), run by Nebula (arXiv 2409.09676) over secret sharing
    between two servers. Counts of different queries are independent, and one person more raises one of them from n to
    n + 1, so that the promise under add-or-remove is that of one count: ``exact_delta``.
    """

    p: float
    k: int

    @classmethod
    def deployed(cls, budget: Budget) -> SampledThreshold:
        """By the published formulas: p = α(1 − e^−ε), K = ⌈ln(1/δ)/C⌉, C = ln(1/α) − 1/(1 + α), α = 1/6.

        At ε = 1, δ = 1e-8 these are .105 and 20, as deployed (brave/brave-browser#35841).
        """
        alpha = DEPLOYED_ALPHA
        c = math.log(1 / alpha) - 1 / (1 + alpha)
        return cls(alpha * -math.expm1(-budget.epsilon), math.ceil(math.log(1 / budget.delta) / c))

    @classmethod
    def tuned(cls, budget: Budget) -> SampledThreshold:
        """The least number of people needed, K/p, that the exact δ allows: better than the formulas."""
        made = [cls._least(alpha * -math.expm1(-budget.epsilon), budget) for alpha in _ALPHAS]
        return min(made, key=lambda one: one.k / one.p)

    @classmethod
    def _least(cls, p: float, budget: Budget) -> SampledThreshold:
        def holds(k: int) -> bool:
            return cls(p, k).exact_delta(budget.epsilon) <= budget.delta

        return cls(p, least_integer(holds, above=1))

    def exact_delta(self, epsilon: float) -> float:
        """The least δ at this ε, over all counts n, for p ≤ 1 − e^−ε.

        The law of the output for n + 1 people over that for n is (1 − p)(n + 1)/(n + 1 − k) at a published k: above e^ε
        from k* on, so δ = P(k ≥ k* | n + 1) − e^ε P(k ≥ k* | n). The other way round no ratio exceeds 1/(1 − p) ≤ e^ε.
        Beyond the n that are computed, δ < exp(−(n + 1) KL(c, p)), c = 1 − (1 − p)e^−ε (Chernoff).
        """
        p, growth = self.p, math.exp(epsilon)
        c = 1 - (1 - p) / growth
        divergence = c * math.log(c / p) + (1 - c) * math.log((1 - c) / (1 - p))
        n = np.arange(self.k - 1, self.k + math.ceil(-math.log(_CERTAIN) / divergence))
        first = np.maximum(self.k, np.floor((n + 1) * c).astype(np.int64) + 1)
        exceeding = binom.sf(first - 1, n + 1, p) - growth * binom.sf(first - 1, n, p)
        return float(max(exceeding.max(), _CERTAIN))

    def release(self, counts: Ints, draw: np.random.Generator) -> tuple[Ints, Floats]:
        """Which queries are published, and the estimates of their counts: the sampled counts over p."""
        sampled = draw.binomial(counts, self.p)
        published = np.flatnonzero(sampled >= self.k)
        return published, sampled[published] / self.p


@dataclass(frozen=True)
class TrieHH:
    """Heavy hitters letter by letter (Zhu, Kairouz, McMahan, Sun and Li, AISTATS 2020, Corollary 1).

    In each of ``levels`` rounds some people vote for their query's next letter, if what is before it was found; θ votes
    add it to the trie. A query is found with its end mark. It names queries and gives no counts.

    Departure: a person takes part in a round with probability q = γ/√n instead of in a batch of exactly qn, so that the
    law of every vote is binomial and the promise under add-or-remove can be computed exactly.
    """

    theta: int
    q: float
    levels: int

    @classmethod
    def of(cls, budget: Budget, levels: int) -> TrieHH:
        """θ: the least with (θ − 2)/((θ − 3)θ!) ≤ δ; q = (1 − e^−ε/L)/θ, which is γ/√n of the paper."""
        theta = least_integer(lambda t: (t - 2) <= budget.delta * (t - 3) * math.factorial(t), above=3)
        return cls(theta, -math.expm1(-budget.epsilon / levels) / theta, levels)

    def exact_delta(self, epsilon: float) -> float:
        """The sum over levels of each one's least δ at ε/L.

        Whether a prefix of c people is added is a coin with P(Bin(c, q) ≥ θ). One person more raises it by a factor of
        at most 1 + θ(1 − q)/(c − θ + 1), which is below e^(ε/L) from some c on; the δ of smaller c are computed.
        """
        growth = math.exp(epsilon / self.levels)
        last = self.theta + math.ceil(self.theta / (growth - 1))
        c = np.arange(self.theta - 1, last + 1)
        added, before = binom.sf(self.theta - 1, c + 1, self.q), binom.sf(self.theta - 1, c, self.q)
        return self.levels * float(np.maximum(added - growth * before, 0.0).max())

    def release(self, queries: Sequence[str], counts: Ints, draw: np.random.Generator) -> Ints:
        """The queries that were found."""
        words = [f"{query}\0" for query in queries]
        alive = np.ones(len(words), dtype=np.bool_)
        for level in range(1, self.levels + 1):
            prefixes: dict[str, int] = {}
            rows = np.flatnonzero(alive)
            where = np.array(
                [prefixes.setdefault(words[row][:level], len(prefixes)) for row in rows.tolist()], np.int64
            )
            if not len(rows):
                break
            voters = np.bincount(where, weights=counts[rows]).astype(np.int64)
            alive[rows] = (draw.binomial(voters, self.q) >= self.theta)[where]
        return np.array([row for row in np.flatnonzero(alive).tolist() if len(words[row]) <= self.levels], np.int64)


@dataclass(frozen=True)
class LocalOracle:
    """Every person reports one set of a list that was known before; ε-private for each, whatever the server does.

    Subset selection without a sink (Ye and Barg 2018), optimal among frequency oracles, or with one: whichever has the
    smaller variance for the true share of ⋆ (proofs/subset_selection.md has both promises).
    """

    mechanism: PlainSubsetSelection | SubsetSelection

    @classmethod
    def of(cls, epsilon: float, n_items: int, star: float) -> LocalOracle:
        """Of all sizes of a set, and of both kinds, the smallest variance; choosing by the truth favours the rival."""
        exact = Fraction(epsilon)
        sizes = range(1, n_items + 1)
        plain = [cls(PlainSubsetSelection.of(exact, n_items, size)) for size in sizes]
        sink = [cls(SubsetSelection.of(exact, n_items, size)) for size in sizes[:-1]]
        return min((*plain, *sink), key=lambda oracle: oracle.variance(star))

    @property
    def _named(self) -> tuple[float, float, float]:
        """The odds that a set names an item of its holder, of another item's holder, of a holder of ⋆."""
        m, d, p = self.mechanism.n_items, self.mechanism.subset_size, self.mechanism.include
        if isinstance(self.mechanism, PlainSubsetSelection):
            other = (p * (d - 1) + (1 - p) * d) / m
            return p, other, other
        stays = 1 - p - self.mechanism.sink_of_holder
        return p, (p * (d - 1) + stays * d) / max(m - 1, 1), (1 - p) * d / m

    def variance(self, star: float) -> float:
        """Of a rare item's estimated share, times the number of people; ⋆'s own estimate left out."""
        held, other, rest = self._named
        return ((1 - star) * other * (1 - other) + star * rest * (1 - rest)) / (held - other) ** 2

    def release(self, counts: Ints, n_users: int, draw: np.random.Generator) -> tuple[Floats, float]:
        """Unbiased shares of the items, and the standard deviation of one that no one holds."""
        reports = draw_sets(np.append(counts, n_users - int(counts.sum())), self.mechanism, draw)
        held, other, rest = self._named
        star = 0.0
        if isinstance(self.mechanism, SubsetSelection):
            sink = self.mechanism.sink_of_holder
            star = (reports.sinks / n_users - sink) / (held - sink)
        shares = (reports.items / n_users - other * (1 - star) - rest * star) / (held - other)
        return shares, math.sqrt(self.variance(star) / n_users)

    def bytes(self) -> int:
        """The set, as numbers of the list with two bytes each, and a byte before them."""
        return 1 + 2 * self.mechanism.subset_size


def detected(shares: Floats, deviation: float) -> Ints:
    """Items that are above 0 beyond doubt: if none were held, one of all would be named with probability .05."""
    return np.flatnonzero(shares > norm.ppf(1 - 0.05 / len(shares)) * deviation)
