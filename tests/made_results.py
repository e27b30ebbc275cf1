"""Results that runs of the papers' experiments could have given, without running any."""

from __future__ import annotations

import hashlib
from typing import Any

from searchblend_lab.papers.blender import fig09
from searchblend_lab.papers.blender.published import FIGURE_9
from searchblend_lab.papers.cells import Cell
from searchblend_lab.papers.clickgraph.cells import SEED_SETS, SPAN_LIMITS, THRESHOLDS
from searchblend_lab.papers.clickgraph.published import TABLE_4


def uniform(*parts: object) -> float:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6], "big") / 2**48


def made_up(cell: Cell) -> dict[str, Any]:
    """Results that a run could have given: errors fall with ε and users, lists grow with the opt-in share."""
    settings: dict[str, Any] = dict(cell.settings)
    if cell.kind == "statistics":
        return {"users": 500_000, "queries": 4_800_000, "urls": 1_600_000, "clicks": 9}
    if cell.kind.startswith("kkmn"):
        return made_up_click_graph(cell)
    if cell.kind == "graph-algorithms":
        return {"published": 100 + cell.run, "noise": 8.0, "threshold": 40, "coverage": 0.5, "searches": 10_000_000}
    if cell.kind == "rival":
        return {"queries": 9 + cell.run, "l1_50": 0.01, "l1_200": 0.02, "bytes": 99, "users_needed": 30}
    if cell.kind == "real-log":
        scores = dict.fromkeys(("common_l1", "top_l1", "query_l1"), 0.01 + cell.run / 1000)
        scores |= dict.fromkeys(("ndcg", "coverage", "spurious", "dropped", "missing"), 0.5) | {"queries": 20}
        methods = ("paper", "best", "click graph")
        return {"rows": [{"method": m, "epsilon": e, **scores} for m in methods for e in (1.0, 4.0)]}
    if cell.kind == "local-search":
        return {"queries": 40, "pairs": 60, "bytes": 2_000, "answered": 0.08, "first": 0.05, "any": 0.07, "ideal": 0.1}
    noise = 1 + 0.1 * uniform(cell.run, cell.settings)
    size, epsilon = settings.get("size") or 50, settings.get("epsilon") or 4.0
    error = noise * 0.0004 * size / epsilon
    many = 10 if settings["people"] == "yandex" else 1
    reach = many * (settings.get("optin") or 0.05) * 1000 * epsilon / 4
    found = {
        "queries": min(size, max(round(reach), 1)),
        "query_l1": error * (settings.get("per_client") or 1),
        "record_l1": error,
        "ndcg": 1 - error / (settings.get("per_client") or 1),
        "seconds": 0.1,
        "optin_weight": 0.1,
        "groups_differ": 0.0,
        "alarm": 0.0,
        **dict.fromkeys(("coverage", "query_coverage", "record_coverage", "rest_coverage"), 0.95),
        "target_flagged": 0.0,
        "shift": 0.01,
    }
    for key in ("top_l1", "optin_query_l1", "client_query_l1"):
        found[key] = found["query_l1"] * 1.5 * noise
    for key in ("ndcg_top", "ndcg_rank", "optin_ndcg", "client_ndcg"):
        found[key] = found["ndcg"] - 0.01 * noise
    if settings.get("detail"):
        columns = ("query", *fig09.COLUMNS)
        found["trends"] = [dict(zip(columns, row, strict=True)) for row in FIGURE_9]
    return found


def made_up_click_graph(cell: Cell) -> dict[str, Any]:
    found: dict[str, Any] = {"distinct": 100_000, "impressions": 1_000_000, "tau": 0.9, "overlap": 1.0}
    found |= {"published": 100, "published_impressions": 200_000, "volume": 300_000}
    for d in SPAN_LIMITS:
        found |= {f"published_{d}": 100 + d, f"published_impressions_{d}": 1000 + d}
    found |= {"original": [a for a, _ in TABLE_4], "released": [b for _, b in TABLE_4]}
    found |= {"queries_kept": 0.1, "edges_kept": 0.2}
    for name in SEED_SETS:
        for threshold in THRESHOLDS:
            found |= {f"{name}_{threshold}_original": 1000, f"{name}_{threshold}_released": 150}
            found[f"{name}_{threshold}_shared"] = 0.9
    return found
