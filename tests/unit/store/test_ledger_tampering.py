"""Append-only by triggers, and by the chain where the triggers are taken away."""

from __future__ import annotations

import sqlite3

import pytest

from searchblend.accounting.spend import Spend
from searchblend.accounting.totals import BudgetCap
from searchblend.core.privacy import Budget, Neighbors
from searchblend.store.errors import CorruptLedger, LedgerError
from searchblend.store.ledger import open_ledger
from searchblend.store.ledger_book import PublishRow

SPEND = Spend(1.0, 1e-8, Neighbors.REPLACE_ONE, "any")
ROWS = 7


@pytest.fixture
def path(tmp_path):
    """Row 1 a cap; then a debit and a publication for each of three releases."""
    with open_ledger(tmp_path / "ledger", cap=BudgetCap(lifetime=Budget(9.0, 1e-6))) as ledger:
        for number in range(3):
            ledger.debit(f"r{number}", "people", "w1", SPEND)
            ledger.publish(f"r{number}", {"data": bytes([number])})
        assert ledger.check().length == ROWS
    return tmp_path / "ledger"


def raw(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger SET body = '{}' WHERE position = 2",
        "DELETE FROM ledger WHERE position = 7",
        "DELETE FROM ledger",
        "INSERT OR REPLACE INTO ledger SELECT position, kind, release_id, '{}', previous, hash FROM ledger",
        "INSERT OR REPLACE INTO ledger SELECT 8, kind, release_id, body, 'x', 'y' FROM ledger WHERE position = 2",
        "INSERT OR REPLACE INTO ledger SELECT 8, 'debit', 'new', body, previous, 'y' FROM ledger WHERE position = 2",
        "INSERT INTO ledger VALUES (9, 'debit', 'gap', '{}', 'p', 'h')",
        "UPDATE release_files SET content = 'x'",
        "DELETE FROM release_files",
        "INSERT OR REPLACE INTO release_files VALUES ('r0', 'data', 'x')",
    ],
)
def test_triggers_refuse(path, statement):
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw(path, statement)
    with open_ledger(path) as ledger:
        assert ledger.check().length == ROWS


TRIGGERS_AWAY = [
    f"DROP TRIGGER {name}"
    for name in (
        "ledger_no_update",
        "ledger_no_delete",
        "ledger_append",
        "release_files_no_update",
        "release_files_no_delete",
        "release_files_append",
    )
]


@pytest.mark.parametrize(
    ("statement", "row"),
    [
        ("UPDATE ledger SET body = replace(body, '\"epsilon\":1.0', '\"epsilon\":0.1') WHERE position = 4", 4),
        ("UPDATE ledger SET body = replace(body, '\"epsilon\":9.0', '\"epsilon\":99.0') WHERE position = 1", 1),
        ("UPDATE ledger SET body = replace(body, 'people', 'others') WHERE position = 2", 2),
        ("UPDATE ledger SET hash = 'x' WHERE position = 3", 3),
        ("UPDATE ledger SET previous = 'x' WHERE position = 5", 5),
        ("UPDATE ledger SET release_id = 'r9' WHERE position = 6", 6),
        ("DELETE FROM ledger WHERE position = 2", 2),
        ("DELETE FROM ledger WHERE position = 1", 1),
        ("INSERT INTO ledger VALUES (8, 'debit', 'r9', '{}', 'p', 'h')", 8),
        ("UPDATE release_files SET content = x'09' WHERE release_id = 'r1'", 4),
        ("DELETE FROM release_files WHERE release_id = 'r2'", 6),
    ],
)
def test_the_check_finds_the_row(path, statement, row):
    raw(path, *TRIGGERS_AWAY, statement)
    with open_ledger(path) as ledger, pytest.raises(CorruptLedger) as found:
        ledger.check()
    assert found.value.row == row
    assert f"row {row}" in str(found.value)


def test_a_broken_chain_takes_no_more_debits(path):
    raw(path, *TRIGGERS_AWAY, "UPDATE ledger SET body = replace(body, ':1.0', ':0.1') WHERE position = 2")
    with open_ledger(path) as ledger:
        for use in (
            lambda: ledger.debit("new", "people", "w1", SPEND),
            lambda: ledger.publish("r1", {"data": b""}),
            lambda: ledger.totals("people"),
            lambda: ledger.published("r1"),
        ):
            with pytest.raises(CorruptLedger):
                use()


def test_a_changed_file_is_not_handed_out(path):
    raw(path, *TRIGGERS_AWAY, "UPDATE release_files SET content = 'x' WHERE release_id = 'r1'")
    with open_ledger(path) as ledger:
        assert ledger.published("r0") == {"data": b"\x00"}
        with pytest.raises(CorruptLedger):
            ledger.published("r1")


def test_a_file_that_was_not_published_is_detected(path):
    raw(path, "INSERT INTO release_files VALUES ('r1', 'extra', 'x')")
    with open_ledger(path) as ledger, pytest.raises(LedgerError):
        ledger.check()
    raw(path, "DROP TRIGGER release_files_no_delete", "DELETE FROM release_files WHERE name = 'extra'")
    raw(path, "INSERT INTO release_files VALUES ('r9', 'extra', 'x')")
    with open_ledger(path) as ledger, pytest.raises(LedgerError, match="never published"):
        ledger.check()


def test_a_debit_repeated_under_its_own_valid_hash_is_found(path):
    """Whoever can hash can chain: the content must make sense as well."""
    with open_ledger(path) as ledger:
        book = ledger.book()
        with ledger._database.transaction():
            ledger._database.execute("DROP TRIGGER ledger_append")
            ledger._append(book, PublishRow("never", {}, ""))
        with pytest.raises(CorruptLedger, match="not charged"):
            ledger.check()
