"""Tables of Delta Lake, Hudi, Iceberg, Paimon and DuckLake are not the Parquet files that lie in their folders."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from made_logs import read

from searchblend.core.errors import InputError
from searchblend.logs.duckdb.public_tables import read_public_records, read_synonyms

TABLES = {
    "Delta Lake": ("_delta_log/00000000000000000000.json", "part-0.parquet"),
    "Hudi": (".hoodie/hoodie.properties", "day=1/part-0.parquet"),
    "part of a Hudi": ("day=1/.hoodie_partition_metadata", "day=1/part-0.parquet"),
    "Iceberg": ("metadata/v1.metadata.json", "data/day=1/part-0.parquet"),
    "an Iceberg": ("metadata/version-hint.text", "data/part-0.parquet"),
    "is an Iceberg": ("metadata/v1.metadata.json.gz", "data/part-0.parquet"),
    ": is an Iceberg": ("metadata/snap-1-1-a.avro", "data/part-0.parquet"),
    "Paimon": ("snapshot/snapshot-1", "bucket-0/data-0.parquet"),
    "a Paimon": ("manifest/manifest-list-0", "day=1/bucket-0/data-0.parquet"),
    "part of a DuckLake": ("day=1/ducklake-0-delete.parquet", "day=1/data-0.parquet"),
    "is part of a DuckLake": ("day=1/ducklake-0.parquet", "day=1/data-0.parquet"),
}
"""what a message calls it → a file that shows it, and one of its data"""


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_refused_by_name_as_a_folder_a_glob_and_a_file(name, tmp_path: Path):
    mark, data = (tmp_path / "table" / part for part in TABLES[name])
    data.parent.mkdir(parents=True)
    duckdb.sql(f"COPY (SELECT 'u' AS user, 'q' AS query) TO '{data}'")
    (tmp_path / "link").symlink_to(data.parent)
    with read(data) as log:
        assert log.summary.users == 1
    mark.parent.mkdir(exist_ok=True)
    mark.touch()
    paths = [data, data.parent, data.parent / "*.parquet", tmp_path / "**" / "*.parquet", tmp_path / "link" / data.name]
    is_read = "Delta" in name or "Iceberg" in name  # by its own library, where its own folder is named
    table = tmp_path / "table"
    for path in [
        *(path for path in paths if not (is_read and path == table)),
        *([] if "part of" in name or is_read else [table]),
    ]:
        for engine in ("duckdb", "spark"):
            with pytest.raises(InputError, match=f"{name} table.*export the table"):
                read(path, engine=engine)


def test_the_folders_of_a_paimon_table_show_it_without_a_file_in_them(tmp_path: Path):
    for name in ("snapshot", "manifest", "schema"):
        (tmp_path / name).mkdir()
    (tmp_path / "log.tsv").write_text("user\tquery\n")
    with pytest.raises(InputError, match="a Paimon table"):
        read(tmp_path / "log.tsv")


@pytest.mark.parametrize("reader", [read_public_records, read_synonyms])
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_public_table_is_not_read_out_of_such_a_folder(reader, suffix, tmp_path: Path):
    path = tmp_path / f"pub.{suffix}"
    duckdb.sql(f"COPY (SELECT 'q' AS query, 'http://a.example' AS url, 'm' AS meaning) TO '{path}'")
    assert reader(path)
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(InputError, match="a Delta Lake table"):
        reader(path)
