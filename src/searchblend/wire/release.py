"""A release as documents: the result, its two tables and its privacy statement.

⋆ is null in JSON and an empty field in CSV, where the column ``kind`` tells it from an empty string:
``record`` ⟨q,u⟩, ``query_rest`` ⟨q,⋆⟩, ``rest`` ⟨⋆,⋆⟩; in the trends ``query`` and ``rest``.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import numpy as np

from searchblend.blender.estimates import Blended, Estimates
from searchblend.blender.release import BlenderRelease
from searchblend.core.csv_cells import write_csv

NOT_PRIVATE: Final = "NOT PRIVATE: made by an evaluation that compares with the true data; do not release"
NOT_FOR_RELEASE: Final = "NOT FOR RELEASE: exact counts of the input"
_SOFTWARE: Final = ("searchblend", "numpy", "duckdb")
_CSV_COLUMNS: Final = (
    "probability",
    "low",
    "high",
    "variance",
    "raw_probability",
    "optin_probability",
    "optin_variance",
    "client_probability",
    "client_variance",
    "optin_weight",
)


def result_document(release: BlenderRelease) -> dict[str, Any]:
    """``result.json``: everything that was released, with its guarantee."""
    return {
        "format": "searchblend-result",
        "version": 1,
        "method": release.method,
        "guarantee": release.guarantee.as_json(),
        "groups": groups_document(release),
        "head": {
            "queries": len(release.head),
            "records": release.head.n_records,
            "digest": release.head.digest,
        },
        "parameters": parameters_document(release),
        "mechanism": dict(release.mechanism),
        **({"group_check": release.check.as_json(release.head.queries)} if release.check else {}),
        "records": record_rows(release),
        "trends": trend_rows(release),
    }


def groups_document(release: BlenderRelease) -> dict[str, int]:
    sizes = release.sizes
    return {
        "optin_users": sizes.optin_users,
        "head_users": sizes.head_users,
        "estimate_users": sizes.estimate_users,
        "clients": sizes.clients,
    }


def parameters_document(release: BlenderRelease) -> dict[str, Any]:
    params = release.params
    return {
        "epsilon": params.budget.epsilon,
        "delta": params.budget.delta,
        "max_head_queries": params.max_head_queries,
        "head_fraction": params.head_fraction,
        "query_budget_fraction": params.query_budget_fraction,
        "records_per_optin": params.records_per_optin,
        "records_per_client": params.records_per_client,
        "projected": release.projected,
    }


def trend_rows(release: BlenderRelease) -> list[dict[str, Any]]:
    """Queries from the most to the least probable, ⋆ last."""
    names = release.head.queries
    rest = len(names)
    rows = _rows(release.queries, release.optin.queries, release.client.queries)
    return [
        {"query": names[i] if i < rest else None, "kind": "query" if i < rest else "rest", **rows[i]}
        for i in [*release.ranked_queries(), rest]
    ]


def record_rows(release: BlenderRelease) -> list[dict[str, Any]]:
    """Cells query by query in the order of the trends; within a query by probability, ⟨q,⋆⟩ after its URLs."""
    head, first = release.head, release.head.first_cells()
    names = head.queries
    rows = _rows(release.records, release.optin.records, release.client.records)
    ordered: list[dict[str, Any]] = []
    for i in release.ranked_queries():
        urls = head.urls(names[i])
        for j in release.ranked_urls(i):
            ordered.append({"query": names[i], "url": urls[j], "kind": "record", **rows[first[i] + j]})
        kind = "query_rest" if head.has_urls else "record"
        ordered.append({"query": names[i], "url": None, "kind": kind, **rows[first[i] + len(urls)]})
    return [*ordered, {"query": None, "url": None, "kind": "rest", **rows[-1]}]


def _rows(blended: Blended, optin: Estimates, client: Estimates) -> list[dict[str, Any]]:
    intervals = blended.raw.interval
    optin_rows, client_rows = _group_rows(optin), _group_rows(client)
    return [
        {
            "probability": _number(blended.probability[i]),
            "variance": _number(blended.raw.variance[i]),
            "interval": [_number(bound) for bound in intervals[i]],
            "raw_probability": _number(blended.raw.probability[i]),
            "optin": optin_rows[i],
            "client": client_rows[i],
            "optin_weight": _number(blended.optin_weight[i]),
        }
        for i in range(len(blended.probability))
    ]


def _group_rows(estimates: Estimates) -> list[dict[str, Any] | None]:
    return [
        None
        if np.isnan(probability)
        else {
            "probability": _number(probability),
            "variance": _number(variance),
            "interval": [_number(bound) for bound in interval],
        }
        for probability, variance, interval in zip(
            estimates.probability, estimates.variance, estimates.interval, strict=True
        )
    ]


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def csv_table(rows: Iterable[Mapping[str, Any]], names: Sequence[str], extra: Sequence[str] = ()) -> str:
    """Rows of ``record_rows`` or ``trend_rows`` as CSV; ``names`` are the leading columns, ``extra`` the last."""
    return write_csv([*names, "kind", *_CSV_COLUMNS, *extra], map(_flat, rows))


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    flat = {**row, "low": row["interval"][0], "high": row["interval"][1]}
    for group in ("optin", "client"):
        for value in ("probability", "variance"):
            flat[f"{group}_{value}"] = row[group][value] if row[group] else None
    return flat


def statement_document(
    *,
    kind: str,
    method: str,
    created: str,
    parameters: Mapping[str, Any],
    guarantee: Mapping[str, Any],
    public: Sequence[str],
    caveats: Sequence[str],
    files: Mapping[str, Mapping[str, Any]],
    notice: str | None,
) -> dict[str, Any]:
    """``statement.json``: the privacy statement of a release of any kind, in one schema."""
    return {
        "format": "searchblend-statement",
        "version": 1,
        **({"notice": notice} if notice else {}),
        "release": {"kind": kind, "method": method, "created": created, "private": notice is None},
        "parameters": dict(parameters),
        "guarantee": dict(guarantee),
        "public": list(public),
        "caveats": list(caveats),
        "software": _software(),
        "files": dict(files),
    }


def _software() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in _SOFTWARE:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


QUOTED_LINE_FEEDS_CAVEAT: Final = (
    "The log was read with line feeds inside quotes. That no line changes how another person's is read then rests on "
    "the quotes of every line being well formed: one line with an open quote can swallow those that follow."
)


def log_caveats(log: Mapping[str, Any]) -> list[str]:
    """What the promise rests on, beside the mechanisms, by the way in which a log was read."""
    return [QUOTED_LINE_FEEDS_CAVEAT] if log.get("quoted_line_feeds") else []


BLENDER_PUBLIC: Final = (
    "the sizes of both groups: neighbouring inputs differ in what one user searched, not in who takes part",
    "all parameters, the threshold and the report probabilities",
    "the head list: it is itself a private output and is sent to every device",
)
PAPER_CAVEAT: Final = (
    "Printed variances of opt-in trends, of ⟨⋆,⋆⟩ and of blends are too small; docs/explanation/method-paper.md "
    "has the measured coverage of their intervals."
)
BLENDER_CAVEATS: Final = (
    "The clients' records came from a log in the curator's hands: their protection is that of the released output. "
    "Only a collection from devices gives clients the local model, in which nobody else sees a raw record.",
    "Participation is not hidden: a user without a usable record takes no part.",
    "The unit is one user id of the log; a person with two ids is protected once per id.",
    "Every further release about the same people adds to their ε and δ.",
)
