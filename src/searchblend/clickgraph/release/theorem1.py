"""Theorem 1 of [KKMN09], in real numbers as the paper has them.

α = max(e^{1/b}, 1 + 1/(2e^{(K−1)/b} − 1)), ε = d ln α + d/b_q + d_c/b_c, δ = (d/2) e^{(d−K)/b}, K ≥ d.

``paper`` is that, as printed. ``exact`` is the same algorithm with the δ it really has: the d searches of one user are
at worst one query d times or d queries once, δ = ½ max(e^{(d−K)/b}, d e^{(1−K)/b}), the latter exactly
1 − (1 − ½e^{(1−K)/b})^d. Equation (9) of the paper drops the factor d and promises too much: it is not offered.
The integer mechanism that is run has thresholds of its own (``laplace_design.py``). proofs/click_graph_laplace.md
"""

from __future__ import annotations

import math
from typing import Final

from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget

ACCOUNTINGS: Final = ("paper", "exact")


def noise_scale(epsilon: float, searches: int) -> float:
    """b = d/ε of the selection alone. §6"""
    return searches / epsilon


def printed_threshold(budget: Budget, searches: int, *, accounting: str = "paper", distinct: bool = False) -> float:
    """K at this (ε, δ) of the selection alone.

    ``paper``: d(1 − ln(2δ/d)/ε), Table 1. ``exact``: max(d + b ln(1/2δ), 1 + b ln(1/2δ₁)) with δ = 1 − (1 − δ₁)^d, the
    second alone if each user counts at most once per query (``distinct``).
    """
    _check(accounting, searches, budget.delta)
    b = noise_scale(budget.epsilon, searches)
    if accounting == "paper":
        return searches + b * math.log(searches / (2 * budget.delta))
    once_each = 1 + b * math.log(1 / (2 * _share_of_one(budget.delta, searches)))
    return once_each if distinct else max(searches + b * math.log(1 / (2 * budget.delta)), once_each)


def delta_of(
    noise_scale: float, threshold: float, searches: int, *, accounting: str = "paper", distinct: bool = False
) -> float:
    """δ of the selection with Lap(b) and K. K ≥ d is required, K ≥ 1 if each user counts once per query."""
    _check(accounting, searches)
    _check_threshold(threshold, 1 if distinct else searches)
    if accounting == "paper":
        return searches / 2 * math.exp((searches - threshold) / noise_scale)
    once_each = -math.expm1(searches * math.log1p(-math.exp((1 - threshold) / noise_scale) / 2))
    return once_each if distinct else max(once_each, math.exp((searches - threshold) / noise_scale) / 2)


def alpha(noise_scale: float, threshold: float) -> float:
    """α: what one search changes in any likelihood of the selection, at most."""
    return max(math.exp(1 / noise_scale), 1 + 1 / (2 * math.exp((threshold - 1) / noise_scale) - 1))


def alpha_threshold(noise_scale: float) -> float:
    """K_α: α = e^{1/b} iff K is at least this. Footnote 4 in closed form: 1 + b ln(1/(2(1 − e^{−1/b})))"""
    return 1 + noise_scale * math.log(1 / (-2 * math.expm1(-1 / noise_scale)))


def epsilon_of(
    noise_scale: float,
    threshold: float,
    searches: int,
    *,
    count_noise_scale: float = math.inf,
    clicks: int = 0,
    click_noise_scale: float = math.inf,
    distinct: bool = False,
) -> float:
    """ε = d ln α + d/b_q + d_c/b_c; a step that is left out has noise of infinite scale."""
    _check_threshold(threshold, 1 if distinct else searches)
    chosen = searches * math.log(alpha(noise_scale, threshold))
    return chosen + searches / count_noise_scale + clicks / click_noise_scale


def _share_of_one(delta: float, searches: int) -> float:
    """δ₁ with δ = 1 − (1 − δ₁)^d"""
    return -math.expm1(math.log1p(-delta) / searches)


def _check(accounting: str, searches: int, delta: float = 0.0) -> None:
    """δ ≥ ½ would need K < d, where the formulas do not hold."""
    if accounting not in ACCOUNTINGS:
        raise InvalidParameter("accounting", f"expected {' or '.join(ACCOUNTINGS)}")
    if searches < 1:
        raise InvalidParameter("max_queries_per_user", f"expected a whole number of at least 1, found {searches!r}")
    if not 0 <= delta < 0.5:
        raise InvalidParameter("delta", f"expected less than 1/2 for a selection, found {delta:g}")


def _check_threshold(threshold: float, least: int) -> None:
    if not threshold >= least:
        raise InvalidParameter(
            "threshold", f"expected at least {least}, found {threshold:g}: the proof holds for no smaller one"
        )
