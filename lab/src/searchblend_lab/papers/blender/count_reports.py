"""The counted reports of clients, drawn as counts: the cost does not grow with the number of clients.

The estimators read how often each cell or item was reported and nothing else, so drawing those counts from their law is
the same experiment as letting every device report. Every law here is proved in proofs/counted_people.md.
"""

from __future__ import annotations

import numpy as np

from searchblend.blender.best.subset_report import GAMMA_STEPS, TWO_STAGE, ReportDesign, SetMechanism
from searchblend.blender.best.subset_report_bulk import ReportCounts, SubsetCounts
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.randomness import Randomness
from searchblend.core.records import HeadList
from searchblend.mechanisms.subset_selection import PlainSubsetSelection
from searchblend.mechanisms.tally import Ints


class CountedDevices:
    """``Devices`` whose reports are drawn as counts. Seeded from the randomness it is given: never a release."""

    def cells_reported(
        self, held: Ints, head: HeadList, probabilities: ReportProbabilities, randomness: Randomness
    ) -> Ints:
        return draw_two_stage(held, probabilities, generator_of(randomness))

    def sets_reported(
        self, held: Ints, head: HeadList, design: ReportDesign, params: BlenderParams, randomness: Randomness
    ) -> ReportCounts:
        generator = generator_of(randomness)
        if design.mechanism == TWO_STAGE:
            return ReportCounts(two_stage=draw_two_stage(held, ReportProbabilities.exact(head, params), generator))
        queries, cells = design.about_queries(head, params), design.about_cells(head, params)
        about_queries: Ints = generator.binomial(held, design.query_steps / GAMMA_STEPS)
        by_query = np.add.reduceat(about_queries, head.first_cells())
        return ReportCounts(
            queries=None if queries is None else draw_sets(by_query, queries, generator),
            cells=None if cells is None else draw_sets(held - about_queries, cells, generator),
        )


def generator_of(randomness: Randomness) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(int.from_bytes(randomness.take(16), "little")))


def draw_two_stage(held: Ints, probabilities: ReportProbabilities, generator: np.random.Generator) -> Ints:
    """How often each cell is reported when this many clients hold each cell. [BLJ] Fig. 6.

    Per cell: truths, lies about the URL and lies about the query are multinomial; a lie is uniform over its kind.
    """
    widths = np.array(probabilities.n_urls)
    if len(widths) == 1:
        return held.copy()
    query_of_cell = np.repeat(np.arange(len(widths)), widths)
    keep_record = (probabilities.keep_query * np.array(probabilities.keep_url))[query_of_cell]
    lie_url = probabilities.keep_query - keep_record
    decided = generator.multinomial(held, np.stack([keep_record, lie_url, 1 - keep_record - lie_url], axis=1))
    reported: Ints = decided[:, 0].copy()
    first = np.cumsum(widths) - widths
    query_liars = np.add.reduceat(decided[:, 2], first)
    received = _uniform_others(query_liars, generator)
    for query, width in enumerate(widths.tolist()):
        cells = slice(first[query], first[query] + width)
        if width > 1:
            reported[cells] += _uniform_others(decided[cells, 1], generator)
        reported[cells] += generator.multinomial(received[query], np.full(width, 1 / width))
    return reported


def _uniform_others(liars: Ints, generator: np.random.Generator) -> Ints:
    """How often each of k things is named when everyone names a uniform other than their own."""
    k = len(liars)
    named = generator.multinomial(liars, np.full(k - 1, 1 / (k - 1)))
    everyone = np.zeros((k, k), dtype=np.int64)
    everyone[~np.eye(k, dtype=np.bool_)] = named.ravel()
    total: Ints = everyone.sum(axis=0)
    return total


def draw_sets(holders: Ints, mechanism: SetMechanism, generator: np.random.Generator) -> SubsetCounts:
    """Reports of holders of each item; the last entry of ``holders`` counts those of ⋆."""
    m, size, include = mechanism.n_items, mechanism.subset_size, mechanism.include
    if isinstance(mechanism, PlainSubsetSelection):
        kept: Ints = generator.binomial(holders, include)
        items = kept + uniform_sets(kept, size - 1, generator) + uniform_sets(holders - kept, size, generator)
        return SubsetCounts(items[:m], 0, int(holders.sum()))
    law = [include, mechanism.sink_of_holder, max(1 - include - mechanism.sink_of_holder, 0.0)]
    decided = generator.multinomial(holders[:m], law)
    star_sinks = int(generator.binomial(holders[m], include))
    items = decided[:, 0] + uniform_sets(decided[:, 0], size - 1, generator)
    items += uniform_sets(decided[:, 2], size, generator, anyone=int(holders[m]) - star_sinks)
    return SubsetCounts(items, star_sinks + int(decided[:, 1].sum()), int(holders.sum()))


def uniform_sets(avoiding: Ints, size: int, generator: np.random.Generator, anyone: int = 0) -> Ints:
    """How often each of m items is in the sets of people who each choose ``size`` uniformly.

    ``avoiding[i]`` people may not choose item i, ``anyone`` may choose any. Item by item: someone who still needs r
    of the e items they may choose takes the next with probability r/e. People are known by r alone; whose own item
    comes next is a uniform choice among those whose own item is still to come.
    """
    m = len(avoiding)
    chosen = np.zeros(m, dtype=np.int64)
    if not size:
        return chosen
    needs = np.arange(size + 1)
    ahead = np.zeros(size + 1, dtype=np.int64)  # by r: their own item is still to come
    free = np.zeros(size + 1, dtype=np.int64)  # by r: every item that is left may be chosen
    ahead[size], free[size] = int(avoiding.sum()), anyone
    for item in range(m):
        left = m - item
        owners = np.zeros_like(ahead)
        if avoiding[item]:
            owners = generator.multivariate_hypergeometric(ahead, int(avoiding[item]), method="marginals")
            ahead = ahead - owners
        took = generator.binomial(free, np.minimum(needs / left, 1.0))
        if ahead.any():
            took_ahead = generator.binomial(ahead, np.minimum(needs / max(left - 1, 1), 1.0))
            ahead = _moved(ahead, took_ahead)
            chosen[item] = took_ahead.sum()
        free = _moved(free, took) + owners
        chosen[item] += took.sum()
    return chosen


def _moved(people: Ints, took: Ints) -> Ints:
    """Who took the item needs one less."""
    moved = people - took
    moved[:-1] += took[1:]
    return moved
