"""The log as arrays answers as the log as lists does; and what the default gains over the 2009 algorithm on it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from searchblend.clickgraph.release.click_log import Cap, InMemoryClickLog, Search
from searchblend.clickgraph.release.release_data import release_data
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList
from searchblend.mechanisms.tally import InMemoryTally
from searchblend_lab.zipf_log import NumberedQueries, ZipfLog, number_of


def counts(tally: InMemoryTally) -> dict[str, int]:
    return {str(r.query): n for n, size in tally.sizes().items() for r in tally.pick(n, np.arange(size))}


@pytest.fixture(scope="module")
def both() -> tuple[ZipfLog, InMemoryClickLog]:
    made = ZipfLog.make(300, 40, 1.0, seed=3)
    users: dict[int, list[Search]] = {}
    for user, query in zip(made._user.tolist(), made._query.tolist(), strict=True):
        users.setdefault(user, []).append(Search(f"query {query + 1}"))
    return made, InMemoryClickLog(users.values())


@pytest.mark.parametrize(
    "cap",
    [Cap(1), Cap(4), Cap(1000), Cap(1, distinct=False), Cap(7, distinct=False)],
)
def test_searches(both, cap):
    made, listed = both
    assert counts(made.searches(cap)) == counts(listed.searches(cap))
    some = ["query 2", "query 9", "query 999", "no such"]
    assert made.searches_of(some, cap) == listed.searches_of(some, cap)


@pytest.mark.parametrize("without", [[], ["query 1", "query 3", "other"]])
def test_weighted_searches(both, without):
    made, listed = both
    for first, units in ((1, 100), (5, 100), (20, 1000)):
        assert counts(made.weighted_searches(first, units, without)) == counts(
            listed.weighted_searches(first, units, without)
        )


def test_weights_of_listed_queries(both):
    made, listed = both
    some = ["query 1", "query 3", "query 40", "no such"]
    for first, units in ((1, 100), (5, 100), (20, 1000)):
        assert made.weighted_searches_of(some, first, units) == listed.weighted_searches_of(some, first, units)


def test_counts_of_listed_queries(both):
    made, _ = both
    tally = made.searches(Cap(3))
    found = {str(r.query): n for r, n in tally.of_queries(["query 5", "query 1", "no such"]).items()}
    everything = counts(tally)
    assert found == {query: everything[query] for query in ("query 1", "query 5")}


def test_cells_of_numbers():
    head = HeadList({"query 3": [], "query 1": []})
    assert NumberedQueries().cells(head, np.array([0, 1, 2])).tolist() == [1, 2, 0]
    assert NumberedQueries().cells(HeadList({}), np.array([0, 5])).tolist() == [0, 0]
    assert number_of("query x") == -1


def test_it_has_no_clicks(both):
    made, _ = both
    for ask in (
        lambda: made.clicks(["query 1"], Cap(1), within=Cap(1)),
        lambda: made.clicks_of([], Cap(1), within=Cap(1)),
        lambda: made.reformulations([], Cap(1)),
    ):
        with pytest.raises(InvalidParameter, match="expected none"):
            ask()


def test_the_shape_of_a_made_log():
    made = ZipfLog.make(20_000, 100_000, 1.0, seed=5)
    lengths = np.bincount(made._user)
    assert np.median(lengths) == pytest.approx(10, abs=1)
    assert lengths.mean() == pytest.approx(20.4, rel=0.05)
    assert np.quantile(lengths, 0.99) == pytest.approx(160, rel=0.1)
    raw = made.raw_counts()
    assert raw.sum() == made.n_searches
    assert raw[0] / raw[9] == pytest.approx(10, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [1.0, 0.8])
def test_the_default_publishes_many_times_more_than_the_2009_algorithm(exponent):
    """500,000 users, ten million searches, (ln 10, 1e-5) for selection and counts together, d = 20."""
    log = ZipfLog.make(500_000, 5_000_000, exponent, seed=1)
    budget = Budget(math.log(10), 1e-5)
    default = release_data(log, ClickGraphParams(budget))
    fresh = release_data(log, ClickGraphParams(budget, algorithm="kkmn2009"))
    reused = release_data(log, ClickGraphParams(budget, algorithm="kkmn2009", query_noise="reuse"))
    assert len(default.queries) >= 5 * len(fresh.queries)
    assert len(default.queries) >= 3 * len(reused.queries)
    noise, noise_2009 = default.design.query_counts.noise, fresh.design.query_counts.noise
    assert math.sqrt(noise.variance) <= 0.4 * math.sqrt(noise_2009.variance)
