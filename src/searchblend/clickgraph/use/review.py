"""What a person should look at before a click graph is published. Hints from the released tables alone, no guarantee.

Differential privacy hides what few people typed. It does not hide a secret that many typed, nor what a search engine
does badly: queries at the head without clicks ([KKMN09] §8).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from searchblend.clickgraph.use.graph import ClickGraph, TableName
from searchblend.core.errors import InvalidParameter
from searchblend.core.suspects import Suspects

ABANDONED: Final = "abandoned"
"""the code of a head query with hardly any click"""


@dataclass(frozen=True)
class Finding:
    """One row to look at. Its strings are released ones, so they may be shown."""

    table: TableName
    row: int
    """from 1, in the order of the file"""
    reasons: tuple[str, ...]
    texts: tuple[str, ...]


def review(
    graph: ClickGraph,
    suspects: Suspects,
    *,
    has_all_clicks: bool = False,
    head: int = 100,
    abandoned_below: float = 0.1,
) -> list[Finding]:
    """Rows whose strings look personal, and of the ``head`` largest queries those that are abandoned.

    A query is abandoned if even the upper ends of its clicks add up to less than ``abandoned_below`` of the lower end
    of its searches. This is only known if every URL that is shown for a query has a row (``has_all_clicks``): of pairs
    that the log itself had to name, the rare ones are missing. Of a query without any row nothing is known: the table
    of what is shown does not have it.
    """
    if head < 0 or not 0 <= abandoned_below <= 1:
        raise InvalidParameter("abandoned_below", "expected a share in [0, 1], and a head of at least 0 queries")
    findings: list[Finding] = []
    for table in ("queries", "clicks", "reformulations"):
        findings += _suspicious(graph, table, suspects)
    return [*findings, *(_abandoned(graph, head, abandoned_below) if has_all_clicks else [])]


def _suspicious(graph: ClickGraph, table: TableName, suspects: Suspects) -> Iterable[Finding]:
    """In the tables of edges only what stands second is looked at: the first is a released query already."""
    columns = graph.columns(table)
    strings = list(columns[{"queries": "query", "clicks": "url", "reformulations": "next_query"}[table]])
    reasons = {string: tuple(reason.value for reason in suspects.in_text(string)) for string in dict.fromkeys(strings)}
    for row, string in enumerate(strings, start=1):
        if reasons[string]:
            first = () if table == "queries" else (str(columns["query"][row - 1]),)
            yield Finding(table, row, reasons[string], (*first, string))


def _abandoned(graph: ClickGraph, head: int, below: float) -> list[Finding]:
    shown = np.bincount(graph.clicks.source, minlength=len(graph.queries)) > 0
    clicked = np.bincount(
        graph.clicks.source, weights=np.maximum(graph.clicks.counts.high, 0), minlength=len(graph.queries)
    )
    largest = np.argsort(-graph.searches.count, kind="stable")[:head]
    return [
        Finding("queries", number + 1, (ABANDONED,), (graph.queries[number],))
        for number in largest.tolist()
        if shown[number] and graph.searches.low[number] > 0 and clicked[number] < below * graph.searches.low[number]
    ]
