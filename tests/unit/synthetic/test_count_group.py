"""Groups of counts: splits keep everybody, tilted ones lean, the top is the top."""

from __future__ import annotations

import numpy as np
import pytest

from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.tally import ListedRecords
from searchblend.synthetic.count_group import CountGroup, RecordModel

RECORDS = [Record("a", "u"), Record("a", "v"), Record("b", "u"), Record("c", "w")]
HEAD = HeadList({"a": ["u", "v"], "b": ["u"], "c": ["w"]})


def group(counts: list[int], n_users: int, seed: int = 1) -> CountGroup:
    return CountGroup(ListedRecords(RECORDS), np.array(counts), n_users, np.random.default_rng(seed))


def held(people: CountGroup) -> np.ndarray:
    return people.cell_counts(HEAD)


@pytest.mark.parametrize("split", [lambda g: g.split(0.3), lambda g: g.tilted_split(0.3, 0.5)])
def test_a_split_loses_nobody(split):
    everybody = group([500, 300, 200, 0], 1200)
    one, other = split(everybody)
    assert one.n_users + other.n_users == 1200
    assert (held(one) + held(other)).tolist() == held(everybody).tolist()


def test_a_plain_split_is_hypergeometric():
    """Mean and variance of one record's part over many splits."""
    parts = [held(group([400, 0, 0, 0], 1000, seed).split(0.25)[0])[0] for seed in range(2000)]
    expected = 250 * 0.4 * 0.6 * 750 / 999
    assert np.mean(parts) == pytest.approx(100, abs=4 * np.sqrt(expected / 2000))
    assert np.var(parts) == pytest.approx(expected, rel=0.15)


def test_tilt_makes_groups_differ_and_none_does_not():
    def gap(tilt: float) -> float:
        found = []
        for seed in range(200):
            one, _ = group([4000, 0, 4000, 0], 8000, seed).tilted_split(0.2, tilt)
            found.append(held(one)[0] / 4000 - held(one)[3] / 4000)
        return float(np.std(found))

    assert gap(0.0) == pytest.approx(np.sqrt(2 * 0.2 * 0.8 / 4000), rel=0.2)
    assert gap(0.5) > 5 * gap(0.0)


def test_urls_of_a_query_lean_together():
    one, _ = group([40_000, 40_000, 0, 0], 80_000, seed=3).tilted_split(0.2, 1.0)
    assert held(one)[0] == pytest.approx(held(one)[1], rel=0.05)


def test_top_queries_add_up_urls_and_break_ties_by_bytes():
    top = group([3, 4, 7, 1], 20).top_queries(2)
    assert list(top.items()) == [("a", 0.35), ("b", 0.35)]


def test_seeded_gives_the_same_split_whatever_was_drawn_before():
    everybody = group([500, 300, 200, 0], 1200)
    first = held(everybody.seeded(np.random.default_rng(5)).split(0.3)[0]).tolist()
    everybody.split(0.5)
    assert held(everybody.seeded(np.random.default_rng(5)).split(0.3)[0]).tolist() == first


def test_a_model_draws_everybody():
    model = RecordModel.of_records(RECORDS, [0.4, 0.1, 0.2, 0.1])
    drawn = model.draw(10_000, np.random.default_rng(1))
    assert drawn.n_users == 10_000
    assert held(drawn)[0] == pytest.approx(4000, abs=200)
    assert held(drawn)[-1] == pytest.approx(2000, abs=200)


def test_a_group_of_a_seed_is_the_same_whatever_was_drawn_of_it_before():
    """Remembered or forgotten: a forecast does not depend on the forecasts before it."""
    model = RecordModel.of_records(RECORDS, [0.4, 0.3, 0.2, 0.05])
    for run in [*range(3), *range(40), 39, 38]:
        fresh = model.draw(500, np.random.Generator(np.random.PCG64((7, run))))
        remembered = model.drawn(500, (7, run))
        assert held(remembered).tolist() == held(fresh).tolist()
        assert held(remembered.split(0.3)[0]).tolist() == held(fresh.split(0.3)[0]).tolist()
