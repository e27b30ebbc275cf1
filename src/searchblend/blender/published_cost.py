"""What the published files alone tell of one client, beside what its own report tells the collector.

proofs/shuffle.md. Computed when a release is put into words, not with every estimate: it takes a moment.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from searchblend.accounting.shuffle import ADVERSARY, ASSUMPTION, ShuffleCost, ShuffledReports, shuffle_cost
from searchblend.accounting.shuffled_reports import shuffled_cells, shuffled_sets
from searchblend.blender.best.subset_report import GAMMA_STEPS, TWO_STAGE, ReportDesign
from searchblend.blender.method import METHODS
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.blender.release import BlenderRelease
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Guarantee, PublishedPromise
from searchblend.core.records import HeadList


def with_published_cost(release: BlenderRelease) -> Guarantee:
    """The release's guarantee, with the promise that holds for its published files."""
    if not release.sizes.clients or release.method not in METHODS:  # of other mechanisms nothing is known
        return release.guarantee
    cost = published_cost(release.head, release.design, release.params, release.sizes.clients)
    return replace(release.guarantee, published=promise_of(cost))


def promise_of(cost: ShuffleCost) -> PublishedPromise:
    return PublishedPromise(
        "clients", cost.clients, cost.epsilon, cost.delta, cost.at_least, ADVERSARY, f"honest others: {ASSUMPTION}"
    )


def published_cost(head: HeadList, design: ReportDesign | None, params: BlenderParams, clients: int) -> ShuffleCost:
    """(ε, δ) to one of so many clients of publishing what was counted; without a design reports are as printed."""
    reports = counted_reports(head, design, params)
    return shuffle_cost(reports, clients, params.budget.delta, params.budget.epsilon)


def counted_reports(head: HeadList, design: ReportDesign | None, params: BlenderParams) -> ShuffledReports:
    """The mechanism of the clients, as the devices run it on this list."""
    if design is None or design.mechanism == TWO_STAGE:
        channel = (ReportProbabilities.of if design is None else ReportProbabilities.exact)(head, params)
        return shuffled_cells(channel, records_per_client=params.records_per_client)
    share = Fraction(design.query_steps, GAMMA_STEPS)
    kinds = ((share, design.about_queries(head, params)), (1 - share, design.about_cells(head, params)))
    parts = [(weight, mechanism) for weight, mechanism in kinds if mechanism is not None]
    return shuffled_sets(parts, records_per_client=params.records_per_client)
