"""From a release to the pack of its answers: what is certain enough goes in, the rest stays out.

A pair ⟨query, URL⟩ is in the pack if the lower bound of its 95 % interval is above 0 and so is its probability; a
query if it has such a pair (in a release without URLs: if that holds for the query itself). A query is at least as
likely as each of its pairs, so its numbers are raised to theirs where noise made them smaller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from searchblend.blender.release import BlenderRelease
from searchblend.blender.result import Result, ResultRow, result_of
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.normalization import normalize, normalize_url
from searchblend.search.pack import (
    DEFAULT_FRACTION_BITS,
    NO_TASK,
    Pack,
    PackEntry,
    PackInfo,
    PackUrl,
    best_first,
    encode_pack,
    fits_pack,
)
from searchblend.search.pack_index import PackIndex


@dataclass(frozen=True)
class BuiltPack:
    """A pack and what was left out of it."""

    content: bytes
    pairs_listed: int
    """pairs (queries, in a release without URLs) of the head list"""
    pairs_kept: int

    @property
    def pack(self) -> Pack:
        """The content, decoded."""
        return Pack(self.content)


def build_pack(
    result: Result, *, task: bytes = NO_TASK, round_number: int = 0, fraction_bits: int = DEFAULT_FRACTION_BITS
) -> BuiltPack:
    """The pack of what is certain enough in a result."""
    if result.notice is not None:
        raise MessageError("result: notice: it comes from an evaluation and is not private")
    PackInfo("best", 1.0, 0.0, task, round_number, fraction_bits)  # the caller's values are not the result's
    try:
        guarantee = result.guarantee
        info = PackInfo(result.method, guarantee.epsilon, guarantee.delta, task, round_number, fraction_bits)
    except InvalidParameter as error:
        raise MessageError(f"result: {error}") from error
    listed = [row for row in result.trends if row.kind == "query"]
    pairs = [row for row in result.records if row.kind == "record" and row.url is not None]
    urls: dict[str | None, list[PackUrl]] = {}
    for pair in pairs:
        numbers = _numbers(pair, info)
        if numbers and pair.url is not None and normalize_url(pair.url) == pair.url and fits_pack(pair.url):
            urls.setdefault(pair.query, []).append(PackUrl(pair.url, *numbers))
    entries = []
    for row in listed:
        query, answers = row.query or "", tuple(sorted(urls.get(row.query, ()), key=best_first))
        numbers = _numbers(row, info) or ((0, 0) if answers else None)
        if numbers and (answers or not pairs) and normalize(query) == query and fits_pack(query):
            lower = max(numbers[0], *(url.lower for url in answers)) if answers else numbers[0]
            probability = max(numbers[1], *(url.probability for url in answers)) if answers else numbers[1]
            entries.append(PackEntry(query, lower, probability, answers))
    kept = sum(len(entry.urls) for entry in entries) if pairs else len(entries)
    return BuiltPack(encode_pack(info, entries), len(pairs) or len(listed), kept)


def _numbers(row: ResultRow, info: PackInfo) -> tuple[int, int] | None:
    """Lower bound and probability in whole units, rounded down; None where nothing above 0 is certain.

    The interval belongs to the estimate before it was projected to probabilities that sum to 1, so its lower bound
    can be above the projected probability; then it is cut to that.
    """
    bound, share = row.interval[0], row.probability
    if bound is None or share is None or not (math.isfinite(bound) and math.isfinite(share)):
        return None
    top = 1 << info.fraction_bits
    low, probability = (math.floor(min(max(value, 0.0), 1.0) * top) for value in (bound, share))
    lower = min(low, probability)
    return (lower, probability) if lower >= 1 else None


def pack_of_release(release: BlenderRelease) -> Pack:
    """The pack of a release in memory."""
    return build_pack(result_of(release)).pack


class SearchIndex(PackIndex):
    """Finds the released queries that fit what was typed, and their URLs, best first."""

    def __init__(self, source: BlenderRelease | Pack) -> None:
        super().__init__(source if isinstance(source, Pack) else pack_of_release(source))
