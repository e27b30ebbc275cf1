"""One device's report under method ``best``, and the counting of many."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from searchblend.blender.best.subset_report import PLAIN_SETS, TWO_STAGE, ReportDesign, subset_report
from searchblend.blender.best.subset_report_bulk import simulate_subset_reports
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import Tape
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection
from searchblend.synthetic.seeded import SeededRandomness

HEAD = HeadList({"a": ["1", "2"], "b": [], "c": ["1"]})
"""cells: a1 a2 a⋆ | b⋆ | c1 c⋆ | ⋆⋆"""
PARAMS = BlenderParams(Budget(2, 1e-5))
BOTH = ReportDesign(10, 2, 3)


def tape(*words: int) -> Tape:
    return Tape(b"".join(word.to_bytes(8, "little") for word in words))


def test_mechanisms_of_a_design():
    """Queries without ⋆, cells without ⟨⋆,⋆⟩, the whole ε for either."""
    assert BOTH.about_queries(HEAD, PARAMS) == SubsetSelection.of(Fraction(2), 3, 2)
    assert BOTH.about_cells(HEAD, PARAMS) == SubsetSelection.of(Fraction(2), 6, 3)
    assert ReportDesign(20, 2, 3).about_cells(HEAD, PARAMS) is None
    assert ReportDesign(0, 2, 3).about_queries(HEAD, PARAMS) is None
    assert ReportDesign(0, 1, 1, TWO_STAGE).about_cells(HEAD, PARAMS) is None
    assert ReportDesign(10, 2, 3, PLAIN_SETS).about_queries(HEAD, PARAMS) == PlainSubsetSelection.of(Fraction(2), 3, 2)


def test_several_cells_share_epsilon():
    params = BlenderParams(Budget(2, 1e-5), records_per_client=4)
    assert BOTH.about_queries(HEAD, params) == SubsetSelection.of(Fraction(1, 2), 3, 2)


def test_the_coin_decides_what_the_report_is_about():
    """Coin, decision, then the set: a held cell is named when the decision word is 0."""
    record = [Record("c", "1")]
    assert subset_report(record, HEAD, ReportDesign(10, 1, 1), PARAMS, randomness=tape(0, 0)) == ((True, (2,)),)
    assert subset_report(record, HEAD, ReportDesign(10, 1, 1), PARAMS, randomness=tape(2**63, 0)) == ((False, (4,)),)


def test_no_coin_is_tossed_where_there_is_no_choice():
    for steps, expected in ((20, (True, (0,))), (0, (False, (1,)))):
        design = ReportDesign(steps, 1, 1)
        assert subset_report([Record("a", "2")], HEAD, design, PARAMS, randomness=tape(0)) == (expected,)


@pytest.mark.parametrize(
    ("record", "cell"), [(Record("a", "1"), 0), (Record("a", "other"), 2), (Record("b", "x"), 3), (Record("c", "x"), 5)]
)
def test_unlisted_urls_belong_to_the_rest_of_their_query(record: Record, cell: int):
    assert subset_report([record], HEAD, ReportDesign(0, 1, 1), PARAMS, randomness=tape(0)) == ((False, (cell,)),)


def test_unlisted_queries_send_the_sink():
    assert subset_report([Record("z", "1")], HEAD, BOTH, PARAMS, randomness=tape(0, 0)) == ((True, ()),)


def test_every_device_sends_m_c_cells():
    params = BlenderParams(Budget(2, 1e-5), records_per_client=3)
    for records in ([Record("a", "1")], [Record("a", "1"), Record("b")] * 5):
        assert len(subset_report(records, HEAD, BOTH, params)) == 3


def test_a_device_without_records_sends_nothing():
    with pytest.raises(InvalidParameter, match="records"):
        subset_report([], HEAD, BOTH, PARAMS)


@pytest.mark.parametrize("steps", [-1, 21])
def test_coins_outside_the_scale_are_refused(steps: int):
    with pytest.raises(InvalidParameter, match="query_steps"):
        ReportDesign(steps, 1, 1)


def test_unknown_mechanisms_are_refused():
    with pytest.raises(InvalidParameter, match="mechanism"):
        ReportDesign(0, 1, 1, "magic")
    with pytest.raises(InvalidParameter, match="query_steps"):
        ReportDesign(5, 1, 1, TWO_STAGE)


@pytest.mark.parametrize(
    "design",
    [BOTH, ReportDesign(20, 1, 1), ReportDesign(6, 2, 2, PLAIN_SETS), ReportDesign(0, 1, 1, TWO_STAGE)],
    ids=str,
)
def test_every_simulated_client_is_counted_once(design: ReportDesign):
    counted = simulate_subset_reports(np.full(7, 30), HEAD, design, PARAMS, randomness=SeededRandomness(1))
    parts = [part.n for part in (counted.queries, counted.cells) if part is not None]
    assert sum(parts) + (0 if counted.two_stage is None else counted.two_stage.sum()) == 210


def test_nobody_reports():
    simulated = simulate_subset_reports(np.zeros(7, dtype=np.int64), HEAD, BOTH, PARAMS, randomness=SeededRandomness(1))
    assert simulated.queries is not None
    assert simulated.queries.n == simulated.queries.sinks == 0
