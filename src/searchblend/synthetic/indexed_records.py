"""The distinct records of a log as a universe that finds the records of a few queries quickly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.tally import Ints, ListedRecords


class IndexedRecords(ListedRecords):
    """``ListedRecords`` that looks only at the numbers of listed queries."""

    def __init__(self, records: Sequence[Record]) -> None:
        super().__init__(records)
        self._number_of_query: dict[object, int] = {}
        for record in records:
            self._number_of_query.setdefault(record.query, len(self._number_of_query))

    def cells(self, head: HeadList, numbers: Ints) -> Ints:
        listed = np.array([self._number_of_query.get(query, -1) for query in head.queries], dtype=np.int64)
        cells = np.full(len(numbers), head.n_cells - 1, dtype=np.int64)
        inside = np.flatnonzero(np.isin(self.query_numbers(numbers), listed))
        if len(inside):
            cells[inside] = super().cells(head, numbers[inside])
        return cells
