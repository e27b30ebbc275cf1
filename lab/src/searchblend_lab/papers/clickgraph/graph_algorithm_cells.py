"""What every algorithm publishes of one synthetic log, selection and counts under one budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np

from searchblend.clickgraph.release.release_data import release_data
from searchblend.core.params import ClickGraphParams, Shares
from searchblend.core.privacy import Budget
from searchblend.synthetic.seeded import SeededRandomness
from searchblend_lab.papers.clickgraph.cells import log_of
from searchblend_lab.papers.people import seed_of
from searchblend_lab.zipf_log import ZipfLog, number_of

BUDGET: Final = Budget(math.log(10), 1e-5)
_HALVES: Final = Shares(0.5, 0.5, 0.5)
_MORE_TO_SELECT: Final = Shares(0.7, 0.3, 0.3)
SETTINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "kkmn2009, fresh noise": {"algorithm": "kkmn2009", "max_queries_per_user": 20, "shares": _HALVES},
    "kkmn2009, re-used noise": {"algorithm": "kkmn2009", "max_queries_per_user": 20, "query_noise": "reuse"},
    "kkmn2009, fresh noise, d = 5": {"algorithm": "kkmn2009", "max_queries_per_user": 5, "shares": _HALVES},
    "gaussian (default)": {"algorithm": "gaussian", "max_queries_per_user": 20},
    "weighted gaussian, 70 % to select": {
        "algorithm": "weighted_gaussian",
        "max_queries_per_user": 100,
        "max_counted_queries_per_user": 20,
        "shares": _MORE_TO_SELECT,
    },
    "dp-sips, 70 % to select": {
        "algorithm": "dp_sips",
        "max_queries_per_user": 100,
        "max_counted_queries_per_user": 20,
        "shares": _MORE_TO_SELECT,
    },
    "adaptive gaussian, 70 % to select": {
        "algorithm": "adaptive_gaussian",
        "max_queries_per_user": 100,
        "max_counted_queries_per_user": 20,
        "shares": _MORE_TO_SELECT,
    },
}


def params_of(name: str) -> ClickGraphParams:
    return ClickGraphParams(BUDGET, **SETTINGS[name])


def compute(settings: Mapping[str, Any], run: int, seed: int) -> dict[str, Any]:
    log = log_of(settings["people"]) if "people" in settings else _log(settings, run, seed)
    params = params_of(settings["algorithm"])
    noise = SeededRandomness(seed_of(seed, run, sorted(settings.items())))
    release = release_data(log, params, randomness=noise)
    numbers = np.array([number_of(row.query) for row in release.queries], dtype=np.int64)
    return {
        "published": len(release.queries),
        "noise": math.sqrt(release.design.query_counts.noise.variance),
        "threshold": release.design.rounds[-1].threshold,
        "coverage": float(log.raw_counts()[numbers].sum() / log.n_searches),
        "searches": log.n_searches,
    }


def _log(settings: Mapping[str, Any], run: int, seed: int) -> ZipfLog:
    return _made(settings["users"], settings["vocabulary"], settings["exponent"], run, seed)


@lru_cache(maxsize=1)
def _made(users: int, vocabulary: int, exponent: float, run: int, seed: int) -> ZipfLog:
    return ZipfLog.make(users, vocabulary, exponent, seed=seed_of(seed, run, "algorithms", exponent) % 2**63)
