"""One hybrid run over a log, and the folder it leaves: what ``searchblend run`` does."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from searchblend.accounting.spend import Spend
from searchblend.blender.groups import UserGroup
from searchblend.blender.method import OnStep
from searchblend.blender.pipeline import run_blender
from searchblend.blender.release import BlenderRelease
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Neighbors
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.logs.options import ReadOptions
from searchblend.logs.read import OnNotice, OnProgress, open_log
from searchblend.logs.search_log import SearchLog
from searchblend.pages.hybrid_page import hybrid_page
from searchblend.pages.layout import PAGE
from searchblend.store.ledger import Ledger, open_ledger
from searchblend.store.ledger_release import release_once
from searchblend.store.release_folder import release_folder
from searchblend.wire.head_list import encode_head_list
from searchblend.wire.release import (
    BLENDER_CAVEATS,
    BLENDER_PUBLIC,
    NOT_PRIVATE,
    PAPER_CAVEAT,
    csv_table,
    log_caveats,
    parameters_document,
    result_document,
    statement_document,
)


@dataclass(frozen=True)
class LedgerEntry:
    """Where a release is debited, and as what."""

    path: Path
    release_id: str
    population: str = "all users"
    window: str = "all time"


@dataclass(frozen=True)
class HybridSettings:
    """What to run on, and where the results go."""

    log: ReadOptions
    params: BlenderParams
    optin_fraction: float | None = 0.05
    """``None`` if a column of the log says who opts in"""
    method: str = "best"
    project: bool = True
    wide_list: bool = False
    output: Path | None = None
    html: bool = False
    """whether the folder gets a page for people, too"""
    replace: bool = False
    ledger: LedgerEntry | None = None
    created: str = ""
    """when, in ISO 8601; enters the statement"""


@dataclass(frozen=True)
class Evaluation:
    """What only an evaluation knows. Its presence makes every output NOT PRIVATE."""

    metrics: Mapping[str, float | None]
    true_queries: Sequence[float]
    """by position in the head list, ⋆ last"""
    true_cells: Sequence[float]
    """by cell number"""


Evaluate = Callable[[BlenderRelease, UserGroup, UserGroup], Evaluation]


@dataclass(frozen=True)
class HybridResult:
    document: Mapping[str, Any]
    """``result.json``"""
    input_summary: Mapping[str, Any] | None
    """exact counts of the input: not for release; ``None`` when an earlier release was returned unread"""

    @property
    def n_users(self) -> int:
        groups = self.document["groups"]
        return int(groups["optin_users"] + groups["clients"])


def run_hybrid(
    settings: HybridSettings,
    *,
    evaluate: Evaluate | None = None,
    randomness: Randomness | None = None,
    on_progress: OnProgress | None = None,
    on_notice: OnNotice = lambda text: None,
    on_step: OnStep = lambda step: None,
) -> HybridResult:
    """Read the log, run BLENDER, write the release. The folder is opened first and appears last.

    With a ledger the release is debited after the log was read and before any noise is drawn; a release id that was
    published before returns the same bytes and reads nothing.
    """
    source = randomness or SystemRandomness()
    with contextlib.ExitStack() as stack:
        folder = (
            stack.enter_context(release_folder(settings.output, replace=settings.replace)) if settings.output else None
        )
        ledger = stack.enter_context(open_ledger(settings.ledger.path)) if settings.ledger else None
        if ledger and settings.ledger and ledger.published(settings.ledger.release_id):
            files, summary = _debited(ledger, settings, lambda: {}), None
        else:
            params = settings.params
            options = replace(
                settings.log, draws=params.records_per_client, picks=params.records_per_optin, key=source.take(16)
            )
            log = stack.enter_context(open_log(options, on_progress=on_progress, on_notice=on_notice))

            def make() -> dict[str, bytes]:
                return _make_files(log, settings, evaluate, source, on_step)

            files = _debited(ledger, settings, make) if ledger else make()
            summary = log.summary.as_json()
        if folder:
            on_step("files")
            for name, content in files.items():
                folder.write(name, content)
        return HybridResult(json.loads(files["result.json"]), summary)


def _debited(ledger: Ledger, settings: HybridSettings, make: Callable[[], dict[str, bytes]]) -> dict[str, bytes]:
    entry = settings.ledger
    assert entry is not None
    spend = Spend.generic(settings.params.budget, Neighbors.REPLACE_ONE, f"hybrid run, method {settings.method}")
    return release_once(
        ledger, make, release_id=entry.release_id, population=entry.population, window=entry.window, spend=spend
    )


def _make_files(
    log: SearchLog, settings: HybridSettings, evaluate: Evaluate | None, randomness: Randomness, on_step: OnStep
) -> dict[str, bytes]:
    optin, clients = log.split(optin_fraction=settings.optin_fraction)
    release = run_blender(
        optin,
        clients,
        settings.params,
        method=settings.method,
        project=settings.project,
        wide_list=settings.wide_list,
        randomness=randomness,
        on_step=on_step,
    )
    document = hybrid_document(release, evaluate(release, optin, clients) if evaluate else None)
    return release_files(release, document, log.decided, created=settings.created, html=settings.html)


def hybrid_document(release: BlenderRelease, evaluation: Evaluation | None = None) -> dict[str, Any]:
    """The result document, with the evaluation's figures and stamp where there is one."""
    document = result_document(release)
    if evaluation is None:
        return document
    head = release.head
    query_share = dict(zip([*head.queries, None], evaluation.true_queries, strict=True))
    cell_share = {_cell_key(*cell): share for cell, share in zip(head.cells(), evaluation.true_cells, strict=True)}
    for row in document["trends"]:
        row["true_probability"] = query_share[row["query"]]
    for row in document["records"]:
        row["true_probability"] = cell_share[row["query"], row["url"]]
    return {"notice": NOT_PRIVATE, **document, "metrics": dict(evaluation.metrics)}


def _cell_key(query: object, url: object) -> tuple[str | None, str | None]:
    return query if isinstance(query, str) else None, url if isinstance(url, str) else None


def release_files(
    release: BlenderRelease, document: Mapping[str, Any], log: Mapping[str, Any], *, created: str, html: bool = False
) -> dict[str, bytes]:
    """``records.csv``, ``trends.csv``, ``result.json``, ``headlist.json``, and ``statement.json`` with their hashes.

    ``log`` says how the log was read. With ``html`` also the page, which is made of these files alone.
    """
    notice = document.get("notice")
    stamp = {"notice": notice} if notice else {}
    extra = ["true_probability", "notice"] if notice else []
    files: dict[str, bytes] = {}
    for name, columns in (("records", ["query", "url"]), ("trends", ["query"])):
        files[f"{name}.csv"] = csv_table([{**row, **stamp} for row in document[name]], columns, extra).encode()
    files["result.json"] = _json(document)
    files["headlist.json"] = _json({**stamp, **encode_head_list(release.head, release.params, release.design)})
    statement = statement_document(
        kind="blender",
        method=release.method,
        created=created,
        parameters={**parameters_document(release), "log": dict(log)},
        guarantee=release.guarantee.as_json(),
        public=BLENDER_PUBLIC,
        caveats=[*BLENDER_CAVEATS, *([PAPER_CAVEAT] if release.method == "paper" else []), *log_caveats(log)],
        files={name: file_entry(content) for name, content in files.items()},
        notice=notice,
    )
    if html:
        files[PAGE] = hybrid_page(document, statement).encode()
        statement["files"][PAGE] = file_entry(files[PAGE])
    return {**files, "statement.json": _json(statement)}


def file_entry(content: bytes) -> dict[str, Any]:
    """How a statement names a file."""
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def _json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()
