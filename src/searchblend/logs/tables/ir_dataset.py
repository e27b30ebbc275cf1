"""Query logs of the library ir_datasets, which fetches and keeps them itself: their terms are its user's to accept.

An entry is a search with the results that were shown. It becomes a row for each result that was clicked, or one row
without a URL. A URL is the library's name of a document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, get_type_hints

import ir_datasets
import pyarrow as pa

from searchblend.core.errors import InputError
from searchblend.logs.formats.remote import RemoteFile
from searchblend.logs.tables.stored import StoredTable, in_pages, text_or_none
from searchblend.logs.tables.urls import ir_name

_TYPES: Final[dict[Any, pa.DataType]] = {str: pa.string(), int: pa.int64(), datetime: pa.timestamp("us")}
_USER: Final = "user_id"
_OF_RESULTS: Final = {"url": "doc_id", "rank": "rank"}
"""our name → the library's, of what it says of a result"""


class IrDataset(StoredTable):
    """The query log of one data set."""

    def __init__(self, name: str) -> None:
        super().__init__("ir", RemoteFile(name))

    def open(self) -> pa.Schema:
        try:
            dataset = ir_datasets.load(ir_name(str(self.label)))
        except KeyError:
            raise InputError(self.label, "ir_datasets has no data set of this name") from None
        if not dataset.has_qlogs():
            raise InputError(self.label, "this data set of ir_datasets has no query log")
        self._log = dataset.qlogs_handler()
        kinds = get_type_hints(self._log.qlogs_cls())
        fields = [(name, _TYPES[kind]) for name, kind in kinds.items() if kind in _TYPES]
        users = [("user", _TYPES[kinds[_USER]])] if _USER in kinds else []
        return pa.schema([*users, *fields, *((name, pa.string()) for name in _OF_RESULTS)])

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([self.schema.field(name) for name in columns])
        getters = [_getter(field.name, field.type) for field in schema]
        rows = ([get(search, result) for get in getters] for search, result in self._searches())
        for page in in_pages(rows):
            values = zip(schema, zip(*page, strict=True), strict=True)
            yield pa.record_batch([pa.array(column, field.type) for field, column in values], schema)

    def _searches(self) -> Iterator[tuple[Any, Any]]:
        for search in self._log.qlogs_iter():
            clicked = [result for result in search.items if result.clicked]
            for result in clicked or [None]:
                yield search, result


def _getter(name: str, type: pa.DataType) -> Callable[[Any, Any], Any]:
    member = _OF_RESULTS.get(name, _USER if name == "user" else name)

    def get(search: Any, result: Any) -> Any:
        value = getattr(result if name in _OF_RESULTS else search, member, None)
        return value if value is None or type != pa.string() else text_or_none(str(value))

    return get
