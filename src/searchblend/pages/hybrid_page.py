"""A hybrid release as one page for people: what is searched, how sure that is, and what was promised."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from searchblend.blender.result import Result, ResultRow, StatedCheck
from searchblend.core.statement import Statement
from searchblend.pages.charts import IntervalRow, Mark, interval_rows, rank_curve, shares_bar
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

TITLE: Final = "The head of a search log"
_DRAWN: Final = 20
_FINE: Final = 0.0005
"""below this share two decimals of a percentage say too little"""


def hybrid_page(result: Result, statement: Statement) -> str:
    """The page of ``result.json`` and ``statement.json``; it shows nothing that is not in them."""
    trends = [row for row in result.trends if row.kind == "query"]
    evaluated = result.notice is not None
    title = f"{TITLE}, {'compared with the truth' if evaluated else 'computed privately'}"
    parts = [
        f"<header><h1>{title}</h1>",
        f'<p class="lead">{_lead(result, statement)}</p></header>\n<main>',
        notices(statement),
        cards(_figures(result)),
        _shares(result, trends, evaluated),
        _tables(result, trends, evaluated),
        privacy_section(statement),
        cite_section(statement, TITLE, result.head.digest),
        files_section(statement),
        "</main>\n",
        footer(statement),
    ]
    return html_page(title, parts)


def _lead(result: Result, statement: Statement) -> str:
    made = moment(statement)
    return escape(
        f"The most frequent queries and the results people choose for them. Made {made}, method {result.method}."
    )


def _figures(result: Result) -> list[tuple[str, str]]:
    groups, guarantee = result.groups, result.guarantee
    return [
        ("queries", f"{result.head.queries:,}"),
        ("records", f"{result.head.records:,}"),
        ("opt-in users", f"{groups.optin_users:,}"),
        ("clients", f"{groups.clients:,}"),
        ("ε of each person", f"{guarantee.epsilon:g}"),
        ("δ of each person", small_number(guarantee.delta)),
    ]


def _shares(result: Result, trends: Sequence[ResultRow], evaluated: bool) -> str:
    named = sum(row.probability or 0.0 for row in trends)
    marks = [
        Mark("dot", "blended share"),
        Mark("interval", "95 % interval"),
        Mark("optin", "opt-in users alone"),
        Mark("client", "clients alone"),
        *([Mark("true", "true share (NOT PRIVATE)")] if evaluated else []),
    ]
    return (
        '<section aria-labelledby="shares"><h2 id="shares">What people search</h2>'
        + _agreement(result.group_check)
        + interval_rows(
            f"The {min(_DRAWN, len(trends))} most frequent queries by their share of all searches.",
            [_bar(row) for row in trends[:_DRAWN]],
            marks,
            unit=0.01,
            suffix=" %",
        )
        + rank_curve(
            f"Share of all searches by rank, {len(trends):,} queries, with 95 % intervals. Both axes are logarithmic.",
            [(row.probability or 0.0, row.interval[0] or 0.0, row.interval[1] or 0.0) for row in trends],
            unit=0.01,
            suffix=" %",
        )
        + shares_bar(
            "How much of all searches the listed queries make up.",
            named,
            f"{percent(named)} listed queries",
            f"{percent(1 - named)} everything else (⋆)",
        )
        + "</section>"
    )


def _agreement(check: StatedCheck | None) -> str:
    if check is None:
        return ""
    if check.agrees:
        return paragraphs(
            "Opt-in users and clients search alike as far as a test can tell; both were blended by their variance."
        )
    return paragraphs(
        f"Opt-in users and clients search differently (p = {check.p_value:.1g}): the opt-in users' counts were "
        "given less weight."
    )


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


def _tables(result: Result, trends: Sequence[ResultRow], evaluated: bool) -> str:
    true = [TableColumn("true share", True)] if evaluated else []
    columns = [
        TableColumn("share", True),
        TableColumn("95 % interval", True),
        TableColumn("opt-in", True),
        TableColumn("clients", True),
    ]
    weight = TableColumn("weight of opt-in", True)
    records = [row for row in result.records if row.kind != "rest"]
    return (
        f'<section aria-labelledby="queries"><h2 id="queries">Queries</h2>{_shown(trends, "trends.csv")}'
        + searchable_table(
            "query-table",
            "queries",
            [TableColumn("query"), *true, *columns, weight],
            [[Cell(row.query or ""), *_numbers(row, evaluated)] for row in trends[:MOST_ROWS]],
        )
        + '</section><section aria-labelledby="records"><h2 id="records">Results chosen for them</h2>'
        + paragraphs("⋆ stands for every other result of the query.")
        + _shown(records, "records.csv")
        + searchable_table(
            "record-table",
            "records",
            [TableColumn("query"), TableColumn("URL"), *true, *columns, weight],
            [
                [Cell(row.query or ""), Cell("⋆" if row.url is None else row.url), *_numbers(row, evaluated)]
                for row in records[:MOST_ROWS]
            ],
        )
        + "</section>"
    )


def _shown(rows: Sequence[object], file: str) -> str:
    if len(rows) <= MOST_ROWS:
        return ""
    return paragraphs(f"The first {MOST_ROWS:,} of {len(rows):,}; {file} has all of them.")


def _numbers(row: ResultRow, evaluated: bool) -> list[Cell]:
    low, high = row.interval
    return [
        *([_share(row.true_probability)] if evaluated else []),
        _share(row.probability),
        Cell("–" if low is None or high is None else f"{percent(max(low, 0))} – {percent(high)}", low),
        *(_share(share.probability if share else None) for share in (row.optin, row.client)),
        Cell("–", -1) if row.optin_weight is None else Cell(f"{row.optin_weight:.0%}", row.optin_weight),
    ]


def _share(value: float | None) -> Cell:
    return Cell("–", -1) if value is None else Cell(percent(value), value)


def percent(value: float) -> str:
    """A share for people: two decimals, or two digits that count where that would say nothing."""
    if value == 0 or abs(value) >= _FINE:
        return f"{100 * value:.2f} %"
    return f"{float(f'{100 * value:.2g}'):f}".rstrip("0") + " %"
