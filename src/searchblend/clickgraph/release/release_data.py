"""Release-Data: a private query click graph from a log. [KKMN09] Algorithm 1 and its successors. Run by the curator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import numpy as np

from searchblend.clickgraph.release.click_counts import (
    listed_pairs,
    private_click_counts,
    public_click_counts,
    suggested_query,
)
from searchblend.clickgraph.release.click_log import ClickLog
from searchblend.clickgraph.release.corrected_counts import corrected_counts
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.guarantee import click_graph_guarantee, treated_as_public
from searchblend.clickgraph.release.query_counts import fresh_query_counts
from searchblend.clickgraph.release.release import ClickGraphRelease, ClickRow, QueryRow, ReformulationRow
from searchblend.clickgraph.release.reused_noise import ReusedNoise, half_width
from searchblend.clickgraph.release.select_queries import select_queries
from searchblend.clickgraph.release.step import StepDesign
from searchblend.clickgraph.use.reformulations import typed_reformulations
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import ClickGraphParams
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.records import Record

OnStep = Callable[[str], None]
_Key = TypeVar("_Key")
_Figures = tuple[int, int, float | None, int, int]
"""count, clamped, corrected, lower and upper end"""


def release_data(
    log: ClickLog,
    params: ClickGraphParams,
    *,
    public_records: Iterable[Record] | None = None,
    randomness: Randomness | None = None,
    on_step: OnStep = lambda step: None,
) -> ClickGraphRelease:
    """Published queries with noisy counts, noisy clicks on their results, and which query came after which.

    (ε, δ)-private if a user with all their searches is added or removed, ε and δ being those of ``params.budget`` for
    everything together. ``public_records`` are pairs ⟨query, URL⟩ from outside the log, for ``urls="public"``; a URL
    that starts with ``suggestion:`` is a suggested query.
    """
    if (params.urls == "public") != (public_records is not None):
        raise InvalidParameter("public_records", "expected with urls = public, and only there")
    source = randomness or SystemRandomness()
    design = ClickGraphDesign.of(params)
    on_step("select queries")
    chosen, tally = select_queries(log, design, randomness=source)
    queries = sorted(chosen, key=str.encode)
    if not design.reuses_noise:
        on_step("query counts")
        chosen = fresh_query_counts(log, queries, tally, design, randomness=source)
    clicks: dict[Record, int] = {}
    if design.click_counts:
        on_step("click counts")
        if public_records is not None:
            pairs = listed_pairs(public_records, queries)
            clicks = public_click_counts(log, pairs, design.click_counts, design, randomness=source)
        else:
            clicks = private_click_counts(log, queries, design.click_counts, design, randomness=source)
    typed: dict[Record, int] = {}
    if design.reformulations:
        on_step("reformulations")
        typed = typed_reformulations(log, queries, design.reformulations, randomness=source)
    return _release(design, chosen, clicks, typed, source)


def _release(
    design: ClickGraphDesign,
    queries: Mapping[str, int],
    clicks: Mapping[Record, int],
    typed: Mapping[Record, int],
    randomness: Randomness,
) -> ClickGraphRelease:
    """Post-processing alone: intervals, correction, clamping, and rows from the largest count to the smallest."""
    links = _with_figures(clicks, design.click_counts)
    rows = [QueryRow(query, *figures) for query, figures in _with_figures(queries, design.query_counts).items()]
    urls = [
        ClickRow(str(pair.query), str(pair.url), *figures)
        for pair, figures in links.items()
        if suggested_query(pair) is None
    ]
    steps = [
        ReformulationRow(str(pair.query), following, "suggestion", *figures)
        for pair, figures in links.items()
        if (following := suggested_query(pair)) in queries and following is not None
    ]
    steps += [
        ReformulationRow(str(pair.query), str(pair.url), "typed", *figures)
        for pair, figures in _with_figures(typed, design.reformulations).items()
    ]
    return ClickGraphRelease(
        params=design.params,
        design=design,
        queries=sorted(rows, key=lambda row: (-row.count, row.query.encode())),
        clicks=sorted(urls, key=lambda row: (-row.count, row.query.encode(), row.url.encode())),
        reformulations=sorted(steps, key=lambda row: (-row.count, row.query.encode(), row.next_query.encode())),
        guarantee=click_graph_guarantee(design, randomness),
        treated_as_public=treated_as_public(design.params),
    )


def _with_figures(counts: Mapping[_Key, int], step: StepDesign | None) -> dict[_Key, _Figures]:
    """What readers need beside each noisy count; counts that passed a threshold were selected by their own noise."""
    if step is None or not counts:
        return {}
    drawn = np.fromiter(counts.values(), np.int64, len(counts))
    if step.threshold is None:
        half = half_width(step.noise)
        low, high, debiased = drawn - half, drawn + half, [None] * len(drawn)
    else:
        reused = ReusedNoise(step.noise, step.threshold)
        low, high = reused.interval(drawn)
        debiased = corrected_counts(drawn, step.noise, step.threshold).tolist()
    columns = zip(drawn.tolist(), np.maximum(drawn, 0).tolist(), debiased, low.tolist(), high.tolist(), strict=True)
    return dict(zip(counts, columns, strict=True))
