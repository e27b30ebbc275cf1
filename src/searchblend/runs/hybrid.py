"""One hybrid run over a log, and the folder it leaves: what ``searchblend run`` does."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from searchblend.blender.groups import UserGroup
from searchblend.blender.pipeline import OnStep, run_blender
from searchblend.blender.release import BlenderRelease
from searchblend.logs.read import OnProgress, read_log
from searchblend.params import BlenderParams
from searchblend.randomness import Randomness, SystemRandomness
from searchblend.store.release_folder import ReleaseFolder, release_folder
from searchblend.wire.head_list import encode_head_list
from searchblend.wire.release import (
    BLENDER_CAVEATS,
    BLENDER_PUBLIC,
    NOT_FOR_RELEASE,
    NOT_PRIVATE,
    PAPER_CAVEAT,
    csv_table,
    parameters_document,
    result_document,
    statement_document,
)


@dataclass(frozen=True)
class HybridSettings:
    """What to run on, and where the results go."""

    log: str
    params: BlenderParams
    optin_fraction: float | None = 0.05
    optin_column: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    host_only: bool = False
    strict: bool = False
    method: str = "best"
    project: bool = True
    wide_list: bool = False
    output: Path | None = None
    replace: bool = False
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
    input_summary: Mapping[str, Any]
    """exact counts of the input: not for release"""
    n_users: int


def run_hybrid(
    settings: HybridSettings,
    *,
    evaluate: Evaluate | None = None,
    randomness: Randomness | None = None,
    on_progress: OnProgress | None = None,
    on_step: OnStep = lambda step: None,
) -> HybridResult:
    """Read the log, run BLENDER, write the release. The folder is opened first and appears last."""
    source = randomness or SystemRandomness()
    with contextlib.ExitStack() as stack:
        folder = (
            stack.enter_context(release_folder(settings.output, replace=settings.replace)) if settings.output else None
        )
        log = stack.enter_context(
            read_log(
                settings.log,
                columns=settings.columns,
                host_only=settings.host_only,
                strict=settings.strict,
                optin_column=settings.optin_column,
                draws=settings.params.records_per_client,
                picks=settings.params.records_per_optin,
                key=source.take(16),
                on_progress=on_progress,
            )
        )
        optin, clients = log.split(optin_fraction=settings.optin_fraction)
        release = run_blender(
            optin,
            clients,
            settings.params,
            method=settings.method,
            project=settings.project,
            wide_list=settings.wide_list,
            randomness=source,
            on_step=on_step,
        )
        document = hybrid_document(release, evaluate(release, optin, clients) if evaluate else None)
        summary = log.summary.as_json()
        if folder:
            on_step("files")
            write_hybrid_release(folder, release, document, input_summary=summary, created=settings.created)
        return HybridResult(document, summary, optin.n_users + clients.n_users)


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


def write_hybrid_release(
    folder: ReleaseFolder,
    release: BlenderRelease,
    document: Mapping[str, Any],
    *,
    input_summary: Mapping[str, Any],
    created: str,
) -> None:
    """``records.csv``, ``trends.csv``, ``result.json``, ``headlist.json``, ``statement.json``; ``input.json`` apart."""
    notice = document.get("notice")
    stamp = {"notice": notice} if notice else {}
    extra = ["true_probability", "notice"] if notice else []
    for name, columns in (("records", ["query", "url"]), ("trends", ["query"])):
        folder.write(f"{name}.csv", csv_table([{**row, **stamp} for row in document[name]], columns, extra))
    folder.write("result.json", _json(document))
    folder.write("headlist.json", _json({**stamp, **encode_head_list(release.head, release.params, release.design)}))
    folder.write("input.json", _json({"notice": NOT_FOR_RELEASE, **input_summary}), listed=False)
    statement = statement_document(
        kind="blender",
        method=release.method,
        created=created,
        parameters=parameters_document(release),
        guarantee=release.guarantee.as_json(),
        public=BLENDER_PUBLIC,
        caveats=[*BLENDER_CAVEATS, *([PAPER_CAVEAT] if release.method == "paper" else [])],
        files=folder.files,
        notice=notice,
    )
    folder.write("statement.json", _json(statement), listed=False)


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
