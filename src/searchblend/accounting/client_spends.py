"""What a client's report costs, from the exact law of the mechanism that the device runs.

A mechanism is taken as the channel that its own module enumerates, so that device, estimator and accountant cannot
disagree. Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import comb
from typing import Protocol

from searchblend.accounting.dominating_pair import Vector, direct_sum, dominating_law, pairs_of_rows
from searchblend.accounting.spend import Spend
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget, Neighbors
from searchblend.mechanisms.randomized_response import keep_probability
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection

SetMechanism = SubsetSelection | PlainSubsetSelection


class TwoStageChannel(Protocol):
    """What is needed of ``ReportProbabilities``."""

    @property
    def n_urls(self) -> tuple[int, ...]: ...

    def channel_row(self, query: int, url: int) -> list[Fraction]: ...


def two_stage_spend(channel: TwoStageChannel, budget: Budget, *, records_per_client: int = 1) -> Spend:
    """One report of LocalAlg ([BLJ] Fig. 6): m_C cells, each through the two-stage channel."""
    law = dominating_law(pairs_of_rows(_representative_rows(channel)), cells=records_per_client)
    return Spend(budget.epsilon, budget.delta, Neighbors.REPLACE_ONE, "two-stage randomized response", law)


def _representative_rows(channel: TwoStageChannel) -> Iterator[Vector]:
    """Two URLs of each of two queries of every width: every pair of inputs looks like a pair of these.

    The channel does not change when queries of the same width, or URLs of the same query, change places.
    """
    seen: dict[int, int] = {}
    for query, width in enumerate(channel.n_urls):
        seen[width] = seen.get(width, 0) + 1
        if seen[width] <= 2:
            yield from (channel.channel_row(query, url) for url in range(min(width, 2)))


def randomized_response_spend(epsilon: float, n_values: int) -> Spend:
    """k-ary randomized response over ``n_values`` values: one pair stands for all, whichever values they are."""
    if n_values < 2:
        raise InvalidParameter("n_values", "expected at least 2")
    truth = keep_probability(Fraction(epsilon), Fraction(0), n_values)
    lie = (1 - truth) / (n_values - 1)
    rest = (n_values - 2) * lie
    law = dominating_law([((truth, lie, rest), (lie, truth, rest))])
    return Spend(epsilon, 0.0, Neighbors.REPLACE_ONE, f"randomized response over {n_values} values", law)


def subset_selection_spend(
    parts: Sequence[tuple[Fraction, SetMechanism]], epsilon: float, *, records_per_client: int = 1
) -> Spend:
    """One report of subset selection; ``parts`` are the mechanisms, each with its chance under the public coin."""
    if sum(weight for weight, _ in parts) != 1:
        raise InvalidParameter("parts", "expected chances that sum to 1")
    law = direct_sum((weight, subset_selection_pairs(mechanism)) for weight, mechanism in parts)
    return Spend(epsilon, 0.0, Neighbors.REPLACE_ONE, "subset selection", replace(law, cells=records_per_client))


def subset_selection_pairs(mechanism: SetMechanism) -> Iterator[tuple[Vector, Vector]]:
    """An item against ⋆, and an item against another: by symmetry there are no other pairs."""
    m, d = mechanism.n_items, mechanism.subset_size
    if isinstance(mechanism, PlainSubsetSelection):
        named, other = mechanism.law()
        yield _two_items(m + 1, d, named, other)
        return
    sink, named, other = mechanism.law(0)
    star_sink, any_set, _ = mechanism.law(None)
    with_item, without = comb(m - 1, d - 1), comb(m - 1, d)
    yield (sink, with_item * named, without * other), (star_sink, with_item * any_set, without * any_set)
    if m > 1:
        upper, lower = _two_items(m, d, named, other)
        yield (sink, *upper), (sink, *lower)


def _two_items(m: int, d: int, named: Fraction, other: Fraction) -> tuple[Vector, Vector]:
    """Sets with both items, the first alone, the second alone, neither, for the holders of the two."""
    both, one, neither = comb(m - 2, d - 2) if d > 1 else 0, comb(m - 2, d - 1), comb(m - 2, d)
    return (
        (both * named, one * named, one * other, neither * other),
        (both * named, one * other, one * named, neither * other),
    )
