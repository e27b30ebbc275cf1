"""One sample of every table that a command prints, with long names and large figures."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

from searchblend.accounting.spend import Spend
from searchblend.accounting.totals import Totals
from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.pipeline import run_blender
from searchblend.blender.result import Result, result_of
from searchblend.cli import tables
from searchblend.cli.commands import device, ledger, pack, plan, release, search, select, serve, stats
from searchblend.cli.printing import print_table
from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.clickgraph.use.review import Finding
from searchblend.clickgraph.use.similar import SimilarQuery
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import UNIT, Budget, Neighbors
from searchblend.core.records import Record
from searchblend.releases.verify_release import Check
from searchblend.search.build_pack import SearchIndex
from searchblend.search.pack import Pack, PackEntry, PackInfo, PackUrl, encode_pack
from searchblend.store.ledger_book import Book, Entry
from searchblend.synthetic.seeded import SeededRandomness
from searchblend_lab.commands import compare
from searchblend_lab.evidence import command as audit
from searchblend_lab.evidence.page import COLUMNS
from searchblend_lab.papers import command as evaluate
from searchblend_lab.papers.experiment import Table as PaperTable

NAMES: Final = (
    "weather",
    "recette crêpes",
    "a query that is a good deal longer than any column would like it to be",
    "天気予報",
)
URL: Final = "http://a-host-with-quite-a-long-name.example/and/a/path/that/goes/on/until/it/is/long"
WORDS: Final = "words that explain something, and that may be folded wherever a blank is"
INFO: Final = PackInfo("best", 4.0, 0.0)


@cache
def result() -> Result:
    people = [[Record(name, "http://forecast.example")] for name in NAMES for _ in range(300)]
    randomness = SeededRandomness(3)
    optin, clients = (InMemoryGroup.from_users(people, randomness=randomness) for _ in range(2))
    released = result_of(run_blender(optin, clients, BlenderParams(Budget(4.0, 1e-5)), randomness=randomness))
    shares = {row.query: 0.25 for row in released.trends}
    cells = {(row.query, row.url): 0.25 for row in released.records}
    return released.evaluated({"query_l1": 0.0, "record_l1": 0.0, "ndcg": 1.0}, shares, cells)


@cache
def index() -> SearchIndex:
    urls = (PackUrl(URL, 3, 4), PackUrl("http://b.example", 2, 3))
    entries = [PackEntry(name, 4, 5, urls) for name in sorted(NAMES)]
    return SearchIndex(Pack(encode_pack(INFO, entries)))


@cache
def click_graph() -> ClickGraph:
    return ClickGraph.of(dict.fromkeys(NAMES, (1234567, 1234000.0, 1235000.0)), {})


def show_debits() -> None:
    spend = Spend.generic(Budget(4.0, 1e-5), Neighbors.REPLACE_ONE, "hybrid run, method best")
    entries = [Entry(i, f"{name} {i}", "search users, Germany", "2026-W46", spend, "") for i, name in enumerate(NAMES)]
    print_table(ledger._entries_table(Book(), entries))


def show_costs() -> None:
    total = Totals(12, Neighbors.REPLACE_ONE, 1e-5, 12.3456, 1e-6, 10.1234, 0.123)
    scopes: dict[tuple[str, str | None], Totals] = {(name, None): total for name in NAMES}
    print_table(ledger._totals_table(Book(), scopes))


def show_plan() -> None:
    band = {"mean": 0.123456, "low": 0.1, "high": 0.2}
    rank = {"rank": 200, "share": 0.000123, "listed": 0.5, "plus_minus": band}
    figures = dict.fromkeys(("head_queries", "covered", "plus_minus", "error"), band)
    method = {**figures, "ranks": [rank, {**rank, "plus_minus": None}]}
    document = {"users": 519_371, "optin_fraction": 0.05, "epsilon": 4.0, "delta": 1e-5, "max_head_queries": 50}
    print_table(plan._forecast_table({**document, "methods": {"best": method, "paper": method}}))


def show_steps() -> None:
    step = {"name": "choose the queries", "first": 20, "unit": "users", "threshold": 123_456, "half_width": 1234.5}
    noise = {"law": "rounded_gaussian", "scale": 12.3456}
    steps = [{**step, "noise": noise, "epsilon": 1.234, "delta": 1.2e-7}, {**step, "noise": noise, "threshold": None}]
    document = {"algorithm": "weighted_gaussian", "steps": [{"epsilon": 0.5, "delta": 0.0, **each} for each in steps]}
    print_table(release._steps_table(document))


def show_reports() -> None:
    said = [SimpleNamespace(items=[[name, URL]], about="queries", odds=None) for name in NAMES]
    turn = SimpleNamespace(round=1234, group="clients", state="answered", true=[[NAMES[2], URL]], said=said)
    rows = [SimpleNamespace(**vars(turn), epsilon="4", bytes="00" * 1234, made_at=1_790_000_000)]
    agent: Any = SimpleNamespace(sent=lambda: rows)
    device._show(agent, Namespace(json=False))


def show_device_search() -> None:
    agent: Any = SimpleNamespace(pack=lambda: index().pack)
    device._search(agent, Namespace(query="weather", limit=3, json=False))


def show_round() -> None:
    row = {"probability": 0.12345, "low": 0.1, "high": 0.2, "optin": 0.12, "client": None, "influence": 1e-4}
    trends = [SimpleNamespace(query=name, **row) for name in (*NAMES, None)]
    law = SimpleNamespace(counted=15_000, expected=15_000)
    played: Any = SimpleNamespace(trends=trends, conservation=law, opt_in_users=5000, reports_counted=15_000)
    serve._show(played, 1.5, as_json=False)


def show_graph() -> None:
    rows = [SimilarQuery(name, 0.123456, "overlapping", 1234) for name in NAMES]
    print_table(tables.ResultRows(SimilarQuery, rows).table("Queries like it", 10))


def show_review() -> None:
    print_table(release._findings_table([Finding("queries", 123_456, ("e-mail address",), (name,)) for name in NAMES]))


def show_audit() -> None:
    figures = ("12.3456", "1e-05", "12.1234 ≤ ε ≤ 13.1234", "0.00123")
    rows: list[tuple[str, ...]] = [(name, "replace-one", *figures, "holds") for name in (*NAMES, WORDS)]
    audit._table("Exact laws", COLUMNS[:-1], rows)


def show_evaluation() -> None:
    columns = ("", "published", "ours, `paper`", "ours, `best`", "agreement")
    rows = tuple((name, "0.1234", "0.1234", "0.1234 ▲", WORDS) for name in NAMES)
    evaluate._show_table(PaperTable("The paper and us", columns, rows))


def show_values() -> None:
    promise = SimpleNamespace(epsilon=4.0, delta=1e-5, holds=True, unit=UNIT)
    columns = {"value": list(NAMES), "count": [1_234_567] * len(NAMES)}
    released: Any = SimpleNamespace(columns=lambda: columns, guarantee=promise)
    select._show(released, Path("values"), as_json=False)


SAMPLES: Final[Mapping[tuple[ModuleType, str], Callable[[], None]]] = {
    (tables, "trends_table"): lambda: print_table(tables.trends_table(result(), 20)),
    (tables, "comparison_table"): lambda: print_table(tables.comparison_table(result(), 20)),
    (tables, "_compared_table"): lambda: print_table(*tables.explanation(result())),
    (select, "_show"): show_values,
    (stats, "_figures_table"): lambda: print_table(stats._figures_table(URL, dict.fromkeys(NAMES, 123_456_789))),
    (release, "_queries_table"): lambda: print_table(release._queries_table(click_graph())),
    (release, "_checks_table"): lambda: print_table(
        release._checks_table(Path("release"), [Check(name, name == NAMES[0], WORDS) for name in NAMES])
    ),
    (release, "_findings_table"): show_review,
    (release, "_steps_table"): show_steps,
    (ledger, "_entries_table"): show_debits,
    (ledger, "_totals_table"): show_costs,
    (pack, "_document_table"): lambda: print_table(pack._document_table({"file": URL, **dict.fromkeys(NAMES, WORDS)})),
    (search, "_show_matches"): lambda: search._show_matches(index().search("weather", 3), INFO),
    (plan, "_forecast_table"): show_plan,
    (tables, "ResultRows.table"): show_graph,
    (device, "_show"): show_reports,
    (device, "_search"): show_device_search,
    (serve, "_show"): show_round,
    (audit, "_table"): show_audit,
    (evaluate, "_show_table"): show_evaluation,
    (compare, "_table"): lambda: compare._table(
        "A comparison", NAMES, [[name, *["99.9 % ▲"] * len(NAMES)] for name in NAMES]
    ),
}
"""Where a table is made → what prints one."""
