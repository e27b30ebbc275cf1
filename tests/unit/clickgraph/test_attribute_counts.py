"""Counts by attribute: what each user adds, how fine they are, what is released, and what verification finds."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from searchblend.clickgraph.release.attribute_counts import MOST_CELLS, typical_count
from searchblend.clickgraph.release.click_log import Cap, InMemoryClickLog, Search
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.release_data import release_data
from searchblend.core.attributes import OF_CLICKS, Attribute, parse_attributes
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import ClickGraphParams, Shares
from searchblend.core.privacy import Budget
from searchblend.core.records import Record
from searchblend.releases.saved_release import read_release
from searchblend.releases.verify_release import verify_release
from searchblend.synthetic.seeded import SeededRandomness
from searchblend_lab.zipf_log import ZipfLog

COUNTRY, DEVICE = parse_attributes("country=de|fr,device=phone")
RANK = Attribute("rank", ("1", "2-3"), OF_CLICKS)
BUDGET = Budget(4.0, 1e-4)
N = 400


def search(query: str, time: float, country: str, device: str = "phone", *clicks: str) -> Search:
    fields = {"country": country, "device": device}
    ranked = tuple({**fields, "rank": str(place)} for place in range(1, len(clicks) + 1))
    return Search(query, time, clicks, fields, ranked)


ONE = [
    search("b", 5, "fr", "tv", "u", "v"),
    search("a", 1, "it"),
    search("a", 1, "de", "tv"),
    search("a", 2, "fr", "phone", "u"),
    search("c", 9, "de", "phone", "u"),
]


def test_a_user_adds_each_query_once_with_the_values_of_its_first_search():
    log = InMemoryClickLog([ONE])
    assert log.searches_by(["a", "b", "c"], [COUNTRY], Cap(2)).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert log.searches_by(["c"], [COUNTRY], Cap(1)).tolist() == [[1, 0, 0]]
    assert log.searches_by(None, [COUNTRY, DEVICE], Cap(1)).tolist() == [[1, 0, 0, 0, 0, 0]]
    assert log.searches_by([], [COUNTRY], Cap(1)).shape == (0, 3)


def test_events_count_each_time_up_to_the_cap():
    log = InMemoryClickLog([ONE])
    assert log.searches_by(["a", "c"], [COUNTRY], Cap(3, distinct=False)).tolist() == [[1, 1, 1], [0, 0, 0]]


def test_a_click_has_its_own_rank_and_the_country_of_its_search():
    log, pairs = InMemoryClickLog([ONE]), [Record("b", "u"), Record("b", "v"), Record("c", "u")]
    counts = log.clicks_by(pairs, [RANK], Cap(2), within=Cap(3))
    assert counts.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert log.clicks_by(pairs, [COUNTRY], Cap(5), within=Cap(3)).tolist() == [[0, 1, 0], [0, 1, 0], [1, 0, 0]]
    assert log.clicks_by(None, [RANK], Cap(1), within=Cap(3)).tolist() == [[1, 0, 0]]


# --- how fine --------------------------------------------------------------------------------------------------------


def params(population: int | None = None, **options) -> ClickGraphParams:
    return ClickGraphParams(Budget(2.0, 1e-7), population=population, **{"attributes": (COUNTRY, DEVICE), **options})


def test_counts_are_as_fine_as_the_declared_number_of_users_lets_them_be_read():
    region = Attribute("region", tuple(map(str, range(29))))
    chosen = {"attributes": (region, DEVICE)}
    details = [ClickGraphDesign.of(params(n, **chosen)).details["searches"] for n in (20_000, 600_000, 9_000_000)]
    assert details == ["totals", "marginals", "cells"]


def test_the_forecast_is_the_one_that_the_page_states():
    design = ClickGraphDesign.of(params(9_000_000))
    (forecast,) = design.forecasts()
    ((table, step),) = design.attribute_steps
    assert forecast.half_width == step.law.half_width()
    assert forecast.cells == table.cells == 6
    assert forecast.readable
    least = math.sqrt(0.1 * 9_000_000)
    assert forecast.typical / least == pytest.approx(math.sqrt(typical_count(1, None) * 5), rel=0.5)


def test_an_own_choice_is_kept_whatever_the_forecast_says():
    for detail in ("cells", "marginals", "totals"):
        design = ClickGraphDesign.of(params(20_000, attribute_detail=detail, urls="private"))
        assert design.details == {"searches": detail, "clicks": detail}


def test_attributes_of_clicks_alone_make_no_table_of_searches():
    design = ClickGraphDesign.of(params(9_000_000, attributes=(RANK,), urls="private"))
    assert [table.name for table, _ in design.attribute_steps] == ["clicks by rank"]
    with pytest.raises(InvalidParameter, match="attributes: expected no attribute of clicks alone"):
        params(attributes=(RANK,))


def test_many_combinations_are_never_cells():
    many = tuple(Attribute(name, tuple(f"{name}{i}" for i in range(40))) for name in ("a", "b"))
    assert ClickGraphDesign.of(params(9_000_000, attributes=many)).details["searches"] == "marginals"
    totals = ClickGraphDesign.of(params(None, attributes=many, attribute_detail="totals"))
    assert [table.cells for table, _ in totals.attribute_steps] == [41, 41]
    with pytest.raises(InvalidParameter, match=f"1,681 combinations .* more than {MOST_CELLS:,}"):
        ClickGraphDesign.of(params(attributes=many, attribute_detail="cells"))


def test_the_account_holds_with_every_algorithm():
    for algorithm in ("gaussian", "kkmn2009", "weighted_gaussian", "dp_sips", "adaptive_gaussian"):
        shares = Shares(1, 1, 1, attributes=1)
        design = ClickGraphDesign.of(params(algorithm=algorithm, shares=shares, attribute_detail="marginals"))
        alone = ClickGraphDesign.of(params(algorithm=algorithm, attributes=()))
        assert design.delta <= design.params.budget.delta
        one, other = design.rounds[-1], alone.rounds[-1]
        assert one.noise.scale / one.units > other.noise.scale / other.units
        assert len(design.attribute_steps) == 2


def test_a_detail_needs_attributes_and_a_log_that_knows_them():
    with pytest.raises(InvalidParameter, match="attribute_detail: expected attributes to count by"):
        params(attributes=(), attribute_detail="cells")
    with pytest.raises(InvalidParameter, match="attributes: expected a log that knows them"):
        release_data(ZipfLog(np.array([0]), np.array([0])), params())


# --- the release -----------------------------------------------------------------------------------------------------

USERS = [
    [
        search("weather", 0, "de" if i % 4 else "fr", "phone", "w.example", "x.example"),
        search("news", 60, "it", "tv", "n.example"),
        search(f"own {i}", 180, "de", "tv", f"own{i}.example"),
    ]
    for i in range(N)
]


def released(seed: int = 1, **options):
    options = {"urls": "private", "attribute_detail": "cells", "attributes": (COUNTRY, DEVICE, RANK), **options}
    return release_data(
        InMemoryClickLog(USERS),
        ClickGraphParams(BUDGET, max_queries_per_user=3, max_clicks_per_user=4, **options),
        randomness=SeededRandomness(seed),
    )


def test_every_published_name_has_every_value_and_nothing_else_has_one():
    tables = released().attribute_tables()
    searches, clicks = tables["searches_by_attribute"], tables["clicks_by_attribute"]
    rows = list(zip(searches["query"], searches["country"], searches["device"], strict=True))
    labels = [(country, device) for country in ("de", "fr", "other") for device in ("phone", "other")]
    assert rows == [(query, *label) for query in ("news", "weather") for label in labels]
    assert set(zip(clicks["query"], clicks["url"], strict=True)) == {
        ("news", "n.example"),
        ("weather", "w.example"),
        ("weather", "x.example"),
    }
    assert len(clicks["count"]) == 3 * 18


def test_counts_are_near_the_truth_and_intervals_as_wide_as_the_noise():
    release = released()
    table = release.attribute_tables()["searches_by_attribute"]
    (_, step), _ = release.design.attribute_steps
    truth = dict.fromkeys(zip(table["query"], table["country"], table["device"], strict=True), 0)
    truth |= {("weather", "de", "phone"): 300, ("weather", "fr", "phone"): 100, ("news", "other", "other"): N}
    off = np.array(table["count"]) - np.array(list(truth.values()))
    assert 0 < np.abs(off).max() < 6 * step.noise.scale
    assert {high - low for low, high in zip(table["lo95"], table["hi95"], strict=True)} == {2 * step.law.half_width()}
    assert min(table["count_clamped"]) == 0


@pytest.mark.parametrize(("detail", "empty"), [("marginals", {"country", "device"}), ("totals", {"query"})])
def test_what_a_row_is_not_counted_by_is_empty(detail, empty):
    table = released(attribute_detail=detail, attributes=(COUNTRY, DEVICE)).attribute_tables()["searches_by_attribute"]
    assert {name for name in ("query", "country", "device") if "" in table[name]} == empty
    if detail == "totals":
        assert abs(sum(table["count"]) - N) < 60


@pytest.mark.parametrize("detail", ["cells", "marginals", "totals"])
def test_the_folder_has_the_tables_and_its_verification_knows_them(tmp_path, detail):
    release = released(attribute_detail=detail)
    release.save(tmp_path / "out", html=True)
    checks = {check.name: check for check in verify_release(tmp_path / "out")}
    failed = {name for name, check in checks.items() if not check.holds}
    assert failed == {"conditions"}, "noise with a seed is private for no one, and that alone is wrong"
    saved = read_release(tmp_path / "out")
    assert saved.tables[3:] == ["searches_by_attribute", "clicks_by_attribute"]
    for name, columns in release.attribute_tables().items():
        assert saved.columns(name) == columns
    dictionary = (tmp_path / "out" / "data-dictionary.md").read_text()
    assert "| country | text | de, fr, or other for all else; empty: counted together |" in dictionary
    assert "Searches by attribute" in (tmp_path / "out" / "index.html").read_text()
    assert "Searches by attribute:" in (tmp_path / "out" / "statement.txt").read_text()
    statement = json.loads((tmp_path / "out" / "statement.json").read_text())
    assert any("country, device, rank, declared" in fact for fact in statement["public"])
