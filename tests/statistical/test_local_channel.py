"""LocalAlg enumerated: P(report | truth) in exact fractions for every pair of cells. No sampling, no false alarm."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from searchblend.blender.paper.report_probabilities import WORDS, ReportProbabilities
from searchblend.mechanisms.fixed_point import exp_fraction_bounds
from searchblend_lab.evidence.laws.channel import (
    LARGE_CASES,
    SMALL_CASES,
    ChannelCase,
    channel_of,
    driven_channel,
    pure_loss,
    worst_hockey_stick,
)
from searchblend_lab.evidence.laws.laws import check_case

ALL_CASES = SMALL_CASES + LARGE_CASES


def shipped(case: ChannelCase) -> ReportProbabilities:
    return ReportProbabilities.of(case.head, case.params)


@pytest.mark.parametrize("case", ALL_CASES, ids=str)
def test_report_is_private_and_printed(case: ChannelCase):
    check_case(channel_of(shipped(case)), case)


@pytest.mark.parametrize("case", SMALL_CASES, ids=str)
def test_code_has_the_channel_of_its_thresholds(case: ChannelCase):
    """``randomize`` at every threshold: the word below it, the word at it, every lie."""
    assert driven_channel(shipped(case)) == channel_of(shipped(case))


@pytest.mark.parametrize("case", ALL_CASES, ids=str)
def test_loss_follows_the_formula(case: ChannelCase):
    """ln max(R_Q k_q t_q, R_U) with R = (e^ε + (δ/2)(k−1))/(1 − δ/2): where it exceeds ε', only δ' covers it."""
    assert pure_loss(channel_of(shipped(case))) == pytest.approx(predicted_loss(case), abs=1e-9)


def predicted_loss(case: ChannelCase) -> float:
    widths = case.head.n_urls
    if len(widths) == 1:
        return 0.0
    query_ratio = _ratio(*map(float, case.params.query_share), len(widths))
    ratios = [query_ratio]
    for width in set(widths) - {1}:
        url_ratio = _ratio(*map(float, case.params.url_share), width)
        keep_url = url_ratio / (url_ratio + width - 1)
        ratios += [url_ratio, query_ratio * width * keep_url]
    return math.log(max(ratios))


def _ratio(epsilon: float, delta: float, k: int) -> float:
    return (math.exp(epsilon) + delta / 2 * (k - 1)) / (1 - delta / 2)


@pytest.mark.parametrize(
    ("n_urls", "loss"),
    [((1,) * 20, 3.656), ((2,) * 16, 3.758), ((8, *(1, 2, 3) * 6), 3.913), ((40, 1, 1), 3.980)],
    ids=["k_q=2", "k_q=3", "k_q<=9", "k_q<=41"],
)
def test_loss_at_the_defaults(n_urls: tuple[int, ...], loss: float):
    """The nominal ε is 4: the two stages leave a part of it unused."""
    assert pure_loss(channel_of(shipped(ChannelCase(n_urls)))) == pytest.approx(loss, abs=1e-3)


@pytest.mark.parametrize("case", [c for c in ALL_CASES if c.query_budget_fraction == 1 and c.delta > 1e-9], ids=str)
def test_query_only_list_uses_half_of_delta(case: ChannelCase):
    """One stage with the whole budget: the hockey-stick at ε' is δ'/2, less what rounding down takes away."""
    epsilon, delta = case.params.per_record
    worst = worst_hockey_stick(channel_of(shipped(case)), exp_fraction_bounds(epsilon)[0])
    lost = Fraction(math.ceil(math.exp(epsilon)) + 1, WORDS)
    assert delta / 2 - lost <= worst <= delta / 2
