"""The published quality on people with the shape of the AOL log: means of five seeded runs. [BLJ] Fig. 10 and 12."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.method import split_optin
from searchblend.blender.paper.create_head_list import create_head_list
from searchblend.blender.pipeline import run_blender
from searchblend.blender.release import BlenderRelease
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.synthetic.metrics import Truth, score
from searchblend.synthetic.population import AOL
from searchblend.synthetic.seeded import SeededRandomness
from searchblend_lab.evidence.laws import faults

SEEDS = range(1, 6)


@cache
def people(seed: int) -> InMemoryGroup:
    return AOL.population(seed=seed)


def mean_ndcg(epsilon: float, bend: Callable[[BlenderRelease], BlenderRelease] = lambda release: release) -> float:
    scores = []
    for seed in SEEDS:
        source = SeededRandomness(100 * seed)
        optin_users, clients = people(seed).split(0.05, randomness=source)
        params = BlenderParams(Budget(epsilon, 1e-5), max_head_queries=10)
        release = bend(run_blender(optin_users, clients, params, method="paper", randomness=source))
        scores.append(score(release, Truth.of(release.head, people(seed).cell_counts(release.head))).ndcg)
    return float(np.mean(scores))


def check_ndcg(mean: float, published: float) -> None:
    assert mean == pytest.approx(published, abs=0.03)


MISSED = pytest.mark.xfail(
    strict=True, reason="ε = 1: 0.924 ± 0.009 over 60 draws of people and noise; published 0.974"
)
"""Ties are broken by the bytes of queries, and among the published names the frequent ones come first."""


@pytest.mark.parametrize(
    ("epsilon", "published"),
    [pytest.param(1, 0.974, marks=MISSED), (2, 0.980), (3, 0.984), (4, 0.987), (5, 0.990)],
)
def test_ndcg_at_head_size_ten(epsilon: float, published: float):
    check_ndcg(mean_ndcg(epsilon), published)


@pytest.mark.parametrize("name", faults.RELEASE)
def test_wrong_ranking_is_rejected(name: str):
    with pytest.raises(AssertionError):
        check_ndcg(mean_ndcg(4, faults.RELEASE[name]), 0.987)


def mean_list_length(optin_share: float) -> float:
    """Queries in the candidate list, before the best M = 50 are taken."""
    params, lengths = BlenderParams(Budget(4, 1e-5), max_head_queries=50), []
    for seed in SEEDS:
        source = SeededRandomness(100 * seed)
        optin_users, _ = people(seed).split(optin_share, randomness=source)
        head_users, _ = split_optin(optin_users, params, source)
        lengths.append(len(create_head_list(head_users, params, randomness=source)))
    return float(np.mean(lengths))


def test_fifty_queries_are_reached_at_five_percent():
    """[BLJ] footnote 9: 5 % opt-in is what a list of 50 queries needs at ε = 4."""
    at_five = mean_list_length(0.05)
    assert 45 <= at_five <= 56
    assert mean_list_length(0.04) < at_five
