"""The law of published counts: fresh noise does not know of the selection, re-used noise is the one that selected."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from searchblend.clickgraph.release.click_log import InMemoryClickLog, Search
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.release_data import fresh_query_counts, release_data, select_queries
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness
from searchblend.core.records import Record
from searchblend_lab.evidence.laws.click_graph import CountsLog, check_law, noise_law
from searchblend_lab.evidence.laws.sampled_graph import check_reused_counts, unchanged

N = 40_000
BUDGET = Budget(2.0, 0.01)
OPTIONS = {
    "gaussian": {"algorithm": "gaussian"},
    "kkmn2009": {"algorithm": "kkmn2009", "query_noise": "reuse"},
}
FRESH = {
    "gaussian": {"algorithm": "gaussian", "query_noise": "fresh"},
    "kkmn2009": {"algorithm": "kkmn2009"},
}


def params(options: dict) -> ClickGraphParams:
    return ClickGraphParams(BUDGET, max_queries_per_user=2, **options)


def reused_counts(design: ClickGraphDesign, count: int) -> Sequence[int]:
    chosen, _ = select_queries(CountsLog([count] * N), design, randomness=SystemRandomness())
    return list(chosen.values())


def fresh_counts(design: ClickGraphDesign, count: int) -> Sequence[int]:
    """Of queries that the selection passed."""
    log, source = CountsLog([count] * N), SystemRandomness()
    chosen, tally = select_queries(log, design, randomness=source)
    return list(fresh_query_counts(log, sorted(chosen), tally, design, randomness=source).values())


@pytest.mark.parametrize("name", OPTIONS)
def test_reused_counts_below_the_threshold_have_the_law_of_the_selection(name):
    check_reused_counts(unchanged, (OPTIONS[name], 2))


@pytest.mark.parametrize("name", FRESH)
def test_reused_noise_is_not_taken_for_fresh(name):
    design = ClickGraphDesign.of(params(FRESH[name]))
    count = design.rounds[0].threshold
    with pytest.raises(AssertionError):
        check_law(reused_counts(design, count), noise_law(design.query_counts, count))


@pytest.mark.parametrize("name", FRESH)
def test_fresh_noise_is_not_taken_for_reused(name):
    design = ClickGraphDesign.of(params(FRESH[name]))
    step, count = design.rounds[0], design.rounds[0].threshold
    with pytest.raises(AssertionError):
        check_law(fresh_counts(design, count), noise_law(step, count, at_least=step.threshold))


def click_release(**options: object):
    """A query that everybody searches, and a thousand public pairs of it: half clicked by everybody, half by nobody."""
    n, half = 200, 2_000
    urls = tuple(f"u{i}.example" for i in range(half))
    pairs = [Record("q", f"u{i}.example") for i in range(2 * half)]
    settings = ClickGraphParams(
        BUDGET, max_clicks_per_user=1000, max_queries_per_user=1, urls="public", public_source="made up", **options
    )
    log = InMemoryClickLog([[Search("q", 0, urls[:1000])] for _ in range(n)])
    return release_data(log, settings, public_records=pairs), n


@pytest.mark.parametrize("algorithm", ["gaussian", "kkmn2009"])
def test_public_pairs_have_noise_of_their_own(algorithm):
    release, n = click_release(algorithm=algorithm)
    step = release.design.click_counts
    number = {row.url: int(row.url[1:].removesuffix(".example")) for row in release.clicks}
    assert len(release.clicks) == 4_000
    clicked = [row.count - n for row in release.clicks if number[row.url] < 1000]
    unclicked = [row.count for row in release.clicks if number[row.url] >= 1000]
    for values in (clicked, unclicked):
        check_wide_law(values, step)


def check_wide_law(values: Sequence[int], step) -> None:
    """Noise wider than the sample is long: compared in classes of half a standard deviation."""
    width = max(int(step.noise.scale / 2), 1)
    law: dict[int, float] = {}
    for value, p in noise_law(step, 0).items():
        law[value // width] = law.get(value // width, 0.0) + p
    check_law([value // width for value in values], law)


def test_half_the_noise_on_pairs_is_rejected():
    release, _ = click_release()
    values = [row.count // 2 for row in release.clicks if int(row.url[1:].removesuffix(".example")) >= 1000]
    with pytest.raises(AssertionError):
        check_wide_law(values, release.design.click_counts)
