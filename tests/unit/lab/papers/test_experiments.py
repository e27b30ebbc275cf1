"""Every experiment concludes, from made-up results or computed ones, and writes the same bytes each time."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from matplotlib import pyplot as plt

from searchblend.core.errors import UsageError
from searchblend.core.records import Record
from searchblend_lab.papers.blender import fig09
from searchblend_lab.papers.blender.published import FIGURE_9
from searchblend_lab.papers.cells import Cell, Results
from searchblend_lab.papers.clickgraph.cells import SEED_SETS, SPAN_LIMITS, THRESHOLDS
from searchblend_lab.papers.clickgraph.published import TABLE_4
from searchblend_lab.papers.comparisons.real_logs import RealLog
from searchblend_lab.papers.evaluate import CELLS_FILE, evaluate
from searchblend_lab.papers.experiment import Outcome, Request, without_effect
from searchblend_lab.papers.outputs import columns, write_outcome
from searchblend_lab.papers.page import write_index, write_page
from searchblend_lab.papers.people import LogPeople, make_known
from searchblend_lab.papers.registry import EXPERIMENTS, experiments_named

pytestmark = pytest.mark.thorough

SUFFIXES = (".png", ".svg", ".csv", ".json", ".md", ".parquet")


LOG = LogPeople("log", [Record("a", "b")], np.array([9]), (np.arange(9), np.zeros(9, dtype=np.int64)))
ASKED = {
    "--log": Request(people=LOG.name),
    "--profile": Request(people="aol"),
    "--algorithm": Request(algorithm="package.module:Mine"),
    "--runs": Request(runs=1),
    "--quick": Request(quick=True),
}
REAL = (RealLog("a.tsv", "{}", "digest", 1000, 5000, (1.0, 4.0), 1e-5, 0.05),)
"""what the comparison on real logs is always asked with"""
EXACT = ("kkmn-table1", "kkmn-fig1")
OWN_PEOPLE = ("claims", "records-per-client", "intervals", "graph-algorithms", *(n for n in EXPERIMENTS if "kkmn" in n))
DEAF = {
    "--log": {*OWN_PEOPLE, "fig8", "real"} - {"kkmn-fig2", "kkmn-table2", "kkmn-table3"},
    "--profile": {*OWN_PEOPLE, "real"},
    "--algorithm": {*OWN_PEOPLE, "fig8", "local-search", "real", "rivals"},
    "--runs": {*EXACT, "fig8"},
    "--quick": set(EXACT),
}
"""what has no effect on which experiments, and is refused"""


@pytest.mark.parametrize("option", ASKED)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_option_changes_what_is_computed_or_is_refused(name: str, option: str):
    make_known(LOG)
    request = replace(ASKED[option], logs=REAL) if name == "real" else ASKED[option]
    assert without_effect(EXPERIMENTS[name], request) == ([option] if name in DEAF[option] else [])


def uniform(*parts: object) -> float:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6], "big") / 2**48


def made_up(cell: Cell) -> dict[str, object]:
    """Results that a run could have given: errors fall with ε and users, lists grow with the opt-in share."""
    settings = dict(cell.settings)
    if cell.kind == "statistics":
        return {"users": 500_000, "queries": 4_800_000, "urls": 1_600_000, "clicks": 9}
    if cell.kind.startswith("kkmn"):
        return made_up_click_graph(cell)
    if cell.kind == "graph-algorithms":
        return {"published": 100 + cell.run, "noise": 8.0, "threshold": 40, "coverage": 0.5, "searches": 10_000_000}
    if cell.kind == "rival":
        return {"queries": 9 + cell.run, "l1_50": 0.01, "l1_200": 0.02, "bytes": 99, "users_needed": 30}
    if cell.kind == "real-log":
        scores = dict.fromkeys(("common_l1", "top_l1", "query_l1"), 0.01 + cell.run / 1000)
        scores |= dict.fromkeys(("ndcg", "coverage", "spurious", "dropped", "missing"), 0.5) | {"queries": 20}
        methods = ("paper", "best", "click graph")
        return {"rows": [{"method": m, "epsilon": e, **scores} for m in methods for e in (1.0, 4.0)]}
    if cell.kind == "local-search":
        return {"queries": 40, "pairs": 60, "bytes": 2_000, "answered": 0.08, "first": 0.05, "any": 0.07, "ideal": 0.1}
    noise = 1 + 0.1 * uniform(cell.run, cell.settings)
    size, epsilon = settings.get("size") or 50, settings.get("epsilon") or 4.0
    error = noise * 0.0004 * size / epsilon
    many = 10 if settings["people"] == "yandex" else 1
    reach = many * (settings.get("optin") or 0.05) * 1000 * epsilon / 4
    found = {
        "queries": min(size, max(round(reach), 1)),
        "query_l1": error * (settings.get("per_client") or 1),
        "record_l1": error,
        "ndcg": 1 - error / (settings.get("per_client") or 1),
        "seconds": 0.1,
        "optin_weight": 0.1,
        "groups_differ": 0.0,
        "alarm": 0.0,
        **dict.fromkeys(("coverage", "query_coverage", "record_coverage", "rest_coverage"), 0.95),
        "target_flagged": 0.0,
        "shift": 0.01,
    }
    for key in ("top_l1", "optin_query_l1", "client_query_l1"):
        found[key] = found["query_l1"] * 1.5 * noise
    for key in ("ndcg_top", "ndcg_rank", "optin_ndcg", "client_ndcg"):
        found[key] = found["ndcg"] - 0.01 * noise
    if settings.get("detail"):
        columns = ("query", *fig09.COLUMNS)
        found["trends"] = [dict(zip(columns, row, strict=True)) for row in FIGURE_9]
    return found


def made_up_click_graph(cell: Cell) -> dict[str, object]:
    found: dict[str, object] = {"distinct": 100_000, "impressions": 1_000_000, "tau": 0.9, "overlap": 1.0}
    found |= {"published": 100, "published_impressions": 200_000, "volume": 300_000}
    for d in SPAN_LIMITS:
        found |= {f"published_{d}": 100 + d, f"published_impressions_{d}": 1000 + d}
    found |= {"original": [a for a, _ in TABLE_4], "released": [b for _, b in TABLE_4]}
    found |= {"queries_kept": 0.1, "edges_kept": 0.2}
    for name in SEED_SETS:
        for threshold in THRESHOLDS:
            found |= {f"{name}_{threshold}_original": 1000, f"{name}_{threshold}_released": 150}
            found[f"{name}_{threshold}_shared"] = 0.9
    return found


def concluded(name: str, request: Request) -> Outcome:
    experiment = EXPERIMENTS[name]
    if name == "real":
        request = replace(request, logs=REAL)
    cells = experiment.cells(request)
    assert cells or name in {"kkmn-table1", "kkmn-fig1"}, "only formulas need no run"
    return experiment.conclude(request, Results({cell: made_up(cell) for cell in cells}))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_gives_all_that_it_promises(name: str):
    outcome = concluded(name, Request(quick=True, runs=2))
    plt.close(outcome.figure)
    assert outcome.rows
    assert len(outcome.text) > 100
    assert "nan" not in outcome.text
    assert re.search(r"\d", outcome.text), "a paragraph without a number says nothing"
    assert all(
        axis.get_xlabel() and axis.get_ylabel() for axis in outcome.figure.axes if axis.axison and axis.lines
    ) or (name == "fig9")
    for finding in outcome.findings:
        assert finding.what
        assert finding.verdict


@pytest.mark.parametrize("name", ["fig13", "fig17", "groups"])
def test_other_people_than_the_papers(name: str):
    outcome = concluded(name, Request(quick=True, runs=2, people="aol"))
    plt.close(outcome.figure)
    assert {row["people"] for row in outcome.rows} == {"AOL profile"}


def test_people_so_few_that_no_list_is_reached(tmp_path):
    few = LogPeople("few.tsv", [Record("a", "u")], np.array([3000]))
    make_known(few)
    request = Request(quick=True, runs=1, people=few.name)
    for name in ("fig13", "fig17", "poisoning"):
        experiment = EXPERIMENTS[name]
        cells = experiment.cells(request)
        outcome = experiment.conclude(request, Results({cell: {"queries": 0} for cell in cells}))
        write_outcome(experiment, outcome, request, tmp_path)
        assert "reached" in outcome.text


def test_names():
    assert [e.name for e in experiments_named(["fig12", "fig9"])] == ["fig9", "fig12"]
    assert len(experiments_named(["all"])) == len(EXPERIMENTS)
    with pytest.raises(UsageError, match="fig99: no such experiment"):
        experiments_named(["fig9", "fig99"])


def test_the_figures_of_the_paper_are_all_there():
    wanted = {f"fig{n}" for n in (8, 9, 10, 12, 13, 14, 15, 16, 17, 18, 19)}
    wanted |= {f"kkmn-{n}" for n in ("table1", "fig1", "fig2", "fig3", "fig4", "table2", "table3", "table4", "table5")}
    assert wanted <= set(EXPERIMENTS)
    assert all(e.about.endswith(".") and e.title and e.source for e in EXPERIMENTS.values())


def files(folder) -> Mapping[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(CELLS_FILE)}


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path):
    chosen = experiments_named(["fig12"])
    for folder, seed in (("one", 1), ("two", 1), ("three", 2)):
        evaluate(chosen, Request(seed=seed, runs=1, quick=True), tmp_path / folder, html=True)
    one, two, three = (files(tmp_path / folder) for folder in ("one", "two", "three"))
    assert set(one) == {*(f"fig12{suffix}" for suffix in SUFFIXES), "index.md", "index.html"}
    assert one == two
    assert all(one[name] != three[name] for name in one if not name.startswith("index"))


def test_an_evaluation_can_be_continued_and_gives_the_same_bytes(tmp_path):
    chosen = experiments_named(["fig9"])
    told: list[tuple[float, float]] = []
    evaluate(chosen, Request(runs=2), tmp_path / "once")
    evaluate(chosen, Request(runs=1), tmp_path / "twice")
    evaluate(chosen, Request(runs=2), tmp_path / "twice", on_cost=lambda *pair: told.append(pair))
    assert told[0][0] == pytest.approx(told[0][1] / 2)
    assert told[-1][0] == pytest.approx(told[-1][1])
    assert files(tmp_path / "once") == files(tmp_path / "twice")


def test_files_hold_the_rows(tmp_path):
    request = Request(quick=True, runs=2)
    outcome = concluded("fig14", request)
    paths = write_outcome(EXPERIMENTS["fig14"], outcome, request, tmp_path)
    assert sorted(path.suffix for path in paths) == sorted(SUFFIXES)
    with duckdb.connect() as database:
        read = database.execute(f"SELECT * FROM '{tmp_path / 'fig14.parquet'}'").fetchall()
        lines = database.execute(f"SELECT * FROM '{tmp_path / 'fig14.csv'}'").fetchall()
    assert len(read) == len(lines) == len(outcome.rows)
    assert {type(value) for value in read[0]} == {str, float, int, bool}
    assert [dict(zip(columns(outcome.rows), row, strict=True)) for row in read] == outcome.rows
    svg = (tmp_path / "fig14.svg").read_text()
    assert "Created with" not in svg
    assert "<dc:date>" not in svg


def test_spreadsheets_compute_nothing_of_an_experiment_and_parquet_has_its_values(tmp_path):
    rows = [{"query": "=1+1", "share": -0.5, "note": None}] * 2000 + [{"query": "@b", "share": 1, "note": "late"}]
    request = Request(quick=True, runs=2)
    outcome = replace(concluded("fig14", request), rows=rows)
    write_outcome(EXPERIMENTS["fig14"], outcome, request, tmp_path)
    assert (tmp_path / "fig14.csv").read_text().splitlines()[1] == '"\'=1+1",-0.5,'
    with duckdb.connect() as database:
        read = database.execute(f"SELECT * FROM '{tmp_path / 'fig14.parquet'}'").fetchall()
    assert (read[0], read[-1]) == (("=1+1", -0.5, None), ("@b", 1.0, "late"))


def test_the_page_is_self_contained(tmp_path):
    request = Request(quick=True, runs=2)
    for name in ("fig9", "fig12"):
        write_outcome(EXPERIMENTS[name], concluded(name, request), request, tmp_path)
    write_index(tmp_path)
    write_page(tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert page.count("data:image/svg+xml;base64,") == 2
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    index = (tmp_path / "index.md").read_text()
    assert "| 0.974 |" in index
    assert "agree" in index


def test_regressions_do_not_count_the_tied_pair():
    table = [dict(zip(("query", *fig09.COLUMNS), row, strict=True)) for row in FIGURE_9]
    assert sum(fig09.regressions(table, "blended")) == 0
    assert sum(fig09.regressions(table, "optin")) == 2
    assert fig09.summary([table])["error"] == pytest.approx(0.127, abs=0.001)


def test_regressions_look_at_the_true_order():
    table = [
        {"query": q, "true": t, "blended": b} for q, t, b in ((None, 0.9, 0.9), ("a", 0.05, 0.02), ("b", 0.04, 0.03))
    ]
    assert fig09.regressions(table, "blended") == [False, False, True]
