"""CreateHeadList: which records are common enough to be named. [BLJ] Fig. 3. Run by the curator on S."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from searchblend.blender.groups import UserGroup
from searchblend.mechanisms.threshold import Threshold, printed_threshold
from searchblend.params import BlenderParams
from searchblend.randomness import Randomness, SystemRandomness
from searchblend.records import HeadList, Record


def create_head_list(head_users: UserGroup, params: BlenderParams, *, randomness: Randomness | None = None) -> HeadList:
    """The candidate head list HL_S: every record with N + Y ≥ T, N its number of users in S.

    [BLJ] Fig. 3, lines 5-12; one record of each user (m_O = 1), b_S = 2/ε. (ε, δ)-private under replace-one
    (Theorem 3.1, proofs/create_head_list.md).

    Departures: the noise is integer and the comparison is N + Y ≥ T with T = floor(τ) + 1. Only membership is
    output: the list is ordered by bytes, never by count.
    """
    threshold = printed_threshold(params.budget)
    passed = noisy_selection(head_users, threshold, randomness=randomness or SystemRandomness())
    return _sorted_head_list(passed)


def noisy_selection(group: UserGroup, threshold: Threshold, *, randomness: Randomness) -> list[Record]:
    """The records whose own noisy count reaches T: one draw for each distinct record, whatever its count.

    Records with the same count are exchangeable, so the noises of all that share a count are drawn as one
    array and only those that pass are fetched: memory follows the head, not the log.
    """
    tally = group.tally()
    passed: list[Record] = []
    for count, how_many in sorted(tally.sizes().items()):
        noise = threshold.noise.sample(how_many, randomness)
        ranks = np.flatnonzero(count + noise >= threshold.integer)
        if len(ranks):
            passed += tally.pick(count, ranks)
    return passed


def _sorted_head_list(records: list[Record]) -> HeadList:
    urls: dict[str, list[str]] = defaultdict(list)
    for query, url in records:
        if isinstance(query, str):
            urls[query] += [url] if isinstance(url, str) else []
    return HeadList((query, sorted(urls[query], key=str.encode)) for query in sorted(urls, key=str.encode))
