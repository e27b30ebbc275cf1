"""The JavaScript randomizer has the channel of the Python one: exactly, by enumeration, and in its real draws."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from itertools import combinations

import js_law
import pytest
from js_law import HEAD, PARAMS, counted, law_of
from node_twin import Twin
from scipy.stats import binomtest

from searchblend.blender.best.subset_report import PLAIN_SETS, TWO_STAGE, ReportDesign
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import Record
from searchblend_lab.evidence.laws.best_reports import FALSE_ALARM, Row, check_sampled

N = 10_000
HOLDERS = [Record("a", "2"), Record("a", "not listed"), Record("b", "u"), Record("unlisted", "u")]
DESIGNS = [
    *(None, ReportDesign(0, 1, 1, TWO_STAGE), ReportDesign(7, 2, 2), ReportDesign(0, 1, 3), ReportDesign(20, 2, 1)),
    *(ReportDesign(7, 2, 2, PLAIN_SETS), ReportDesign(0, 1, 3, PLAIN_SETS)),
]


@pytest.fixture(scope="module")
def twin() -> Twin:
    return Twin()


@pytest.mark.parametrize("check", js_law.CHECKS, ids=lambda check: check.__name__)
def test_exactly(twin, check):
    check(twin)


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_real_draws_follow_the_channel(twin, design):
    """χ² of all outputs, and an exact binomial test of each, for four people and fresh platform randomness."""
    answers = twin.ask(
        {
            "do": "draw_reports",
            "queries": HEAD.as_json(),
            "params": js_law.params_list(PARAMS),
            "design": [design.query_steps, design.query_subset, design.cell_subset, design.mechanism]
            if design
            else None,
            "records": js_law.pairs([record]),
            "n": N,
        }
        for record in HOLDERS
    )
    for record, answer in zip(HOLDERS, answers, strict=True):
        law, outputs = law_of(record, design), counted(answer)
        assert sum(law.values()) == 1
        assert outputs.total() == N
        check_sampled(outputs, law)
        level = FALSE_ALARM / len(law)
        assert all(binomtest(outputs[output], N, float(p)).pvalue >= level for output, p in law.items() if p)


def test_a_tenth_off_is_rejected(twin):
    """The sampled tests see an ε that is a tenth too large, by the draws of one person."""
    wrong = BlenderParams(Budget(1.1, 1e-3))
    answer = twin.one(
        {
            "do": "draw_reports",
            "queries": HEAD.as_json(),
            "params": js_law.params_list(wrong),
            "design": None,
            "records": js_law.pairs(HOLDERS[:1]),
            "n": 10 * N,
        }
    )
    with pytest.raises(AssertionError):
        check_sampled(counted(answer), law_of(HOLDERS[0], None))


def test_numbers_and_sets_are_uniform(twin):
    numbers, sets = twin.ask(
        [{"do": "draw_uniform", "below": 7, "n": N}, {"do": "draw_subsets", "size": 3, "of": 7, "n": N}]
    )
    check_sampled(Counter({int(n): times for n, times in numbers.items()}), dict.fromkeys(range(7), Fraction(1, 7)))
    law: Row = dict.fromkeys(combinations(range(7), 3), Fraction(1, math.comb(7, 3)))
    check_sampled(Counter({tuple(json.loads(text)): times for text, times in sets.items()}), law)
