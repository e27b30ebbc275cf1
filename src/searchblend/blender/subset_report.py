"""What a client's device sends under method ``best``: a set of queries or of cells, or the sink.

Every client spends the whole budget in one step. A public coin (γ) decides whether the report is about the *queries*
or about the *cells* ⟨q,u⟩ and ⟨q,⋆⟩ of the head list; the record that is held becomes one item, or ⋆ if it is not
listed.

Runs on the device. Standard library only. Proof: proofs/subset_selection.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from searchblend.errors import InvalidParameter
from searchblend.mechanisms.subset_selection import WORDS, Subset, SubsetSelection
from searchblend.params import BlenderParams
from searchblend.randomness import Randomness, SystemRandomness, uniform_below, word
from searchblend.records import HeadList, Record

GAMMA_STEPS: Final = 20


class SubsetReport(NamedTuple):
    """One reported set. ``about_queries`` is a public coin; ``items`` is empty for the sink."""

    about_queries: bool
    items: Subset


@dataclass(frozen=True)
class ReportDesign:
    """How clients report; public, chosen from released figures before any client is asked."""

    query_steps: int
    """γ in twentieths: the share of reports about queries"""
    query_subset: int
    """d_A: queries in a set"""
    cell_subset: int
    """d_C: cells in a set"""

    def __post_init__(self) -> None:
        if not 0 <= self.query_steps <= GAMMA_STEPS:
            raise InvalidParameter("query_steps", f"expected 0 to {GAMMA_STEPS}, found {self.query_steps}")

    @property
    def query_share(self) -> float:
        """γ"""
        return self.query_steps / GAMMA_STEPS

    def about_queries(self, head: HeadList, params: BlenderParams) -> SubsetSelection | None:
        """The mechanism over the listed queries, if anybody reports about them."""
        if not self.query_steps:
            return None
        return SubsetSelection.of(params.per_record[0], len(head), self.query_subset)

    def about_cells(self, head: HeadList, params: BlenderParams) -> SubsetSelection | None:
        """The mechanism over all cells but ⟨⋆,⋆⟩, if anybody reports about them."""
        if self.query_steps == GAMMA_STEPS:
            return None
        return SubsetSelection.of(params.per_record[0], head.n_cells - 1, self.cell_subset)


def subset_report(
    records: Sequence[Record],
    head: HeadList,
    design: ReportDesign,
    params: BlenderParams,
    *,
    randomness: Randomness | None = None,
) -> tuple[SubsetReport, ...]:
    """Privatize one client's records: exactly m_C sets, each from a record drawn with replacement.

    (ε, 0)-locally private under replace-one. A device without any record takes no part.
    """
    if not records:
        raise InvalidParameter("records", "a device without a record sends no report")
    source = randomness or SystemRandomness()
    queries, cells = design.about_queries(head, params), design.about_cells(head, params)
    report: list[SubsetReport] = []
    for _ in range(params.records_per_client):
        cell = head.cell_of(records[uniform_below(len(records), source)])
        mechanism, about_queries = (queries, True) if _coin(design, source) else (cells, False)
        if mechanism is None:
            raise InvalidParameter("query_steps", "the coin fell on a mechanism that the design does not have")
        listed = cell < head.n_cells - 1
        item = (head.query_of_cells()[cell] if about_queries else cell) if listed else None
        report.append(SubsetReport(about_queries, mechanism.report(item, source)))
    return tuple(report)


def _coin(design: ReportDesign, randomness: Randomness) -> bool:
    """Heads (queries) with probability γ. Draws nothing when there is no choice."""
    if design.query_steps in (0, GAMMA_STEPS):
        return design.query_steps == GAMMA_STEPS
    return word(randomness) < WORDS * design.query_steps // GAMMA_STEPS
