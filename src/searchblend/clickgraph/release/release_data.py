"""Release-Data: a private query click graph from a log. [KKMN09] Algorithm 1 and its successors. Run by the curator.

The steps in order: Select-Queries (1, 3 and 4) decides which queries are published; Get-Query-Counts (5) counts them;
Get-Click-Counts (6) counts clicks on their results; reformulations are an extension of §6, which has clicks on
suggestions only.

The paper publishes click counts for the results that anyone can see by posing the query. Its experiments take the most
clicked URLs *of the log* instead, which no noise makes private: a URL that one person clicked would be named with
certainty. So either the pairs come from outside the log, or the log's own pairs must pass a threshold with a budget of
their own. Pairs of published queries are public candidates, too, but too many for a noisy count each: they pass a
threshold as well. proofs/click_edges.md.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from searchblend.clickgraph.release.adaptive_selection import PARTS, FirstRound
from searchblend.clickgraph.release.attribute_counts import AttributeCounts, by_name, count_by_attribute
from searchblend.clickgraph.release.click_log import SUGGESTION, AttributedLog, ClickLog
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.release import (
    ClickGraphRelease,
    ClickRow,
    QueryRow,
    ReformulationRow,
    click_graph_guarantee,
    treated_as_public,
)
from searchblend.clickgraph.release.reused_noise import ReusedNoise, corrected_counts
from searchblend.clickgraph.release.step import CountThreshold, StepDesign
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import ClickGraphParams
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.records import Record
from searchblend.core.silent import SILENT
from searchblend.mechanisms.tally import Tally
from searchblend.mechanisms.threshold import noisy_counts

OnStep = Callable[[str], None]
_Key = TypeVar("_Key")
_Figures = tuple[int, int, float | None, int, int]
"""count, clamped, corrected, lower and upper end"""


def release_data(
    log: ClickLog,
    params: ClickGraphParams,
    *,
    public_records: Iterable[Record] | None = None,
    known: Iterable[str] = (),
    randomness: Randomness | None = None,
    on_step: OnStep = SILENT,
) -> ClickGraphRelease:
    """Published queries with noisy counts, noisy clicks on their results, and which query came after which.

    (ε, δ)-private if a user with all their searches is added or removed, ε and δ being those of ``params.budget`` for
    everything together. ``public_records`` are pairs ⟨query, URL⟩ from outside the log, for ``urls="public"``; a URL
    that starts with ``suggestion:`` is a suggested query. ``known`` are queries that earlier windows of the account
    published: they are counted again without a threshold, so that a series goes on where a count is low.

    Example:
        ``sb.release_data(sb.read_log("searches.tsv", draws=0).activity(), sb.ClickGraphParams(sb.Budget(2.0, 1e-6)))``
    """
    if not hasattr(log, "searches"):  # a log as read_log gives it
        raise InvalidParameter("log", "expected searches and clicks: read_log(…, draws=0).activity() has them")
    check_public(params, given=public_records is not None)
    if params.attributes and not isinstance(log, AttributedLog):
        raise InvalidParameter("attributes", "expected a log that knows them: read it with the same attributes")
    source = randomness or SystemRandomness()
    design = ClickGraphDesign.of(params)
    on_step("select queries")
    chosen, tally = select_queries(log, design, randomness=source)
    listed = sorted(set(known), key=str.encode)
    if listed and params.per == "none":
        raise InvalidParameter("known", "expected with per = day or week: elsewhere caps do not bound these counts")
    chosen |= count_known(log, listed, design, randomness=source)
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
    counted: list[AttributeCounts] = []
    if isinstance(log, AttributedLog) and design.attribute_steps:
        on_step("counts by attribute")
        pairs = sorted((pair for pair in clicks if suggested_query(pair) is None), key=by_name)
        steps, kept = design.attribute_steps, design.searches_kept
        counted = count_by_attribute(log, steps, queries, pairs, within=kept, randomness=source)
    return _release(design, chosen, set(listed), clicks, typed, counted, source, log.unit)


def count_known(
    log: ClickLog, known: Sequence[str], design: ClickGraphDesign, *, randomness: Randomness
) -> dict[str, int]:
    """Counts of queries that are public already, with noise of their own: what the selection drew for them is dropped.

    A user's queries that count here are among those that the selection's cap keeps, so that both together move no more
    than the cap allows.
    """
    step = design.rounds[-1]
    exact = log.searches_of(known, step.cap) if known else {}
    noise = step.noise.sample(len(known), randomness).tolist()
    return {query: exact[query] + drawn for query, drawn in zip(known, noise, strict=True)}


def check_public(params: ClickGraphParams, *, given: bool) -> None:
    """Pairs from outside the log go with ``urls="public"``."""
    if (params.urls == "public") != given:
        raise InvalidParameter("public_records", "expected with urls = public, and only there")


def _release(
    design: ClickGraphDesign,
    queries: Mapping[str, int],
    known: Container[str],
    clicks: Mapping[Record, int],
    typed: Mapping[Record, int],
    counted: Sequence[AttributeCounts],
    randomness: Randomness,
    unit: str,
) -> ClickGraphRelease:
    """Post-processing alone: intervals, correction, clamping, and rows from the largest count to the smallest."""
    links = _with_figures(clicks, design.click_counts)
    new = {query: count for query, count in queries.items() if query not in known}
    again = {query: count for query, count in queries.items() if query in known}
    figured = _with_figures(new, design.query_counts) | _with_figures(
        again, replace(design.query_counts, threshold=None)
    )
    rows = [QueryRow(query, *figures) for query, figures in figured.items()]
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
        by_attribute=counted,
        guarantee=replace(click_graph_guarantee(design, randomness), unit=unit),
        treated_as_public=treated_as_public(design.params, known=len(again)),
    )


def _with_figures(counts: Mapping[_Key, int], step: StepDesign | None) -> dict[_Key, _Figures]:
    """What readers need beside each noisy count; counts that passed a threshold were selected by their own noise."""
    if step is None or not counts:
        return {}
    drawn = np.fromiter(counts.values(), np.int64, len(counts))
    if step.threshold is None:
        half = int(step.law.half_width())
        low, high, debiased = drawn - half, drawn + half, [None] * len(drawn)
    else:
        reused = ReusedNoise(step.noise, step.threshold)
        low, high = reused.interval(drawn)
        debiased = corrected_counts(drawn, step.noise, step.threshold).tolist()
    columns = zip(drawn.tolist(), np.maximum(drawn, 0).tolist(), debiased, low.tolist(), high.tolist(), strict=True)
    return dict(zip(counts, columns, strict=True))


def select_queries(log: ClickLog, design: ClickGraphDesign, *, randomness: Randomness) -> tuple[dict[str, int], Tally]:
    """Q with the noisy values that the threshold compared, and the tally of the last round.

    Q = {q in the limited log : M(q) + Y ≥ T}, noise of its own for each query that occurs. DP-SIPS does so in rounds,
    each without the queries that the rounds before have published.
    """
    chosen: dict[str, int] = {}
    for step in design.rounds:
        if step.first_round is not None:
            return _select_in_two_rounds(log, step, step.first_round, randomness)
        tally = _tally(log, step, list(chosen))
        chosen |= by_query(noisy_counts(tally, step.count_threshold, randomness=randomness))
    return chosen, tally


def _select_in_two_rounds(
    log: ClickLog, step: StepDesign, first: FirstRound, randomness: Randomness
) -> tuple[dict[str, int], Tally]:
    """What is certain after the first round, and what both rounds together take over the threshold."""
    tally = log.weighted_searches(step.cap.first, first.units, [])
    running = by_query(noisy_counts(tally, CountThreshold(first.lower, first.noise), randomness=randomness))
    chosen = {query: z for query, z in running.items() if z >= first.upper}
    left = sorted(running.keys() - chosen.keys(), key=str.encode)
    weights = log.weighted_searches_of(left, step.cap.first, step.units)
    noise = step.noise.sample(len(left), randomness).tolist()
    for query, drawn in zip(left, noise, strict=True):
        together = PARTS * (weights[query] + drawn) + first.carried * running[query]
        if together >= PARTS * step.count_threshold.integer:
            chosen[query] = together // PARTS
    return chosen, tally


def _tally(log: ClickLog, step: StepDesign, without: list[str]) -> Tally:
    if step.units == 1:
        return log.searches(step.cap)
    return log.weighted_searches(step.cap.first, step.units, without)


def by_query(counts: Mapping[Record, int]) -> dict[str, int]:
    """Counts of ⟨q, ⋆⟩ by q."""
    return {record.query: count for record, count in counts.items() if isinstance(record.query, str)}


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


def public_click_counts(
    log: ClickLog, records: Sequence[Record], step: StepDesign, design: ClickGraphDesign, *, randomness: Randomness
) -> dict[Record, int]:
    """Noisy clicks on each of these pairs, those without a click among them."""
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
    return sorted(kept, key=by_name)


def suggested_query(record: Record) -> str | None:
    """The query that a click on a suggestion leads to."""
    url = record.url
    return url.removeprefix(SUGGESTION) if isinstance(url, str) and url.startswith(SUGGESTION) else None


def typed_reformulations(
    log: ClickLog, queries: Sequence[str], step: StepDesign, *, randomness: Randomness
) -> dict[Record, int]:
    """⟨q, q'⟩ with the noisy number of times that q' came after q, where it reaches the threshold."""
    return noisy_counts(log.reformulations(queries, step.cap), step.count_threshold, randomness=randomness)
