"""Query logs of ir_datasets, made here in that library's own format, are read as the same rows in Parquet are."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from made_tables import N, error_of, found, parquet, refused

HOME = "IR_DATASETS_HOME"
NAME = "ir:aol-made-here"


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The library, with a home of its own and nothing fetched."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HOME, str(tmp_path_factory.mktemp("ir")))
        import ir_datasets

        yield ir_datasets


def rows() -> list[tuple[str, str, str | None, str, str | None]]:
    """user, query, URL, time and rank."""
    return [(f"u{i % 50}", f"query {i % 7}", f"{i % 5:012x}", "2006-03-01 12:00:00", "3") for i in range(N)]


@pytest.fixture
def made(library: Any, tmp_path: Path) -> Iterator[Path]:
    """A log of AOL as the library keeps it, pickled entries in LZ4, and one with sessions but no users."""
    import lz4.frame
    from ir_datasets.datasets import aol_ia, tripclick
    from ir_datasets.datasets.base import Dataset

    path = tmp_path / "log.pkl.lz4"
    with lz4.frame.LZ4FrameFile(path, "wb") as file:
        for user, query, url, time, rank in rows():
            items = (aol_ia.LogItem("other", "1", False), aol_ia.LogItem(url, rank, True))
            entry = aol_ia.AolQlog(user, "q", query, query.upper(), datetime.fromisoformat(time), items)
            pickle.dump(entry, file)
        nothing = aol_ia.AolQlog("u2", "q", "no url", "No URL", datetime(2006, 3, 1), ())
        pickle.dump(nothing, file)
        odd = aol_ia.AolQlog("u3", "q", "\ud800" + "x" * 9, "", datetime(2006, 3, 1), (aol_ia.LogItem("d", "1", True),))
        pickle.dump(odd, file)

    class Stored:
        def stream(self) -> Any:
            return path.open("rb")

    registered = library.registry._registered
    before = dict(registered)
    library.registry.register(NAME.removeprefix("ir:"), Dataset(aol_ia.AolQlogs(Stored())))
    library.registry.register("sessions-made-here", Dataset(tripclick.TripClickQlogs(None)))
    yield path
    registered.clear()
    registered.update(before)


def test_it_is_read_as_the_same_parquet_file(made: Path, tmp_path: Path):
    import pyarrow as arrow

    columns = dict(zip(("user", "query", "url", "time", "rank"), map(list, zip(*rows(), strict=True)), strict=True))
    for name, value in (("user", "u2"), ("query", "no url"), ("url", None), ("time", "2006-03-01"), ("rank", None)):
        columns[name].append(value)
    for name, value in (("user", "u3"), ("query", None), ("url", "d"), ("time", "2006-03-01"), ("rank", "1")):
        columns[name].append(value)
    times = [datetime.fromisoformat(str(time)) for time in columns["time"]]
    same = parquet(tmp_path, arrow.table({**columns, "time": arrow.array(times, arrow.timestamp("us"))}))
    for draws in (0, 1):
        assert found(NAME, draws=draws) == found(same, draws=draws)


def test_other_members_of_an_entry_can_be_named(made: Path):
    from searchblend.logs.read import read_log

    with read_log(NAME, columns={"query": "query_orig", "user": "user_id"}, keep_lines=True) as log:
        kept = log._engine._session.rows("SELECT count(DISTINCT query) FROM lines WHERE query LIKE 'QUERY%'")  # type: ignore[attr-defined]
        assert kept == [(7,)]
        assert log.decided["format"] == "ir"


WRONG: dict[str, tuple[str, int, str]] = {
    "no such data set": ("ir:nothing-of-this-name", 1, "ir_datasets has no data set of this name"),
    "no query log": ("ir:antique", 1, "this data set of ir_datasets has no query log"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_log_is_one_line(what: str, made: Path, tmp_path: Path, capsys):
    name, code, words = WRONG[what]
    found_code, line = refused(capsys, tmp_path, name)
    assert (found_code, words in line) == (code, True), line


def test_a_log_without_users_is_refused_with_what_it_has(made: Path, tmp_path: Path, capsys):
    out = tmp_path / "out"
    code, line = error_of(capsys, "run", "ir:sessions-made-here", "-o", str(out))
    assert (code, "no column 'user': there are session_id, query_id, query" in line) == (2, True), line
    assert not out.exists()


def test_a_damaged_log_is_one_line(made: Path, tmp_path: Path, capsys):
    made.write_bytes(b"none" + made.read_bytes()[4:])
    code, line = refused(capsys, tmp_path, NAME)
    assert (code, "the ir table cannot be read" in line) == (1, True), line


def test_a_missing_library_is_named(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "searchblend.logs.tables.ir_dataset", raising=False)
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    code, line = refused(capsys, tmp_path, NAME)
    assert (code, "pip install searchblend[ir]" in line) == (2, True), line


def test_a_data_set_is_a_log_by_itself(made: Path, tmp_path: Path, capsys):
    from searchblend.core.errors import InvalidParameter, UsageError
    from searchblend.logs.read import read_log

    with pytest.raises(UsageError, match="a log by itself"):
        read_log([NAME, NAME])
    with pytest.raises(InvalidParameter, match="a data set, has columns"):
        read_log(NAME, format="csv")
