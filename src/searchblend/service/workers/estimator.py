"""From counts to trends: the estimator's job. Post-processing of private outputs: it costs nothing."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Final

from searchblend.blender.best.subset_report_bulk import ReportCounts, SubsetCounts
from searchblend.blender.release import BlenderRelease
from searchblend.blender.result import result_of
from searchblend.core.privacy import TrustModel
from searchblend.mechanisms.tally import Ints
from searchblend.service.clock import Clock
from searchblend.service.round_model import method_of, settings_of, shape_of
from searchblend.service.workers.worker import RoundJobs
from searchblend.store.errors import StoreError
from searchblend.store.jobs import LeasedJob
from searchblend.store.rounds import Round
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import State
from searchblend.wire.release import (
    BLENDER_PUBLIC,
    RESULT,
    STATEMENT,
    encode_statement,
    json_file,
    make_statement,
    method_caveats,
    result_files,
)
from searchblend.wire.report import ONE_CELL, SETS, ReportShape

ESTIMATOR: Final = "estimator"
FILE_PREFIX: Final = "file:"
_CAVEATS: Final = (
    "Reports come from devices that no one vouches for. The influence beside a trend bounds how far any one report, "
    "fabricated or not, can move its share; a hundred of them can move it about a hundred times as far.",
    "Participation is not hidden: who sends a report or a sealed record can be seen on the network.",
    "The unit is one device or contributor; a person with two is protected once for each.",
    "Every further round adds to everyone's ε and δ; the ledger of the population has the total.",
)


class Estimator(RoundJobs):
    """Runs the job between CLOSED and ESTIMATED."""

    def __init__(self, store: ServiceStore, clock: Clock) -> None:
        super().__init__(store, clock, ESTIMATOR, {"estimate": self._run})

    def _run(self, job: LeasedJob, round_: Round) -> None:
        shape = shape_of(round_)
        law = self._store.reports.conservation(round_.key, shape.counts_per_report, round_.reports)
        if not law.holds:
            raise StoreError(f"round {round_.number}: {law.counted} counts, expected {law.expected}: not estimated")
        files = self._estimate(round_, shape)
        with self._store.transaction():
            self._store.rounds.advance(
                round_,
                State.ESTIMATED,
                actor=ESTIMATOR,
                now=self._clock.now(),
                detail={"result": hashlib.sha256(files[RESULT]).hexdigest()},
            )
            for name, content in files.items():
                self._store.artifacts.keep(round_.key, FILE_PREFIX + name, content)
            self._store.jobs.add(round_.key, "publish", self._clock.now())
            self._store.jobs.finish(job)
            self._store.on_point("estimate: before commit")
        self._store.on_point("estimate: after commit")

    def _estimate(self, round_: Round, shape: ReportShape) -> dict[str, bytes]:
        figures, settings = self._reviewed_list(round_), settings_of(round_)
        counts = self._store.reports.counts(round_.key, shape.n_counters)
        method, reports, n = method_of(settings), report_counts(counts, shape), round_.reports or 0
        release = method.estimate(figures, reports, settings.params, n, trust=TrustModel.LOCAL)
        created = datetime.fromtimestamp(self._clock.now(), UTC).isoformat(timespec="seconds")
        influence = method.influence(figures, reports, settings.params, n).tolist()
        return round_files(release, created, influence)


def report_counts(counts: Ints, shape: ReportShape) -> ReportCounts:
    """A round's counters in the estimator's form: items and sinks, by what the reports were about."""
    if shape.suite == ONE_CELL:
        return ReportCounts(two_stage=counts[: shape.cell_items])

    def about(first: int, n: int, subset: int, sink: int) -> SubsetCounts | None:
        if not n:
            return None
        items, sinks = counts[first : first + n], int(counts[sink])
        # Without a sink ⋆ is the last item: it is reported like the others and not estimated. The number of reports
        # follows from their items, since every set has the same size.
        return SubsetCounts(items[: n - (shape.suite == SETS)], sinks, int(items.sum()) // subset + sinks)

    return ReportCounts(
        queries=about(0, shape.query_items, shape.query_subset, shape.query_sink),
        cells=about(shape.query_items, shape.cell_items, shape.cell_subset, shape.query_sink + 1),
    )


def round_files(release: BlenderRelease, created: str, influence: list[float]) -> dict[str, bytes]:
    """``result.json``, both tables, and the statement with their hashes."""
    result = result_of(release).with_influence(dict(zip([*release.head.queries, None], influence, strict=True)))
    contents = result_files(result)
    files = {name: contents[name] for name in (RESULT, "records.csv", "trends.csv")}
    statement = make_statement(
        files,
        kind="blender round",
        method=release.method,
        created=created,
        parameters=result.parameters,
        guarantee=result.guarantee,
        public=BLENDER_PUBLIC,
        caveats=[*_CAVEATS, *method_caveats(release.method, release.params.records_per_client)],
    )
    return {**files, STATEMENT: json_file(encode_statement(statement))}
