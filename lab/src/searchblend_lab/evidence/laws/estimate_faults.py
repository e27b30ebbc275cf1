"""Estimates with one thing wrong: the clients', the opt-in users', and a whole release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from searchblend.blender.estimates import GroupEstimates
from searchblend.blender.groups import UserGroup
from searchblend.blender.paper import estimate_optin
from searchblend.blender.paper.estimate_client import estimate_client_probabilities
from searchblend.blender.paper.estimate_optin import estimate_optin_probabilities
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.blender.release import BlenderRelease
from searchblend.core.params import BlenderParams
from searchblend.core.records import HeadList
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.tally import Ints
from searchblend.mechanisms.threshold import noise_for_one_record
from searchblend_lab.evidence.laws.estimates import EstimateClients, EstimateOptin, estimating_with


def estimator_with(wrong: Callable[[HeadList, BlenderParams], ReportProbabilities]) -> EstimateClients:
    """Estimates made with other probabilities than the devices used, computed once for a list as the right ones are."""
    wrong_of = lru_cache(maxsize=1)(wrong)

    def estimate(counts: Ints, head: HeadList, params: BlenderParams) -> GroupEstimates:
        with estimating_with(wrong_of(head, params)):
            return estimate_client_probabilities(counts, head, params)

    return estimate


_probabilities = lru_cache(maxsize=1)(ReportProbabilities.of)


def variance_terms(counts: Ints, head: HeadList, params: BlenderParams) -> tuple[np.ndarray, np.ndarray]:
    """The second and the third term of σ̂² of a record ([BLJ] Theorem 3.6): c²σ̂²_q and the covariance."""
    p = _probabilities(head, params)
    query = np.array(head.query_of_cells())
    width, keep = np.array(p.n_urls)[query], p.keep_query * np.array(p.keep_url)[query]
    a, n = (1 - p.keep_query) / max(p.n_queries - 1, 1), counts.sum()
    lie_url = (p.keep_query - keep) / np.maximum(width - 1, 1)
    c, r = a / width - lie_url, counts / n
    r_query = np.add.reduceat(r, head.first_cells())[query]
    own = c**2 * r_query * (1 - r_query) / ((n - 1) * (p.keep_query - a) ** 2)
    shared = 2 * c * r * (1 - r_query) / ((n - 1) * (p.keep_query - a))
    return own / (keep - lie_url) ** 2, shared / (keep - lie_url) ** 2


def bent_variance(bend: Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]) -> EstimateClients:
    def estimate(counts: Ints, head: HeadList, params: BlenderParams) -> GroupEstimates:
        right = estimate_client_probabilities(counts, head, params)
        variance = bend(right.records.variance, *variance_terms(counts, head, params), right.n)
        return replace(right, records=replace(right.records, variance=variance))

    return estimate


def with_noise(make: Callable[[DiscreteLaplace], Any]) -> EstimateOptin:
    def estimate(group: UserGroup, head: HeadList, params: BlenderParams, **options: Any) -> Any:
        noise = make(noise_for_one_record(params.budget))
        with patch.object(estimate_optin, "noise_for_one_record", lambda _: noise):
            return estimate_optin_probabilities(group, head, params, **options)

    return estimate


def same_for_all(noise: DiscreteLaplace) -> SimpleNamespace:
    return SimpleNamespace(
        variance=noise.variance, sample=lambda size, source: np.full(size, noise.sample(1, source)[0])
    )


def unlisted_forgotten(group: UserGroup, head: HeadList, params: BlenderParams, **options: Any) -> Any:
    """The wildcard is missing: people whose record is not listed are counted nowhere."""
    counts = group.cell_counts(head).copy()
    counts[-1] = 0
    forgetful = SimpleNamespace(n_users=group.n_users, has_urls=group.has_urls, cell_counts=lambda _: counts)
    return estimate_optin_probabilities(forgetful, head, params, **options)


def shifted(release: BlenderRelease) -> BlenderRelease:
    """Every query is given its neighbour's probability: an index off by one."""
    *listed, star = release.queries.probability
    queries = replace(release.queries, probability=np.append(np.roll(listed, 1), star))
    return replace(release, queries=queries)


def least_first(release: BlenderRelease) -> BlenderRelease:
    return replace(release, queries=replace(release.queries, probability=-release.queries.probability))
