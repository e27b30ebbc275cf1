"""Tables of Delta Lake, Hudi and Iceberg are not the Parquet files that lie in their folders."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from made_logs import read

from searchblend.core.errors import InputError

TABLES = {
    "Delta Lake": ("_delta_log/00000000000000000000.json", "part-0.parquet"),
    "Hudi": (".hoodie/hoodie.properties", "day=1/part-0.parquet"),
    "part of a Hudi": ("day=1/.hoodie_partition_metadata", "day=1/part-0.parquet"),
    "Iceberg": ("metadata/v1.metadata.json", "data/day=1/part-0.parquet"),
    "an Iceberg": ("metadata/version-hint.text", "data/part-0.parquet"),
}


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
    for path in [*paths, *([] if name.startswith("part") else [tmp_path / "table"])]:
        for engine in ("duckdb", "spark"):
            with pytest.raises(InputError, match=f"{name} table.*export the table"):
                read(path, engine=engine)
