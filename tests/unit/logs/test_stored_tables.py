"""Tables of Delta Lake and Iceberg and files of ORC, Avro and Arrow, made by their own libraries, are read as the same
rows in Parquet are."""

from __future__ import annotations

import base64
import json
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pytest
from made_tables import NAMES, ROWS, N, found, parquet, refused, table

from searchblend.cli.main import main
from searchblend.core.errors import InputError, InvalidColumns, InvalidParameter, SearchblendError, UsageError
from searchblend.core.privacy import Budget
from searchblend.logs.read import read_log
from searchblend.logs.tables.urls import shown_log
from searchblend.releases.select_values import select_values


def orc(folder: Path, rows: Any = None) -> Path:
    from pyarrow.orc import write_table

    write_table(rows or table(), folder / "log.orc", stripe_size=4096)
    return folder / "log.orc"


def arrow_file(folder: Path, rows: Any = None) -> Path:
    with arrow.ipc.new_file(str(folder / "log.arrow"), (rows or table()).schema) as file:
        file.write_table(rows or table(), max_chunksize=100)
    return folder / "log.arrow"


def arrow_stream(folder: Path, rows: Any = None) -> Path:
    with arrow.ipc.new_stream(str(folder / "log.arrows"), (rows or table()).schema) as stream:
        stream.write_table(rows or table(), max_chunksize=100)
    return folder / "log.arrows"


def avro(folder: Path, rows: Any = None, codec: str = "deflate", **kinds: Any) -> Path:
    import fastavro

    fields: list[Any] = [{"name": name, "type": kinds.get(name, ["null", "string"])} for name in NAMES]
    fields.append({"name": "unused", "type": {"type": "array", "items": "long"}})
    with (folder / "log.avro").open("wb") as file:
        schema = {"type": "record", "name": "row", "fields": fields}
        fastavro.writer(file, schema, (rows or table()).to_pylist(), codec=codec, sync_interval=2000)
    return folder / "log.avro"


def snappy(folder: Path, rows: Any = None) -> Path:
    return avro(folder, rows, "snappy")


def delta(folder: Path, rows: Any = None) -> Path:
    import deltalake

    deltalake.write_deltalake(folder / "delta", rows or table())
    return folder / "delta"


def iceberg_table(folder: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    return catalog.create_table("n.log", table().schema)


def iceberg(folder: Path, rows: Any = None) -> Path:
    iceberg_table(folder).append(rows or table())
    return folder / "n" / "log"


KINDS: dict[str, Callable[..., Path]] = {
    "orc": orc,
    "arrow": arrow_file,
    "arrow stream": arrow_stream,
    "avro": avro,
    "avro by snappy": snappy,
    "delta": delta,
    "iceberg": iceberg,
}
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")  # of the libraries


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_read_as_the_same_parquet_file(kind: str, tmp_path: Path):
    path = KINDS[kind](tmp_path)
    for draws in (0, 1):
        assert found(path, draws=draws) == found(parquet(tmp_path), draws=draws)
    with read_log(path.as_uri()) as log:
        assert log.decided["format"] == kind.split()[0]
    heavy = select_values(path, Budget(8, 1e-6), value="query")
    assert set(heavy.counts) <= {f"query {i}" for i in range(7)}


def test_rows_that_were_deleted_from_delta_lake_do_not_come_back(tmp_path: Path, capsys):
    from deltalake import DeltaTable

    path = delta(tmp_path)
    DeltaTable(path).delete("user = 'u7'")
    left = DeltaTable(path).to_pyarrow_table()
    assert left.num_rows < len(ROWS)
    (tmp_path / "left").mkdir()
    assert found(path, draws=1)[2:] == found(parquet(tmp_path / "left", left), draws=1)[2:]
    flags = ["--opt-in", "0.5", "--epsilon", "8", "--delta", "1e-3", "--allow-large-delta"]
    assert main(["run", str(path), "-o", str(tmp_path / "out"), *flags]) == 0
    statement = json.loads((tmp_path / "out" / "statement.json").read_text())
    assert statement["parameters"]["log"]["snapshot"] == "1"
    assert statement["parameters"]["log"]["format"] == "delta"
    assert any("one string that is not UTF-8" in caveat for caveat in statement["caveats"])


def deletion_vector(rows: list[int]) -> dict[str, Any]:
    """Rows of a file that do not count, as other writers of Delta Lake say it."""
    from pyroaring import BitMap64

    bitmap = BitMap64(rows).serialize()
    data = struct.pack("<I", 1681511377) + bitmap
    padded = data + b"\0" * (-len(data) % 4)
    of_python = bytes(base64._b85alphabet)  # type: ignore[attr-defined]
    z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    text = base64.b85encode(padded).translate(bytes.maketrans(of_python, z85)).decode()
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(rows)}


def test_deletion_vectors_of_delta_lake_are_heeded(tmp_path: Path):
    import deltalake

    path = tmp_path / "delta"
    enabled = {"delta.enableDeletionVectors": "true"}
    deltalake.write_deltalake(path, table(), configuration=enabled)
    log = path / "_delta_log"
    [added] = [
        action["add"] for line in next(log.iterdir()).read_text().splitlines() if "add" in (action := json.loads(line))
    ]
    removed = {"path": added["path"], "deletionTimestamp": 1, "dataChange": True}
    actions = [{"remove": removed}, {"add": {**added, "deletionVector": deletion_vector(list(range(100)))}}]
    (log / f"{1:020}.json").write_text("\n".join(map(json.dumps, actions)))
    assert found(path, draws=1)[2] == len(ROWS) - 100


def test_rows_that_were_deleted_from_iceberg_do_not_come_back(tmp_path: Path):
    made = iceberg_table(tmp_path)
    made.append(table())
    made.delete("user == 'u7'")
    made.append(table(ROWS[:3]))
    with read_log(tmp_path / "n" / "log") as log:
        assert log.summary.lines == made.scan().to_arrow().num_rows == len(ROWS) - N // 50 + 3
        assert log.decided["snapshot"] == str(made.current_snapshot().snapshot_id)
    with read_log(made.metadata_location) as log:
        assert log.summary.lines == len(ROWS) - N // 50 + 3


def test_an_iceberg_folder_with_two_histories_is_refused_and_its_metadata_file_is_read(tmp_path: Path):
    path = iceberg(tmp_path)
    current = max((path / "metadata").glob("*.metadata.json"))
    shutil.copy(current, path / "metadata" / current.name.replace("00001", "00001-other"))
    with pytest.raises(InputError, match="its catalog alone knows which version is current"):
        read_log(path)
    with read_log(current) as log:
        assert log.summary.lines == len(ROWS)


def test_the_hint_of_an_iceberg_folder_is_followed_and_what_was_written_after_it(tmp_path: Path):
    path = iceberg(tmp_path)
    folder = path / "metadata"
    for number, file in enumerate(sorted(folder.glob("*.metadata.json")), 1):
        file.rename(folder / f"v{number}.metadata.json")
    for hint in ("2", "1\n", "v2"):
        (folder / "version-hint.text").write_text(hint)
        with read_log(path) as log:
            assert log.summary.lines == len(ROWS)


def test_a_folder_with_the_logs_of_two_kinds_needs_a_word(tmp_path: Path):
    path = delta(tmp_path)
    shutil.copytree(iceberg(tmp_path) / "metadata", path / "metadata")
    with pytest.raises(InputError, match="Delta Lake table and an Iceberg table: say which one is current"):
        read_log(path)
    with read_log(path, format="delta") as log:
        assert log.decided["format"] == "delta"
    (path / ".hoodie").mkdir()
    with pytest.raises(InputError, match="Hudi table and an Iceberg"):
        read_log(path)


@pytest.mark.parametrize("kind", ["orc", "arrow", "avro"])
def test_files_with_other_columns_or_types_are_one_log(kind: str, tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    numbers = table().drop_columns(["time"]).set_column(0, "user", arrow.array(range(len(ROWS)), arrow.int64()))
    first = KINDS[kind](tmp_path / "a")
    if kind == "avro":
        records = [{**row, "time": None} for row in numbers.to_pylist()]
        second = avro(tmp_path / "b", arrow.Table.from_pylist(records), user="long")
    else:
        second = KINDS[kind](tmp_path / "b", numbers)
    with read_log([first, second], draws=0, keep_lines=True) as log:
        assert (log.summary.lines, log.summary.files) == (2 * len(ROWS), 2)
        assert {place.path for kind in log.summary.malformed.values() for place in kind.first} == {
            str(first),
            str(second),
        }
    if kind != "avro":
        with pytest.raises(InputError, match=r"column of URLs and .* none"):
            read_log([first, KINDS[kind](tmp_path, table().drop_columns(["url"]))])


def test_files_of_a_store_are_read_by_the_same_way(tmp_path: Path):
    from fsspec.implementations.memory import MemoryFileSystem

    from searchblend.logs.formats import remote

    path = orc(tmp_path)
    assert "memory" not in remote._PACKAGES
    files = MemoryFileSystem()
    files.pipe("/log.orc", path.read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(remote._PACKAGES, "memory", "fsspec")
        with read_log("memory://log.orc") as log:
            assert log.summary.lines == len(ROWS)


def test_times_of_avro_are_moments(tmp_path: Path):
    from datetime import UTC, datetime

    moment = {"type": "long", "logicalType": "timestamp-micros"}
    rows = [{**table().to_pylist()[0], "time": datetime(2006, 3, 1, tzinfo=UTC)}]
    path = avro(tmp_path, arrow.Table.from_pylist(rows), time=moment)
    with read_log(path, draws=0) as log:
        assert log._engine._session.rows("SELECT moment FROM lines") == [(1141171200.0,)]  # type: ignore[attr-defined]


def test_the_name_of_a_folder_is_a_column_where_an_option_names_it(tmp_path: Path):
    folder = tmp_path / "user=zed"
    folder.mkdir()
    for make in (orc, parquet):
        with read_log(make(folder), columns={"user": "user"}) as log:
            assert log.summary.users == 1


def test_empty_strings_are_no_users_and_no_values(tmp_path: Path):
    rows = arrow.table({"user": ["", *(f"u{i}" for i in range(300))], "value": ["x", *["tea"] * 150, *[""] * 150]})
    for make in (orc, parquet):
        selected = select_values(make(tmp_path, rows), Budget(4.0, 1e-9))
        assert set(selected.counts) == {"tea"}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("https://u:SECRET@h.example/t.tsv?sig=SECRET", "https://h.example/t.tsv"),
        ("postgresql://u:SECRET@h/db?table=t&password=SE@CRET", "postgresql://h/db?table=t"),
        ("postgresql://h/db?table=x@y", "postgresql://h/db?table=x@y"),
        ("postgresql://u:SEC?RET@h/db?table=t", "postgresql://h/db?table=t"),
    ],
)
def test_what_a_log_is_called_has_no_credentials(name: str, shown: str):
    assert shown_log(name) == shown


@pytest.mark.parametrize("options", [{"format": "delta"}, {"format": "iceberg", "engine": "spark"}])
@pytest.mark.parametrize(
    "name", ["https://u:SECRET@h.example/t?sig=SECRET", "mysql://u:SECRET@h/t", "https://u:SECRET@[bad/t"]
)
def test_refusals_of_urls_have_no_credentials(name: str, options: dict[str, str]):
    with pytest.raises(SearchblendError) as refusal:
        read_log(name, **options)  # type: ignore[arg-type]
    assert "SECRET" not in str(refusal.value)


def test_a_string_of_avro_that_is_none_is_missing_and_changes_no_other_row(tmp_path: Path):
    long, letter = "x" * (1 << 20), "\N{LATIN SMALL LETTER E WITH ACUTE}"
    rows = [("ann", "tea", "http://a.example", None), ("bob", letter + long, "http://a.example", None)]
    rows += [("cy", letter * 7, "http://a.example", None), ("dee", "tea", "http://a.example", None)]
    path = avro(tmp_path, table(rows), "null")
    path.write_bytes(path.read_bytes().replace((letter * 7).encode(), b"\xff" * 14))  # as a careless writer has it
    with read_log(path, keep_lines=True) as log:
        kept = log._engine._session.rows('SELECT "user" FROM lines WHERE problem = 0 ORDER BY 1')  # type: ignore[attr-defined]
        assert kept == [("ann",), ("dee",)]
        assert log.summary.malformed["unusable_query"].count == 2


def test_quoted_line_feeds_mean_nothing_to_rows(tmp_path: Path):
    with pytest.raises(InvalidParameter, match="quoted-line-feeds: only of CSV"):
        read_log(orc(tmp_path), quoted_line_feeds=True)


@pytest.mark.parametrize("kind", ["orc", "arrow", "avro", "delta", "iceberg"])
def test_what_was_cut_off_is_one_line(kind: str, tmp_path: Path, capsys):
    path = KINDS[kind](tmp_path)
    data = path if path.is_file() else next(path.rglob("*.parquet"))
    data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])
    code, line = refused(capsys, tmp_path, str(path))
    assert code == 1
    assert path.name in line
    assert "cut off" in line


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_missing_data_file_or_table_is_one_line(kind: str, tmp_path: Path, capsys):
    path = KINDS[kind](tmp_path)
    for data in path.rglob("*.parquet"):
        data.unlink()
    code, line = refused(capsys, tmp_path, str(path))
    assert code == 1
    assert "missing" in line or "cut off" in line
    shutil.rmtree(path)
    code, line = refused(capsys, tmp_path, str(path), "--format", kind)
    assert (code, "no such table" in line) == (1, True)


PACKAGES = {"orc": "pyarrow.orc", "avro": "fastavro", "delta": "deltalake", "iceberg": "pyiceberg.table"}


@pytest.mark.parametrize("kind", PACKAGES)
def test_a_missing_package_is_named(kind: str, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    path = KINDS[kind](tmp_path)
    monkeypatch.setitem(sys.modules, PACKAGES[kind], None)
    code, line = refused(capsys, tmp_path, str(path))
    assert code == 2
    assert "pip install searchblend[" in line


def test_a_feature_of_delta_lake_that_is_not_known_is_one_line(tmp_path: Path, capsys):
    path = delta(tmp_path)
    [commit] = (path / "_delta_log").glob("*.json")
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    features = ["inventedFeature"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    actions = [{"protocol": protocol} if "protocol" in action else action for action in actions]
    commit.write_text("\n".join(map(json.dumps, actions)))
    code, line = refused(capsys, tmp_path, str(path))
    assert (code, "of a kind that is not known here" in line) == (1, True)


def test_what_cannot_be_meant_is_refused(tmp_path: Path):
    path, other = delta(tmp_path), orc(tmp_path)
    with pytest.raises(UsageError, match="only with --engine duckdb"):
        read_log(path, engine="spark")
    with pytest.raises(UsageError, match="only with --engine duckdb"):
        read_log(other, engine="spark")
    with pytest.raises(UsageError, match="a log by itself"):
        read_log([path, other])
    with pytest.raises(InputError, match=r"Delta Lake table.*name the table's own folder"):
        read_log(next(path.glob("*.parquet")))
    with pytest.raises(InvalidParameter, match="encoding"):
        read_log(path, encoding="latin-1")
    with pytest.raises(InvalidParameter, match="delimiter"):
        read_log(other, delimiter=";")
    with pytest.raises(InvalidColumns, match="'unused' has type LIST"):
        read_log(path, columns={"user": "unused"})
    with pytest.raises(InvalidColumns, match="no column 'who'"):
        read_log(other, columns={"user": "who"})
    with pytest.raises(InputError, match="is in another format"):
        read_log([other, parquet(tmp_path)])
