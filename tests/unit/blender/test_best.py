"""Method ``best`` put together: what comes out, and in which shape."""

from __future__ import annotations

import numpy as np
import pytest

from searchblend.blender.best.blend import estimate_best
from searchblend.blender.best.choose_design import choose_design
from searchblend.blender.best.observations import OptinCounts
from searchblend.blender.best.stability_histogram import CountedHeadList, curator_design
from searchblend.blender.best.subset_report import ReportDesign
from searchblend.blender.best.subset_report_bulk import ReportCounts, simulate_subset_reports
from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.pipeline import run_blender
from searchblend.core.errors import EmptyHeadList, InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness
from searchblend.core.records import HeadList, Record
from searchblend.synthetic.seeded import SeededRandomness

PARAMS = BlenderParams(Budget(4, 1e-5), max_head_queries=5)
HEAD = HeadList({"a": ["1", "2"], "b": ["1"], "c": ["1"]})
HELD = np.array([4000, 1000, 500, 3000, 700, 1500, 300, 9000])
"""clients by cell, ⟨⋆,⋆⟩ last"""


def counted_like(held: np.ndarray, params: BlenderParams = PARAMS, n: int = 2000) -> CountedHeadList:
    """Opt-in users with the clients' shares and no noise."""
    design = curator_design(params)
    counts = np.rint(held[:-1] / held.sum() * n).astype(np.int64)
    return CountedHeadList(HEAD, counts, n, design)


def estimated(design: ReportDesign, counted: CountedHeadList | None = None, **options: bool):
    reports = simulate_subset_reports(HELD, HEAD, design, PARAMS, randomness=SeededRandomness(2))
    optin = OptinCounts.of(counted or counted_like(HELD))
    return estimate_best(HEAD, optin, reports, design, PARAMS, int(HELD.sum()), **options)


def test_a_wide_list_has_a_threshold_of_its_own():
    assert curator_design(PARAMS).wide_threshold is None
    assert curator_design(PARAMS, wide=True).wide_threshold is not None


def test_everything_is_aligned_with_the_list():
    result = estimated(ReportDesign(10, 1, 1))
    for part in (result.optin, result.client):
        assert len(part.records.probability) == len(part.records.variance) == HEAD.n_cells
        assert len(part.queries.probability) == HEAD.n_queries
    for blended in (result.records, result.queries):
        assert blended.probability.sum() == pytest.approx(1)
        assert (blended.probability >= 0).all()
        assert ((blended.optin_weight >= 0) & (blended.optin_weight <= 1)).all()
        assert (blended.raw.variance > 0).all()


def test_blended_estimates_are_nearer_than_either_group():
    truth = HELD / HELD.sum()
    result = estimated(ReportDesign(10, 1, 1))
    assert np.abs(result.records.raw.probability - truth)[:-1].sum() < 0.02
    assert (result.records.raw.variance[:-1] <= result.optin.records.variance[:-1] * (1 + 1e-9)).all()
    assert (result.queries.raw.variance[:-1] <= result.client.queries.variance[:-1] * (1 + 1e-9)).all()


def test_clients_who_were_asked_about_queries_say_nothing_about_cells():
    """Such cells rest on the opt-in users alone; a query's single cell is known all the same."""
    result = estimated(ReportDesign(20, 1, 1))
    assert np.isnan(result.client.records.probability[:-1]).all()
    assert (result.records.optin_weight[:-1] == 1).all()
    assert not np.isnan(result.client.queries.probability).any()
    assert not np.isnan(result.records.raw.probability).any()


def test_the_rest_is_what_the_queries_leave():
    result = estimated(ReportDesign(10, 1, 1))
    assert result.queries.raw.probability.sum() == pytest.approx(1)
    assert result.records.raw.probability.sum() == pytest.approx(1)
    assert result.records.raw.probability[:3].sum() == pytest.approx(result.queries.raw.probability[0])


def test_without_projection_estimates_stay_raw():
    counted = CountedHeadList(HEAD, np.array([400, 100, -3, 300, 70, 150, -9]), 2000, curator_design(PARAMS))
    raw = estimated(ReportDesign(20, 1, 1), counted, project=False)
    assert (raw.records.probability == raw.records.raw.probability).all()
    assert raw.records.raw.probability[2] < 0
    assert estimated(ReportDesign(20, 1, 1), counted).records.probability[2] == 0


def test_groups_that_differ_are_noticed_and_both_count_by_their_size():
    """Half of the opt-in users of c are gone: the blend is the share of all people, half of whom have opted in."""
    fewer = HELD.copy()
    fewer[5:7] //= 2
    result = estimated(ReportDesign(20, 1, 1), counted_like(fewer, n=20_000))
    assert not result.check.agrees
    assert result.check.divergence > 0.2
    both = (result.optin.queries.probability + result.client.queries.probability) / 2
    assert result.queries.raw.probability[2] == pytest.approx(both[2], abs=0.002)


def test_no_reports_at_all_leave_the_optin_figures():
    """Nobody's coin fell on cells, and nobody reports: only the opt-in users speak."""
    design = ReportDesign(0, 1, 1)
    result = estimate_best(HEAD, OptinCounts.of(counted_like(HELD)), ReportCounts(), design, PARAMS, 1000)
    np.testing.assert_allclose(result.records.raw.probability, result.optin.records.probability, atol=1e-9)


def users(n: int) -> list[list[Record]]:
    return [[Record(f"q{i % 7 % 4}", f"u{i % 3 % 2}")] for i in range(n)]


@pytest.mark.parametrize("records", [1, 5])
@pytest.mark.parametrize("wide", [False, True])
def test_whole_run(records: int, wide: bool):
    optin, clients = InMemoryGroup.from_users(users(600)), InMemoryGroup.from_users(users(4000))
    params = BlenderParams(Budget(4, 1e-5), max_head_queries=3, records_per_optin=records)
    release = run_blender(optin, clients, params, wide_list=wide, randomness=SystemRandomness())
    assert release.method == "best"
    assert len(release.head) == 3
    assert release.guarantee.holds
    assert release.guarantee.groups[0].mechanism_delta <= 1e-5
    assert release.sizes.estimate_users == release.sizes.optin_users == 600
    assert (release.mechanism["optin"]["units_per_user"] == 1) is (records == 1)


def test_a_seed_voids_the_guarantee():
    optin, clients = InMemoryGroup.from_users(users(600)), InMemoryGroup.from_users(users(4000))
    assert not run_blender(optin, clients, PARAMS, randomness=SeededRandomness(1)).guarantee.holds


def test_rare_records_give_advice_instead_of_a_list():
    rare = InMemoryGroup.from_users([[Record(f"q{i}", "u")] for i in range(50)])
    with pytest.raises(EmptyHeadList, match="empty"):
        run_blender(rare, rare, PARAMS, randomness=SeededRandomness(1))


def test_too_few_people_are_refused():
    one, many = InMemoryGroup.from_users(users(1)), InMemoryGroup.from_users(users(50))
    with pytest.raises(InvalidParameter, match="at least 2"):
        run_blender(one, many, PARAMS)


def test_the_design_is_chosen_before_any_client_reports():
    """It is a function of released figures: the same counts, the same design."""
    counted = counted_like(HELD)
    designs = {choose_design(HEAD, OptinCounts.of(counted), PARAMS, 20_000)[0].design for _ in range(2)}
    assert len(designs) == 1
