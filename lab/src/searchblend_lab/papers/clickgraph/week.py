"""What Fig. 2 and Tables 2 and 3 of [KKMN09] share: how much of a week's log is published."""

from __future__ import annotations

from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.clickgraph.published import GRID, GRID_LIMIT
from searchblend_lab.papers.experiment import METHODS, Band, Request, Table

WEEK = "kkmn-selection"
"""the kind of its cells"""
QUANTITIES = {
    "published": ("distinct queries published (%)", "distinct"),
    "published_impressions": ("impressions published (%)", "impressions"),
    "volume": ("search volume covered (%)", "impressions"),
}


def week_cells(request: Request, method: str, searches: int, epsilon: float, delta: float) -> list[Cell]:
    """A week's log of half a million users, ten million searches; or a log of one's own."""
    users = 100_000 if request.quick else 500_000
    whose: dict[str, Scalar] = {"users": users, "vocabulary": 10 * users}
    if request.log:
        whose = {"people": request.log.name}
    asked: dict[str, Scalar] = {"method": method, "searches": searches, "epsilon": epsilon, "delta": delta}
    cost = 0.4 if request.quick else 1.2
    return [Cell.of(WEEK, run, cost=cost, **whose, **asked) for run in range(request.n_runs(3, 1))]


def percent(cells: list[Cell], results: Results, quantity: str) -> Band:
    whole = QUANTITIES[quantity][1]
    band = Band.of([100 * results[cell][quantity] / results[cell][whole] for cell in cells])
    assert band is not None
    return band


def grid_cells(request: Request) -> list[Cell]:
    return [cell for m in METHODS for e, delta in GRID for cell in week_cells(request, m, GRID_LIMIT, e, delta)]


def grid_bands(request: Request, results: Results, quantity: str) -> dict[tuple[str, float, float], Band]:
    return {
        (method, epsilon, delta): percent(week_cells(request, method, GRID_LIMIT, epsilon, delta), results, quantity)
        for method in METHODS
        for epsilon, delta in GRID
    }


def grid_table(title: str, values: dict[tuple[float, float], float], digits: int) -> Table:
    """Rows by δ, columns by ε, as the paper prints it."""
    epsilons = list(dict.fromkeys(e for e, _ in GRID))
    rows = []
    for delta in dict.fromkeys(delta for _, delta in GRID):
        rows.append((f"δ = {delta:g}", *(f"{values[e, delta]:.{digits}f} %" for e in epsilons)))
    return Table(title, ("", "ε = ln 2", "ε = ln 5", "ε = ln 10"), tuple(rows))
