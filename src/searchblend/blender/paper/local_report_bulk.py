"""The vectorised twin of ``local_report``: millions of clients at once, the same law bit for bit.

For simulating clients from a log that is already in the curator's hands, and for evaluation. Each word
is used as ``randomize`` uses it, so one client with a given tape gets the same report from both.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.groups import random_words
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.randomness import HALF, Randomness, SystemRandomness
from searchblend.mechanisms.tally import Ints

_CHUNK: Final = 1 << 18
Words = NDArray[np.uint64]


class BulkReporter:
    """``ReportProbabilities`` as arrays by cell and by query, ready for many clients."""

    def __init__(self, probabilities: ReportProbabilities) -> None:
        widths = np.array(probabilities.n_urls, dtype=np.int64)
        self._n_queries = probabilities.n_queries
        self._n_cells = int(widths.sum())
        if self._n_queries == 1:
            return
        self._first = np.cumsum(widths) - widths
        self._width = widths.astype(np.uint64)
        self._query_of = np.repeat(np.arange(len(widths)), widths)
        self._keep_query = np.uint64(probabilities.keep_query_below)
        self._keep_record = np.array(probabilities.keep_record_below, dtype=np.uint64)[self._query_of]
        self._only_queries = self._n_cells == self._n_queries

    def report(self, cells: NDArray[np.integer], randomness: Randomness | None = None) -> Ints:
        """One privatized cell for each true cell."""
        if self._n_queries == 1:
            return np.array(cells, dtype=np.int64)
        source = randomness or SystemRandomness()
        said = np.empty(len(cells), dtype=np.int64)
        for start in range(0, len(cells), _CHUNK):
            said[start : start + _CHUNK] = self._report_chunk(cells[start : start + _CHUNK], source)
        return said

    def report_counts(self, cell_counts: Ints, randomness: Randomness | None = None) -> Ints:
        """How often each cell is reported when this many clients hold each cell. Memory: one chunk."""
        source = randomness or SystemRandomness()
        reported = np.zeros(self._n_cells, dtype=np.int64)
        ends = np.cumsum(cell_counts)
        for start in range(0, int(ends[-1]), _CHUNK):
            clients = np.arange(start, min(start + _CHUNK, int(ends[-1])))
            cells = np.searchsorted(ends, clients, side="right")
            reported += np.bincount(self.report(cells, source), minlength=self._n_cells)
        return reported

    def _report_chunk(self, cells: NDArray[np.integer], randomness: Randomness) -> Ints:
        decision = random_words(len(cells), randomness)
        said = np.array(cells, dtype=np.int64)
        if self._only_queries:  # a cell is a query, and the only lie is another one: the same words, fewer steps
            liars = np.flatnonzero(decision >= self._keep_query)
            lie = random_words(len(liars), randomness)
            others = np.uint64(self._n_queries - 1)
            other = _uniform_from_half((lie >> np.uint64(32)), others, randomness)
            other += other >= said[liars]
            said[liars] = other
            return said
        liars = np.flatnonzero(decision >= self._keep_record[cells])
        lie = random_words(len(liars), randomness)
        about_query = decision[liars] >= self._keep_query
        who = liars[about_query]
        said[who] = self._other_query(said[who], lie[about_query], randomness)
        who = liars[~about_query]
        said[who] = self._other_url(said[who], lie[~about_query], randomness)
        return said

    def _other_query(self, cells: Ints, lie: Words, randomness: Randomness) -> Ints:
        other = _uniform_from_half(lie >> np.uint64(32), np.uint64(self._n_queries - 1), randomness)
        other += other >= self._query_of[cells]
        url = _uniform_from_half(lie & np.uint64(HALF - 1), self._width[other], randomness)
        return self._first[other] + url

    def _other_url(self, cells: Ints, lie: Words, randomness: Randomness) -> Ints:
        query = self._query_of[cells]
        own = cells - self._first[query]
        url = _uniform_from_half(lie & np.uint64(HALF - 1), self._width[query] - np.uint64(1), randomness)
        return self._first[query] + url + (url >= own)


def _uniform_from_half(half: Words, n: Words | np.uint64, randomness: Randomness) -> Ints:
    """``randomness.uniform_from_half`` for arrays: exactly uniform in [0, n), n the same for all or one for each."""
    limit = np.uint64(HALF) - np.uint64(HALF) % n
    rejected = np.flatnonzero(half >= limit)
    if len(rejected):
        half = half.copy()
    while len(rejected):
        half[rejected] = random_words(len(rejected), randomness) & np.uint64(HALF - 1)
        own_limit = limit[rejected] if isinstance(limit, np.ndarray) else limit
        rejected = rejected[half[rejected] >= own_limit]
    return (half.astype(np.uint32) % n.astype(np.uint32)).astype(np.int64)  # both are below 2^32
