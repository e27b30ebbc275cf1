"""Tables in a caller's memory are read as the same rows in Parquet are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from input_worlds import KEY, enum_relation
from searchblend.core.errors import InputError, InvalidColumns, InvalidParameter
from searchblend.core.privacy import Budget
from searchblend.logs.duckdb.session import DuckDBSession
from searchblend.logs.formats.layout import ColumnMap
from searchblend.logs.formats.sources import columns_layout
from searchblend.logs.read import read_log
from searchblend.releases.select_values import select_values

ROWS: list[tuple[Any, ...]] = [
    *[(f"u{i}", f"query {i % 7}", f"http://{i % 5}.example", "2006-03-01 12:00:00") for i in range(300)],
    ("", "no user", "http://a.example", None),
    ("u1", None, "http://a.example", None),
    ("u2", "no url", None, None),
]
COLUMNS = ("user", "query", "url", "time")


class Once:
    """A stream that can be taken once."""

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._relation: duckdb.DuckDBPyRelation | None = relation

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        assert self._relation is not None, "it was taken already"
        relation, self._relation = self._relation, None
        return relation.__arrow_c_stream__(requested_schema)


def relation_of(rows: list[tuple[Any, ...]] = ROWS) -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (user VARCHAR, query VARCHAR, url VARCHAR, time VARCHAR, unused BLOB)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, NULL)", rows)
    return connection.table("t")


def arrays_of(rows: list[tuple[Any, ...]] = ROWS) -> dict[str, Any]:
    return {name: np.array(column, dtype=object) for name, column in zip(COLUMNS, zip(*rows, strict=True), strict=True)}


def pandas_frame() -> Any:
    return pytest.importorskip("pandas", reason="pandas is not installed: its DataFrames are not tested").DataFrame(
        arrays_of()
    )


def polars_frame() -> Any:
    polars = pytest.importorskip("polars", reason="Polars is not installed: its DataFrames are not tested")
    return polars.DataFrame({name: list(column) for name, column in arrays_of().items()})


def arrow_table() -> Any:
    arrow = pytest.importorskip("pyarrow", reason="PyArrow is not installed: its tables are not tested")
    return arrow.table({name: list(column) for name, column in arrays_of().items()})


def arrow_dataset() -> Any:
    table = arrow_table()
    return pytest.importorskip("pyarrow.dataset").dataset(table)


def pandas_categories() -> Any:
    """Each column declares a value that no row has, among others of another type."""
    frame = pandas_frame().astype("category")
    for name in COLUMNS:
        frame[name] = frame[name].cat.add_categories([7, "never\nused"])
    return frame


def polars_categories() -> Any:
    polars = pytest.importorskip("polars", reason="Polars is not installed: its DataFrames are not tested")
    return polars_frame().with_columns(polars.col(COLUMNS).cast(polars.Categorical))


def arrow_dictionaries() -> Any:
    table = arrow_table()
    return type(table).from_arrays([column.dictionary_encode() for column in table.columns], table.column_names)


def enums_of(rows: list[tuple[Any, ...]] = ROWS) -> duckdb.DuckDBPyRelation:
    return enum_relation(dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)), unused="never\nused")


SOURCES: dict[str, Callable[[], Any]] = {
    "arrays": arrays_of,
    "relation": relation_of,
    "once": lambda: Once(relation_of()),
    "pandas": pandas_frame,
    "polars": polars_frame,
    "lazy": lambda: polars_frame().lazy(),
    "arrow table": arrow_table,
    "arrow reader": lambda: arrow_table().to_reader(),
    "arrow dataset": arrow_dataset,
    "enums": enums_of,
    "pandas categories": pandas_categories,
    "polars categories": polars_categories,
    "arrow dictionaries": arrow_dictionaries,
}


def found(log: Any, *, draws: int) -> tuple[Any, ...]:
    with read_log(log, key=KEY, threads=1, draws=draws, keep_lines=True) as read:
        summary = read.summary
        places = {why: [place.line for place in kind.first] for why, kind in summary.malformed.items()}
        rows = sorted(read._engine._session.rows("SELECT * FROM lines"), key=repr)  # type: ignore[attr-defined]
        return rows, places, summary.lines, summary.used, summary.users, summary.without_url


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("given") / "log.parquet"
    relation_of().to_parquet(str(path))
    return path


@pytest.mark.parametrize("draws", [0, 1])
@pytest.mark.parametrize("source", SOURCES)
def test_a_table_is_read_as_the_same_parquet_file(source: str, draws: int, parquet: Path):
    assert found(SOURCES[source](), draws=draws) == found(parquet, draws=draws)


@pytest.mark.parametrize("source", ["arrays", "once"])
def test_searches_without_a_moment_are_read_again(source: str):
    with read_log(SOURCES[source](), draws=0, searches_only=True) as log:
        assert log.summary.used + log.summary.without_url == 301


def test_objects_of_any_kind_have_the_text_that_python_writes():
    users = [7, "7", 7.5, b"7", None, float("nan"), "\ud800", True]
    table = {"user": np.array(users, dtype=object), "query": np.array(["q"] * len(users), dtype=object)}
    with read_log(table, keep_lines=True) as log:
        rows = log._engine._session.rows("SELECT user FROM lines WHERE problem = 0")  # type: ignore[attr-defined]
        assert sorted(rows) == [("7",), ("7",), ("7.5",), ("True",), ("b'7'",)]
        assert log.summary.malformed["missing_user"].count == 3
        assert log.decided["format"] == "table"


def test_the_kind_of_a_column_is_not_what_a_line_feed_in_its_values_makes_of_it():
    with closing(DuckDBSession(None, 1, None)) as session:
        session.execute(
            "CREATE TABLE t (user ENUM ('a', 'line\nfeed'), query STRUCT(secret ENUM ('b')), time DECIMAL(9, 2))"
        )
        types = session.types("t")
        assert types == {"user": "ENUM", "query": "STRUCT", "time": "DECIMAL(9,2)"}
        assert columns_layout(Path("t"), {**types, "query": "VARCHAR"}, ColumnMap()).columns.keys() == types.keys()


@pytest.mark.parametrize("column", ["{secret: i}", "[{secret: i}]", "MAP {'secret': i}", "union_value(secret := i)"])
def test_an_error_about_a_type_shows_nothing_that_is_in_it(column: str, tmp_path: Path):
    rows = f"SELECT 'u' AS user, {column} AS query, {column} AS value FROM range(9) t(i)"
    if "union" not in column:
        duckdb.sql(rows).to_parquet(str(tmp_path / "log.parquet"))
    for given in (duckdb.sql(rows), *tmp_path.iterdir()):
        with pytest.raises(InvalidColumns, match=r"'query' has type (STRUCT|LIST|MAP|UNION); expected strings"):
            read_log(given)
        with pytest.raises(InvalidColumns, match=r"'value' has type (STRUCT|LIST|MAP|UNION); expected strings"):
            select_values(given, Budget(1, 1e-6))


@pytest.mark.parametrize(
    "users", [["a", "line\nfeed", None], [1, 2, None], [1, "b", "\ud800"], [True, None, "c"], [b"d", 2.5, float("nan")]]
)
def test_categories_of_pandas_are_read_as_the_objects_that_they_are(users: list[Any]):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: its categoricals are not tested")
    objects = pandas.Series(users, dtype=object)
    columns = {"user": objects, "query": pandas.Series(["x", "my secret query", "line\nfeed"])}
    frame = pandas.DataFrame({**columns, "url": "http://a.example"})
    assert found(frame.astype("category"), draws=0) == found(frame, draws=0)


def test_what_is_masked_stays_so_where_other_objects_are_no_text():
    users = np.ma.masked_array(np.array(["a", "hidden", "\ud800"], dtype=object), [0, 1, 0])
    with read_log({"user": users, "query": np.array(["q"] * 3)}, keep_lines=True) as log:
        rows = log._engine._session.rows("SELECT user FROM lines WHERE problem = 0")  # type: ignore[attr-defined]
        assert rows == [("a",)]


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_a_time_beyond_all_others_is_a_missing_one(unit: str):
    times = np.array([0, 2**62], dtype=np.int64).view(f"datetime64[{unit}]")
    with read_log({"user": np.array(["a", "b"]), "query": np.array(["q", "q"]), "time": times}, draws=0) as log:
        rows = log._engine._session.rows("SELECT moment FROM lines ORDER BY user")  # type: ignore[attr-defined]
        assert rows[0] == (0.0,)
        assert (rows[1] == (None,)) is (unit in ("ms", "s"))


def test_a_stream_that_breaks_off_is_refused():
    broken = duckdb.sql(
        "SELECT i AS user, CASE WHEN i = 9000 THEN error('secret') ELSE 'q' END AS query FROM range(9999) t(i)"
    )
    with pytest.raises(InputError, match="DuckDBPyRelation: the table cannot be read") as caught:
        read_log(broken)
    assert "secret" not in str(caught.value)


def test_values_are_selected_from_a_table():
    table = {"user": np.arange(4000), "value": np.array(["blue", "\ud800"] * 2000, dtype=object)}
    for given in (
        table,
        Once(duckdb.sql("SELECT i AS user, CASE WHEN i % 2 = 0 THEN 'blue' END AS value FROM range(4000) t(i)")),
    ):
        heavy = select_values(given, Budget(4, 1e-6))
        assert list(heavy.counts) == ["blue"]  # 2,000 people: the threshold is below 30


@pytest.mark.parametrize("given", [5, object(), b"log.csv", [1, 2], np.arange(3), None])
def test_what_is_no_table_is_refused_with_what_is_read(given: object):
    with pytest.raises(InputError, match=r"expected a file name.*pandas or Polars.*__arrow_c_stream__"):
        read_log(given)
    with pytest.raises(InputError, match="expected a file name"):
        select_values(given, Budget(1, 1e-6))


def test_what_cannot_be_meant_is_refused():
    table = arrays_of()
    with pytest.raises(InvalidColumns, match="dict: no column 'user'"):
        read_log({"name": table["user"], "query": table["query"]})
    with pytest.raises(InvalidColumns, match="type DOUBLE"):
        read_log({"user": np.array([1.0, np.nan]), "query": table["query"][:2]})
    with pytest.raises(InputError, match="one length"):
        read_log({"user": table["user"], "query": table["query"][:2]})
    with pytest.raises(InputError, match="one dimension"):
        read_log({"user": ["a"], "query": ["b"]})
    with pytest.raises(InvalidParameter, match="format"):
        read_log(table, format="csv")
    with pytest.raises(InvalidColumns, match="no column 'value'"):
        select_values(table, Budget(1, 1e-6))
    with pytest.raises(InputError, match="user"):
        read_log(table, strict=True)
    with pytest.raises(InputError, match="no line"):
        read_log({name: column[:0] for name, column in table.items()})
