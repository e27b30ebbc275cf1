"""CreateHeadList: which records are common enough to be named. [BLJ] Fig. 3. Run by the curator on S."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from searchblend.blender.groups import UserGroup
from searchblend.core.params import BlenderParams
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.threshold import Threshold, noisy_counts, printed_threshold


def create_head_list(head_users: UserGroup, params: BlenderParams, *, randomness: Randomness | None = None) -> HeadList:
    """The candidate head list HL_S: every record with N + Y ≥ T, N its number of users in S.

    [BLJ] Fig. 3, lines 5-12; one record of each user (m_O = 1), b_S = 2/ε. (ε, δ)-private under replace-one
    (Theorem 3.1, proofs/create_head_list.md).

    Departures: the noise is integer and the comparison is N + Y ≥ T with T = floor(τ) + 1. Only membership is
    output: the list is ordered by bytes, never by count.
    """
    threshold = printed_threshold(params.for_printed_method().budget)
    selected = noisy_selection(head_users, threshold, randomness=randomness or SystemRandomness())
    return sorted_head_list(selected)


def noisy_selection(group: UserGroup, threshold: Threshold, *, randomness: Randomness) -> list[Record]:
    """The records of a group whose noisy count reaches T, in no meaningful order."""
    return list(noisy_counts(group.tally(), threshold, randomness=randomness))


def sorted_head_list(records: Iterable[Record]) -> HeadList:
    """The head list of these records, queries and URLs in the order of their bytes."""
    urls: dict[str, list[str]] = defaultdict(list)
    for query, url in records:
        if isinstance(query, str):
            urls[query] += [url] if isinstance(url, str) else []
    return HeadList((query, sorted(urls[query], key=str.encode)) for query in sorted(urls, key=str.encode))
