"""A string that is not UTF-8, or a value that a library does not know, is missing in its row: no other row is read
otherwise, whatever the table is kept in."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import fastavro
import pyarrow as arrow
import pytest
from made_tables import ROWS, found, table
from pyarrow.dataset import dataset
from pyarrow.orc import write_table as write_orc
from pyarrow.parquet import write_table
from pyiceberg.catalog.sql import SqlCatalog

from searchblend.core.errors import InputError
from searchblend.core.privacy import Budget, Neighbors
from searchblend.core.randomness import SystemRandomness
from searchblend.logs.duckdb import scan
from searchblend.logs.read import read_log
from searchblend.logs.tables import stored
from searchblend.releases.select_values import Selection

NOW = 1_700_000_000
UNSOUND = b"\xffa\xc3?\xe2\x82b"
OF_EVE = [("eve", "{}", "http://a.example", None), ("eve", "query 1", "{}", None), ("{}", "query 1", None, None)]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")  # of the libraries


def strings(values: list[str | None], odd: bytes) -> Any:
    """A column of strings, in which ``{}`` is these bytes."""
    texts = [None if value is None else odd if value == "{}" else value.encode() for value in values]
    valid, offsets, data = arrow.array(texts, arrow.binary()).buffers()
    return arrow.Array.from_buffers(arrow.string(), len(texts), [valid, offsets, data])


def with_eve(odd: bytes) -> Any:
    rows = [*ROWS, *OF_EVE]
    columns = [strings(list(column), odd) for column in zip(*rows, strict=True)]
    return arrow.table([*columns, arrow.array([[1]] * len(rows))], names=table().column_names)


def plain_parquet(folder: Path, rows: Any, **how: Any) -> Path:
    write_table(rows, folder / "log.parquet", row_group_size=100, **how)
    return folder / "log.parquet"


def delta_parquet(folder: Path, rows: Any) -> Path:
    encodings = {"user": "DELTA_LENGTH_BYTE_ARRAY", "query": "DELTA_BYTE_ARRAY", "url": "PLAIN"}
    return plain_parquet(folder, rows, use_dictionary=False, column_encoding=encodings)


def arrow_file(folder: Path, rows: Any) -> Path:
    with arrow.ipc.new_file(str(folder / "log.arrow"), rows.schema) as file:
        file.write_table(rows, max_chunksize=100)
    return folder / "log.arrow"


def in_dictionaries(_: Path, rows: Any) -> Any:
    numbers = arrow.array(range(len(rows)))
    columns = {
        name: arrow.DictionaryArray.from_arrays(numbers, rows.column(name).combine_chunks())
        for name in rows.column_names[:-1]
    }
    return arrow.table(columns)


def orc(folder: Path, rows: Any) -> Path:
    write_orc(rows, folder / "log.orc")
    return folder / "log.orc"


def iceberg(folder: Path, rows: Any) -> Path:
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    catalog.create_table("n.log", rows.schema).append(with_eve(b"sound"))
    [file] = folder.glob("n/log/data/*.parquet")
    schema = arrow.parquet.read_schema(file)
    lists = rows.column("unused").combine_chunks().cast(schema.field("unused").type)
    write_table(arrow.table([*rows.columns[:-1], lists], schema=schema), file)
    return folder / "n" / "log"


KINDS: dict[str, Callable[[Path, Any], Any]] = {
    "parquet": plain_parquet,
    "parquet of other encodings": delta_parquet,
    "arrow": arrow_file,
    "dictionaries in a file": lambda folder, rows: arrow_file(folder, in_dictionaries(folder, rows)),
    "orc": orc,
    "iceberg": iceberg,
    "table": lambda folder, rows: rows,
    "dictionaries": in_dictionaries,
    "dataset": lambda folder, rows: dataset(plain_parquet(folder, rows)),
}


def without_eve(log: Any, odd: str, draws: int) -> tuple[Any, ...]:
    rows, _, lines, *_ = found(log, draws=draws)
    return [row for row in rows if not {"eve", odd, ""} & set(row)], lines


@pytest.mark.parametrize("kind", KINDS)
def test_a_string_that_is_not_utf_8_is_missing_in_its_row_alone(kind: str, tmp_path: Path):
    logs = []
    for name, odd in (("sound", b"sound"), ("unsound", UNSOUND)):
        (tmp_path / name).mkdir()
        logs.append(KINDS[kind](tmp_path / name, with_eve(odd)))
    for draws in (0, 1):
        assert without_eve(logs[1], "", draws) == without_eve(logs[0], "sound", draws)
        with read_log(logs[1], draws=draws) as log:
            assert {why: one.count for why, one in log.summary.malformed.items()} == {
                "missing_user": 2,
                "unusable_query": 2,
            }
    selection = Selection.of(logs[1], Budget(8, 1e-6), value="query", neighbors=Neighbors.ADD_REMOVE_ONE)
    with selection.read(SystemRandomness()) as values:
        assert values.n_users == 51  # those of the rows, and eve with her sound query


def test_reading_such_parquet_files_as_they_are_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The fault: what the database puts in the place of the bytes is taken for the string."""
    monkeypatch.setattr(scan, "quoted", lambda string: "'replace'" if string == "ignore" else f"'{string}'")
    with read_log(plain_parquet(tmp_path, with_eve(UNSOUND))) as log:
        assert "unusable_query" in log.summary.malformed  # of the row without one
        assert log.summary.malformed["unusable_query"].count == 1


def test_columns_that_are_damaged_are_refused_and_not_mended():
    values = strings(["a", "b"], b"")
    offsets = arrow.py_buffer(struct.pack("<3i", 0, 90, 2))
    broken = arrow.Array.from_buffers(arrow.string(), 2, [None, offsets, values.buffers()[2]])
    with pytest.raises(arrow.ArrowInvalid):
        stored.sound_batch(arrow.record_batch([broken], ["user"]))


def ubi(folder: Path, odd: bytes) -> Path:
    folder.mkdir()
    n = 20
    users, ids = [f"u{i}" for i in range(n)], [f"i{i}" for i in range(n)]
    queries = {"client_id": [*users, "eve", "{}"], "query_id": [*ids, "e", "f"]}
    queries |= {"user_query": [*(f"q{i % 3}" for i in range(n)), "{}", "q1"]}
    documents = [json.dumps({"object": {"object_id": f"doc{i % 3}"}}) for i in range(n)]
    documents.append('{"object": {"object_id": "{}"}}')
    for name, columns in (
        ("ubi_queries", queries),
        (
            "ubi_events",
            {
                "client_id": [*users, "eve"],
                "query_id": [*ids, "e"],
                "action_name": ["click"] * (n + 1),
                "event_attributes": documents,
            },
        ),
    ):
        rows = arrow.table({name: strings(column, odd) for name, column in columns.items()})
        write_table(rows, folder / f"{name}.parquet")
    return folder


def test_so_is_a_member_of_ubi(tmp_path: Path):
    sound, unsound = ubi(tmp_path / "a", b"sound"), ubi(tmp_path / "b", UNSOUND)
    assert without_eve(unsound, "", 1)[0] == without_eve(sound, "sound", 1)[0]
    with read_log(unsound) as log:
        assert log.summary.users == 20


def test_delta_lake_refuses_such_a_file_in_its_own_library(tmp_path: Path):
    deltalake.write_deltalake(tmp_path, with_eve(b"sound"))
    [file], [log] = tmp_path.glob("*.parquet"), tmp_path.glob("_delta_log/*.json")
    write_table(with_eve(UNSOUND), file)
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["size"] = file.stat().st_size
    log.write_text("\n".join(map(json.dumps, actions)))
    with pytest.raises(InputError, match="the delta table cannot be read"):
        read_log(tmp_path)


def test_no_value_of_avro_refuses_the_others(tmp_path: Path):
    """Times that Python has not, and strings that are no UUID though they are said to be one."""
    kinds = {
        "user": {"type": "string", "logicalType": "uuid"},
        "query": "string",
        "time": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
        "day": {"type": "int", "logicalType": "date"},
    }
    rows = [{"user": f"u{i}", "query": f"q{i}", "time": 1_000 * (NOW + i), "day": 19_000 + i} for i in range(9)]
    far_away = enumerate([1 << 62, -(1 << 62)])
    rows += [{"user": f"u9{i}", "query": f"q{i}", "time": time, "day": -(1 << 31) + i} for i, time in far_away]
    rows += [{"user": "v", "query": "v", "time": None, "day": (1 << 31) - 1}]
    schema = {"type": "record", "name": "row", "fields": [{"name": name, "type": kinds[name]} for name in kinds]}
    with (tmp_path / "log.avro").open("wb") as file:
        fastavro.writer(file, schema, rows)
    for column, first in (("time", NOW + 1), ("day", 19_001 * 86_400)):
        with read_log(tmp_path / "log.avro", columns={"time": column}, urls=False, draws=0) as log:
            moments = dict(log._engine._session.rows("SELECT user, moment FROM lines"))  # type: ignore[attr-defined]
        assert (len(moments), moments["u1"]) == (12, first)


@pytest.mark.parametrize("draws", [0, 1])
def test_rows_that_are_units_are_told_apart_whatever_is_in_them(draws: int, tmp_path: Path):
    """One row more is one user more, also where letters of a query could end it."""
    lines = [{"query": "a\x1fb", "url": "c"}, {"query": "a", "url": "b\x1fc"}, {"query": "a", "url": "b"}]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with read_log(tmp_path / "log.jsonl", unit="row", draws=draws) as log:
        assert log.summary.users == 3


def test_no_search_makes_a_line_of_counts_malformed(tmp_path: Path):
    found_counts = []
    for count in ("999999999", "1000000000", "9" * 40):
        (tmp_path / "log.csv").write_text(f"value,count\nweather,{count}\nnews,7\n")
        selection = Selection.of(tmp_path / "log.csv", Budget(1, 1e-9), unit="row", neighbors=Neighbors.ADD_REMOVE_ONE)
        with selection.read(SystemRandomness()) as values:
            found_counts.append(values.n_users)
    assert found_counts == [999_999_999 + 7] * 3
