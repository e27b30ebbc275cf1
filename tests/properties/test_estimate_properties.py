"""Estimating clients undoes the channel; blending weighs by variance."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from searchblend.blender.estimates import Estimates
from searchblend.blender.paper.blend import blend_probabilities
from searchblend.blender.paper.estimate_client import estimate_client_probabilities
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from strategies import blender_params, distributions, list_of_widths, url_counts

CLIENTS = 10**17
"""So many that rounding expected reports to whole numbers is lost in a float's last digits."""


@given(blender_params(min_epsilon=1.5), url_counts(max_queries=4, max_urls=3), st.data())
def test_expected_reports_give_the_truth_back(params: BlenderParams, n_urls: list[int], data: st.DataObject):
    head = list_of_widths(n_urls)
    truth = data.draw(distributions(head.n_cells))
    probabilities = ReportProbabilities.of(head, params)
    rows = [
        [float(p) for p in probabilities.channel_row(q, u)] for q, width in enumerate(head.n_urls) for u in range(width)
    ]
    expected = np.rint(CLIENTS * (truth @ np.array(rows))).astype(np.int64)
    estimated = estimate_client_probabilities(expected, head, params)
    np.testing.assert_allclose(estimated.records.probability, truth, atol=1e-7)
    np.testing.assert_allclose(estimated.queries.probability, np.add.reduceat(truth, head.first_cells()), atol=1e-7)
    assert (estimated.records.variance >= -1e-30).all()
    assert (estimated.queries.variance >= 0).all()


@given(blender_params(min_epsilon=1.5), url_counts(max_queries=4, max_urls=3), st.data())
def test_records_add_up_to_their_query_and_queries_to_one(params: BlenderParams, n_urls: list[int], data):
    """Whatever was reported: Σ_u p̂_⟨q,u⟩ = p̂_q and Σ_q p̂_q = 1."""
    head = list_of_widths(n_urls)
    counts = data.draw(arrays(np.int64, head.n_cells, elements=st.integers(0, 1000)))
    counts[-1] += 2
    estimated = estimate_client_probabilities(counts, head, params)
    sums = np.add.reduceat(estimated.records.probability, head.first_cells())
    np.testing.assert_allclose(sums, estimated.queries.probability, atol=1e-7)
    np.testing.assert_allclose(estimated.queries.probability.sum(), 1, atol=1e-9)


def estimates(size: int, *, silent: bool = False) -> st.SearchStrategy[Estimates]:
    chances = arrays(np.float64, size, elements=st.floats(-1, 2))
    variances = arrays(np.float64, size, elements=st.one_of(st.just(0.0), st.floats(1e-12, 1)))
    if not silent:
        return st.builds(Estimates, chances, variances)
    mask = arrays(np.bool_, size)
    return st.builds(
        lambda p, v, quiet: Estimates(np.where(quiet, np.nan, p), np.where(quiet, np.nan, v)), chances, variances, mask
    )


PAIRS = st.integers(1, 8).flatmap(lambda n: st.tuples(estimates(n, silent=True), estimates(n)))


@given(PAIRS)
def test_weights_are_weights(pair: tuple[Estimates, Estimates]):
    optin, client = pair
    blended = blend_probabilities(optin, client)
    silent = np.isnan(optin.probability)
    assert ((blended.optin_weight >= 0) & (blended.optin_weight <= 1)).all()
    assert (blended.optin_weight[silent] == 0).all()
    np.testing.assert_array_equal(blended.raw.probability[silent], client.probability[silent])
    np.testing.assert_array_equal(blended.raw.variance[silent], client.variance[silent])


@given(PAIRS)
def test_the_blend_lies_between_and_is_never_less_certain(pair: tuple[Estimates, Estimates]):
    optin, client = pair
    blended = blend_probabilities(optin, client)
    heard = ~np.isnan(optin.probability)
    both = np.stack([optin.probability[heard], client.probability[heard]])
    assert (blended.raw.probability[heard] >= both.min(axis=0) - 1e-12).all()
    assert (blended.raw.probability[heard] <= both.max(axis=0) + 1e-12).all()
    smallest = np.minimum(optin.variance[heard], client.variance[heard])
    assert (blended.raw.variance[heard] <= smallest * (1 + 1e-12)).all()


@given(PAIRS)
def test_the_projection_is_a_distribution_and_can_be_switched_off(pair: tuple[Estimates, Estimates]):
    projected = blend_probabilities(*pair)
    assert projected.probability.min() >= 0
    np.testing.assert_allclose(projected.probability.sum(), 1, atol=1e-9)
    plain = blend_probabilities(*pair, project=False)
    np.testing.assert_array_equal(plain.probability, plain.raw.probability)
    np.testing.assert_array_equal(plain.raw.probability, projected.raw.probability)
