"""The tables of a hybrid run, for which Figure 9 of [BLJ] is the model, and of what a click graph is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from searchblend.blender.result import GroupShare, Result, ResultRow
from searchblend.cli.printing import new_table, styled
from searchblend.core.csv_cells import write_csv
from searchblend.core.documents import JsonObject
from searchblend.core.visible import visible

_STAR = "⋆ (all other)"


def trends_table(result: Result, limit: int) -> Table:
    """The released trends, most probable first."""
    rows = [
        (
            _name(row.query),
            percent(row.probability),
            f"{percent(None if row.interval[0] is None else max(row.interval[0], 0))} – {percent(row.interval[1])}",
            percent(_value(row.optin)),
            percent(_value(row.client)),
            "–" if row.optin_weight is None else f"{row.optin_weight:.2f}",
        )
        for row in _shown(result.trends, limit)
    ]
    return new_table(
        f"Head queries ({result.head.queries} in the list)",
        ("query", "share", "95 % interval", "opt-in", "clients", "weight of opt-in"),
        rows,
        words=("query",),
        caption=f"{result.groups.optin_users:,} opt-in users, {result.groups.clients:,} clients",
    )


def comparison_table(result: Result, limit: int) -> Table:
    """True and estimated shares side by side, regressions in red: estimates out of the true order ([BLJ] Fig. 9)."""
    rows = sorted(_shown(result.trends, limit), key=lambda row: -(row.true_probability or 0.0))
    columns = {
        "blended": [row.probability for row in rows],
        "opt-in": [_value(row.optin) for row in rows],
        "clients": [_value(row.client) for row in rows],
    }
    cells: list[list[Text | str]] = [[_name(row.query), percent(row.true_probability)] for row in rows]
    for values in columns.values():
        for cell, value, regressed in zip(cells, values, regressions(values), strict=True):
            cell.append(styled(f"{percent(value)} ▲", "bold red") if regressed else f"{percent(value)}  ")
    return new_table(
        "Most frequent queries: the truth and what was released",
        ("query", "true share", *columns),
        cells,
        words=("query",),
        caption="▲ larger than the estimate above it, although the true share is smaller",
    )


def explanation(result: Result) -> list[Table | str]:
    """Which mechanisms ran, and for method ``best`` what the others were predicted to give."""
    optin, client = result.mechanism.get("optin", {}), result.mechanism.get("client", {})
    if "integer_threshold" not in optin:
        return [f"Method {result.method}, from outside: it says no more of its mechanisms."]
    units = optin.get("units_per_user", 1)
    named = "a query is named from a weight of" if "queries_per_user" in optin else "a record is named from"
    lines: list[Table | str] = [
        f"Opt-in users: {optin['name']}; {named} {optin['integer_threshold'] / units:.3g} users on "
        f"(noise scale {optin['noise_scale'] / units:.3g}), what one user alone has with probability "
        f"{optin['selection_delta']:.3g} at most.",
        f"Clients: {client['name']}, {client['cells_per_report']} per report.",
    ]
    if check := result.group_check:
        verdict = "search alike as far as a test can tell" if check.agrees else "DIFFER"
        lines.append(
            f"Groups {verdict}: p = {check.p_value:.2g} over {check.tested_queries} queries, relative divergence "
            f"{check.divergence:.2f}. Estimates are averaged over how much they may differ."
        )
    if compared := client.get("compared"):
        lines.append(_compared_table(compared, client))
    return lines


def group_warnings(result: Result) -> list[str]:
    """What the reader should know of the groups: that they differ, and queries that clients report too often."""
    check = result.group_check
    if check is None:
        return []
    warnings = []
    if not check.agrees:
        warnings.append(
            f"Opt-in users and clients differ (p = {check.p_value:.1g}, relative divergence {check.divergence:.2f}): "
            "estimates are averaged over how much, and intervals are wider for it"
        )
    for row in result.trends:
        if row.query is not None and row.query in check.flagged_queries and row.optin and row.client:
            warnings.append(
                f"Alarm: clients report {visible(row.query)} far more often ({row.client.probability or 0:.2%}) than "
                f"opt-in users search for it ({row.optin.probability or 0:.2%}), perhaps because reports are "
                "fabricated; what is published follows the opt-in users"
            )
    return warnings


def _compared_table(compared: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any]) -> Table:
    rows = [
        (
            entry["name"],
            f"{entry['query_share']:.0%}",
            f"{entry['predicted_query_l1']:.5f}",
            f"{entry['predicted_record_l1']:.5f}",
            "chosen" if all(entry[name] == chosen[name] for name in ("name", "query_share")) else "",
        )
        for entry in compared
    ]
    return new_table(
        "Client designs, by the errors predicted from the opt-in users' released counts (least Q²R wins)",
        ("mechanism", "about queries", "query L1 (Q)", "record L1 (R)", ""),
        rows,
        words=("mechanism", ""),
    )


def regressions(estimates: Sequence[float | None]) -> list[bool]:
    """Which estimates, given in the true order, are larger than the one before them."""
    pairs = zip(estimates, [None, *estimates], strict=False)
    return [above is not None and own is not None and own > above for own, above in pairs]


def _shown(trends: Sequence[ResultRow], limit: int) -> list[ResultRow]:
    """⋆ and the first ``limit`` queries."""
    return [row for row in trends if row.query is None] + [row for row in trends if row.query is not None][:limit]


def _name(query: str | None) -> Text | str:
    return styled(_STAR, "dim") if query is None else query


def _value(share: GroupShare | None) -> float | None:
    return None if share is None else share.probability


def percent(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{100 * value:.{digits}f} %"


class ResultRows:
    """Results as rows, with the names that the files of a release use."""

    def __init__(self, kind: type, results: Sequence[Any], **names: str) -> None:
        renamed = {**_COLUMNS, **names}
        fields = [field.name for field in dataclasses.fields(kind)]
        self.columns = [renamed.get(name, name) for name in fields]
        self.rows: list[JsonObject] = [
            dict(zip(self.columns, (getattr(result, name) for name in fields), strict=True)) for result in results
        ]

    def table(self, title: str, limit: int) -> Table:
        words = [name for name, value in self.rows[0].items() if isinstance(value, str)]
        cells = ([_cell(value) for value in row.values()] for row in self.rows[:limit])
        return new_table(title, self.rows[0], cells, words=words)

    def text(self, delimiter: str) -> str:
        return write_csv(self.columns, self.rows, delimiter)


_COLUMNS: Final = {"low": "lo95", "high": "hi95", "seed_class": "class"}


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) > 1 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
