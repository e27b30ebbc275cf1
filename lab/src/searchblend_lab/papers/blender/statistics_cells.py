"""What a synthetic log of full size holds, counted from its draws; no text is written. [BLJ] Fig. 8."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from searchblend.synthetic import aol as generate_aol
from searchblend.synthetic import yandex as generate_yandex
from searchblend.synthetic.aol import aol_chunk
from searchblend.synthetic.pieces import LogRequest, chunk_generator, jobs_of
from searchblend.synthetic.yandex import yandex_chunk

_SITES: Final = 1 << 24
_NUMBERS: Final = 100_000_000
FULL_SIZE: Final = {"aol": generate_aol.FULL_SIZE, "yandex": generate_yandex.FULL_SIZE}


def compute(settings: Mapping[str, Any], run: int, seed: int) -> dict[str, Any]:
    """Users with a click, distinct queries with a click, distinct clicked URLs."""
    counted = _aol if settings["people"] == "aol" else _yandex
    return counted(settings["users"], seed + run)


def _aol(users: int, seed: int) -> dict[str, Any]:
    clicked, sites = [], np.zeros(_SITES, dtype=np.bool_)
    clicking = clicks = 0
    for job in jobs_of(LogRequest("aol", users, "aol", seed), compress=False):
        chunk = aol_chunk(job.first_user, job.n_users, users, chunk_generator(seed, job.number))
        at = chunk.site >= 0
        clicked.append(np.unique(chunk.queries[chunk.search[at]]))
        sites[chunk.site[at]] = True
        clicking += chunk.counts["clicking_users"]
        clicks += chunk.counts["clicks"]
    return {
        "users": clicking,
        "queries": len(np.unique(np.concatenate(clicked))),
        "urls": int(sites.sum()),
        "clicks": clicks,
    }


def _yandex(users: int, seed: int) -> dict[str, Any]:
    clicked, followed = np.zeros(_NUMBERS, dtype=np.bool_), np.zeros(_NUMBERS, dtype=np.bool_)
    clicking = clicks = 0
    for job in jobs_of(LogRequest("yandex", users, "tsv", seed), compress=False):
        chunk = yandex_chunk(job.first_user, job.n_users, chunk_generator(seed, job.number))
        clicked[chunk.query[chunk.clicked_row]] = True
        followed[chunk.url] = True
        clicking += chunk.counts["clicking_users"]
        clicks += chunk.counts["clicks"]
    return {"users": clicking, "queries": int(clicked.sum()), "urls": int(followed.sum()), "clicks": clicks}
