"""Every planted fault, by name. A check that accepts one of these is no check.

Each is the shipped code with one thing wrong: wrapped, given wrong arguments, or with its result bent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from channel_checks import Channel, channel_of, driven_channel
from estimator_checks import EstimateClients, EstimateOptin, estimating_with
from selection_checks import Select

from searchblend.blender import estimate_optin
from searchblend.blender.create_head_list import noisy_selection
from searchblend.blender.estimate_client import estimate_client_probabilities
from searchblend.blender.estimate_optin import estimate_optin_probabilities
from searchblend.blender.estimates import GroupEstimates
from searchblend.blender.groups import Ints, UserGroup
from searchblend.blender.local_report import randomize
from searchblend.blender.local_report_bulk import BulkReporter
from searchblend.blender.release import BlenderRelease
from searchblend.blender.report_probabilities import ReportProbabilities
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.threshold import Threshold, noise_for_one_record
from searchblend.params import BlenderParams
from searchblend.randomness import HALF, Randomness, uniform_from_half, word
from searchblend.records import HeadList, Record

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
    "delta not halved",
    "thresholds rounded up",
    "k one too small",
    "missing wildcard among the queries",
    "missing wildcard among the URLs of a lie",
]
"""The channel mutants that lose privacy: ``check_channel`` alone must reject them. The others are only wrong."""

# --- head-list selection: noisy_selection(group, threshold, *, randomness) ----------------------------------------


def _threshold_moved(step: int) -> Select:
    def select(group: UserGroup, threshold: Threshold, *, randomness: Randomness) -> list[Record]:
        moved = replace(threshold, integer=threshold.integer + step)
        return noisy_selection(group, moved, randomness=randomness)

    return select


def _no_noise_above_the_threshold(group: UserGroup, threshold: Threshold, *, randomness: Randomness) -> list[Record]:
    tally = group.tally()
    passed = noisy_selection(group, threshold, randomness=randomness)
    for count, how_many in tally.sizes().items():
        if count >= threshold.integer:
            passed += [record for record in tally.pick(count, np.arange(how_many)) if record not in passed]
    return passed


def _reused_noise(group: UserGroup, threshold: Threshold, *, randomness: Randomness) -> list[Record]:
    """One draw for all records."""
    noise = SimpleNamespace(sample=lambda size, source: np.full(size, threshold.noise.sample(1, source)[0]))
    return noisy_selection(group, replace(threshold, noise=noise), randomness=randomness)  # type: ignore[arg-type]


def _counted_twice(group: UserGroup, threshold: Threshold, *, randomness: Randomness) -> list[Record]:
    """A user's record entered twice: the bound on a person's contribution is skipped."""
    tally = group.tally()
    twice = SimpleNamespace(
        sizes=lambda: {2 * count: n for count, n in tally.sizes().items()},
        pick=lambda count, ranks: tally.pick(count // 2, ranks),
    )
    return noisy_selection(SimpleNamespace(tally=lambda: twice), threshold, randomness=randomness)  # type: ignore[arg-type]


def noise_of_scale(factor: Fraction, noise: DiscreteLaplace) -> DiscreteLaplace:
    """Noise whose scale is ``factor`` times the right one."""
    return DiscreteLaplace(noise.rate / factor)


def _half_scale(group: UserGroup, threshold: Threshold, *, randomness: Randomness) -> list[Record]:
    halved = replace(threshold, noise=noise_of_scale(Fraction(1, 2), threshold.noise))
    return noisy_selection(group, halved, randomness=randomness)


SELECTION = {
    ">= for > at tau": _threshold_moved(-1),
    "no noise above the threshold": _no_noise_above_the_threshold,
    "a person counts twice": _counted_twice,
}
"""These lose privacy whatever the noise is: enumeration must reject them."""

BOUNDARY = {
    "> for >= at T": _threshold_moved(1),
    ">= for > at tau": _threshold_moved(-1),
    "noise scale b/2": _half_scale,
    "reused noise": _reused_noise,
    "a person counts twice": _counted_twice,
}
"""These change how often a single person's record is named: the boundary test must reject them."""

NOISE_SCALE = {"noise scale b/2": Fraction(1, 2), "noise scale 0.9 b": Fraction(9, 10)}
"""Too little noise: enumeration of the published counts must reject it."""

SAMPLER_SCALE = {"noise scale 1.1 b": Fraction(11, 10), "noise scale b/1.1": Fraction(10, 11)}
"""A tenth off: goodness of fit must reject it."""

# --- the sampler: sample -> sample ---------------------------------------------------------------------------------

SAMPLE = {
    "zero drawn for both signs": lambda sample: np.where((sample == 0) & (np.arange(len(sample)) % 2 == 0), 1, sample),
    "a sign bit that is 55 % plus": lambda sample: np.where(np.arange(len(sample)) % 10 == 0, np.abs(sample), sample),
    "noise reused for fifty draws": lambda sample: np.repeat(sample[: len(sample) // 50], 50),
    "magnitudes one too small": lambda sample: np.sign(sample) * np.maximum(np.abs(sample) - 1, 0),
}

# --- the clients' estimates: (report counts, head, params) -> GroupEstimates ---------------------------------------


def _estimator_with(wrong: Callable[[HeadList, BlenderParams], ReportProbabilities]) -> EstimateClients:
    """Estimates made with other probabilities than the devices used."""

    def estimate(counts: Ints, head: HeadList, params: BlenderParams) -> GroupEstimates:
        with estimating_with(wrong(head, params)):
            return estimate_client_probabilities(counts, head, params)

    return estimate


def _variance_terms(counts: Ints, head: HeadList, params: BlenderParams) -> tuple[np.ndarray, np.ndarray]:
    """The second and the third term of σ̂² of a record ([BLJ] Theorem 3.6): c²σ̂²_q and the covariance."""
    p = ReportProbabilities.of(head, params)
    query = np.array(head.query_of_cells())
    width, keep = np.array(p.n_urls)[query], p.keep_query * np.array(p.keep_url)[query]
    a, n = (1 - p.keep_query) / max(p.n_queries - 1, 1), counts.sum()
    lie_url = (p.keep_query - keep) / np.maximum(width - 1, 1)
    c, r = a / width - lie_url, counts / n
    r_query = np.add.reduceat(r, head.first_cells())[query]
    own = c**2 * r_query * (1 - r_query) / ((n - 1) * (p.keep_query - a) ** 2)
    shared = 2 * c * r * (1 - r_query) / ((n - 1) * (p.keep_query - a))
    return own / (keep - lie_url) ** 2, shared / (keep - lie_url) ** 2


def _bent_variance(bend: Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]) -> EstimateClients:
    def estimate(counts: Ints, head: HeadList, params: BlenderParams) -> GroupEstimates:
        right = estimate_client_probabilities(counts, head, params)
        variance = bend(right.records.variance, *_variance_terms(counts, head, params), right.n)
        return replace(right, records=replace(right.records, variance=variance))

    return estimate


CLIENT_ESTIMATE = {
    "estimator: k one too small": _estimator_with(lambda head, params: _with_sizes(head, params, -1, 0)),
    "estimator: k_q one too small": _estimator_with(lambda head, params: _with_sizes(head, params, 0, -1)),
    "estimator: swapped stage budgets": _estimator_with(
        lambda head, params: _with_shares(head, params.url_share, params.query_share)
    ),
    "estimator: n for n − 1": _bent_variance(lambda variance, own, shared, n: variance * (n - 1) / n),
    "estimator: no covariance": _bent_variance(lambda variance, own, shared, n: variance - shared),
    "estimator: covariance subtracted": _bent_variance(lambda variance, own, shared, n: variance - 2 * shared),
    "estimator: query variance corrected twice": _bent_variance(
        lambda variance, own, shared, n: variance + own / (n - 1)
    ),
}
"""The last is [BLJ] Theorem 3.6 as printed."""

OFF_BY_ONE_IN_N = {"estimator: n for n − 1", "estimator: query variance corrected twice"}
"""Seen at a few reports only: enumeration finds them, a simulation of thousands of clients cannot."""

# --- the opt-in users' estimates: estimate_optin_probabilities -----------------------------------------------------


def _with_noise(make: Callable[[DiscreteLaplace], Any]) -> EstimateOptin:
    def estimate(group: UserGroup, head: HeadList, params: BlenderParams, **options: Any) -> Any:
        noise = make(noise_for_one_record(params.budget))
        with patch.object(estimate_optin, "noise_for_one_record", lambda _: noise):
            return estimate_optin_probabilities(group, head, params, **options)

    return estimate


def _same_for_all(noise: DiscreteLaplace) -> SimpleNamespace:
    return SimpleNamespace(
        variance=noise.variance, sample=lambda size, source: np.full(size, noise.sample(1, source)[0])
    )


def _unlisted_forgotten(group: UserGroup, head: HeadList, params: BlenderParams, **options: Any) -> Any:
    """The wildcard is missing: people whose record is not listed are counted nowhere."""
    counts = group.cell_counts(head).copy()
    counts[-1] = 0
    forgetful = SimpleNamespace(n_users=group.n_users, has_urls=group.has_urls, cell_counts=lambda _: counts)
    return estimate_optin_probabilities(forgetful, head, params, **options)  # type: ignore[arg-type]


PUBLISHED_NOISE = {
    "opt-in counts: noise scale b/2": _with_noise(lambda noise: noise_of_scale(Fraction(1, 2), noise)),
    "opt-in counts: noise scale 1.1 b": _with_noise(lambda noise: noise_of_scale(Fraction(11, 10), noise)),
    "opt-in counts: reused noise": _with_noise(_same_for_all),
}

OPTIN_ESTIMATE = {"opt-in counts: missing wildcard": _unlisted_forgotten}

# --- many clients at once: (probabilities) -> reporter -------------------------------------------------------------


class _BulkLieMayBeTheTruth(BulkReporter):
    """The step over the true URL is left out: the true one comes twice, the last never."""

    def _other_url(self, cells: Ints, lie: np.ndarray, randomness: Randomness) -> Ints:
        query = self._query_of[cells]
        return self._first[query] + (lie % (self._width[query] - np.uint64(1))).astype(np.int64)


class _BulkOneHalfForBoth(BulkReporter):
    """Query and URL of a lie come from the same 32 bits, so they are not independent."""

    def _other_query(self, cells: Ints, lie: np.ndarray, randomness: Randomness) -> Ints:
        low = lie & np.uint64(HALF - 1)
        return super()._other_query(cells, low << np.uint64(32) | low, randomness)


BULK = {
    "bulk: a lie may equal the truth": _BulkLieMayBeTheTruth,
    "bulk: one half word for query and URL": _BulkOneHalfForBoth,
    "bulk: truth kept 1 % too often": lambda p: BulkReporter(
        replace(p, keep_record_below=tuple(kept + (p.keep_query_below - kept) // 30 for kept in p.keep_record_below))
    ),
}

# --- the whole run: release -> release -----------------------------------------------------------------------------


def _shifted(release: BlenderRelease) -> BlenderRelease:
    """Every query is given its neighbour's probability: an index off by one."""
    *listed, star = release.queries.probability
    queries = replace(release.queries, probability=np.append(np.roll(listed, 1), star))
    return replace(release, queries=queries)


def _least_first(release: BlenderRelease) -> BlenderRelease:
    return replace(release, queries=replace(release.queries, probability=-release.queries.probability))


RELEASE = {"release: probabilities off by one query": _shifted, "release: ranked from the least": _least_first}
