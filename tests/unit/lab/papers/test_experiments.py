"""Every experiment concludes, from made-up results or computed ones, and writes the same bytes each time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import duckdb
import numpy as np
import pytest

from made_results import made_up
from searchblend.core.errors import UsageError
from searchblend.core.records import Record
from searchblend_lab.papers.blender import fig09
from searchblend_lab.papers.blender.published import FIGURE_9
from searchblend_lab.papers.cells import Results
from searchblend_lab.papers.comparisons.real_logs import RealLog
from searchblend_lab.papers.evaluate import CELLS_FILE, evaluate
from searchblend_lab.papers.experiment import Outcome, Request
from searchblend_lab.papers.outputs import columns, write_outcome
from searchblend_lab.papers.page import write_index, write_page
from searchblend_lab.papers.people import LogPeople, Rows, make_known
from searchblend_lab.papers.registry import EXPERIMENTS, experiments_named

pytestmark = pytest.mark.thorough

SUFFIXES = (".png", ".svg", ".csv", ".json", ".md", ".parquet")


REAL = (RealLog("a.tsv", "{}", "digest", 1000, 5000, (1.0, 4.0), 1e-5, 0.05),)
"""what the comparison on real logs is always asked with"""


def concluded(name: str, request: Request) -> Outcome:
    experiment = EXPERIMENTS[name]
    if name == "real":
        request = replace(request, logs=REAL)
    cells = experiment.cells(request)
    assert cells or name in {"kkmn-table1", "kkmn-fig1", "fig11"}, "only formulas and defaults need no run"
    return experiment.conclude(request, Results({cell: made_up(cell) for cell in cells}))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_gives_all_that_it_promises(name: str):
    outcome = concluded(name, Request(quick=True, runs=2))
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
    assert {row["people"] for row in outcome.rows} == {"AOL profile"}


def test_people_so_few_that_no_list_is_reached(tmp_path):
    rows = Rows([Record("a", "u")], np.zeros(3000, dtype=np.int64), np.ones(3000, dtype=np.int64))
    few = LogPeople("few.tsv", [Record("a", "u")], np.array([3000]), rows=rows)
    make_known(few)
    request = Request(quick=True, runs=1, people=few.name)
    for name in ("fig9", "fig13", "fig17", "poisoning", "records-per-client", "intervals"):
        experiment = EXPERIMENTS[name]
        cells = experiment.cells(request)
        outcome = experiment.conclude(request, Results({cell: {"queries": 0} for cell in cells}))
        write_outcome(experiment, outcome, request, tmp_path)
        assert outcome.text.startswith("Nothing could be measured on the people of few.tsv: no list reached")
        assert not outcome.findings


def test_names():
    assert [e.name for e in experiments_named(["fig12", "fig9"])] == ["fig9", "fig12"]
    assert len(experiments_named(["all"])) == len(EXPERIMENTS)
    with pytest.raises(UsageError, match="fig99: no such experiment"):
        experiments_named(["fig9", "fig99"])


def test_the_figures_of_the_paper_are_all_there():
    wanted = {f"fig{n}" for n in (8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)}
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


def test_regressions_are_counted_as_the_paper_counts_them():
    table = fig09.as_table(FIGURE_9)
    assert [sum(fig09.regressions(table, column)) for column in fig09.GROUPS] == [1, 3, 1]
    assert fig09.summary([table])["error"] == pytest.approx(0.127, abs=0.001)


def test_regressions_look_at_the_true_order():
    table = [
        {"query": q, "true": t, "blended": b} for q, t, b in ((None, 0.9, 0.9), ("a", 0.05, 0.02), ("b", 0.04, 0.03))
    ]
    assert fig09.regressions(table, "blended") == [False, False, True]
