"""LocalAlg: what a client's device sends. [BLJ] Fig. 6.

Runs on the device. Standard library only; ported line by line to JavaScript.
"""

from __future__ import annotations

from collections.abc import Sequence

from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.randomness import HALF, Randomness, SystemRandomness, uniform_below, uniform_from_half, word
from searchblend.core.records import HeadList, Record


def local_report(
    records: Sequence[Record],
    head: HeadList,
    params: BlenderParams,
    *,
    randomness: Randomness | None = None,
) -> tuple[int, ...]:
    """Privatize one client's records: exactly m_C cell numbers of the head list.

    (ε, δ)-locally private under replace-one (Theorem 3.3, proofs/local_report.md). The m_C records are drawn
    with replacement, so that the length of a report says nothing and the estimand stays that of one random
    record. How often a report tells the truth is in ``report_odds``. A device without any record takes no part;
    participation itself is not hidden.
    """
    return tuple(cell for _, cell in local_report_with_records(records, head, params, randomness=randomness))


def local_report_with_records(
    records: Sequence[Record],
    head: HeadList,
    params: BlenderParams,
    *,
    randomness: Randomness | None = None,
) -> list[tuple[Record, int]]:
    """``local_report`` with the record that each cell is about, which the device shows its user and sends to no one."""
    if not records:
        raise InvalidParameter("records", "a device without a record sends no report")
    source = randomness or SystemRandomness()
    probabilities = ReportProbabilities.of(head, params)
    first_cells = head.first_cells()
    query_of_cells = head.query_of_cells()
    report: list[tuple[Record, int]] = []
    for _ in range(params.records_per_client):
        record = records[uniform_below(len(records), source)]
        cell = head.cell_of(record)
        query = query_of_cells[cell]
        said_query, said_url = randomize(query, cell - first_cells[query], probabilities, source)
        report.append((record, first_cells[said_query] + said_url))
    return report


def randomize(query: int, url: int, probabilities: ReportProbabilities, randomness: Randomness) -> tuple[int, int]:
    """One cell ⟨query, url⟩ by position, truth in, report out. [BLJ] Fig. 6, lines 7-21.

    One word decides between truth and the two lies. Only a liar draws a second: its high half chooses
    the other query, its low half the URL, each exactly uniform.
    """
    decision = word(randomness)
    if decision < probabilities.keep_record_below[query]:
        return query, url
    lie = word(randomness)
    if decision < probabilities.keep_query_below:
        other_url = uniform_from_half(lie % HALF, probabilities.n_urls[query] - 1, randomness)
        return query, other_url + (other_url >= url)
    other = uniform_from_half(lie // HALF, probabilities.n_queries - 1, randomness)
    other += other >= query
    return other, uniform_from_half(lie % HALF, probabilities.n_urls[other], randomness)
