"""Is a table of P(report | truth) private, and is it the table of [BLJ] Fig. 6? Exact arithmetic, no sampling.

A channel is a list of rows of ``Fraction``, one row per true cell. Both checks raise ``AssertionError``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np

from searchblend.blender.paper.local_report import randomize
from searchblend.blender.paper.report_probabilities import WORDS, ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.randomness import HALF, Randomness, Tape
from searchblend.core.records import HeadList
from searchblend.mechanisms.fixed_point import exp_fraction_bounds

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
