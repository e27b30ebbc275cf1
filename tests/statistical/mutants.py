"""Every planted fault, by name. A check that accepts one of these is no check.

Each is the shipped code with one thing wrong: wrapped, given wrong arguments, or with its result bent.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

from channel_checks import Channel, channel_of, driven_channel

from searchblend.blender.local_report import randomize
from searchblend.blender.report_probabilities import ReportProbabilities
from searchblend.params import BlenderParams
from searchblend.randomness import HALF, Randomness, uniform_from_half, word
from searchblend.records import HeadList

# --- the local mechanism: (head, params) -> channel ---------------------------------------------------------------


def _with_shares(head: HeadList, query_share: Any, url_share: Any) -> ReportProbabilities:
    return ReportProbabilities.of(head, SimpleNamespace(query_share=query_share, url_share=url_share))  # type: ignore[arg-type]


def _with_sizes(head: HeadList, params: BlenderParams, queries: int, urls: int) -> ReportProbabilities:
    """Thresholds for k + queries and k_q + urls, used on the true list."""
    sizes = SimpleNamespace(
        n_queries=max(head.n_queries + queries, 1), n_urls=tuple(max(width + urls, 1) for width in head.n_urls)
    )
    wrong = ReportProbabilities.of(sizes, params)  # type: ignore[arg-type]
    return _lawful(replace(wrong, n_urls=head.n_urls))


def _lawful(probabilities: ReportProbabilities) -> ReportProbabilities:
    """A query with one cell has no URL to lie about, whatever the thresholds say."""
    below = zip(probabilities.keep_record_below, probabilities.n_urls, strict=True)
    kept = tuple(probabilities.keep_query_below if width == 1 else b for b, width in below)
    return replace(probabilities, keep_record_below=kept)


def _swapped(head: HeadList, params: BlenderParams) -> Channel:
    return channel_of(_with_shares(head, params.url_share, params.query_share))


def _whole_budget_per_stage(head: HeadList, params: BlenderParams) -> Channel:
    return channel_of(_with_shares(head, params.per_record, params.per_record))


def _whole_budget_per_record(head: HeadList, params: BlenderParams) -> Channel:
    return channel_of(ReportProbabilities.of(head, replace(params, records_per_client=1)))


def _delta_not_halved(head: HeadList, params: BlenderParams) -> Channel:
    shares = [(epsilon, 2 * delta) for epsilon, delta in (params.query_share, params.url_share)]
    return channel_of(_with_shares(head, *shares))


def _rounded_up(head: HeadList, params: BlenderParams) -> Channel:
    below = ReportProbabilities.of(head, params)
    if below.n_queries == 1:
        return channel_of(below)
    up = replace(
        below,
        keep_query_below=below.keep_query_below + 1,
        keep_record_below=tuple(kept + 1 for kept in below.keep_record_below),
    )
    return channel_of(up)


def _unknown_query_is_never_a_lie(head: HeadList, params: BlenderParams) -> Channel:
    """⋆ left out of the list of queries that are protected: whoever holds ⟨⋆,⋆⟩ says so."""
    rows = [list(row) for row in channel_of(ReportProbabilities.of(head, params))]
    rows[-1] = [Fraction(0)] * (head.n_cells - 1) + [Fraction(1)]
    return rows


def _lies_never_name_the_wildcard(head: HeadList, params: BlenderParams) -> Channel:
    """A lie about the query takes a listed URL of it only, never ⟨q,⋆⟩."""

    def run(query: int, url: int, probabilities: ReportProbabilities, source: Randomness) -> tuple[int, int]:
        said, said_url = randomize(query, url, probabilities, source)
        is_wildcard = said_url == probabilities.n_urls[said] - 1 > 0
        return (said, 0) if said != query and is_wildcard else (said, said_url)

    return driven_channel(ReportProbabilities.of(head, params), run)


def _lie_may_be_the_truth(query: int, url: int, p: ReportProbabilities, source: Randomness) -> tuple[int, int]:
    decision = word(source)
    if decision < p.keep_record_below[query]:
        return query, url
    lie = word(source)
    if decision < p.keep_query_below:
        return query, uniform_from_half(lie % HALF, p.n_urls[query], source)
    other = uniform_from_half(lie // HALF, p.n_queries, source)
    return other, uniform_from_half(lie % HALF, p.n_urls[other], source)


def _threshold_included(query: int, url: int, p: ReportProbabilities, source: Randomness) -> tuple[int, int]:
    """``<=`` for ``<``: right in all but one of 2^64 words, so only the driven channel can see it."""
    up = replace(p, keep_record_below=tuple(kept + 1 for kept in p.keep_record_below))
    return randomize(query, url, up, source)


def _url_lie_is_always_the_next(query: int, url: int, p: ReportProbabilities, source: Randomness) -> tuple[int, int]:
    said, said_url = randomize(query, url, p, source)
    return (said, said_url) if said != query or said_url == url else (said, (url + 1) % p.n_urls[query])


CHANNEL = {
    "swapped stage budgets": _swapped,
    "each stage has the whole budget": _whole_budget_per_stage,
    "budget not divided by m_C": _whole_budget_per_record,
    "delta not halved": _delta_not_halved,
    "thresholds rounded up": _rounded_up,
    "k one too small": lambda head, params: channel_of(_with_sizes(head, params, -1, 0)),
    "k one too large": lambda head, params: channel_of(_with_sizes(head, params, 1, 0)),
    "k_q one too small": lambda head, params: channel_of(_with_sizes(head, params, 0, -1)),
    "k_q one too large": lambda head, params: channel_of(_with_sizes(head, params, 0, 1)),
    "missing wildcard among the queries": _unknown_query_is_never_a_lie,
    "missing wildcard among the URLs of a lie": _lies_never_name_the_wildcard,
}

RANDOMIZE = {
    "a lie may equal the truth": _lie_may_be_the_truth,
    "<= for < at the threshold of the truth": _threshold_included,
    "URL lies are not uniform": _url_lie_is_always_the_next,
}

PRIVACY_BREAKING = [
    "each stage has the whole budget",
    "budget not divided by m_C",
    "thresholds rounded up",
    "k one too small",
    "missing wildcard among the queries",
    "missing wildcard among the URLs of a lie",
]
"""The channel mutants that lose privacy: ``check_channel`` alone must reject them. The others are only wrong."""
