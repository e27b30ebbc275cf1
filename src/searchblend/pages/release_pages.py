"""A hybrid release, or a click graph, as one page for people: its tables, how sure they are, and what was promised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from searchblend.blender.result import Result, ResultRow
from searchblend.core.statement import Statement
from searchblend.pages.charts import IntervalRow, Mark, interval_rows, rank_curve, shares_bar
from searchblend.pages.layout import (
    MOST_ROWS,
    Cell,
    PageTable,
    TableColumn,
    foreign,
    page_assets,
    render,
    rows_left_out,
    small_number,
)
from searchblend.pages.statement_words import StatementWords

if TYPE_CHECKING:  # the console shows hybrid releases alone, and a service starts without SciPy
    from searchblend.clickgraph.use.graph import ClickGraph, Counts, TableName

HYBRID_TITLE: Final = "The head of a search log"
CLICK_GRAPH_TITLE: Final = "A query click graph"
_DRAWN: Final = 20
_FINE: Final = 0.0005
"""below this share two decimals of a percentage are not enough"""
_NOTHING: Final = 5e-9
"""below this share a sum's rounding is left"""
AttributeColumns = Mapping[str, Mapping[str, Sequence[str] | Sequence[int]]]
"""name of a table by attribute → its columns"""
_COUNTS: Final = (TableColumn("count", True), TableColumn("95 % interval", True), TableColumn("estimate", True))


def hybrid_page(result: Result, statement: Statement) -> str:
    """The page of ``result.json`` and ``statement.json``; it shows nothing that is not in them."""
    trends = [row for row in result.trends if row.kind == "query"]
    evaluated = result.notice is not None
    return render(
        "hybrid.html",
        title=f"{HYBRID_TITLE}, {'compared with the truth' if evaluated else 'computed privately'}",
        assets=page_assets(),
        words=StatementWords(statement, HYBRID_TITLE, result.head.digest),
        result=result,
        figures=release_figures(result),
        alarms=_alarms(result),
        charts=_charts(trends, evaluated),
        queries=_query_table(trends, evaluated),
        records=_record_table([row for row in result.records if row.kind != "rest"], evaluated),
    )


def release_figures(result: Result) -> list[tuple[str, str]]:
    """How large a release is, of how many people, and what it cost each of them."""
    groups, guarantee = result.groups, result.guarantee
    return [
        ("queries", f"{result.head.queries:,}"),
        ("records", f"{result.head.records:,}"),
        ("opt-in users", f"{groups.optin_users:,}"),
        ("clients", f"{groups.clients:,}"),
        ("ε of each person", f"{guarantee.epsilon:g}"),
        ("δ of each person", small_number(guarantee.delta)),
    ]


def _alarms(result: Result) -> list[tuple[Markup, str, str]]:
    """Queries that clients report too often, with both groups' own shares."""
    flagged = result.group_check.flagged_queries if result.group_check else ()
    return [
        (foreign(row.query), percent(row.optin.probability or 0.0), percent(row.client.probability or 0.0))
        for row in result.trends
        if row.query is not None and row.query in flagged and row.optin and row.client
    ]


def _charts(trends: Sequence[ResultRow], evaluated: bool) -> list[str]:
    named = sum(row.probability or 0.0 for row in trends)
    marks = [
        Mark("dot", "blended share"),
        Mark("interval", "95 % interval"),
        Mark("optin", "opt-in users alone"),
        Mark("client", "clients alone"),
        *([Mark("true", "true share (NOT PRIVATE)")] if evaluated else []),
    ]
    return [
        interval_rows(
            f"The {min(_DRAWN, len(trends))} most frequent queries by their share of all searches.",
            [_bar(row) for row in trends[:_DRAWN]],
            marks,
            unit=0.01,
            suffix=" %",
        ),
        rank_curve(
            f"Share of all searches by rank, {len(trends):,} queries, with 95 % intervals. Both axes are logarithmic.",
            [(row.probability or 0.0, row.interval[0] or 0.0, row.interval[1] or 0.0) for row in trends],
            unit=0.01,
            suffix=" %",
        ),
        shares_bar(
            "How much of all searches the listed queries make up.",
            named,
            f"{percent(named)} listed queries",
            f"{percent(1 - named)} everything else (⋆)",
        ),
    ]


def _bar(row: ResultRow) -> IntervalRow:
    named = (
        ("optin", row.optin.probability if row.optin else None),
        ("client", row.client.probability if row.client else None),
        ("true", row.true_probability),
    )
    others = [(name, share) for name, share in named if share is not None]
    low, high = row.interval
    value = row.probability or 0.0
    return IntervalRow(row.query or "", value, low or 0.0, high or value, percent(value), others)


def _query_table(trends: Sequence[ResultRow], evaluated: bool) -> PageTable:
    rows = [[Cell(row.query or ""), *_numbers(row, evaluated)] for row in trends[:MOST_ROWS]]
    columns = [TableColumn("query"), *_columns(evaluated)]
    return PageTable("queries", columns, rows, "query-table", rows_left_out(len(trends), "trends.csv"))


def _record_table(records: Sequence[ResultRow], evaluated: bool) -> PageTable:
    rows = [
        [Cell(row.query or ""), Cell("⋆" if row.url is None else row.url), *_numbers(row, evaluated)]
        for row in records[:MOST_ROWS]
    ]
    columns = [TableColumn("query"), TableColumn("URL"), *_columns(evaluated)]
    return PageTable("records", columns, rows, "record-table", rows_left_out(len(records), "records.csv"))


def _columns(evaluated: bool) -> list[TableColumn]:
    headings = ["true share"] if evaluated else []
    headings += ["share", "95 % interval", "opt-in", "clients", "weight of opt-in"]
    return [TableColumn(heading, True) for heading in headings]


def _numbers(row: ResultRow, evaluated: bool) -> list[Cell]:
    low, high = row.interval
    return [
        *([_share(row.true_probability)] if evaluated else []),
        _share(row.probability),
        Cell("–" if low is None or high is None else f"{percent(max(low, 0))} – {percent(high)}", low),
        *(_share(share.probability if share else None) for share in (row.optin, row.client)),
        Cell("–", -1) if row.optin_weight is None else Cell(f"{100 * row.optin_weight:.0f} %", row.optin_weight),
    ]


def _share(value: float | None) -> Cell:
    return Cell("–", -1) if value is None else Cell(percent(value), value)


def percent(value: float) -> str:
    """A share for people: two decimals, or two digits that count where those are zero."""
    if abs(value) < _NOTHING:
        return "0.00 %"
    if abs(value) >= _FINE:
        return f"{100 * value:.2f} %"
    return f"{float(f'{100 * value:.2g}'):f}".rstrip("0") + " %"


def click_graph_page(graph: ClickGraph, statement: Statement, by_attribute: AttributeColumns | None = None) -> str:
    """The page of a graph, its tables by attribute and its statement; it shows nothing that is not released."""
    graph = graph.in_order()
    unit = statement.parameters["design"]["steps"][0]["unit"]
    counted = "users who searched it" if unit == "users" else "searches"
    return render(
        "click_graph.html",
        title=f"{CLICK_GRAPH_TITLE}, released privately",
        assets=page_assets(),
        words=StatementWords(statement, CLICK_GRAPH_TITLE, _digest(statement)),
        figures=_graph_figures(graph, statement),
        counted=counted,
        charts=_count_charts(graph, counted),
        queries=_count_table(graph, "queries", ["query"]),
        clicks=_count_table(graph, "clicks", ["query", "url"]),
        reformulations=_count_table(graph, "reformulations", ["query", "next_query"]),
        by_attribute=[_attribute_table(name, columns) for name, columns in (by_attribute or {}).items()],
    )


def _attribute_table(name: str, columns: Mapping[str, Sequence[str] | Sequence[int]]) -> PageTable:
    """The largest counts; an attribute by which a row is not counted shows as all values."""
    keys = [column for column in columns if column not in ("count", "count_clamped", "lo95", "hi95")]
    count, low, high = ([int(value) for value in columns[column]] for column in ("count", "lo95", "hi95"))
    largest = sorted(range(len(count)), key=lambda row: (-count[row], row))[:MOST_ROWS]
    rows = [
        [
            *(Cell(str(columns[key][row]) or "(all)") for key in keys),
            Cell(f"{count[row]:,}", float(count[row])),
            Cell(f"{max(low[row], 0):,} – {high[row]:,}", float(low[row])),
        ]
        for row in largest
    ]
    headings = [TableColumn({"url": "URL"}.get(key, key)) for key in keys]
    table = name.replace("_", "-")
    columns_shown = [*headings, *_COUNTS[:2]]
    return PageTable(
        name.replace("_", " "), columns_shown, rows, f"{table}-table", rows_left_out(len(count), f"{name}.csv")
    )


def _digest(statement: Statement) -> str:
    """What names this release: the hash of its first table."""
    name = min(name for name in statement.files if name.startswith("queries."))
    return statement.files[name].sha256


def _graph_figures(graph: ClickGraph, statement: Statement) -> list[tuple[str, str]]:
    guarantee = statement.promise
    return [
        ("queries", f"{len(graph.queries):,}"),
        ("pairs of query and URL", f"{len(graph.clicks):,}"),
        ("reformulations", f"{len(graph.reformulations):,}"),
        ("ε of each user", f"{guarantee.epsilon:g}"),
        ("δ of each user", small_number(guarantee.delta)),
    ]


def _count_charts(graph: ClickGraph, counted: str) -> list[str]:
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


def _count_table(graph: ClickGraph, name: TableName, shown: Sequence[str]) -> PageTable:
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
