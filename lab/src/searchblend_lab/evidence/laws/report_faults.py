"""Reports with one thing wrong: thresholds, the code that reads them, and many clients at once."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from searchblend.blender.paper.local_report import randomize
from searchblend.blender.paper.local_report_bulk import BulkReporter
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.randomness import HALF, Randomness, uniform_from_half, word
from searchblend.core.records import HeadList
from searchblend.mechanisms.tally import Ints
from searchblend_lab.evidence.laws.channel import Channel, channel_of, driven_channel


def with_shares(head: HeadList, query_share: Any, url_share: Any) -> ReportProbabilities:
    return ReportProbabilities.of(head, SimpleNamespace(query_share=query_share, url_share=url_share))  # type: ignore[arg-type]


def with_sizes(head: HeadList, params: BlenderParams, queries: int, urls: int) -> ReportProbabilities:
    """Thresholds for k + queries and k_q + urls, used on the true list."""
    sizes = SimpleNamespace(
        n_queries=max(head.n_queries + queries, 1), n_urls=tuple(max(width + urls, 1) for width in head.n_urls)
    )
    wrong = ReportProbabilities.of(sizes, params)  # type: ignore[arg-type]
    return lawful(replace(wrong, n_urls=head.n_urls))


def lawful(probabilities: ReportProbabilities) -> ReportProbabilities:
    """A query with one cell has no URL to lie about, whatever the thresholds say."""
    below = zip(probabilities.keep_record_below, probabilities.n_urls, strict=True)
    kept = tuple(probabilities.keep_query_below if width == 1 else b for b, width in below)
    return replace(probabilities, keep_record_below=kept)


def swapped(head: HeadList, params: BlenderParams) -> Channel:
    return channel_of(with_shares(head, params.url_share, params.query_share))


def whole_budget_per_stage(head: HeadList, params: BlenderParams) -> Channel:
    return channel_of(with_shares(head, params.per_record, params.per_record))


def whole_budget_per_record(head: HeadList, params: BlenderParams) -> Channel:
    return channel_of(ReportProbabilities.of(head, replace(params, records_per_client=1)))


def delta_not_halved(head: HeadList, params: BlenderParams) -> Channel:
    shares = [(epsilon, 2 * delta) for epsilon, delta in (params.query_share, params.url_share)]
    return channel_of(with_shares(head, *shares))


def rounded_up(head: HeadList, params: BlenderParams) -> Channel:
    below = ReportProbabilities.of(head, params)
    if below.n_queries == 1:
        return channel_of(below)
    up = replace(
        below,
        keep_query_below=below.keep_query_below + 1,
        keep_record_below=tuple(kept + 1 for kept in below.keep_record_below),
    )
    return channel_of(up)


def unknown_query_is_never_a_lie(head: HeadList, params: BlenderParams) -> Channel:
    """⋆ left out of the list of queries that are protected: whoever holds ⟨⋆,⋆⟩ says so."""
    rows = [list(row) for row in channel_of(ReportProbabilities.of(head, params))]
    rows[-1] = [Fraction(0)] * (head.n_cells - 1) + [Fraction(1)]
    return rows


def lies_never_name_the_wildcard(head: HeadList, params: BlenderParams) -> Channel:
    """A lie about the query takes a listed URL of it only, never ⟨q,⋆⟩."""

    def run(query: int, url: int, probabilities: ReportProbabilities, source: Randomness) -> tuple[int, int]:
        said, said_url = randomize(query, url, probabilities, source)
        is_wildcard = said_url == probabilities.n_urls[said] - 1 > 0
        return (said, 0) if said != query and is_wildcard else (said, said_url)

    return driven_channel(ReportProbabilities.of(head, params), run)


def lie_may_be_the_truth(query: int, url: int, p: ReportProbabilities, source: Randomness) -> tuple[int, int]:
    decision = word(source)
    if decision < p.keep_record_below[query]:
        return query, url
    lie = word(source)
    if decision < p.keep_query_below:
        return query, uniform_from_half(lie % HALF, p.n_urls[query], source)
    other = uniform_from_half(lie // HALF, p.n_queries, source)
    return other, uniform_from_half(lie % HALF, p.n_urls[other], source)


def threshold_included(query: int, url: int, p: ReportProbabilities, source: Randomness) -> tuple[int, int]:
    """``<=`` for ``<``: right in all but one of 2^64 words, so only the driven channel can see it."""
    up = replace(p, keep_record_below=tuple(kept + 1 for kept in p.keep_record_below))
    return randomize(query, url, up, source)


def url_lie_is_always_the_next(query: int, url: int, p: ReportProbabilities, source: Randomness) -> tuple[int, int]:
    said, said_url = randomize(query, url, p, source)
    return (said, said_url) if said != query or said_url == url else (said, (url + 1) % p.n_urls[query])


class BulkLieMayBeTheTruth(BulkReporter):
    """The step over the true URL is left out: the true one comes twice, the last never."""

    def _other_url(self, cells: Ints, lie: np.ndarray, randomness: Randomness) -> Ints:
        query = self._query_of[cells]
        said: Ints = self._first[query] + (lie % (self._width[query] - np.uint64(1))).astype(np.int64)
        return said


class BulkOneHalfForBoth(BulkReporter):
    """Query and URL of a lie come from the same 32 bits, so they are not independent."""

    def _other_query(self, cells: Ints, lie: np.ndarray, randomness: Randomness) -> Ints:
        low = lie & np.uint64(HALF - 1)
        return super()._other_query(cells, low << np.uint64(32) | low, randomness)
