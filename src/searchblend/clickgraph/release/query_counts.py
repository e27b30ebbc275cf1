"""Get-Query-Counts: how often the published queries were searched. [KKMN09] Algorithm 1, step 5. Run by the curator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from searchblend.clickgraph.release.click_log import ClickLog
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.select_queries import by_query
from searchblend.core.randomness import Randomness
from searchblend.mechanisms.tally import Tally


def fresh_query_counts(
    log: ClickLog,
    queries: Sequence[str],
    selected_from: Tally,
    design: ClickGraphDesign,
    *,
    randomness: Randomness,
) -> dict[str, int]:
    """M(q) + Y with noise of its own for every published query.

    The paper counts in the log that was limited for the selection; the others leave out all searches of unpublished
    queries before they limit, which costs no more (the published queries are known by then) and wastes less.
    """
    step = design.query_counts
    if design.params.algorithm == "kkmn2009":
        exact: Mapping[str, int] = by_query(selected_from.of_queries(queries))
    else:
        exact = log.searches_of(queries, step.cap)
    noise = step.noise.sample(len(queries), randomness).tolist()
    return {query: exact.get(query, 0) + drawn for query, drawn in zip(queries, noise, strict=True)}
