"""What a report gives away, computed from the very probabilities that it is drawn with.

Consent texts, devices and the console state these figures, so that none of them promises more than the mechanism does.
Plain floating-point steps on the integer thresholds, in one order: the JavaScript twin gets the same digits.

Runs on the device. Standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from searchblend.blender.best.subset_report import ReportDesign
from searchblend.blender.paper.report_probabilities import WORDS, ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.records import HeadList
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection


@dataclass(frozen=True)
class ReportOdds:
    """How often a report names a listed search of the user, and how far it moves anyone's belief about it."""

    named: float
    """the probability that one answer about a listed search names its query, for the query where it is largest"""
    most_items: int
    """how many searches one answer names at most"""
    answers: int
    """m_C: answers in a report"""
    growth: float
    """the largest factor by which the whole report multiplies the odds of any guess about the user's search"""

    def belief_after(self, before: float) -> float:
        """The most that a belief of ``before`` can become by seeing the report."""
        if math.isinf(self.growth):
            return 1.0
        return before * self.growth / (before * self.growth + (1 - before))


def report_odds(head: HeadList, params: BlenderParams, design: ReportDesign | None) -> ReportOdds:
    """The odds of a client's report over this list; without a design, of the report that the paper prints."""
    cells = design.about_cells(head, params) if design else None
    queries = design.about_queries(head, params) if design else None
    if design is None or (cells is None and queries is None):
        stages = ReportProbabilities.exact(head, params) if design else ReportProbabilities.of(head, params)
        return _odds(stages.keep_query, 1, _two_stage_growth(stages), params)
    share = design.query_share
    named = (share * queries.include if queries else 0.0) + (
        (1 - share) * _named_by_cells(cells, max(head.n_urls)) if cells else 0.0
    )
    sets = [mechanism for mechanism in (queries, cells) if mechanism is not None]
    growth = max(_growth(mechanism) for mechanism in sets)
    return _odds(named, max(mechanism.subset_size for mechanism in sets), growth, params)


def list_odds(params: BlenderParams, n_queries: int) -> ReportOdds:
    """Before there is a list: the odds over one of ``n_queries`` queries, one of which is named at a time.

    A list of one query is the worst case: no report over a longer list that names one query names the true one more
    often, and no report moves a belief by more than e^ε.
    """
    mechanism = SubsetSelection.of(params.per_record[0], n_queries, 1)
    return _odds(mechanism.include, 1, _growth(mechanism), params)


def _odds(named: float, most_items: int, growth: float, params: BlenderParams) -> ReportOdds:
    together = 1.0
    for _ in range(params.records_per_client):
        together *= growth
    return ReportOdds(named, most_items, params.records_per_client, together)


def _named_by_cells(mechanism: SubsetSelection | PlainSubsetSelection, width: int) -> float:
    """A set without the true cell may still hold another cell of the same query, which has ``width`` of them."""
    is_plain = isinstance(mechanism, PlainSubsetSelection)
    others = mechanism.n_items if is_plain else mechanism.n_items - 1
    sink = 0.0 if isinstance(mechanism, PlainSubsetSelection) else mechanism.sink_of_holder
    miss = 1.0
    for position in range(width - 1):
        miss *= max(others - mechanism.subset_size - position, 0) / (others - position)
    return mechanism.include + (1 - mechanism.include - sink) * (1 - miss)


def _growth(mechanism: SubsetSelection | PlainSubsetSelection) -> float:
    """max P(report | one search) / P(report | another), over all reports."""
    m, d, include = mechanism.n_items, mechanism.subset_size, mechanism.include
    if isinstance(mechanism, PlainSubsetSelection):
        return _largest_ratio([include / d, (1 - include) / (m - d + 1)])
    # Relative to a set drawn uniformly: of a holder of one of its items, of a holder of ⋆, of any other holder.
    sets = [include * m / d, 1 - include]
    if d < m:
        sets.append((1 - include - mechanism.sink_of_holder) * m / (m - d))
    return max(_largest_ratio(sets), _largest_ratio([include, mechanism.sink_of_holder]))


def _two_stage_growth(stages: ReportProbabilities) -> float:
    """The same for two stages; all queries with equally many URLs have the same probabilities."""
    largest = 1.0
    if stages.n_queries == 1:
        return largest  # an empty list: there is only one thing to say
    for width, below in sorted(set(zip(stages.n_urls, stages.keep_record_below, strict=True))):
        said = [below / WORDS, (1 - stages.keep_query) / (stages.n_queries - 1) / width]
        if width > 1:
            said.append((stages.keep_query - below / WORDS) / (width - 1))
        largest = max(largest, _largest_ratio(said))
    return largest


def _largest_ratio(probabilities: Iterable[float]) -> float:
    values = list(probabilities)
    return max(values) / min(values) if min(values) > 0 else math.inf
