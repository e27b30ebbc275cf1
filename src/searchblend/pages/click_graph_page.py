"""A released click graph as one page for people: its tables, how sure they are, and what was promised."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from searchblend.clickgraph.use.graph import ClickGraph, Counts, TableName
from searchblend.core.statement import Statement
from searchblend.pages.charts import IntervalRow, Mark, interval_rows, rank_curve
from searchblend.pages.layout import (
    MOST_ROWS,
    Cell,
    TableColumn,
    cards,
    html_page,
    paragraphs,
    searchable_table,
    small_number,
)
from searchblend.pages.statement_section import cite_section, files_section, footer, moment, notices, privacy_section

TITLE: Final = "A query click graph"
_DRAWN: Final = 20
_COUNTS: Final = (TableColumn("count", True), TableColumn("95 % interval", True), TableColumn("estimate", True))


def click_graph_page(graph: ClickGraph, statement: Statement) -> str:
    """The page of a graph and its statement; it shows nothing that is not in the released tables."""
    graph = graph.in_order()
    parts = [
        f"<header><h1>{TITLE}, released privately</h1>",
        f'<p class="lead">{_lead(statement)}</p></header>\n<main>',
        notices(statement),
        cards(_figures(graph, statement)),
        _queries(graph, statement),
        _clicks(graph),
        _reformulations(graph),
        privacy_section(statement),
        cite_section(statement, TITLE, _digest(statement)),
        files_section(statement),
        "</main>\n",
        footer(statement),
    ]
    return html_page(f"{TITLE}, released privately", parts)


def _lead(statement: Statement) -> str:
    made = moment(statement)
    algorithm = statement.method
    return escape(f"What people searched, and where they went from there. Made {made}, algorithm {algorithm}.")


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


def _queries(graph: ClickGraph, statement: Statement) -> str:
    counts = graph.searches
    unit = statement.parameters["design"]["steps"][0]["unit"]
    what = "users who searched it" if unit == "users" else "searches"
    bars = [
        IntervalRow(query, float(counts.count[i]), float(counts.low[i]), float(counts.high[i]), f"{counts.count[i]:,}")
        for i, query in enumerate(graph.queries[:_DRAWN])
    ]
    points = list(zip(counts.count.tolist(), counts.low.tolist(), counts.high.tolist(), strict=True))
    marks = [Mark("dot", f"noisy count of {what}"), Mark("interval", "95 % interval")]
    return (
        '<section aria-labelledby="queries"><h2 id="queries">Queries</h2>'
        + paragraphs(
            f"Counts are of {what}, with noise. The column estimate corrects them for having been chosen by that "
            "noise, where they were."
        )
        + interval_rows(f"The {len(bars)} largest counts.", bars, marks, unit=1, suffix="")
        + rank_curve(
            f"Counts by rank, {len(points):,} queries, with 95 % intervals. Both axes are logarithmic.",
            points,
            unit=1,
            suffix="",
        )
        + _table(graph, "queries", "queries", ["query"])
        + "</section>"
    )


def _clicks(graph: ClickGraph) -> str:
    if not len(graph.clicks):
        return ""
    return (
        '<section aria-labelledby="clicks"><h2 id="clicks">Clicks</h2>'
        + _table(graph, "clicks", "clicks", ["query", "url"])
        + "</section>"
    )


def _reformulations(graph: ClickGraph) -> str:
    if not len(graph.reformulations):
        return ""
    return (
        '<section aria-labelledby="reformulations"><h2 id="reformulations">Reformulations</h2>'
        + paragraphs("Which query was typed or chosen after which.")
        + _table(graph, "reformulations", "reformulations", ["query", "next_query"])
        + "</section>"
    )


def _table(graph: ClickGraph, name: TableName, label: str, texts: Sequence[str]) -> str:
    columns = graph.columns(name)
    counts = {
        "queries": graph.searches,
        "clicks": graph.clicks.counts,
        "reformulations": graph.reformulations.counts,
    }[name]
    total = len(columns["count"])
    rows = [[*(Cell(columns[text][i]) for text in texts), *_counts(counts, i)] for i in range(min(total, MOST_ROWS))]
    headings = [TableColumn({"url": "URL", "next_query": "next query"}.get(text, text)) for text in texts]
    more = paragraphs(f"The first {MOST_ROWS:,} of {total:,}; {name}.csv has all of them.") if total > MOST_ROWS else ""
    return more + searchable_table(f"{name}-table", label, [*headings, *_COUNTS], rows)


def _counts(counts: Counts, i: int) -> list[Cell]:
    low, high = max(float(counts.low[i]), 0.0), float(counts.high[i])
    return [
        Cell(f"{counts.count[i]:,}", float(counts.count[i])),
        Cell(f"{low:,.0f} – {high:,.0f}", low),
        Cell(f"{counts.estimate[i]:,.0f}", float(counts.estimate[i])),
    ]
