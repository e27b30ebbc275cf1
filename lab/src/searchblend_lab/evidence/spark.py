"""The Spark engine: the same counts as DuckDB to the last record, and the same noise on them, fresh in every run."""

from __future__ import annotations

import importlib.util
import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from searchblend.blender.best.stability_histogram import count_head_list, curator_design
from searchblend.blender.groups import UserGroup
from searchblend.blender.paper.create_head_list import create_head_list
from searchblend.clickgraph.release.click_log import Cap
from searchblend.core.errors import RunError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.logs.read import read_log
from searchblend.logs.spark.java import find_java
from searchblend.logs.spark.session import SparkRunner
from searchblend.mechanisms.threshold import printed_threshold
from searchblend_lab.evidence.bounds import two_sided
from searchblend_lab.evidence.evidence import REPLACE_ONE, Absent, Claim, Effort, Finding, judged
from searchblend_lab.evidence.sensitivity import counted

BUDGET: Final = Budget(2.0, 0.05)
_KEY: Final = bytes(range(16))
_ALONE: Final = 3000
_COMMON: Final = 40


def spark(effort: Effort) -> list[Finding]:
    """A small log on a local cluster of one process."""
    if importlib.util.find_spec("pyspark") is None:
        raise Absent("the Spark engine: PySpark is not installed (extra spark)")
    try:
        find_java()
    except RunError as error:
        raise Absent(f"the Spark engine: {error}") from error
    with tempfile.TemporaryDirectory(prefix="searchblend-audit-") as folder, _session():
        path = Path(folder, "log.tsv")
        _write(path)
        with _groups(path, "spark") as on_spark, _groups(path, "duckdb") as on_duckdb:
            findings = [_same_counts(on_spark, on_duckdb), *_noise(on_spark, effort)]
        return [*findings, _same_activity(path)]


def _write(path: Path) -> None:
    top = printed_threshold(BUDGET).integer
    queries = [f"alone {i}" for i in range(_ALONE)] + [f"common {i}" for i in range(_COMMON) for _ in range(top)]
    lines = ["user\tquery\turl\ttime\tagrees"]
    lines += [f"p{i}\t{query}\tu.example\t{1000 + i}\tyes" for i, query in enumerate(queries)]
    path.write_text("\n".join([*lines, "client\tcommon 0\tu.example\t1\tno"]) + "\n")


@contextmanager
def _session() -> Iterator[None]:
    """One session for all reads: engines use the one that is active. Java's quick compiler will do for little data."""
    runner = SparkRunner(
        "local[2]",
        settings={
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
    )
    try:
        yield
    finally:
        runner.close()


@contextmanager
def _groups(path: Path, engine: str) -> Iterator[UserGroup]:
    with read_log(path, key=_KEY, optin_column="agrees", engine=engine) as log:
        yield log.split()[0]


def _same_counts(one: UserGroup, other: UserGroup) -> Finding:
    counts = [counted(group.tally()) for group in (one, other)]
    holds = counts[0] == counts[1] and one.n_users == other.n_users
    detail = f"{len(counts[0]):,} distinct records of {one.n_users:,} users: equal counts {counts[0] == counts[1]}"
    return Finding("Spark engine: counts are DuckDB's", judged(holds=holds), detail)


def _noise(group: UserGroup, effort: Effort) -> list[Finding]:
    params = BlenderParams(BUDGET, max_head_queries=10**6)
    a = math.exp(-BUDGET.epsilon / 2)
    claim = Claim.of(BUDGET, REPLACE_ONE)
    paper = printed_threshold(BUDGET).integer
    best = curator_design(params)
    lists = {
        "paper": (create_head_list(group, params), paper),
        "best": (count_head_list(group, params, best).head, best.threshold.integer),
    }
    findings = []
    for method, (head, top) in lists.items():
        named = sum(query.startswith("alone ") for query in head.queries)
        expected = a ** (top - 1) / (1 + a)
        p = two_sided(named, _ALONE, expected)
        detail = f"{named} of {_ALONE:,} queries of one user named, {expected * _ALONE:.1f} expected: p = {p:.2g}"
        verdict = judged(holds=p > effort.level)
        findings.append(Finding(f"Spark engine: head list ({method})", verdict, detail, claim, trials=_ALONE))
    again = create_head_list(group, params)
    fresh = again.digest != lists["paper"][0].digest
    detail = "a second head list from the same log and key has other noise"
    return [*findings, Finding("Spark engine: noise is fresh", judged(holds=fresh), detail, trials=2)]


def _same_activity(path: Path) -> Finding:
    counts = []
    for engine in ("spark", "duckdb"):
        with read_log(path, key=_KEY, draws=0, engine=engine) as log:
            activity = log.activity()
            queries = ["common 0", "common 1"]
            searches = counted(activity.searches(Cap(2)))
            counts.append((searches, counted(activity.clicks(queries, Cap(2), within=Cap(2)))))
    detail = f"limited searches and clicks, {len(counts[0][0]):,} queries"
    return Finding("Spark engine: limited activity is DuckDB's", judged(holds=counts[0] == counts[1]), detail)
