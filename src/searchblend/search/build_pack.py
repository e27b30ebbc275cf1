"""From a release to the pack of its answers: what is certain enough goes in, the rest stays out.

A pair ⟨query, URL⟩ is in the pack if the lower bound of its 95 % interval is above 0 and so is its probability; a
query if it has such a pair (in a release without URLs: if that holds for the query itself). A query is at least as
likely as each of its pairs, so its numbers are raised to theirs where noise says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

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

_RESULT: Final = "searchblend-result"


@dataclass(frozen=True)
class BuiltPack:
    """A pack and what was left out of it."""

    content: bytes
    pairs_listed: int
    """pairs (queries, in a release without URLs) of the head list"""
    pairs_kept: int

    @property
    def pack(self) -> Pack:
        return Pack(self.content)


@dataclass(frozen=True)
class Estimate:
    """One query or pair of a release, as a pack needs it."""

    query: str
    url: str | None
    low: float
    probability: float

    def __repr__(self) -> str:
        return "Estimate(<redacted>)"


def build_pack(
    document: Mapping[str, Any],
    *,
    task: bytes = NO_TASK,
    round_number: int = 0,
    fraction_bits: int = DEFAULT_FRACTION_BITS,
) -> BuiltPack:
    """The pack of a result document (``result.json``)."""
    version = document.get("version")
    if document.get("format") != _RESULT or version != 1 or isinstance(version, bool):  # True would pass for 1
        raise MessageError(f"result: expected {_RESULT} version 1")
    if document.get("notice") is not None:
        raise MessageError("result: notice: it comes from an evaluation and is not private")
    PackInfo("best", 1.0, 0.0, task, round_number, fraction_bits)  # the caller's values are not the document's
    try:
        guarantee, method = document["guarantee"], document["method"]
        epsilon, delta = (_number(guarantee[name], f"guarantee.{name}") for name in ("epsilon", "delta"))
        info = PackInfo(method, epsilon, delta, task, round_number, fraction_bits)
        queries = list(_estimates(document["trends"], "trends", "query"))
        records = list(_estimates(document["records"], "records", "record"))
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise MessageError("result: expected the fields that a release has") from error
    except InvalidParameter as error:
        raise MessageError(f"result: {error}") from error
    return pack_of_estimates(info, queries, records)


def _estimates(rows: Iterable[Mapping[str, Any]], name: str, kind: str) -> Iterator[Estimate]:
    """The rows of one kind; null stands for a number that is not known, and such a row is left out."""
    for place, row in enumerate(rows):
        if row["kind"] != kind:
            continue
        where, query, url = f"{name}[{place}]", row["query"], row.get("url")
        low, probability = row["interval"][0], row["probability"]
        if low is not None and probability is not None:
            if not isinstance(query, str) or not isinstance(url, str | None):
                raise MessageError(f"result: {where}: expected a text as query, and a text or null as url")
            yield Estimate(
                query, url, _number(low, f"{where}.interval[0]"), _number(probability, f"{where}.probability")
            )


def _number(value: object, where: str) -> float:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    except OverflowError:  # a whole number beyond every double
        pass
    raise MessageError(f"result: {where}: expected a finite number")


def pack_of_estimates(info: PackInfo, queries: list[Estimate], records: list[Estimate]) -> BuiltPack:
    """The pack of what is certain enough."""
    pairs = [record for record in records if record.url is not None]
    urls: dict[str, list[PackUrl]] = {}
    for pair in pairs:
        numbers = _numbers(pair, info)
        if numbers and pair.url is not None and normalize_url(pair.url) == pair.url and fits_pack(pair.url):
            urls.setdefault(pair.query, []).append(PackUrl(pair.url, *numbers))
    entries = []
    for query in queries:
        answers = tuple(sorted(urls.get(query.query, ()), key=best_first))
        numbers = _numbers(query, info) or ((0, 0) if answers else None)
        if numbers and (answers or not pairs) and normalize(query.query) == query.query and fits_pack(query.query):
            lower = max(numbers[0], *(url.lower for url in answers)) if answers else numbers[0]
            probability = max(numbers[1], *(url.probability for url in answers)) if answers else numbers[1]
            entries.append(PackEntry(query.query, lower, probability, answers))
    kept = sum(len(entry.urls) for entry in entries) if pairs else len(entries)
    return BuiltPack(encode_pack(info, entries), len(pairs) or len(queries), kept)


def _numbers(estimate: Estimate, info: PackInfo) -> tuple[int, int] | None:
    """Lower bound and probability in whole units, rounded down; None where nothing above 0 is certain.

    The interval belongs to the estimate before it was projected to probabilities that sum to 1, so its lower bound
    can be above the projected probability; then it is cut to that.
    """
    if not (math.isfinite(estimate.low) and math.isfinite(estimate.probability)):
        return None
    top = 1 << info.fraction_bits
    low, probability = (math.floor(min(max(value, 0.0), 1.0) * top) for value in (estimate.low, estimate.probability))
    lower = min(low, probability)
    return (lower, probability) if lower >= 1 else None
