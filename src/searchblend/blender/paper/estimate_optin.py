"""EstimateOptinProbabilities: how common the listed records are among opt-in users. [BLJ] Fig. 4.

Run by the curator on T.
"""

from __future__ import annotations

import numpy as np

from searchblend.blender.estimates import Estimates, Floats, GroupEstimates
from searchblend.blender.groups import UserGroup
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.records import HeadList
from searchblend.mechanisms.tally import Ints
from searchblend.mechanisms.threshold import noise_for_one_record


def estimate_optin_probabilities(
    estimate_users: UserGroup,
    candidate_head: HeadList,
    params: BlenderParams,
    *,
    randomness: Randomness | None = None,
) -> tuple[HeadList, GroupEstimates]:
    """The final head list HL (M queries) and the opt-in users' estimates of it.

    [BLJ] Fig. 4; b_T = 2/ε, integer noise. (ε, 0)-private under replace-one up to the sampler's distance
    (Theorem 3.2, proofs/estimate_optin.md); the group's size is public.

    Departures: σ̂² uses the integer noise's own variance, and clamps p̂ to [0, 1] inside p̂(1−p̂) only, so that no
    variance is negative; the estimate itself stays as it is. As printed, the variances of ⟨⋆,⋆⟩ (after
    dropped records were added to it) and of a query's sum over URLs count one noise where there are several:
    [BLJ] §3.3 says so of the first. They are too small; docs/explanation/method-paper.md has the measured
    coverage.
    """
    if estimate_users.n_users < 2:
        raise InvalidParameter(
            "opt-in users", "at least 2 are needed to estimate (set T); raise the opt-in share or lower head_fraction"
        )
    counts, listed = _record_counts(estimate_users.cell_counts(candidate_head), candidate_head)
    noise = noise_for_one_record(params.for_printed_method().budget)
    noisy = counts[listed] + noise.sample(int(listed.sum()), randomness or SystemRandomness())
    n = estimate_users.n_users
    probability = np.full(candidate_head.n_cells, np.nan)
    probability[listed] = noisy / n
    head, cell_probability, query_probability = _keep_top_queries(candidate_head, probability, params)
    return head, GroupEstimates(
        n=n,
        records=Estimates(cell_probability, optin_variance(cell_probability, n, noise.variance)),
        queries=Estimates(query_probability, optin_variance(query_probability, n, noise.variance)),
    )


def optin_variance(probability: Floats, n: int, noise_variance: float) -> Floats:
    """σ̂²_O = p̂(1−p̂)/(n−1) + v/(n(n−1)), never negative. [BLJ] Theorem 3.5."""
    inside = np.clip(probability, 0.0, 1.0)
    return inside * (1 - inside) / (n - 1) + noise_variance / (n * (n - 1))


def _record_counts(counts: Ints, head: HeadList) -> tuple[Ints, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """The counts with everything unlisted in ⟨⋆,⋆⟩, and which cells are listed records.

    To the opt-in users a known query with an unknown URL is unlisted too ([BLJ] Fig. 4, line 5), so ⟨q,⋆⟩
    is empty; in a list without URLs ⟨q,⋆⟩ *is* the record.
    """
    listed = np.ones(head.n_cells, dtype=np.bool_)
    if head.has_urls:
        listed[np.cumsum(head.n_urls[:-1], dtype=np.int64) - 1] = False
    folded = np.where(listed, counts, 0)
    folded[-1] += counts[~listed].sum()
    return folded, listed


def _keep_top_queries(
    candidates: HeadList, probability: Floats, params: BlenderParams
) -> tuple[HeadList, Floats, Floats]:
    """The M queries with the highest marginal p̂_O, in that order; what is dropped goes to ⟨⋆,⋆⟩.

    [BLJ] Fig. 4, lines 14-15. Ties, in queries and in URLs, are broken by bytes.
    """
    first = candidates.first_cells()
    marginal = np.add.reduceat(np.nan_to_num(probability), first)
    names = candidates.queries
    order = sorted(range(len(names)), key=lambda i: (-marginal[i], names[i].encode()))
    kept = order[: params.max_head_queries]
    urls: list[tuple[str, list[str]]] = []
    cells: list[int] = []
    for i in kept:
        listed = candidates.urls(names[i])
        by_size = sorted(range(len(listed)), key=lambda j: (-probability[first[i] + j], listed[j].encode()))
        urls.append((names[i], [listed[j] for j in by_size]))
        cells += [first[i] + j for j in by_size] + [first[i] + len(listed)]
    rest = marginal[-1] + sum(marginal[i] for i in order[params.max_head_queries :])
    return HeadList(urls), np.append(probability[cells], rest), np.append(marginal[kept], rest)
