"""One release of a click graph from a log, and the folder it leaves: what ``searchblend release run`` does."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from searchblend.accounting.spend import Spend
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.release import ClickGraphRelease
from searchblend.clickgraph.release.release_data import OnStep, release_data
from searchblend.core.errors import EmptyHeadList
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Neighbors
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.records import Record
from searchblend.logs.activity import ActivityRules
from searchblend.logs.duckdb.public_tables import read_public_records, read_synonyms
from searchblend.logs.options import ReadOptions
from searchblend.logs.read import OnNotice, OnProgress, open_log
from searchblend.logs.search_log import SearchLog
from searchblend.pages.click_graph_page import click_graph_page
from searchblend.pages.layout import PAGE
from searchblend.releases.hybrid import LedgerEntry, file_entry
from searchblend.store.ledger import Ledger, open_ledger
from searchblend.store.ledger_release import release_once
from searchblend.store.release_folder import release_folder
from searchblend.wire.click_graph import STATEMENT
from searchblend.wire.click_graph_files import encode_click_graph
from searchblend.wire.click_graph_statement import STATEMENT_TEXT, click_graph_statement, statement_page


@dataclass(frozen=True)
class ReleaseSettings:
    """What to release, from which log, and where it goes."""

    log: ReadOptions
    params: ClickGraphParams
    output: Path
    public_urls: Path | None = None
    """pairs of query and URL from outside the log, with ``urls="public"``"""
    synonyms: Path | None = None
    first_moment: float | None = None
    last_moment: float | None = None
    html: bool = False
    """whether the folder gets a page for people, too"""
    replace: bool = False
    ledger: LedgerEntry | None = None
    created: str = ""


@dataclass(frozen=True)
class ReleaseResult:
    statement: Mapping[str, Any]
    """``statement.json``"""
    input_summary: Mapping[str, Any] | None
    """exact counts of the input: not for release; ``None`` when an earlier release was returned unread"""


def run_release(
    settings: ReleaseSettings,
    *,
    randomness: Randomness | None = None,
    on_progress: OnProgress | None = None,
    on_notice: OnNotice = lambda text: None,
    on_step: OnStep = lambda step: None,
) -> ReleaseResult:
    """Read the log, select and count, write the release. The folder is opened first and appears last.

    Nothing that was counted exactly enters the folder: how many users a log has is secret too.

    Everything that can be found wrong without the log is found before it is read: the parameters, the public tables,
    the folder. With a ledger the release is debited before any noise is drawn; a release id that was published before
    gives the same bytes and reads nothing.
    """
    source = randomness or SystemRandomness()
    design = ClickGraphDesign.of(settings.params)
    public = read_public_records(settings.public_urls) if settings.public_urls else None
    rules = ActivityRules(
        settings.first_moment, settings.last_moment, read_synonyms(settings.synonyms) if settings.synonyms else {}
    )
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(release_folder(settings.output, replace=settings.replace))
        ledger = stack.enter_context(open_ledger(settings.ledger.path)) if settings.ledger else None
        if ledger and settings.ledger and ledger.published(settings.ledger.release_id):
            files, summary = _debited(ledger, settings, lambda: {}), None
        else:
            searches_only = design.searches_only and rules == ActivityRules()
            options = replace(settings.log, draws=0, searches_only=searches_only, key=source.take(16))
            log = stack.enter_context(open_log(options, on_progress=on_progress, on_notice=on_notice))

            def make() -> dict[str, bytes]:
                return _make_files(log, rules, public, settings, source, on_step)

            files = _debited(ledger, settings, make) if ledger else make()
            summary = log.summary.as_json()
        on_step("files")
        for name, content in files.items():
            folder.write(name, content)
        return ReleaseResult(json.loads(files[STATEMENT]), summary)


def _debited(ledger: Ledger, settings: ReleaseSettings, make: Callable[[], dict[str, bytes]]) -> dict[str, bytes]:
    entry = settings.ledger
    assert entry is not None
    what = f"click graph, {settings.params.algorithm}"
    spend = Spend.generic(settings.params.budget, Neighbors.ADD_REMOVE_ONE, what)
    return release_once(
        ledger, make, release_id=entry.release_id, population=entry.population, window=entry.window, spend=spend
    )


def _make_files(
    log: SearchLog,
    rules: ActivityRules,
    public: list[Record] | None,
    settings: ReleaseSettings,
    randomness: Randomness,
    on_step: OnStep,
) -> dict[str, bytes]:
    release = release_data(
        log.activity(rules), settings.params, public_records=public, randomness=randomness, on_step=on_step
    )
    if not release.queries:
        raise EmptyHeadList(_why_empty(release))
    on_step("tables")
    options = {**_options(settings), **log.decided}
    return release_files(release, created=settings.created, options=options, html=settings.html)


def release_files(
    release: ClickGraphRelease, *, created: str, options: Mapping[str, Any], html: bool = False
) -> dict[str, bytes]:
    """The tables, the graph, the dictionary, the statement as text, and ``statement.json`` with the hashes of them.

    With ``html`` also the page, which is made of the tables and the statement alone.
    """
    graph = release.graph()
    files = encode_click_graph(graph)
    files[STATEMENT_TEXT] = statement_page(release, created=created, options=options).encode()
    hashes = {name: file_entry(content) for name, content in files.items()}
    statement = click_graph_statement(release, created=created, options=options, files=hashes)
    if html:
        files[PAGE] = click_graph_page(graph, statement).encode()
        statement["files"][PAGE] = file_entry(files[PAGE])
    return {**files, STATEMENT: _json(statement)}


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


def _options(settings: ReleaseSettings) -> dict[str, Any]:
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


def _json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()
