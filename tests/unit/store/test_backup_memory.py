"""A backup and a restore hold a few rows in memory, however many there are."""

from __future__ import annotations

import tracemalloc

import pytest

from databases import DATABASES, fresh_database
from searchblend.store.backup import read_backup, write_backup
from searchblend.store.service_store import open_store

FEW, MANY = 5_000, 30_000
"""as many as take 3 MiB if they are all held"""
FILES, FILE_BYTES = 20, 500_000
ALLOWED = 2 * 2**20


def peak(action):
    tracemalloc.start()
    try:
        rows = action()
        return tracemalloc.get_traced_memory()[1], rows
    finally:
        tracemalloc.stop()


def add_ids(store, round_key, n):
    rows = ((round_key, i.to_bytes(16, "big")) for i in range(n))
    with store.transaction():
        store.database.execute_many("INSERT INTO seen (round_key, report_id) VALUES (?, ?)", rows)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", DATABASES)
def test_a_backup_of_many_ids_and_files_needs_no_more_memory_than_one_of_few(kind, tmp_path):
    with open_store(fresh_database(kind, tmp_path)) as store:
        add_ids(store, 1, FEW)
        few, _ = peak(lambda: write_backup(store.database, tmp_path / "few.db"))
        add_ids(store, 2, MANY)
        for i in range(FILES):
            store.artifacts.put(i.to_bytes(2, "big") * (FILE_BYTES // 2), "text/plain")
        many, rows = peak(lambda: write_backup(store.database, tmp_path / "many.db"))
    assert rows == FEW + MANY + FILES
    assert many - few < ALLOWED
    other = tmp_path / "other"
    other.mkdir()
    with open_store(fresh_database(kind, other)) as empty:
        restored, again = peak(lambda: read_backup(tmp_path / "many.db", empty.database))
    assert again == rows
    assert restored - few < ALLOWED


@pytest.mark.database_server
def test_the_server_keeps_the_rows_that_are_not_asked_for_yet(tmp_path):
    """What the client's library holds is not Python's memory, which is all that the test above sees."""
    with open_store(fresh_database("postgresql", tmp_path)) as store, store.transaction():
        add_ids(store, 1, 20)
        pages = store.database.pages("SELECT report_id FROM seen", 5)
        assert len(next(pages)) == 5
        assert store.database.execute("SELECT count(*) FROM pg_cursors") == [(1,)]
        assert sum(map(len, pages)) == 15
