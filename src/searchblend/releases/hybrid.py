"""One hybrid run over a log, and the folder it leaves: what ``searchblend run`` does."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from searchblend.blender.exchanged import check_voucher, type_path
from searchblend.blender.groups import UserGroup
from searchblend.blender.method import METHODS, Method, OnStep, method_of
from searchblend.blender.pipeline import check_run, run_blender
from searchblend.blender.release import BlenderRelease
from searchblend.blender.result import Result, result_of
from searchblend.core.by_name import attribute_of
from searchblend.core.documents import JsonObject
from searchblend.core.errors import UsageError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Neighbors
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.statement import PAGE
from searchblend.logs.options import ReadOptions
from searchblend.logs.read import OnNotice, OnProgress, SearchLog, open_log
from searchblend.releases.make_release import (
    Cost,
    Files,
    LedgerEntry,
    WrittenRelease,
    make_release,
    of_each_row,
    refuse_large_delta,
)
from searchblend.wire.head_list import encode_head_list
from searchblend.wire.release import (
    BLENDER_CAVEATS,
    BLENDER_PUBLIC,
    RESULT,
    STATEMENT,
    all_caveats,
    decode_result,
    encode_statement,
    json_file,
    make_statement,
    method_caveats,
    result_files,
)

ENTRY_POINTS: Final = "searchblend.methods"
"""the group of entry points by which an installed package offers a method"""


def method_at(name: str) -> str | Method:
    """``best`` or ``paper``; the method that an installed package offers under a name; or ``package.module:object``."""
    if name in METHODS:
        return name
    offered = {entry.name: entry.value for entry in entry_points(group=ENTRY_POINTS)}
    if ":" not in name and name not in offered:
        raise UsageError(f"--method: expected {', '.join([*METHODS, *sorted(offered)])}, or package.module:object")
    offered_object = object_at(offered.get(name, name), "--method")
    method = offered_object() if isinstance(offered_object, type) else offered_object
    if not isinstance(method, Method):
        raise UsageError(f"--method: {name} is not a method: derive it from searchblend.PrintedSteps")
    return method


def object_at(path: str, flag: str) -> object:
    """What is behind ``package.module:object``; modules of the current folder are found, too."""
    module, colon, attribute = path.partition(":")
    if not (module and colon and attribute):
        raise UsageError(f"{flag}: expected package.module:object, found {path!r}")
    if os.getcwd() not in sys.path:  # noqa: PTH109 (sys.path holds strings)
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        return attribute_of(module, attribute)
    except ImportError as error:
        raise UsageError(f"{flag}: {module} cannot be imported: {error}") from error
    except AttributeError as error:
        raise UsageError(f"{flag}: {module} has no {attribute}") from error


@dataclass(frozen=True)
class HybridSettings:
    """What to run on, and where the results go."""

    log: ReadOptions
    params: BlenderParams
    optin_fraction: float | None = 0.05
    """``None`` if a column of the log states who opts in"""
    method: str | Method = "best"
    vouched_by: str | None = None
    """who vouches for a method that is not ours"""
    project: bool = True
    wide_list: bool = False
    output: Path | None = None
    html: bool = False
    """whether the folder gets a page for people, too"""
    replace: bool = False
    allow_large_delta: bool = False
    """whether δ may reach 1/users, at which a mechanism may expose a user outright"""
    ledger: LedgerEntry | None = None
    created: str = ""
    """when, in ISO 8601; enters the statement"""

    @property
    def cost(self) -> Cost:
        name = self.method if isinstance(self.method, str) else type_path(self.method)
        what = f"hybrid run, method {name}{of_each_row(self.log)}"
        return Cost(self.params.budget, Neighbors.REPLACE_ONE, what)


@dataclass(frozen=True)
class Evaluation:
    """What only an evaluation knows. Its presence makes every output NOT PRIVATE."""

    metrics: Mapping[str, float | None]
    true_queries: Sequence[float]
    """by position in the head list, ⋆ last"""
    true_cells: Sequence[float]
    """by cell number"""


Evaluate = Callable[[BlenderRelease, UserGroup, UserGroup], Evaluation]
_Input = tuple[SearchLog, UserGroup, UserGroup]
"""the log, its opt-in users and its clients"""


def run_hybrid(
    settings: HybridSettings,
    *,
    evaluate: Evaluate | None = None,
    randomness: Randomness | None = None,
    on_progress: OnProgress | None = None,
    on_notice: OnNotice = lambda string: None,
    on_step: OnStep = lambda step: None,
) -> WrittenRelease[Result]:
    """Read the log, run BLENDER, write the release."""
    source = randomness or SystemRandomness()

    @contextmanager
    def read() -> Iterator[_Input]:
        params = settings.params
        many = method_of(settings.method).settled(params).counted_records_per_optin > 1
        options = replace(settings.log, draws=params.records_per_client, rows=many, key=source.take(16))
        with open_log(options, on_progress=on_progress, on_notice=on_notice) as log:
            optin, clients = log.split(optin_fraction=settings.optin_fraction)
            users = optin.n_users + clients.n_users
            refuse_large_delta(params.budget, users, allowed=settings.allow_large_delta)
            method, fitting = check_run(optin, clients, params, method=settings.method, wide_list=settings.wide_list)
            check_voucher(method, settings.vouched_by)
            method.users_to_be_listed(fitting)  # refuses a budget that has no threshold
            yield log, optin, clients

    def make(given: _Input) -> tuple[Result, Files]:
        log, optin, clients = given
        release = run_blender(
            optin,
            clients,
            settings.params,
            method=settings.method,
            vouched_by=settings.vouched_by,
            project=settings.project,
            wide_list=settings.wide_list,
            randomness=source,
            on_step=on_step,
        )
        result = beside_the_truth(release, evaluate(release, optin, clients)) if evaluate else result_of(release)
        return result, hybrid_files(release, result, log.decided, created=settings.created, html=settings.html)

    return make_release(
        settings.output,
        settings.cost,
        open_log=read,
        make=make,
        summarize=lambda given: given[0].summary.as_json(),
        read=lambda files: decode_result(files[RESULT]),
        replace=settings.replace,
        ledger=settings.ledger,
        on_step=on_step,
    )


def beside_the_truth(release: BlenderRelease, evaluation: Evaluation) -> Result:
    """The result with the evaluation's figures and stamp."""
    head = release.head
    query_share = dict(zip([*head.queries, None], evaluation.true_queries, strict=True))
    cell_share = {_cell_key(*cell): share for cell, share in zip(head.cells(), evaluation.true_cells, strict=True)}
    return result_of(release).evaluated(evaluation.metrics, query_share, cell_share)


def _cell_key(query: object, url: object) -> tuple[str | None, str | None]:
    return query if isinstance(query, str) else None, url if isinstance(url, str) else None


def hybrid_files(
    release: BlenderRelease, result: Result, log: JsonObject, *, created: str, html: bool = False
) -> Files:
    """``records.csv``, ``trends.csv``, ``result.json``, ``headlist.json``, and ``statement.json`` with their hashes.

    ``log`` states how the log was read. With ``html`` also the page, which is made of these files alone.
    """
    stamp = {"notice": result.notice} if result.notice else {}
    files = result_files(result)
    files["headlist.json"] = json_file({**stamp, **encode_head_list(release.head, release.params, release.design)})
    statement = make_statement(
        files,
        kind="blender",
        method=release.method,
        created=created,
        parameters={**result.parameters, "log": dict(log)},
        guarantee=result.guarantee,
        public=BLENDER_PUBLIC,
        caveats=all_caveats(
            [*BLENDER_CAVEATS, *method_caveats(release.method, release.params.records_per_client)], log
        ),
        notice=result.notice,
    )
    if html:
        from searchblend.pages.release_pages import hybrid_page

        files[PAGE] = hybrid_page(result, statement).encode()
        statement = statement.with_file(PAGE, files[PAGE])
    return {**files, STATEMENT: json_file(encode_statement(statement))}
