"""Select-Queries: which queries are published. [KKMN09] Algorithm 1, steps 1, 3 and 4. Run by the curator."""

from __future__ import annotations

from collections.abc import Mapping

from searchblend.clickgraph.release.click_log import ClickLog
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.step import StepDesign
from searchblend.core.randomness import Randomness
from searchblend.core.records import Record
from searchblend.mechanisms.noisy_counts import noisy_counts
from searchblend.mechanisms.tally import Tally


def select_queries(log: ClickLog, design: ClickGraphDesign, *, randomness: Randomness) -> tuple[dict[str, int], Tally]:
    """Q with the noisy values that the threshold compared, and the tally of the last round.

    Q = {q in the limited log : M(q) + Y ≥ T}, noise of its own for each query that occurs. DP-SIPS does so in rounds,
    each without the queries that the rounds before have published.
    """
    chosen: dict[str, int] = {}
    for step in design.rounds:
        tally = _tally(log, step, list(chosen))
        chosen |= by_query(noisy_counts(tally, step.count_threshold, randomness=randomness))
    return chosen, tally


def _tally(log: ClickLog, step: StepDesign, without: list[str]) -> Tally:
    if step.units == 1:
        return log.searches(step.cap)
    return log.weighted_searches(step.cap.first, step.units, without)


def by_query(counts: Mapping[Record, int]) -> dict[str, int]:
    """Counts of ⟨q, ⋆⟩ by q."""
    return {record.query: count for record, count in counts.items() if isinstance(record.query, str)}
