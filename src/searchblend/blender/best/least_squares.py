"""One weighted least squares per query over everything that was observed. Post-processing: costs no privacy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from searchblend.blender.best.observations import Source, query_slices
from searchblend.blender.estimates import Estimates, Floats
from searchblend.core.records import HeadList

_PASSES: Final = 4


@dataclass(frozen=True)
class Solution:
    """Shares of all cells but ⟨⋆,⋆⟩ and all queries but ⋆; variances of the error against the people's shares."""

    cells: Estimates
    queries: Estimates


def solve(head: HeadList, sources: Sequence[Source], start: Floats, floor: float, n_users: float) -> Solution:
    """ĉ = J⁻¹b for every query, variances at the pooled shares, iterated.

    ``start`` are first shares, ``floor`` the least share used in a variance (half a person), ``n_users`` all people
    whose shares are estimated: the error against *their* shares is J⁻¹ − diag(c)/n, as both groups are part of them.
    """
    slices = query_slices(head)
    shares = np.maximum(start, floor)
    for _ in range(_PASSES):
        solved = [solve_query(sources, query, shares) for query in slices]
        shares = np.maximum(np.concatenate([estimate for estimate, _ in solved]), floor)
    return _against_people(solved, slices, shares, n_users)


def predict(head: HeadList, sources: Sequence[Source], shares: Floats, n_users: float) -> Solution:
    """The variances that ``solve`` would report at these shares; no observation is looked at."""
    slices = query_slices(head)
    return _against_people([solve_query(sources, query, shares) for query in slices], slices, shares, n_users)


def solve_query(sources: Sequence[Source], query: slice, shares: Floats) -> tuple[Floats, Floats]:
    """The estimate of one query's cells and its covariance matrix."""
    pieces = [source.information(query, shares) for source in sources]
    covariance = np.linalg.inv(sum(matrix for matrix, _ in pieces)).astype(np.float64)
    return covariance @ sum(vector for _, vector in pieces), covariance


def _against_people(
    solved: list[tuple[Floats, Floats]], slices: list[slice], shares: Floats, n_users: float
) -> Solution:
    sampled = [shares[query] / n_users for query in slices]
    cell_variance = [
        np.maximum(np.diag(cov) - part, 0.05 * np.diag(cov)) for (_, cov), part in zip(solved, sampled, strict=True)
    ]
    query_variance = [
        max(cov.sum() - part.sum(), 0.05 * cov.sum()) for (_, cov), part in zip(solved, sampled, strict=True)
    ]
    return Solution(
        cells=Estimates(np.concatenate([estimate for estimate, _ in solved]), np.concatenate(cell_variance)),
        queries=Estimates(np.array([estimate.sum() for estimate, _ in solved]), np.array(query_variance)),
    )
