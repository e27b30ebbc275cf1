"""Published queries and pairs, counted by what is declared of a search (country, rank). proofs/attribute_counts.md

The values are declared, so which counts there are follows from the published names and the declaration: no threshold.
Each user contributes as to any other count, the first d different queries (or clicks) by time, each with one value of
each attribute, and so moves at most d counts by one. That is paid for by a share of the budget of its own.

How fine the counts are is decided by a forecast from the parameters alone: in each combination of values (``cells``),
by each attribute alone (``marginals``), or of people instead of queries (``totals``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, Final

import numpy as np

from searchblend.clickgraph.release.click_log import AttributedLog, Cap
from searchblend.clickgraph.release.step import StepDesign, StepPlan
from searchblend.core.attributes import OF_CLICKS, OF_SEARCHES, Attribute, cells_of
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import ATTRIBUTE_DETAILS, ClickGraphParams
from searchblend.core.randomness import Randomness
from searchblend.core.records import Record
from searchblend.mechanisms.tally import Ints

CELLS: Final = "cells"
MARGINALS: Final = "marginals"
TOTALS: Final = "totals"
FINE_TO_COARSE: Final = ATTRIBUTE_DETAILS[1:]
MOST_CELLS: Final = 1000
"""of one table, for each query"""
TOP_SHARE: Final = 0.1
"""of the declared users, who are taken to search the most common query"""
_TOP_FACTOR: Final = 100
"""how much more common the most common query is than the rarest published one, where no number of users is declared"""
Details = Mapping[str, str]
"""what is counted (searches or clicks) → how fine"""


@dataclass(frozen=True)
class AttributeTable:
    """Counts by one combination of attributes."""

    of: str
    """searches or clicks"""
    attributes: tuple[Attribute, ...]
    by_item: bool
    """of each published query or pair; else of people, each once, at their first search or click"""

    @property
    def name(self) -> str:
        """Of its step."""
        by = ", ".join(attribute.name for attribute in self.attributes)
        return f"{self.of} by {by}" if self.by_item else f"people by {by} of their first {self.of}"

    @property
    def cells(self) -> int:
        return cells_of(self.attributes)

    def cap(self, params: ClickGraphParams) -> Cap:
        if not self.by_item:
            return Cap(1, params.distinct)
        first = params.max_clicks_per_user if self.of == OF_CLICKS else params.counted_queries_per_user
        return Cap(first, params.distinct)

    def labels(self) -> list[tuple[str, ...]]:
        """The values in each cell, the last attribute's first."""
        return list(product(*(attribute.labels for attribute in self.attributes)))


@dataclass(frozen=True)
class AttributeForecast:
    """Why counts are as fine as they are; from the parameters alone."""

    of: str
    detail: str
    typical: float
    """about how often a query (or pair) is counted that half of all published searches (or clicks) are for; of totals
    the declared number of users"""
    cells: int
    """of the finest table"""
    half_width: float
    """of the 95 % interval of one count"""

    @property
    def readable(self) -> bool:
        """Whether that interval leaves 0 out, if a typical query's searches are spread evenly over the cells."""
        return self.half_width * self.cells <= self.typical


@dataclass(frozen=True)
class AttributeCounts:
    """One table as it was counted and drawn: a row for each query or pair, a column for each cell."""

    table: AttributeTable
    items: Sequence[tuple[str, ...]]
    """(query,) or (query, URL); one empty tuple for people"""
    counts: Ints
    half_width: int

    def __repr__(self) -> str:
        return f"AttributeCounts({self.table.name}, {self.counts.size} counts)"


def kinds_of(params: ClickGraphParams) -> dict[str, tuple[Attribute, ...]]:
    """What is counted by attribute, and by which ones."""
    of_searches = tuple(one for one in params.attributes if one.of == OF_SEARCHES)
    kinds = {OF_SEARCHES: of_searches, OF_CLICKS: params.attributes if params.urls != "none" else ()}
    return {of: attributes for of, attributes in kinds.items() if attributes}


def finest(params: ClickGraphParams) -> Details:
    """The finest detail that may be asked for."""
    asked = params.attribute_detail
    details = {}
    for of, attributes in kinds_of(params).items():
        too_many = cells_of(attributes) > MOST_CELLS
        if asked == CELLS and too_many:
            raise InvalidParameter(
                "attribute_detail",
                f"expected marginals: {cells_of(attributes):,} combinations of values for each of the {of} are more "
                f"than {MOST_CELLS:,}",
            )
        details[of] = asked if asked != "auto" else MARGINALS if too_many else CELLS
    return details


def coarser(forecasts: Sequence[AttributeForecast]) -> Details:
    """What to try next of each kind; a kind whose counts can be read, or that is as coarse as can be, stays."""
    return {
        one.of: one.detail if one.readable or one.detail == TOTALS else FINE_TO_COARSE[_place(one.detail) + 1]
        for one in forecasts
    }


def _place(detail: str) -> int:
    return FINE_TO_COARSE.index(detail)


def attribute_tables(params: ClickGraphParams, details: Details) -> list[AttributeTable]:
    """The tables in the order in which they are counted."""
    tables = []
    for of, attributes in kinds_of(params).items():
        alone = details[of] == MARGINALS or cells_of(attributes) > MOST_CELLS
        sets = [(one,) for one in attributes] if alone else [attributes]
        tables += [AttributeTable(of, some, details[of] != TOTALS) for some in sets]
    return tables


def attribute_plans(params: ClickGraphParams, details: Details) -> list[StepPlan]:
    """Half of the attributes' share for searches and half for clicks, in equal parts for the tables of each."""
    tables = attribute_tables(params, details)
    each = Fraction(params.shares.attributes) / max(len(kinds_of(params)), 1)
    same_kind = [sum(other.of == table.of for other in tables) for table in tables]
    return [
        StepPlan(table.name, table.cap(params), each / n, thresholded=False)
        for table, n in zip(tables, same_kind, strict=True)
    ]


def typical_count(least: float, population: int | None) -> float:
    """The geometric mean of the rarest published query's count and the most common one's: where the r-th most common
    query has 1/r of the searches of the first, half of the published searches are for more common ones."""
    most = _TOP_FACTOR * least if population is None else max(TOP_SHARE * population, least)
    return math.sqrt(least * most)


def count_by_attribute(
    log: AttributedLog,
    steps: Sequence[tuple[AttributeTable, StepDesign]],
    queries: Sequence[str],
    pairs: Sequence[Record],
    *,
    within: Cap,
    randomness: Randomness,
) -> list[AttributeCounts]:
    """Every count that the published queries and pairs and the declaration make, each with noise of its own.

    ``within`` are the searches whose clicks count. The counts are exact nowhere: noise is added in one place, here.
    """
    drawn = []
    for table, step in steps:
        exact = _exact(log, table, step.cap, queries, pairs, within)
        noise = step.noise.sample(exact.size, randomness).reshape(exact.shape)
        drawn.append(replace(no_counts(table, step, queries, pairs), counts=exact + noise))
    return drawn


def no_counts(
    table: AttributeTable, step: StepDesign, queries: Sequence[str], pairs: Sequence[Record]
) -> AttributeCounts:
    """The rows and columns of a table, which follow from what is published, without a count in them."""
    items = _items(table, queries, pairs)
    return AttributeCounts(table, items, np.zeros((len(items), table.cells), np.int64), int(step.law.half_width()))


def by_name(record: Record) -> tuple[bytes, bytes]:
    """The order of pairs, which says nothing of their counts."""
    return str(record.query).encode(), str(record.url).encode()


def _exact(
    log: AttributedLog,
    table: AttributeTable,
    cap: Cap,
    queries: Sequence[str],
    pairs: Sequence[Record],
    within: Cap,
) -> Ints:
    if table.of == OF_CLICKS:
        return log.clicks_by(pairs if table.by_item else None, table.attributes, cap, within=within)
    return log.searches_by(queries if table.by_item else None, table.attributes, cap)


def _items(table: AttributeTable, queries: Sequence[str], pairs: Sequence[Record]) -> list[tuple[str, ...]]:
    if not table.by_item:
        return [()]
    if table.of == OF_CLICKS:
        return [(str(pair.query), str(pair.url)) for pair in pairs]
    return [(query,) for query in queries]


def attribute_columns(
    counted: Sequence[AttributeCounts], of: str, attributes: Sequence[Attribute]
) -> dict[str, list[str] | list[int]]:
    """All tables of one kind below each other: an attribute that a table does not count by is empty, and so is the
    query where people are counted. Rows are in the order of names and declared values."""
    names = ["query", *(["url"] if of == OF_CLICKS else []), *(one.name for one in attributes)]
    keys: dict[str, list[str]] = {name: [] for name in names}
    parts, widths = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for counts in counted:
        if counts.table.of != of:
            continue
        cells = counts.table.labels()
        held = [one.name for one in counts.table.attributes]
        n = len(counts.items)
        for place, name in enumerate(names[: 2 if of == OF_CLICKS else 1]):
            strings = [item[place] if item else "" for item in counts.items]
            keys[name] += [string for string in strings for _ in cells]
        for one in attributes:
            values = [cell[held.index(one.name)] if one.name in held else "" for cell in cells]
            keys[one.name] += values * n
        parts.append(counts.counts.ravel())
        widths.append(np.full(counts.counts.size, counts.half_width, dtype=np.int64))
    count, half = np.concatenate(parts), np.concatenate(widths)
    figures: dict[str, Any] = {
        "count": count.tolist(),
        "count_clamped": np.maximum(count, 0).tolist(),
        "lo95": (count - half).tolist(),
        "hi95": (count + half).tolist(),
    }
    return {**keys, **figures}
