"""What a pack answers to new people: against people counted one by one, and that privacy is what costs answers."""

from __future__ import annotations

import numpy as np
import pytest

from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.tally import ListedRecords
from searchblend.synthetic.count_group import CountGroup
from searchblend_lab.papers.blender.local_search_cells import answered, compute

SETTINGS = {"people": "aol", "users": 200_000, "method": "best", "epsilon": 4.0, "size": 50}


def test_searches_are_counted_as_they_are_answered():
    held = {("a", "u"): 5, ("a", "v"): 2, ("a", "w"): 1, ("b", "v"): 3, ("c", "u"): 4}
    universe = ListedRecords([Record(*record) for record in held])
    people = CountGroup(universe, np.array(list(held.values())), 20, np.random.default_rng(1))
    found = answered(people, HeadList({"a": ["u", "v"], "b": ["u", "v"], "z": ["z"]}))
    assert found == pytest.approx({"answered": 11 / 20, "first": 5 / 20, "any": 10 / 20})
    assert answered(people, HeadList({})) == {"answered": 0.0, "first": 0.0, "any": 0.0}


def test_a_pack_answers_less_than_the_truth_and_more_with_more_budget():
    found = {epsilon: compute({**SETTINGS, "epsilon": epsilon}, 0, 1) for epsilon in (1.0, 4.0)}
    for cell in found.values():
        assert 0 < cell["first"] <= cell["any"] <= cell["answered"] <= cell["ideal"] + 0.005
        assert cell["queries"] <= cell["pairs"]
        assert cell["bytes"] < 64 + 60 * cell["pairs"]
    assert found[4.0]["answered"] > found[1.0]["answered"]
    assert found[4.0]["ideal"] == found[1.0]["ideal"]
    assert compute(SETTINGS, 0, 1) == found[4.0]
    assert compute(SETTINGS, 1, 1) != found[4.0]


def test_no_list_answers_nothing():
    found = compute({**SETTINGS, "users": 200, "epsilon": 0.5}, 0, 1)
    assert (found["answered"], found["queries"]) == (0.0, 0)
