"""A verdict can fail: every row that ever agrees differs on other results; a fact is counted once."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Any

import pytest

from made_results import made_up, uniform
from searchblend_lab.papers.blender import fig09, fig10, fig11, fig12
from searchblend_lab.papers.blender.published import BLENDER_NDCG, FIGURE_9, FIGURE_11
from searchblend_lab.papers.cells import Cell, Results
from searchblend_lab.papers.clickgraph import fig1, table1
from searchblend_lab.papers.experiment import Agreement, Finding, Request, near
from searchblend_lab.papers.outputs import write_outcome
from searchblend_lab.papers.page import write_index
from searchblend_lab.papers.registry import EXPERIMENTS

AGREES, DIFFERS, FITTED, NOT_COMPARABLE, OURS = Agreement
World = Callable[[Cell], dict[str, Any]]


def scaled(factor: Callable[[Cell, str], float]) -> World:
    """Every number of a result times something; errors of a score that is better when larger grow with it."""

    def world(cell: Cell) -> dict[str, Any]:
        found = made_up(cell)
        for key, value in found.items():
            by = factor(cell, key)
            if key == "queries" and cell.kind == "hybrid":
                found[key] = max(min(round(value * by), int(dict(cell.settings)["size"] or 1)), 1)
            elif isinstance(value, float | int) and not isinstance(value, bool):
                found[key] = max(1 - (1 - value) * by, 0.0) if "ndcg" in key else value * by
        for key in ("trends", "original", "released"):
            if key in found and key != "original" and factor(cell, key) > 1:
                found[key] = found[key][:2] + found[key][:1:-1]
        return found

    return world


def setting(cell: Cell, name: str) -> float:
    return float(dict(cell.settings).get(name) or 1.0)


WORLDS = (
    scaled(lambda cell, key: 0.05 + 2 * uniform(cell, key)),
    scaled(lambda cell, key: 60 * uniform(cell)),
    scaled(lambda cell, key: 20 * setting(cell, "epsilon") ** 3),
    scaled(lambda cell, key: 2000 * setting(cell, "optin") ** 2),
    scaled(lambda cell, key: 30 * setting(cell, "query_fraction") ** 4),
    scaled(lambda cell, key: setting(cell, "per_client") ** -3),
    scaled(lambda cell, key: 900 / setting(cell, "size")),
    scaled(lambda cell, key: 2 - setting(cell, "head_fraction")),
    scaled(lambda cell, key: 0.1 if key.startswith(("optin_", "client_")) else 1.0),
    scaled(lambda cell, key: 100 * setting(cell, "optin") if key == "client_query_l1" else 1.0),
    scaled(lambda cell, key: 0.3 + 0.2 * uniform(cell)),
)
"""what runs could have given, if the algorithm were another one"""


def findings_in(name: str, world: World) -> list[Finding]:
    experiment, request = EXPERIMENTS[name], Request(quick=True, runs=2)
    outcome = experiment.conclude(request, Results({cell: world(cell) for cell in experiment.cells(request)}))
    return outcome.findings


def what(finding: Finding) -> str:
    return re.sub(r"from \d to \d|ε = \d", "", finding.what)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name, experiment in EXPERIMENTS.items() if experiment.cells(Request())])
def test_a_row_that_agrees_differs_on_other_results(name: str):
    unproved = {what(finding) for finding in findings_in(name, made_up) if finding.agreement is AGREES}
    for world in WORLDS:
        if unproved:
            with contextlib.suppress(KeyError, ValueError, IndexError, ZeroDivisionError):  # too few lists are reached
                unproved -= {what(finding) for finding in findings_in(name, world) if finding.agreement is DIFFERS}
    assert not unproved, "no results make these rows differ"


def test_formulas_and_defaults_can_differ_too(monkeypatch):
    def agreements(experiment: Any) -> set[Agreement]:
        return {finding.agreement for finding in experiment.conclude(Request(), Results({})).findings}

    experiments = (table1.EXPERIMENT, fig1.EXPERIMENT, fig11.EXPERIMENT)
    assert [agreements(experiment) for experiment in experiments] == [{AGREES}] * 3
    monkeypatch.setitem(table1.TABLE_1, 20, (141.0, 8.69))
    monkeypatch.setattr(fig1, "NOISE", 12.0)
    monkeypatch.setitem(FIGURE_11, "f_O", (0.9, 0.9))
    assert [agreements(experiment) for experiment in experiments] == [{DIFFERS}] * 3


@pytest.mark.parametrize(
    ("paper", "best", "expected"),
    [(0.98, 0.999, AGREES), (0.97, 0.999, DIFFERS), (0.98, 0.983, NOT_COMPARABLE), (0.98, None, AGREES)],
)
def test_a_number_agrees_only_if_the_other_method_would_not(paper, best, expected):
    assert near(0.981, paper, best, 0.0075) is expected


def test_the_published_numbers_of_method_paper_would_not_pass_for_those_of_best():
    """Figure 12 with the numbers of method best as if they were those of method paper."""
    for epsilon, published in BLENDER_NDCG.items():
        assert near(published, 0.9992, None, fig12.NDCG_CLOSE) is DIFFERS, epsilon


def tables(worst: int) -> dict[str, list[list[dict[str, Any]]]]:
    """Runs of Fig. 9 as published, and some of them with the blend's estimates upside down."""
    good = fig09.as_table(FIGURE_9)
    bad = [row | {"blended": flipped["blended"]} for row, flipped in zip(good, [good[0], *good[:0:-1]], strict=True)]
    runs = [bad] * worst + [good] * (10 - worst)
    return {"paper": runs, "best": [[row | {"blended": row["true"]} for row in good]] * 10}


def test_figure_9_is_counted_as_the_paper_counts():
    error, blend, optin, clients, compensates = fig09.findings_of(tables(0))
    assert (error.agreement, blend.agreement, optin.agreement, clients.agreement) == (AGREES,) * 4
    assert [finding.published[0] for finding in (blend, optin, clients)] == ["1", "3", "1"]
    assert compensates.agreement is DIFFERS, "in the published table the clients have no more than the blend"
    error, blend, *_ = fig09.findings_of(tables(10))
    assert error.agreement is DIFFERS
    assert blend.agreement is DIFFERS


def test_a_labelled_point_must_be_near_both_lines_that_it_may_belong_to():
    assert fig10.EXPERIMENT.name == "fig10"
    label = next(f for f in findings_in("fig10", made_up) if "labelled point" in f.what)
    assert "blended" in label.paper
    assert "clients" in label.paper


def test_a_fact_with_rows_on_two_pages_is_counted_on_one(tmp_path):
    request = Request(quick=True, runs=2)

    def summary(*names: str) -> tuple[str, dict[str, list[Finding]]]:
        found = {}
        for name in names:
            experiment = EXPERIMENTS[name]
            outcome = experiment.conclude(request, Results({c: made_up(c) for c in experiment.cells(request)}))
            write_outcome(experiment, outcome, request, tmp_path)
            found[name] = outcome.findings
        write_index(tmp_path)
        return (tmp_path / "index.md").read_text(), found

    alone, found = summary("claims")
    claims = found["claims"]
    counted = [finding for finding in claims if finding.agreement in (AGREES, DIFFERS)]
    assert f"Of {len(counted)} facts" in alone, "where the figures are not there, the claims are all there is"
    page, found = summary("fig14")
    left = [finding for finding in counted if finding.counted_in != "fig14"]
    own = [finding for finding in found["fig14"] if finding.agreement in (AGREES, DIFFERS)]
    assert len(left) == len(counted) - 2
    assert f"Of {len(left) + len(own)} facts" in page
    assert "agrees (counted in fig14)" in page
    assert {finding.counted_in for finding in claims} - {""} <= set(EXPERIMENTS)


def test_what_was_fitted_is_said_on_its_own_page_and_not_counted():
    fitted = [finding for name in ("fig13", "fig15", "kkmn-table5") for finding in findings_in(name, made_up)]
    fitted = [finding for finding in fitted if finding.agreement is FITTED]
    assert fitted
    assert all(re.search("chosen|fitted", finding.verdict) for finding in fitted)
    assert all(str(finding.verdict).startswith("fitted: ") for finding in fitted)
