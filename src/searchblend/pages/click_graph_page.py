"""A released click graph as one page for people: its tables, how sure they are, and what was promised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from searchblend.clickgraph.use.graph import ClickGraph, Counts, TableName
from searchblend.core.statement import Statement
from searchblend.pages.charts import IntervalRow, Mark, interval_rows, rank_curve
from searchblend.pages.layout import (
    MOST_ROWS,
    Cell,
    PageTable,
    TableColumn,
    page_assets,
    render,
    rows_left_out,
    small_number,
)
from searchblend.pages.statement_words import StatementWords

TITLE: Final = "A query click graph"
_DRAWN: Final = 20
_COUNTS: Final = (TableColumn("count", True), TableColumn("95 % interval", True), TableColumn("estimate", True))


def click_graph_page(graph: ClickGraph, statement: Statement) -> str:
    """The page of a graph and its statement; it shows nothing that is not in the released tables."""
    graph = graph.in_order()
    unit = statement.parameters["design"]["steps"][0]["unit"]
    counted = "users who searched it" if unit == "users" else "searches"
    return render(
        "click_graph.html",
        title=f"{TITLE}, released privately",
        assets=page_assets(),
        words=StatementWords(statement, TITLE, _digest(statement)),
        figures=_figures(graph, statement),
        counted=counted,
        charts=_charts(graph, counted),
        queries=_table(graph, "queries", ["query"]),
        clicks=_table(graph, "clicks", ["query", "url"]),
        reformulations=_table(graph, "reformulations", ["query", "next_query"]),
    )


def _digest(statement: Statement) -> str:
    """What names this release: the hash of its first table."""
    name = min(name for name in statement.files if name.startswith("queries."))
    return statement.files[name].sha256


def _figures(graph: ClickGraph, statement: Statement) -> list[tuple[str, str]]:
    guarantee = statement.promise
    return [
        ("queries", f"{len(graph.queries):,}"),
        ("clicks on URLs", f"{len(graph.clicks):,}"),
        ("reformulations", f"{len(graph.reformulations):,}"),
        ("ε of each user", f"{guarantee.epsilon:g}"),
        ("δ of each user", small_number(guarantee.delta)),
    ]


def _charts(graph: ClickGraph, counted: str) -> list[str]:
    counts = graph.searches
    bars = [
        IntervalRow(query, float(counts.count[i]), float(counts.low[i]), float(counts.high[i]), f"{counts.count[i]:,}")
        for i, query in enumerate(graph.queries[:_DRAWN])
    ]
    points = list(zip(counts.count.tolist(), counts.low.tolist(), counts.high.tolist(), strict=True))
    marks = [Mark("dot", f"noisy count of {counted}"), Mark("interval", "95 % interval")]
    caption = f"Counts by rank, {len(points):,} queries, with 95 % intervals. Both axes are logarithmic."
    return [
        interval_rows(f"The {len(bars)} largest counts.", bars, marks, unit=1, suffix=""),
        rank_curve(caption, points, unit=1, suffix=""),
    ]


def _table(graph: ClickGraph, name: TableName, shown: Sequence[str]) -> PageTable:
    columns = graph.columns(name)
    counts = {
        "queries": graph.searches,
        "clicks": graph.clicks.counts,
        "reformulations": graph.reformulations.counts,
    }[name]
    total = len(columns["count"])
    rows = [
        [*(Cell(columns[column][i]) for column in shown), *_counts(counts, i)] for i in range(min(total, MOST_ROWS))
    ]
    headings = [TableColumn({"url": "URL", "next_query": "next query"}.get(column, column)) for column in shown]
    return PageTable(name, [*headings, *_COUNTS], rows, f"{name}-table", rows_left_out(total, f"{name}.csv"))


def _counts(counts: Counts, i: int) -> list[Cell]:
    low, high = max(float(counts.low[i]), 0.0), float(counts.high[i])
    return [
        Cell(f"{counts.count[i]:,}", float(counts.count[i])),
        Cell(f"{low:,.0f} – {high:,.0f}", low),
        Cell(f"{counts.estimate[i]:,.0f}", float(counts.estimate[i])),
    ]
