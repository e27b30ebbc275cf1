"""What a client's device sends under method ``best``: a set of queries or of cells, the sink, or one cell.

Every client spends the whole budget in one step. A public coin (γ) decides whether the report is about the *queries*
or about the *cells* ⟨q,u⟩ and ⟨q,⋆⟩ of the head list; the record that is held becomes one item, or ⋆ if it is not
listed.

Three mechanisms can be exchanged; the curator's design says which: subset selection with a sink, plain subset
selection, or the two-stage report calibrated exactly (one cell, always about cells).

Runs on the device. Standard library only. Proofs: proofs/subset_selection.md, proofs/local_report.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from searchblend.blender.paper.local_report import randomize
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.randomness import Randomness, SystemRandomness, uniform_below, word
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.subset_selection import WORDS, PlainSubsetSelection, Subset, SubsetSelection

GAMMA_STEPS: Final = 20
SINK_SETS: Final = "subset selection with a sink"
PLAIN_SETS: Final = "subset selection"
TWO_STAGE: Final = "two-stage, exactly calibrated"
MECHANISMS: Final = (SINK_SETS, PLAIN_SETS, TWO_STAGE)

SetMechanism = SubsetSelection | PlainSubsetSelection


class SubsetReport(NamedTuple):
    """One reported set. ``about_queries`` is a public coin; ``items`` is empty for the sink, one cell in two stages."""

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
    mechanism: str = SINK_SETS

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise InvalidParameter("mechanism", f"expected one of {', '.join(MECHANISMS)}")
        if self.mechanism == TWO_STAGE and self.query_steps:
            raise InvalidParameter("query_steps", "expected 0: a two-stage report is about cells")
        if not 0 <= self.query_steps <= GAMMA_STEPS:
            raise InvalidParameter("query_steps", f"expected 0 to {GAMMA_STEPS}, found {self.query_steps}")

    @property
    def query_share(self) -> float:
        """γ"""
        return self.query_steps / GAMMA_STEPS

    @property
    def kinds(self) -> int:
        """How many kinds of report there are: about queries, about cells, or both."""
        return 1 if self.query_steps in (0, GAMMA_STEPS) else 2

    def about_queries(self, head: HeadList, params: BlenderParams) -> SetMechanism | None:
        """The mechanism over the listed queries, if clients report about them."""
        return self._sets(params, len(head), self.query_subset) if self.query_steps else None

    def about_cells(self, head: HeadList, params: BlenderParams) -> SetMechanism | None:
        """The mechanism over all cells but ⟨⋆,⋆⟩, if clients send sets of them."""
        if self.query_steps == GAMMA_STEPS or self.mechanism == TWO_STAGE:
            return None
        return self._sets(params, head.n_cells - 1, self.cell_subset)

    def _sets(self, params: BlenderParams, n_items: int, size: int) -> SetMechanism:
        kind = PlainSubsetSelection if self.mechanism == PLAIN_SETS else SubsetSelection
        return kind.of(params.per_record[0], n_items, size)


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

    Args:
        records: what the client searched
        head: the published list
        design: how clients report, from the head-list message
        params: ε and records of a client, likewise
        randomness: the source of all noise, the operating system's unless a simulation gives another

    Example:
        ``sb.subset_report([sb.Record("weather")], message.head, message.design, message.params)``
    """
    drawn = subset_report_with_records(records, head, design, params, randomness=randomness)
    return tuple(report for _, report in drawn)


def subset_report_with_records(
    records: Sequence[Record],
    head: HeadList,
    design: ReportDesign,
    params: BlenderParams,
    *,
    randomness: Randomness | None = None,
) -> list[tuple[Record, SubsetReport]]:
    """``subset_report`` with the record that each set is about, which the device shows its user and sends to no one."""
    if not records:
        raise InvalidParameter("records", "a device without a record sends no report")
    source = randomness or SystemRandomness()
    reports: list[tuple[Record, SubsetReport]] = []
    for _ in range(params.records_per_client):
        record = records[uniform_below(len(records), source)]
        reports.append((record, _report_cell(head.cell_of(record), head, design, params, source)))
    return reports


def _report_cell(
    cell: int, head: HeadList, design: ReportDesign, params: BlenderParams, randomness: Randomness
) -> SubsetReport:
    query = head.query_of_cells()[cell]
    listed = cell < head.n_cells - 1
    if _coin(design, randomness) and (queries := design.about_queries(head, params)) is not None:
        return SubsetReport(True, queries.report(query if listed else None, randomness))
    if (cells := design.about_cells(head, params)) is not None:
        return SubsetReport(False, cells.report(cell if listed else None, randomness))
    first = head.first_cells()
    stages = ReportProbabilities.exact(head, params)
    said_query, said_url = randomize(query, cell - first[query], stages, randomness)
    return SubsetReport(False, (first[said_query] + said_url,))


def _coin(design: ReportDesign, randomness: Randomness) -> bool:
    """Heads (queries) with probability γ. Draws nothing when there is no choice."""
    if design.query_steps in (0, GAMMA_STEPS):
        return design.query_steps == GAMMA_STEPS
    return word(randomness) < WORDS * design.query_steps // GAMMA_STEPS
