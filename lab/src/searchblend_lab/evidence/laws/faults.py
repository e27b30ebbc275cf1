"""Every planted fault, by name. A check that accepts one of these is not a check.

Each is the shipped code with one thing wrong: wrapped, given wrong arguments, or with its result bent.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from searchblend.blender.paper.local_report_bulk import BulkReporter
from searchblend_lab.evidence.laws import estimate_faults as estimates
from searchblend_lab.evidence.laws import report_faults as reports
from searchblend_lab.evidence.laws import selection_faults as selection
from searchblend_lab.evidence.laws.channel import channel_of

# the local mechanism: (head, params) -> channel, and the code of one report

CHANNEL = {
    "swapped stage budgets": reports.swapped,
    "each stage has the whole budget": reports.whole_budget_per_stage,
    "budget not divided by m_C": reports.whole_budget_per_record,
    "delta not halved": reports.delta_not_halved,
    "thresholds rounded up": reports.rounded_up,
    "k one too small": lambda head, params: channel_of(reports.with_sizes(head, params, -1, 0)),
    "k one too large": lambda head, params: channel_of(reports.with_sizes(head, params, 1, 0)),
    "k_q one too small": lambda head, params: channel_of(reports.with_sizes(head, params, 0, -1)),
    "k_q one too large": lambda head, params: channel_of(reports.with_sizes(head, params, 0, 1)),
    "missing wildcard among the queries": reports.unknown_query_is_never_a_lie,
    "missing wildcard among the URLs of a lie": reports.lies_never_name_the_wildcard,
}

RANDOMIZE = {
    "a lie may equal the truth": reports.lie_may_be_the_truth,
    "<= for < at the threshold of the truth": reports.threshold_included,
    "URL lies are not uniform": reports.url_lie_is_always_the_next,
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

# many clients at once: (probabilities) -> reporter

BULK = {
    "bulk: a lie may equal the truth": reports.BulkLieMayBeTheTruth,
    "bulk: one half word for query and URL": reports.BulkOneHalfForBoth,
    "bulk: one URL lie in thirty is the truth": lambda p: BulkReporter(
        replace(p, keep_record_below=tuple(kept + (p.keep_query_below - kept) // 30 for kept in p.keep_record_below))
    ),
}

# head-list selection: noisy_selection(group, threshold, *, randomness), and scales of noise

SELECTION = {
    ">= for > at tau": selection.threshold_moved(-1),
    "no noise above the threshold": selection.no_noise_above_the_threshold,
    "a person counts twice": selection.counted_twice,
}
"""These lose privacy whatever the noise is: enumeration must reject them."""

BOUNDARY = {
    "> for >= at T": selection.threshold_moved(1),
    ">= for > at tau": selection.threshold_moved(-1),
    "noise scale b/2": selection.half_scale,
    "reused noise": selection.reused_noise,
    "a person counts twice": selection.counted_twice,
}
"""These change how often a single person's record is named: the boundary test must reject them."""

NOISE_SCALE = {"noise scale b/2": Fraction(1, 2), "noise scale 0.9 b": Fraction(9, 10)}
"""Too little noise: enumeration of the published counts must reject it."""

LAW = {"noise cut off at 10": selection.cut_off(10)}
"""Outputs that only one of two neighbours can have: enumeration of the published counts must reject them."""

SAMPLER_SCALE = {"noise scale 1.1 b": Fraction(11, 10), "noise scale b/1.1": Fraction(10, 11)}
"""A tenth off: goodness of fit must reject it."""

# the sampler: sample -> sample

SAMPLE = {
    "zero drawn for both signs": lambda sample: np.where((sample == 0) & (np.arange(len(sample)) % 2 == 0), 1, sample),
    "a sign bit that is 55 % plus": lambda sample: np.where(np.arange(len(sample)) % 10 == 0, np.abs(sample), sample),
    "ten draws used again and again": lambda sample: np.resize(sample[:10], len(sample)),
    "magnitudes one too small": lambda sample: np.sign(sample) * np.maximum(np.abs(sample) - 1, 0),
}

# the clients' estimates: (report counts, head, params) -> GroupEstimates

CLIENT_ESTIMATE = {
    "estimator: k one too small": estimates.estimator_with(
        lambda head, params: reports.with_sizes(head, params, -1, 0)
    ),
    "estimator: k_q one too small": estimates.estimator_with(
        lambda head, params: reports.with_sizes(head, params, 0, -1)
    ),
    "estimator: swapped stage budgets": estimates.estimator_with(
        lambda head, params: reports.with_shares(head, params.url_share, params.query_share)
    ),
    "estimator: n for n − 1": estimates.bent_variance(lambda variance, own, shared, n: variance * (n - 1) / n),
    "estimator: no covariance": estimates.bent_variance(lambda variance, own, shared, n: variance - shared),
    "estimator: covariance subtracted": estimates.bent_variance(lambda variance, own, shared, n: variance - 2 * shared),
    "estimator: query variance corrected twice": estimates.bent_variance(
        lambda variance, own, shared, n: variance + own / (n - 1)
    ),
}
"""The last is [BLJ] Theorem 3.6 as printed."""

OFF_BY_ONE_IN_N = {"estimator: n for n − 1", "estimator: query variance corrected twice"}
"""Seen at a few reports only: enumeration finds them, a simulation of thousands of clients cannot."""

# the opt-in users' estimates: estimate_optin_probabilities

PUBLISHED_NOISE = {
    "opt-in counts: noise scale b/2": estimates.with_noise(
        lambda noise: selection.noise_of_scale(Fraction(1, 2), noise)
    ),
    "opt-in counts: noise scale 1.1 b": estimates.with_noise(
        lambda noise: selection.noise_of_scale(Fraction(11, 10), noise)
    ),
    "opt-in counts: reused noise": estimates.with_noise(estimates.same_for_all),
}

OPTIN_ESTIMATE = {"opt-in counts: missing wildcard": estimates.unlisted_forgotten}

NOISE_VARIANCE = {
    "opt-in variance: 2b² of the continuous law": lambda noise: 2 * noise.scale**2,
    "opt-in variance: noise left out": lambda noise: 0.0,
}

# the whole run: release -> release

RELEASE = {
    "release: probabilities off by one query": estimates.shifted,
    "release: ranked from the least": estimates.least_first,
}
