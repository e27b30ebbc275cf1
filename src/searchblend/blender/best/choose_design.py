"""How clients should report, decided from released figures alone: so it costs no privacy.

Every design is scored by the errors it would leave in the final blend; the least Q²R wins, Q and R being the predicted
L1 errors of queries and of records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from searchblend.blender.best.joint_least_squares import Equations, Layout
from searchblend.blender.best.observations import (
    CellSets,
    ClientSource,
    OptinCounts,
    People,
    QuerySets,
    TwoStageReports,
)
from searchblend.blender.best.set_law import SetLaw
from searchblend.blender.best.subset_report import GAMMA_STEPS, PLAIN_SETS, SINK_SETS, TWO_STAGE, ReportDesign
from searchblend.blender.estimates import Floats
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.records import HeadList
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection

QUERY_STEPS: Final = (0, 3, 6, 10, 14, 17, 20)
"""γ = 0, .15, .3, .5, .7, .85, 1"""
_MEAN_ABSOLUTE: Final = math.sqrt(2 / math.pi)
"""E|X| of a standard normal"""
_SIZES_TRIED: Final = 24


@dataclass(frozen=True)
class Forecast:
    """What a design would give."""

    design: ReportDesign
    query_l1: float
    record_l1: float

    @property
    def score(self) -> float:
        return self.query_l1**2 * self.record_l1


def choose_design(
    head: HeadList, optin: OptinCounts, params: BlenderParams, n_clients: int
) -> tuple[Forecast, list[Forecast]]:
    """The best forecast and all that were compared."""
    people = People.of(optin, params, n_clients)
    forecasts = [forecast(head, optin, design, params, people) for design in candidates(head, optin.shares, params)]
    return min(forecasts, key=lambda entry: entry.score), forecasts


def candidates(head: HeadList, shares: Floats, params: BlenderParams) -> list[ReportDesign]:
    """The designs worth comparing: each kind of set at its best size and every γ, and the two-stage report."""
    epsilon = params.per_record[0]
    queries = np.add.reduceat(shares, head.first_cells()[:-1])
    steps = QUERY_STEPS if head.n_cells - 1 > len(head) else (GAMMA_STEPS,)
    designs = []
    for name, kind in ((SINK_SETS, SubsetSelection), (PLAIN_SETS, PlainSubsetSelection)):
        sizes = best_subset_size(epsilon, queries, kind), best_subset_size(epsilon, shares, kind)
        designs += [ReportDesign(step, *sizes, name) for step in steps]
    return [*designs, ReportDesign(0, 1, 1, TWO_STAGE)] if head.has_urls else designs


def best_subset_size(
    epsilon: Fraction, shares: Floats, kind: type[SubsetSelection] | type[PlainSubsetSelection]
) -> int:
    """d with the least mean predicted standard deviation of an item."""
    m = len(shares)
    growth = math.exp(min(float(epsilon), 700.0))
    ideal = m * (math.sqrt(1 + growth) - 1) / growth
    largest = max(min(m - 1, max(2 * ideal + 2, 3)), 1)  # a set of all m items would say nothing about any
    sizes = np.unique(np.linspace(1, largest, _SIZES_TRIED).astype(int)).tolist()
    holders = min(float(shares.sum()), 1.0)

    def deviation(size: int) -> float:
        law = SetLaw.of(kind.of(epsilon, m, size))
        return float(np.sqrt(law.noise(shares, holders) + shares).mean())

    return int(min(sizes, key=deviation))


def client_sources(head: HeadList, design: ReportDesign, params: BlenderParams, n_clients: float) -> list[ClientSource]:
    """What the clients would say under a design; nothing is observed yet."""
    n, nothing = n_clients * params.records_per_client, np.zeros(head.n_cells - 1)
    if design.mechanism == TWO_STAGE:
        return [TwoStageReports(ReportProbabilities.exact(head, params), n, nothing)]
    sources: list[ClientSource] = []
    if (queries := design.about_queries(head, params)) is not None:
        sources.append(QuerySets(SetLaw.of(queries), n * design.query_share, np.zeros(len(head))))
    if (cells := design.about_cells(head, params)) is not None:
        sources.append(CellSets(SetLaw.of(cells), n * (1 - design.query_share), nothing))
    return sources


def forecast(
    head: HeadList, optin: OptinCounts, design: ReportDesign, params: BlenderParams, people: People
) -> Forecast:
    """The errors of the blend that this design would give if the opt-in figures were those of all users.

    Errors are those against the drawn records: what every design leaves uncertain of the people is not a reason.
    """
    layout = Layout(head)
    shares = layout.padded(optin.shares)
    clients = client_sources(head, design, params, people.n_clients)
    data = [source.data(layout, shares, people) for source in clients]
    joint = Equations(layout, [optin.data(layout, shares, people), *data], shares).solve()
    drawn = replace(people, between=1.0)
    queries = drawn.against(joint.total_variance, shares.sum(axis=1))
    return Forecast(design, *predicted_l1(head, queries, layout.flat(drawn.against(joint.cell_variance, shares))))


def predicted_l1(head: HeadList, query_variance: Floats, cell_variance: Floats) -> tuple[float, float]:
    """Expected L1 of the queries and of the listed records."""
    records = np.ones(head.n_cells - 1, dtype=np.bool_)
    if head.has_urls:
        records[np.cumsum(head.n_urls[:-1], dtype=np.int64) - 1] = False
    return (
        _MEAN_ABSOLUTE * float(np.sqrt(query_variance).sum()),
        _MEAN_ABSOLUTE * float(np.sqrt(cell_variance[records]).sum()),
    )
