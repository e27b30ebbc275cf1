"""At full size every published figure is met: 5 %, and 10 % for distinct counts. Draws only, no text."""

from __future__ import annotations

import numpy as np
import pytest

from searchblend.synthetic import aol as generate_aol
from searchblend.synthetic import yandex as generate_yandex
from searchblend.synthetic.aol import aol_chunk
from searchblend.synthetic.pieces import LogRequest, chunk_generator, jobs_of
from searchblend.synthetic.yandex import result_pages, yandex_chunk

pytestmark = pytest.mark.slow
SITES = 1 << 24
URLS = 100_000_000


def aol_chunks(seed):
    for job in jobs_of(LogRequest("aol", generate_aol.FULL_SIZE, "aol", seed), compress=False):
        yield aol_chunk(job.first_user, job.n_users, job.request.n_users, chunk_generator(seed, job.number))


def one_click_per_user(chunk, generator):
    """A random click line of each user who has one."""
    clicks = np.flatnonzero(chunk.site >= 0)
    clicks = clicks[np.lexsort((generator.random(len(clicks)), chunk.user[clicks]))]
    first = np.unique(chunk.user[clicks], return_index=True)[1]
    return chunk.queries[chunk.search[clicks[first]]]


def test_aol():
    generator = np.random.default_rng(1)
    lines = 0
    totals = dict.fromkeys(("new_queries", "next_pages", "clicks", "clicking_users"), 0)
    queries, clicked, edges, single = [], [], [], []
    sites = np.zeros(SITES, dtype=np.bool_)
    for chunk in aol_chunks(seed=2):
        lines += len(chunk.user)
        for name in totals:
            totals[name] += chunk.counts[name]
        at = chunk.site >= 0
        of_clicks = chunk.queries[chunk.search[at]]
        queries.append(np.unique(chunk.queries))
        clicked.append(np.unique(of_clicks))
        edges.append(np.unique(of_clicks * SITES + chunk.site[at]))
        sites[chunk.site[at]] = True
        single.append(one_click_per_user(chunk, generator))
    published = {"new_queries": 21_011_340, "next_pages": 7_887_022, "clicks": 19_442_629, "clicking_users": 519_371}
    assert totals == pytest.approx(published, rel=0.05)
    assert lines == pytest.approx(36_389_567, rel=0.05)
    assert lines - totals["clicks"] == pytest.approx(16_946_938, rel=0.05)
    assert len(np.unique(np.concatenate(queries))) == pytest.approx(10_154_742, rel=0.1)
    assert len(np.unique(np.concatenate(clicked))) == pytest.approx(4_811_646, rel=0.1)
    assert len(np.unique(np.concatenate(edges))) == pytest.approx(10_741_956, rel=0.1)
    assert np.count_nonzero(sites) == pytest.approx(1_620_064, rel=0.1)
    shares = np.bincount(np.minimum(np.concatenate(single), 50), minlength=51) / totals["clicking_users"]
    figure_9 = [0.0211, 0.0067, 0.0066, 0.0055, 0.0055, 0.0048, 0.0044, 0.0034, 0.0030]
    assert shares[:9] == pytest.approx(figure_9, rel=0.1)
    assert shares[:50].sum() == pytest.approx(0.088, rel=0.05)


def test_yandex():
    totals = dict.fromkeys(("sessions", "queries", "clicks", "clicking_users"), 0)
    asked, clicked, seen, followed = (np.zeros(URLS, dtype=np.bool_) for _ in range(4))
    for job in jobs_of(LogRequest("yandex", generate_yandex.FULL_SIZE, "tsv", 2), compress=False):
        chunk = yandex_chunk(job.first_user, job.n_users, chunk_generator(2, job.number))
        for name in totals:
            totals[name] += chunk.counts[name]
        asked[chunk.query] = True
        clicked[chunk.query[chunk.clicked_row]] = True
        followed[chunk.url] = True
    for queries in np.array_split(np.flatnonzero(asked), 200):
        seen[result_pages(queries)] = True
    published = {
        "sessions": 34_573_630,
        "queries": 65_172_853,
        "clicks": 64_693_054,
        "clicking_users": 4_970_073,
    }
    assert totals == pytest.approx(published, rel=0.05)
    assert np.count_nonzero(asked) == pytest.approx(21_073_569, rel=0.1)
    assert np.count_nonzero(seen) == pytest.approx(70_348_426, rel=0.1)
    assert np.count_nonzero(clicked) == pytest.approx(13_171_961, rel=0.1)
    assert np.count_nonzero(followed) == pytest.approx(12_702_350, rel=0.1)
