"""Get-Click-Counts: which results of a published query were clicked, and how often. [KKMN09] Algorithm 1, step 6.

The paper publishes counts for the results that anybody can see by posing the query. Its experiments take the most
clicked URLs *of the log* instead, which no noise makes private: a URL that one person clicked would be named with
certainty. So either the pairs come from outside the log, or the log's own pairs must pass a threshold with a budget of
their own. proofs/click_edges.md. Run by the curator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from searchblend.clickgraph.release.click_log import SUGGESTION, ClickLog
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.step import StepDesign
from searchblend.core.randomness import Randomness
from searchblend.core.records import Record
from searchblend.mechanisms.noisy_counts import noisy_counts


def public_click_counts(
    log: ClickLog, records: Sequence[Record], step: StepDesign, design: ClickGraphDesign, *, randomness: Randomness
) -> dict[Record, int]:
    """Noisy clicks on each of these pairs, those that nobody clicked among them."""
    exact = log.clicks_of(
        records,
        step.cap,
        within=design.searches_kept,
        restrict_first=design.params.algorithm != "kkmn2009",
    )
    noise = step.noise.sample(len(records), randomness).tolist()
    return {record: exact.get(record, 0) + drawn for record, drawn in zip(records, noise, strict=True)}


def private_click_counts(
    log: ClickLog, queries: Sequence[str], step: StepDesign, design: ClickGraphDesign, *, randomness: Randomness
) -> dict[Record, int]:
    """The pairs of published queries whose noisy clicks reach the threshold, with those noisy clicks."""
    tally = log.clicks(queries, step.cap, within=design.searches_kept)
    return noisy_counts(tally, step.count_threshold, randomness=randomness)


def listed_pairs(public_records: Iterable[Record], queries: Sequence[str]) -> list[Record]:
    """The public pairs of published queries, each once, in an order that tells nothing; suggestions lead to published
    queries only, so that every edge of the graph has both ends."""
    published = set(queries)
    pairs = {record for record in public_records if record.query in published and isinstance(record.url, str)}
    kept = [record for record in pairs if suggested_query(record) is None or suggested_query(record) in published]
    return sorted(kept, key=lambda record: (str(record.query).encode(), str(record.url).encode()))


def suggested_query(record: Record) -> str | None:
    """The query that a click on a suggestion leads to."""
    url = record.url
    return url.removeprefix(SUGGESTION) if isinstance(url, str) and url.startswith(SUGGESTION) else None
