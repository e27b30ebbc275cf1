"""Made-up people with the published shape."""

from __future__ import annotations

import numpy as np
import pytest

from searchblend.core.records import WILDCARD, HeadList, Record
from searchblend.synthetic.population import (
    AOL,
    AOL_QUERIES,
    RankedRecords,
    aol_query_shares,
    url_shares,
)


def test_published_shares():
    """[BLJ] Fig. 8 and 9: the nine named queries, 8.8 % in the first fifty, 4,811,646 queries."""
    shares = aol_query_shares()
    assert len(shares) == AOL_QUERIES == 4_811_646
    assert shares[:9].tolist() == [0.0211, 0.0067, 0.0066, 0.0055, 0.0055, 0.0048, 0.0044, 0.0034, 0.0030]
    assert shares[:50].sum() == pytest.approx(0.088, abs=5e-4)
    assert shares.sum() == pytest.approx(1)


def test_shares_fall():
    shares = aol_query_shares()
    assert (np.diff(shares[:50]) <= 0).all()
    assert (np.diff(shares[50:]) <= 0).all()
    assert shares[50] < shares[49]
    assert shares[-1] > 0


def test_shares_of_urls():
    shares = url_shares(np.arange(100))
    assert shares.shape == (100, 11)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert ((shares[:, 0] >= 0.40) & (shares[:, 0] <= 0.95)).all()
    assert np.ptp(shares[:, 0]) > 0.4


def test_people_are_drawn_by_these_shares():
    """200,000 seeded people: within six standard errors of the first query's and its first URL's share."""
    n = 200_000
    group = AOL.population(n, seed=3)
    head = HeadList({"weather": ["http://forecast.example"], "news": []})
    counts = group.cell_counts(head)
    p = aol_query_shares()[0]
    assert group.n_users == n == counts.sum()
    assert abs(counts[:2].sum() - n * p) < 6 * np.sqrt(n * p)
    first = p * url_shares(np.array([0]))[0, 0]
    assert abs(counts[0] - n * first) < 6 * np.sqrt(n * first)


def test_the_same_seed_gives_the_same_people():
    head = HeadList({"weather": [], "auctions": []})
    one, two, other = (AOL.population(50_000, seed=seed).cell_counts(head).tolist() for seed in (1, 1, 2))
    assert one == two
    assert one != other


def test_names_are_found_again():
    records = RankedRecords()
    numbers = np.array([0, 1, 11, 11 * 9, 11 * 9 + 10, 11 * 4_000_000])
    head = HeadList([(records[n].query, [records[n].url]) for n in (0, 11, 11 * 9)])
    assert records[0] == Record("weather", "http://forecast.example")
    assert records[11 * 9].query == "dictionary"
    assert records.cells(head, numbers).tolist() == [head.cell_of(records[n]) for n in numbers.tolist()]
    assert records.cells(HeadList({"*": [], "unheard of": []}), numbers).tolist() == [2] * 6
    assert head.cell_of(Record(WILDCARD)) == head.n_cells - 1


def test_counting_cells_is_the_same_as_asking_one_by_one():
    group = AOL.population(3_000, seed=9)
    tally = group.tally()
    head = HeadList([("weather", ["http://skymap.example"]), ("maps", []), ("auctions", ["http://fleamarket.example"])])
    counts = np.zeros(head.n_cells, dtype=np.int64)
    for n, how_many in tally.sizes().items():
        for record in tally.pick(n, np.arange(how_many)):
            counts[head.cell_of(record)] += n
    assert group.cell_counts(head).tolist() == counts.tolist()
