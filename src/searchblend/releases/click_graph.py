"""One release of a click graph from a log, and the folder it leaves: what ``searchblend release run`` does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.release import ClickGraphRelease
from searchblend.clickgraph.release.release_data import OnStep, check_public, release_data
from searchblend.clickgraph.release.windows import AccountWindow
from searchblend.core.documents import JsonObject
from searchblend.core.errors import EmptyHeadList, InvalidParameter
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Neighbors
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.statement import PAGE, Statement
from searchblend.logs.activity import ActivityRules, account_window
from searchblend.logs.duckdb.activity import DuckDBActivity
from searchblend.logs.duckdb.public_tables import read_public_records, read_synonyms
from searchblend.logs.options import ReadOptions
from searchblend.logs.read import OnNotice, OnProgress, SearchLog, open_log
from searchblend.releases.make_release import Cost, Files, LedgerEntry, WrittenRelease, make_release, of_each_row
from searchblend.wire.click_graph import attribute_tables
from searchblend.wire.click_graph_files import encode_click_graph, read_click_graph
from searchblend.wire.click_graph_statement import STATEMENT_TEXT, click_graph_statement, statement_page
from searchblend.wire.release import STATEMENT, decode_statement, encode_statement, json_file

_DECIDES_WHO_COUNTS: Final = (
    *("format", "columns", "delimiter", "query_parameter", "quoted_line_feeds", "encoding", "host_only", "unit"),
)
"""of how a log is read"""


@dataclass(frozen=True)
class ReleaseSettings:
    """What to release, from which log, and where it goes."""

    log: ReadOptions
    params: ClickGraphParams
    output: Path | None = None
    public_urls: Path | None = None
    """pairs of query and URL from outside the log, with ``urls="public"``"""
    synonyms: Path | None = None
    first_moment: float | None = None
    """with ``params.per`` when the window begins"""
    last_moment: float | None = None
    previous: Sequence[Path] = ()
    """folders of earlier windows, whose queries are counted again"""
    html: bool = False
    """whether the folder gets a page for people, too"""
    replace: bool = False
    ledger: LedgerEntry | None = None
    created: str = ""

    @property
    def cost(self) -> Cost:
        what = f"click graph, {self.params.algorithm}{of_each_row(self.log)}"
        per = "" if self.window is None else f", per {self.params.per} of {self.window.month}"
        return Cost(self.params.budget, Neighbors.ADD_REMOVE_ONE, f"{what}{per}")

    @property
    def window(self) -> AccountWindow | None:
        """What is released of the month, where each person has one account for it."""
        if self.params.per == "none":
            if self.previous:
                raise InvalidParameter(
                    "previous", "only with per = day or week, whose caps bound what is counted again"
                )
            return None
        if self.first_moment is None or self.last_moment is not None:
            raise InvalidParameter("from", "expected the window's first moment with per, and no end of its own")
        return account_window(self.params.per, self.first_moment)

    def in_account(self, window: AccountWindow) -> LedgerEntry:
        """The entry of one window. All that one account has bears one name, of which a person bears one debit; what
        decides who counts is part of that name, so that another choice of it is another account."""
        if self.ledger is None:
            raise InvalidParameter("ledger", "expected one with per: without it no one keeps the month's account")
        chosen = {
            "params": asdict(self.params),
            "synonyms": _digest(self.synonyms),
            "reading": {name: getattr(self.log, name) for name in _DECIDES_WHO_COUNTS},
        }
        digest = hashlib.sha256(json.dumps(chosen, sort_keys=True, default=dict).encode()).hexdigest()
        account = f"{self.ledger.release_id} {window.month} {digest[:16]}"
        return replace(self.ledger, release_id=f"{account} {window.name}", window=window.month, account=account)


def run_release(
    settings: ReleaseSettings,
    *,
    randomness: Randomness | None = None,
    on_progress: OnProgress | None = None,
    on_notice: OnNotice = lambda string: None,
    on_step: OnStep = lambda step: None,
) -> WrittenRelease[Statement]:
    """Read the log, select and count, write the release.

    Nothing that was counted exactly enters the folder: how many users a log has is secret too.

    Everything that can be checked without the log is checked before it is read: the parameters, the public tables,
    the folder.
    """
    source = randomness or SystemRandomness()
    design = ClickGraphDesign.of(settings.params)
    public = read_public_records(settings.public_urls) if settings.public_urls else None
    check_public(settings.params, given=public is not None)
    window = settings.window
    synonyms = read_synonyms(settings.synonyms) if settings.synonyms else {}
    if window is None:
        rules, entry = ActivityRules(settings.first_moment, settings.last_moment, synonyms), settings.ledger
    else:
        rules, entry = ActivityRules(synonyms=synonyms, account=window), settings.in_account(window)
    known = known_queries(settings.previous)

    searches_only = design.searches_only and rules == ActivityRules()
    options = replace(settings.log, draws=0, searches_only=searches_only, attributes=settings.params.attributes)
    options = replace(options, timed=window is not None)

    def read() -> SearchLog:
        return open_log(replace(options, key=source.take(16)), on_progress=on_progress, on_notice=on_notice)

    def make(log: SearchLog) -> tuple[Statement, Files]:
        activity = log.activity(rules)
        release = release_data(
            activity, settings.params, public_records=public, known=known, randomness=source, on_step=on_step
        )
        on_step("tables")
        of_log = {**_options(settings), **log.decided, **_of_window(window, len(known))}
        return click_graph_files(release, created=settings.created, options=of_log, html=settings.html)

    return make_release(
        settings.output,
        settings.cost,
        open_log=read,
        make=make,
        summarize=lambda log: {**log.summary.as_json(), **_without_moment(log, rules)},
        read=lambda files: decode_statement(json.loads(files[STATEMENT])),
        replace=settings.replace,
        ledger=entry,
        on_step=on_step,
    )


def known_queries(folders: Sequence[Path]) -> list[str]:
    """What earlier windows published; each folder must be what its statement says."""
    return sorted({query for folder in folders for query in read_click_graph(folder).queries}, key=str.encode)


def _of_window(window: AccountWindow | None, known: int) -> JsonObject:
    if window is None:
        return {}
    return {"window": window.name, "account": window.month, "known_queries": known}


def _without_moment(log: SearchLog, rules: ActivityRules) -> JsonObject:
    """How many lines no window has. NOT FOR RELEASE, like all of the summary."""
    activity = log.activity(rules)
    return {"without_time": activity.without_moment()} if isinstance(activity, DuckDBActivity) and rules.account else {}


def click_graph_files(
    release: ClickGraphRelease, *, created: str, options: JsonObject, html: bool = False
) -> tuple[Statement, Files]:
    """The statement, and all files: tables, graph, dictionary, the statement as text and as JSON with their hashes.

    With ``html`` also the page, which is made of the tables and the statement alone.
    """
    if not release.queries:
        raise EmptyHeadList(_why_empty(release))
    graph = release.graph()
    tables = attribute_tables(release.params)
    files = encode_click_graph(graph, tables, release.attribute_tables())
    files[STATEMENT_TEXT] = statement_page(release, created=created, options=options).encode()
    statement = click_graph_statement(release, files, created=created, options=options)
    if html:
        from searchblend.pages.release_pages import click_graph_page

        files[PAGE] = click_graph_page(graph, statement, release.attribute_tables()).encode()
        statement = statement.with_file(PAGE, files[PAGE])
    return statement, {**files, STATEMENT: json_file(encode_statement(statement))}


def _why_empty(release: ClickGraphRelease) -> str:
    """That nothing passed is itself a private outcome: the message rests on the parameters alone."""
    step = release.design.rounds[-1]
    unit = "users" if step.cap.distinct else "searches"
    least = -(-(step.threshold or 0) // step.units)
    return (
        f"nothing was published: no query reached the threshold of about {least} {unit} (noise scale "
        f"{step.noise.scale / step.units:.3g}). A longer log, more users, a larger ε or δ, or fewer queries per user "
        "bring it into reach; searchblend release plan shows how far"
    )


def _options(settings: ReleaseSettings) -> JsonObject:
    """What was read of the log, as far as that is public: nothing that was counted."""
    return {
        "from": _date(settings.first_moment),
        "to": _date(settings.last_moment),
        "public_urls_sha256": _digest(settings.public_urls),
        "synonyms_sha256": _digest(settings.synonyms),
    }


def _date(moment: float | None) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC).isoformat()


def _digest(path: Path | None) -> str | None:
    if path is None:
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
