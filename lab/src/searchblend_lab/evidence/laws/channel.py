"""Is a table of P(report | truth) private, and is it the table of [BLJ] Fig. 6? Exact arithmetic, no sampling.

A channel is a list of rows of ``Fraction``, one row per true cell. Both checks raise ``AssertionError``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np

from searchblend.blender.paper.local_report import randomize
from searchblend.blender.paper.report_probabilities import WORDS, ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import HALF, Randomness, Tape
from searchblend.core.records import HeadList
from searchblend.mechanisms.fixed_point import exp_fraction_bounds

TINY = 1e-300
"""A δ so small that it changes nothing: what is left is the mechanism's pure loss."""


@dataclass(frozen=True)
class ChannelCase:
    """One head list (listed URLs per query, ⋆ not counted) with the parameters of a report.

    ``pure`` says whether the loss stays within ε' even without the help of δ'. It does at every δ that one would
    use as long as f_C < 1, because the two stages never spend all of ε_Q + ε_U; it does not for a query-only list
    with f_C = 1, whose one stage spends all of ε' and then δ'/2, nor where (δ/2)(k−1) is not small beside e^ε.
    """

    n_urls: tuple[int, ...]
    epsilon: float = 4.0
    delta: float = 1e-5
    query_budget_fraction: float = 0.85
    records_per_client: int = 1
    pure: bool = True

    @property
    def head(self) -> HeadList:
        return HeadList((f"query {i}", [f"url {j}" for j in range(n)]) for i, n in enumerate(self.n_urls))

    @property
    def params(self) -> BlenderParams:
        return BlenderParams(
            budget=Budget(self.epsilon, self.delta),
            query_budget_fraction=self.query_budget_fraction,
            records_per_client=self.records_per_client,
        )

    def __str__(self) -> str:
        urls = ",".join(map(str, self.n_urls)) if len(self.n_urls) < 9 else f"{len(self.n_urls)} queries"
        return (
            f"[{urls}]-eps{self.epsilon:g}-delta{self.delta:g}-f{self.query_budget_fraction:g}"
            f"-m{self.records_per_client}"
        )


SMALL_CASES = [
    ChannelCase(()),  # k = 1: ⋆ alone
    ChannelCase((0,)),  # k = 2, query-only
    ChannelCase((1,)),
    ChannelCase((3,)),
    ChannelCase((1, 1)),
    ChannelCase((1, 2, 3)),
    ChannelCase((0, 1, 4)),  # a query without URLs among others
    ChannelCase((2, 2, 2, 2)),
    ChannelCase((5, 1)),
    ChannelCase((1, 2, 3), epsilon=1.0),
    ChannelCase((1, 2, 3), epsilon=0.1),
    ChannelCase((1, 2, 3), epsilon=10.0, delta=1e-7),
    ChannelCase((1, 2, 3), epsilon=1.0, delta=0.1, pure=False),
    ChannelCase((3, 1), query_budget_fraction=0.5),
    ChannelCase((3, 1), query_budget_fraction=0.1, epsilon=2.0),
    ChannelCase((1, 2), records_per_client=2),
    ChannelCase((0, 0, 3), records_per_client=2, epsilon=1.0, delta=1e-3),
    ChannelCase((2, 1), records_per_client=3, delta=TINY),
    ChannelCase((0, 0, 0)),  # query-only with the budget of a URL stage left over
    ChannelCase((0,), query_budget_fraction=1.0, pure=False),
    ChannelCase((0, 0, 0), query_budget_fraction=1.0, pure=False),
    ChannelCase((0, 0, 0), query_budget_fraction=1.0, delta=TINY),
    ChannelCase((0,) * 6, query_budget_fraction=1.0, epsilon=1.0, delta=TINY),
    ChannelCase((0, 0), query_budget_fraction=1.0, epsilon=0.5, delta=0.1, records_per_client=2, pure=False),
]
"""Small enough to drive every word that decides through the scalar ``randomize``."""

LARGE_CASES = [
    ChannelCase((1,) * 20),
    ChannelCase((2,) * 16),
    ChannelCase((8, *(1, 2, 3) * 6)),
    ChannelCase((40, 1, 1)),
    ChannelCase((0,) * 50, query_budget_fraction=1.0, pure=False),
    ChannelCase((0,) * 50, query_budget_fraction=1.0, delta=TINY),
    ChannelCase((0,) * 40, epsilon=1.0, delta=0.1, pure=False),
    ChannelCase((3,) * 10, epsilon=1.0, delta=0.2, pure=False),
]

Channel = Sequence[Sequence[Fraction]]
Randomize = Callable[[int, int, ReportProbabilities, Randomness], tuple[int, int]]


def channel_of(probabilities: ReportProbabilities) -> Channel:
    return [probabilities.channel_row(q, u) for q, width in enumerate(probabilities.n_urls) for u in range(width)]


def check_channel(rows: Channel, epsilon: Fraction, delta: Fraction, *, pure: bool | None = None) -> None:
    """Every row sums to exactly 1 and no two rows differ by more than (ε, δ).

    ``pure``: True asserts besides that every likelihood ratio is at most e^ε, False that one is above it (so
    that what is said of the exceptions is tested as well), None says nothing. e^ε is replaced by its lower
    bound where that makes the check stricter, and by its upper bound to show an excess.
    """
    assert all(sum(row) == 1 for row in rows)
    low, high = exp_fraction_bounds(epsilon)
    assert worst_hockey_stick(rows, low) <= delta
    columns = list(zip(*rows, strict=True))
    if pure:
        assert all(max(column) <= low * min(column) for column in columns)
    elif pure is not None:
        assert any(max(column) > high * min(column) for column in columns)


def worst_hockey_stick(rows: Channel, growth: Fraction) -> Fraction:
    """The largest Σ max(P − growth·Q, 0) over all ordered pairs of rows, exactly (in integers)."""
    scale = math.lcm(*(p.denominator for row in rows for p in row))
    table = np.array([[int(p * scale) for p in row] for row in rows], dtype=object)
    grown = table * growth.numerator
    worst = max(int(np.maximum(row * growth.denominator - grown, 0).sum(axis=1).max()) for row in table)
    return Fraction(worst, scale * growth.denominator)


def pure_loss(rows: Channel) -> float:
    """The largest log-likelihood ratio of any report."""
    return max(math.log(max(column) / min(column)) for column in zip(*rows, strict=True))


def check_channel_is_figure_6(rows: Channel, head: HeadList, params: BlenderParams) -> None:
    """Within 2^-63 of t and t_q as printed, computed here anew with 60 decimal digits, and rounded down."""
    expected = [_figure_6_row(head.n_urls, q, u, params) for q, width in enumerate(head.n_urls) for u in range(width)]
    assert len(rows) == len(expected) == head.n_cells
    for i, (row, wanted) in enumerate(zip(rows, expected, strict=True)):
        assert len(row) == head.n_cells
        errors = [Fraction(p) - Fraction(q) for p, q in zip(row, wanted, strict=True)]
        assert max(map(abs, errors)) <= Fraction(1, 2**63)
        assert errors[i] <= Fraction(1, 10**50)  # the truth is never more probable than printed


def _figure_6_row(n_urls: Sequence[int], query: int, url: int, params: BlenderParams) -> list[Decimal]:
    with localcontext(prec=60):
        epsilon, delta = Decimal(params.budget.epsilon), Decimal(params.budget.delta)
        fraction, m = Decimal(params.query_budget_fraction), params.records_per_client
        t = _keep(fraction * epsilon / m, fraction * delta / m, len(n_urls))
        t_q = _keep((1 - fraction) * epsilon / m, (1 - fraction) * delta / m, n_urls[query])
        row = [(1 - t) / max(len(n_urls) - 1, 1) / width for width in n_urls for _ in range(width)]
        first, width = sum(n_urls[:query]), n_urls[query]
        row[first : first + width] = [t * (1 - t_q) / max(width - 1, 1)] * width
        row[first + url] = t * t_q
        return row


def _keep(epsilon: Decimal, delta: Decimal, k: int) -> Decimal:
    if k == 1:
        return Decimal(1)
    return (epsilon.exp() + delta / 2 * (k - 1)) / (epsilon.exp() + k - 1)


def driven_channel(probabilities: ReportProbabilities, run: Randomize = randomize) -> Channel:
    """The channel of the code itself: ``run`` is given every word that decides, at both ends of its interval.

    The decision word's intervals end at the thresholds; the halves of the second word matter only modulo the
    numbers of queries and URLs, so one full period of each is all of them (``accept_below`` cuts the last,
    incomplete period off).
    """
    first = [sum(probabilities.n_urls[:q]) for q in range(probabilities.n_queries)]
    lies = _lie_words(probabilities)
    rows: list[list[Fraction]] = []
    for query, width in enumerate(probabilities.n_urls):
        edges = [0, probabilities.keep_record_below[query], probabilities.keep_query_below, WORDS]
        for url in range(width):
            row = [Fraction(0)] * sum(probabilities.n_urls)
            for start, stop in pairwise(edges):
                if start == stop:
                    continue
                said = [_outcomes(run, query, url, probabilities, word, lies) for word in (start, stop - 1)]
                assert said[0] == said[1], "one interval of the decision word gives two different laws"
                for (said_query, said_url), times in said[0].items():
                    row[first[said_query] + said_url] += Fraction((stop - start) * times, WORDS * len(lies))
            rows.append(row)
    return rows


def _lie_words(probabilities: ReportProbabilities) -> list[int]:
    widths = set(probabilities.n_urls)
    period = math.lcm(*widths, *(width - 1 for width in widths if width > 1))
    return [high * HALF + low for high in range(max(probabilities.n_queries - 1, 1)) for low in range(period)]


def _outcomes(
    run: Randomize, query: int, url: int, probabilities: ReportProbabilities, decision: int, lies: list[int]
) -> Counter[tuple[int, int]]:
    tapes = (Tape(decision.to_bytes(8, "little") + lie.to_bytes(8, "little")) for lie in lies)
    return Counter(run(query, url, probabilities, tape) for tape in tapes)
