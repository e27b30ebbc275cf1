"""The service's storage: one suite over SQLite and PostgreSQL."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import numpy as np
import psycopg
import pytest

from databases import DATABASES, fresh_database, fresh_schema, postgres_server
from searchblend.accounting.spend import Spend
from searchblend.accounting.totals import BudgetCap
from searchblend.core.errors import InvalidParameter, UsageError
from searchblend.core.privacy import Budget, Neighbors
from searchblend.store import schema
from searchblend.store.errors import (
    BudgetExceeded,
    CorruptAudit,
    LeaseLost,
    StoreError,
    StoreUnavailable,
    UnknownName,
    UnsafeDatabase,
    WrongSchema,
    WrongState,
)
from searchblend.store.reports import Arrivals
from searchblend.store.schema import SCHEMA_VERSION, migrate, schema_version
from searchblend.store.service_store import ServiceStore, open_database, open_store
from searchblend.store.states import ENDED, NEXT, State, may_follow

TASK = "0" * 31 + "1"
ONE = Spend.generic(Budget(1.0, 1e-6), Neighbors.REPLACE_ONE, "test")


@pytest.fixture(params=DATABASES)
def where(request, tmp_path):
    return fresh_database(request.param, tmp_path)


@pytest.fixture
def store(where):
    with open_store(where) as opened:
        yield opened


def a_round(store, state=State.DRAFT, **changes):
    try:
        store.rounds.task(TASK)
    except UnknownName:
        store.rounds.add_task(TASK, "searches", {"market": "en"}, actor="op", now=1)
    round_ = store.rounds.add_round(TASK, {"method": "best"}, "2026-W46", actor="op", now=2)
    while round_.state is not state:
        round_ = store.rounds.advance(round_, NEXT[round_.state], actor="op", now=3, **changes)
        changes = {}
    return round_


def arrivals(key, ids, cells):
    return Arrivals(key, ids, np.array(cells, dtype=np.int64))


def report_ids(*names):
    return [name.encode().ljust(16, b".") for name in names]


def test_a_round_goes_through_its_states_and_the_log_says_so(store):
    round_ = a_round(store, State.PUBLISHED)
    assert round_.version == len(NEXT) + 1
    moves = [row.entry.detail for row in store.audit.rows() if '"round moved"' in row.body]
    assert [move["to"] for move in moves] == [state.value for state in NEXT.values()]
    assert store.audit.verify().position == len(moves) + 2


@pytest.mark.parametrize("before", list(State))
def test_arrows(before):
    allowed = {after for after in State if may_follow(before, after)}
    expected = {NEXT[before]} if before in NEXT else set()
    assert allowed == (expected if before in ENDED else expected | {State.ABORTED})


def test_there_is_no_way_around_a_state(store):
    round_ = a_round(store)
    with pytest.raises(WrongState):
        store.rounds.advance(round_, State.OPTIN_CLOSED, actor="op", now=3)
    assert store.rounds.round(TASK, round_.number) == round_


def test_compare_and_set_lets_one_of_two_through(store):
    round_ = a_round(store)
    store.rounds.advance(round_, State.OPTIN_OPEN, actor="op", now=3)
    with pytest.raises(WrongState):
        store.rounds.advance(round_, State.OPTIN_OPEN, actor="op", now=3)
    assert len([row for row in store.audit.rows() if '"round moved"' in row.body]) == 1


def test_an_arrow_whose_debit_is_refused_is_not_taken(store):
    store.ledger.set_cap(BudgetCap(lifetime=Budget(1.5, 1e-5)))
    store.ledger.debit("earlier", "everybody", "w", ONE)
    round_ = a_round(store)
    n_rows = len(store.audit.rows())
    with pytest.raises(BudgetExceeded), store.transaction():
        store.rounds.advance(round_, State.OPTIN_OPEN, actor="op", now=3)
        store.ledger.debit("too much", "everybody", "w", ONE)
    assert store.rounds.by_key(round_.key).state is State.DRAFT
    assert len(store.audit.rows()) == n_rows
    assert list(store.ledger.book().entries) == ["earlier"]


def test_columns_that_do_not_exist_cannot_be_set(store):
    with pytest.raises(StoreError):
        store.rounds.advance(a_round(store), State.OPTIN_OPEN, actor="op", now=3, state="PUBLISHED")


def test_a_task_whose_name_looks_like_another_or_like_an_id_is_refused(store):
    a_round(store)
    for name in ("Searches", "\uff53earches", "search\u24d4s", "SEARCHES"):
        with pytest.raises(StoreError, match="already exists"):
            store.rounds.add_task("f" * 32, name, {}, actor="op", now=1)
    for name in (TASK.replace("1", "\uff11"), TASK.replace("0", "\U0001d7d8"), "A" * 32):
        with pytest.raises(InvalidParameter, match="does not look like an id"):
            store.rounds.add_task("f" * 32, name, {}, actor="op", now=1)
    for name in (" a", "searches ", "sear\u200bches", "searches\u3164", "searches\ufe0f", "two\nlines", "a\u00a0b"):
        with pytest.raises(InvalidParameter, match="without invisible characters"):
            store.rounds.add_task("f" * 32, name, {}, actor="op", now=1)
    assert store.rounds.add_task("f" * 32, "Suchen in \u00d6sterreich", {}, actor="op", now=1).task == "f" * 32


def test_names_are_unique_and_unknown_ones_are_refused(store):
    a_round(store)
    assert store.rounds.task("searches").task == TASK
    with pytest.raises(StoreError):
        store.rounds.add_task("f" * 32, "searches", {}, actor="op", now=1)
    with pytest.raises(UnknownName):
        store.rounds.task("other")
    with pytest.raises(UnknownName):
        store.rounds.round(TASK, 9)
    assert [round_.number for round_ in (a_round(store), a_round(store))] == [2, 3]
    assert len(store.rounds.rounds(TASK, [State.DRAFT])) == 3


def test_reports_are_counted_once(store):
    key = a_round(store, State.CLIENT_OPEN).key
    a, b, c = report_ids("a", "b", "c")
    assert store.reports.add([arrivals(key, [a, b], [[0, 1], [1, 1]])], now=5) == ["taken"]
    again = [arrivals(key, [b], [[1, 1]]), arrivals(key, [c, c], [[2, 0]] * 2)]
    assert store.reports.add(again, now=5) == ["taken", "taken"]
    assert store.reports.counts(key, 3).tolist() == [2, 3, 1]
    law = store.reports.conservation(key, 2, None)
    assert (law.counted, law.expected, law.holds) == (6, 6, True)
    assert not store.reports.conservation(key, 3, None).holds


@pytest.mark.parametrize("state", [s for s in State if s not in (State.CLIENT_OPEN, State.CLIENT_GRACE, State.ABORTED)])
def test_a_round_in_another_state_takes_no_reports(store, state):
    key = a_round(store, state).key
    assert store.reports.add([arrivals(key, report_ids("a"), [[0]])], now=5) == ["closed"]
    assert store.reports.n_seen(key) == 0


def test_the_clock_closes_a_round_even_before_it_is_moved(store):
    key = a_round(store, State.CLIENT_OPEN, grace_until=10).key
    assert store.reports.add([arrivals(key, report_ids("a"), [[0]])], now=9) == ["taken"]
    assert store.reports.add([arrivals(key, report_ids("b"), [[0]])], now=10) == ["closed"]
    store.rounds.kill(TASK, actor="op", now=9)
    assert store.reports.add([arrivals(key, report_ids("c"), [[0]])], now=9) == ["closed"]
    assert store.reports.add([arrivals(99, report_ids("d"), [[0]])], now=9) == ["closed"]
    assert store.reports.n_seen(key) == 1


def test_a_round_that_cannot_be_read_takes_nothing_and_keeps_nothing_of_others_out(store):
    """Messages of several rounds are committed together."""
    damages = ["state = 'OF_NEXT_YEAR'"]
    if store.database.dialect == "sqlite":  # which keeps a string in a column of numbers
        damages += ["state = 'CLIENT_OPEN', grace_until = 'soon'", "state = 'OPTIN_OPEN', optin_closes = 'soon'"]
    broken, fine = (a_round(store, State.CLIENT_OPEN).key for _ in range(2))
    for n, damage in enumerate(damages):
        store.database.execute(f"UPDATE rounds SET {damage} WHERE round_key = ?", (broken,))
        both = [arrivals(key, report_ids(str(n)), [[0]]) for key in (broken, fine)]
        assert store.reports.add(both, now=5) == ["closed", "taken"]
        assert store.contributions.add(broken, b"1" * 32, b"sealed", 5) == "closed"
    assert store.reports.n_seen(fine) == len(damages)


def test_refusals_are_counted_by_reason(store):
    key = a_round(store).key
    store.reports.refuse({(key, "malformed"): 2, (key, "wrong-round"): 1})
    store.reports.refuse({(key, "malformed"): 1})
    assert store.reports.refusals(key) == {"malformed": 3, "wrong-round": 1}


def test_ids_can_be_forgotten_when_their_number_is_kept(store):
    key = a_round(store, State.CLIENT_OPEN).key
    store.reports.add([arrivals(key, report_ids("a", "b"), [[0], [1]])], now=5)
    store.reports.forget_ids(key)
    assert store.reports.n_seen(key) == 0
    assert store.reports.conservation(key, 1, 2).holds


def test_many_writers_count_every_id_once(where):
    """Four connections send overlapping ids at the same time."""
    with open_store(where) as store:
        key = a_round(store, State.CLIENT_OPEN).key
    ids = [i.to_bytes(16, "big") for i in range(600)]
    failures = []

    def send(worker):
        with ServiceStore(open_database(where)) as mine:
            for start in range(0, 600, 60):
                mixed = ids[(start + 30 * worker) % 600 :][:90]
                try:
                    mine.reports.add([arrivals(key, mixed, [[i[-1] % 7] for i in mixed])], now=5)
                except BaseException as error:
                    failures.append(error)

    threads = [threading.Thread(target=send, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    with open_store(where) as store:
        assert store.reports.n_seen(key) == 600
        expected = np.bincount([i[-1] % 7 for i in ids], minlength=7)
        assert store.reports.counts(key, 7).tolist() == expected.tolist()


def test_one_sealed_record_for_each_contributor(store):
    key = a_round(store, State.OPTIN_OPEN, optin_closes=10).key
    tag, other = b"1" * 32, b"2" * 32
    add = store.contributions.add
    assert add(key, tag, b"sealed", 5) == "taken"
    assert add(key, tag, b"sealed", 5) == "repeated"
    assert add(key, tag, b"others", 5) == "conflict"
    assert add(key, other, b"more", 5) == "taken"
    assert list(store.contributions.all(key)) == [(tag, b"sealed"), (other, b"more")]
    assert store.contributions.withdraw(key, tag, 5)
    assert store.contributions.withdraw(key, tag, 5)
    assert list(store.contributions.all(key)) == [(other, b"more")]
    assert store.contributions.count(key) == 1
    assert add(key, tag, b"late", 10) == "closed"
    assert not store.contributions.withdraw(key, other, 10)
    assert store.contributions.shred(key) == 1
    assert store.contributions.count(key) == 0


def test_what_was_taken_back_does_not_return(store):
    key = a_round(store, State.OPTIN_OPEN, optin_closes=10).key
    add = store.contributions.add
    assert add(key, b"sent", b"sealed", 5) == "taken"
    for tag in (b"sent", b"held up on its way"):
        assert store.contributions.withdraw(key, tag, 5)
        assert add(key, tag, b"sealed", 5) == "conflict"
    assert store.contributions.count(key) == 0
    assert store.contributions.shred(key) == 0
    assert store.database.execute("SELECT COUNT(*) FROM contributions") == [(0,)]


def test_more_records_than_a_page_come_all(store):
    key = a_round(store, State.OPTIN_OPEN).key
    with store.transaction():
        for i in range(4001):
            store.contributions.add(key, i.to_bytes(16, "big"), i.to_bytes(4, "big"), 5)
    assert {int.from_bytes(sealed, "big") for _, sealed in store.contributions.all(key)} == set(range(4001))


def test_a_job_is_leased_to_one_worker_and_taken_over_when_it_dies(store, where):
    jobs = store.jobs
    jobs.add(1, "estimate", due=10)
    jobs.add(1, "estimate", due=10)
    assert jobs.lease(["estimate"], now=9, seconds=60) is None
    first = jobs.lease(["estimate"], now=10, seconds=60)
    assert jobs.lease(["estimate"], now=69, seconds=60) is None
    assert jobs.lease(["shred"], now=70, seconds=60) is None
    second = jobs.lease(["estimate"], now=70, seconds=60)
    assert (second.attempts, first.token != second.token) == (2, True)
    with pytest.raises(LeaseLost), store.transaction():
        store.artifacts.keep(1, "result", b"of the first")
        jobs.finish(first)
    assert store.artifacts.kept(1, "result") is None
    with store.transaction():
        store.artifacts.keep(1, "result", b"of the second")
        jobs.finish(second)
    assert (store.artifacts.kept(1, "result"), jobs.waiting()) == (b"of the second", [])


def test_a_job_that_failed_waits(store):
    store.jobs.add(1, "publish", due=0)
    job = store.jobs.lease(["publish"], now=1, seconds=60)
    store.jobs.give_back(job, due=5)
    assert store.jobs.lease(["publish"], now=4, seconds=60) is None
    assert store.jobs.lease(["publish"], now=5, seconds=60).attempts == 2
    store.jobs.add(1, "shred", due=0)
    store.jobs.cancel(1)
    assert [kind for _, kind, _ in store.jobs.waiting()] == ["shred"]


def test_artifacts_are_named_by_their_bytes(store):
    name = store.artifacts.put(b"content", "text/plain")
    assert store.artifacts.put(b"content", "text/plain") == name
    assert store.artifacts.get(name) == (b"content", "text/plain")
    assert store.artifacts.get("0" * 64) is None
    store.artifacts.attach(1, {"result.json": name})
    assert store.artifacts.of_round(1) == {"result.json": name}
    store.artifacts.keep(1, "candidate", b"1")
    store.artifacts.keep(1, "candidate", b"2")
    assert store.artifacts.kept(1, "candidate") == b"2"
    store.artifacts.drop(1, "candidate")
    assert store.artifacts.kept(1, "candidate") is None
    for sequence in (1, 2):
        store.artifacts.add_manifest(TASK, sequence, 100, b"%d" % sequence)
    assert store.artifacts.manifest(TASK) == (2, 100, b"2")


def test_credentials_are_stored_as_hashes(store, where):
    token = store.tokens.add_admin("ann", "operator", actor="cli", now=1)
    codes = store.tokens.enrol(TASK, 3, actor="ann", now=1)
    assert (store.tokens.admin(token, 2).role, store.tokens.admin(token + "x", 2)) == ("operator", None)
    assert store.tokens.is_enrolled(TASK, codes[0])
    assert not store.tokens.is_enrolled("f" * 32, codes[0])
    assert store.tokens.revoke_admin("ann", actor="cli", now=2)
    assert store.tokens.admin(token, 2) is None
    with pytest.raises(InvalidParameter):
        store.tokens.add_admin("bob", "root", actor="cli", now=1)
    with pytest.raises(StoreError):
        store.tokens.add_admin("ann", "viewer", actor="cli", now=1)
    stored = str(store.database.execute("SELECT * FROM admin_tokens")) + str([row.body for row in store.audit.rows()])
    assert token not in stored
    assert codes[0] not in stored


def test_the_ledger_lives_in_the_same_database(store):
    store.ledger.set_cap(BudgetCap(window=Budget(1.0, 1e-5), lifetime=Budget(2.0, 1e-5)))
    store.ledger.debit("r1", "everybody", "2027-W01", ONE)
    store.ledger.debit("r1", "everybody", "2027-W01", ONE)
    with pytest.raises(BudgetExceeded):
        store.ledger.debit("r2", "everybody", "2027-W01", ONE)
    store.ledger.debit("r3", "everybody", "2027-W02", ONE)
    assert store.ledger.publish("r1", {"statement.json": b"{}"}) == {"statement.json": b"{}"}
    assert store.ledger.published("r1") == {"statement.json": b"{}"}
    assert list(store.ledger.check().entries) == ["r1", "r3"]


@pytest.mark.parametrize("table", ["audit", "ledger", "release_files"])
def test_chains_cannot_be_changed_by_mistake(store, table):
    store.ledger.debit("r1", "everybody", "w1", ONE)
    store.ledger.publish("r1", {"statement.json": b"{}"})
    store.audit.append("a", "b", 1, {})
    for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET hash = 'x'"):
        with pytest.raises(StoreError):
            store.database.execute(statement.replace("hash", "name" if table == "release_files" else "hash"))


@pytest.mark.parametrize(
    ("change", "row"),
    [
        ("UPDATE audit SET body = replace(body, 'op', 'xy') WHERE position = 2", 2),
        ("DELETE FROM audit WHERE position = 1", 1),
        ("UPDATE audit SET previous = 'x' WHERE position = 3", 3),
    ],
)
def test_a_forged_audit_log_is_found_out(where, change, row):
    with open_store(where) as store:
        a_round(store, State.OPTIN_OPEN)
        _without_triggers(where, change)
        with pytest.raises(CorruptAudit) as refusal:
            store.audit.verify()
        assert refusal.value.row == row


def _without_triggers(where, change):
    if where.startswith("postgresql"):
        with psycopg.connect(where, autocommit=True) as raw:
            raw.execute("ALTER TABLE audit DISABLE TRIGGER USER")
            raw.execute(change)
    else:
        raw = sqlite3.connect(where)
        raw.execute("DROP TRIGGER audit_no_update")
        raw.execute("DROP TRIGGER audit_no_delete")
        raw.execute(change)
        raw.commit()
        raw.close()


def without_tables(kind, folder):
    return fresh_schema(postgres_server()) if kind == "postgresql" else str(folder / "service.db")


@pytest.mark.parametrize("kind", DATABASES)
def test_a_filled_database_of_the_first_version_is_refused_until_it_is_migrated(kind, tmp_path):
    where = without_tables(kind, tmp_path)
    database = open_database(where)
    migrate(database, to=1)
    assert schema_version(database) == 1
    old = ServiceStore(database)
    old.rounds.add_task(TASK, "searches", {"market": "en"}, actor="op", now=1)
    key = 1
    database.execute(
        "INSERT INTO rounds (round_key, task, number, state, version, settings, budget_window, tag_key, changed) "
        "VALUES (?, ?, 1, ?, 7, ?, '2026-W46', ?, 3)",
        (key, TASK, State.CLIENT_OPEN, '{"method": "best"}', b"t" * 32),
    )
    old.reports.add([arrivals(key, report_ids("a", "b"), [[0], [1]])], now=5)
    old.ledger.debit("r1", "everybody", "w1", ONE)
    logged = [bytes([65 + i]) * 9 for i in range(12)]  # kept as inner documents until version 10
    for i, entry in enumerate(logged):
        old.artifacts.keep(0, f"log entry {i:012d}", entry)
    old.artifacts.keep(0, "log checkpoint", b"note")
    old.artifacts.keep(key, "candidate", b"list")
    before = (old.reports.counts(key, 2).tolist(), old.audit.rows(), old.ledger.rows())
    with pytest.raises(WrongSchema, match=r"has version 1.*searchblend database migrate"):
        open_store(where)
    assert schema_version(database) == 1, "opening a store changes no table"
    migrate(database)
    old.close()
    with open_store(where) as store:
        assert schema_version(store.database) == SCHEMA_VERSION
        round_ = store.rounds.by_key(key)
        assert (round_.state, round_.version, round_.settings) == (State.CLIENT_OPEN, 7, {"method": "best"})
        assert round_.key_signature is None
        assert (store.reports.counts(key, 2).tolist(), store.audit.rows(), store.ledger.rows()) == before
        assert store.artifacts.trends(TASK) == []
        assert (store.log.entries(), store.log.checkpoint()) == (logged, b"note")
        assert store.artifacts.kept_under(0, "log") == {}
        assert store.artifacts.kept(key, "candidate") == b"list"
        store.ledger.check()
        with pytest.raises(StoreError):  # a key with which tags of the first version could be made again
            store.database.execute("SELECT tag_key FROM rounds")
    assert not [file for file in tmp_path.glob("service.db*") if b"t" * 32 in file.read_bytes()]


@pytest.mark.database_server
def test_what_is_beyond_a_limit_of_the_server_is_not_tried_again(tmp_path):
    """A job that met it would be tried for ever, as if the database were away."""
    with open_store(fresh_database("postgresql", tmp_path)) as store, pytest.raises(StoreError) as refused:
        store.database.execute(f"SELECT {', '.join(['1'] * 1700)}")
    assert "54011" in str(refused.value)
    assert not isinstance(refused.value, StoreUnavailable)


@pytest.mark.database_server
def test_only_a_new_sqlite_file_gets_its_tables_by_itself(tmp_path):
    with open_store(tmp_path / "service.db") as store:
        assert schema_version(store.database) == SCHEMA_VERSION
    where = fresh_schema(postgres_server())
    with pytest.raises(WrongSchema, match="searchblend database migrate"):
        open_store(where)
    database = open_database(where)
    assert schema_version(database) == 0
    database.close()


def test_a_new_sqlite_file_whose_set_up_was_interrupted_is_still_new(tmp_path, monkeypatch):
    where = tmp_path / "service.db"

    def interrupted(database, version):
        if version == SCHEMA_VERSION:
            raise KeyboardInterrupt
        apply(database, version)

    apply = schema._apply
    monkeypatch.setattr(schema, "_apply", interrupted)
    with pytest.raises(KeyboardInterrupt):
        open_store(where)
    monkeypatch.undo()
    with open_store(where) as store:
        assert schema_version(store.database) == SCHEMA_VERSION


def test_a_database_of_a_later_version_is_refused(where):
    with open_store(where) as store:
        store.database.execute("UPDATE schema_version SET version = ?", (SCHEMA_VERSION + 1,))
    with pytest.raises(WrongSchema, match="later version"):
        open_store(where)
    database = open_database(where)
    with pytest.raises(WrongSchema, match="later version"):
        migrate(database)
    database.close()


def test_a_transaction_is_undone_as_a_whole(store):
    with pytest.raises(ZeroDivisionError), store.transaction():
        store.artifacts.keep(1, "a", b"1")
        with store.transaction():
            store.artifacts.keep(1, "b", b"2")
        _ = 1 / 0
    assert (store.artifacts.kept(1, "a"), store.artifacts.kept(1, "b")) == (None, None)


def test_sqlite_refuses_a_place_that_cannot_keep_a_log(tmp_path):
    with pytest.raises(UnsafeDatabase):
        open_database(":memory:")
    other = tmp_path / "other.db"
    raw = sqlite3.connect(other)
    raw.execute("CREATE TABLE x (y)")
    raw.close()
    with pytest.raises(StoreError, match="not a database of this service"):
        open_database(other)
    with pytest.raises(StoreError, match="no such database"):
        open_database(tmp_path / "none.db", create=False)
    with pytest.raises(UsageError):
        open_database("mysql://x")


@pytest.mark.database_server
def test_postgresql_refuses_settings_that_lose_acknowledged_data(tmp_path, monkeypatch):
    where = fresh_database("postgresql", tmp_path)
    with pytest.raises(UnsafeDatabase, match="synchronous_commit"):
        open_database(where + "%20-csynchronous_commit%3Doff")
    from searchblend.store import database_postgres

    monkeypatch.setattr(database_postgres, "_setting", lambda connection, name: "off" if name == "fsync" else "on")
    with pytest.raises(UnsafeDatabase, match="fsync"):
        open_database(where)


@pytest.mark.database_server
def test_a_round_is_not_closed_while_a_report_is_being_committed(tmp_path):
    """Two connections: the arrow waits for the report, and the next report finds the round closed."""
    where = fresh_database("postgresql", tmp_path)
    with open_store(where) as taking, open_store(where) as closing, open_store(where) as watching:
        round_ = a_round(taking, State.CLIENT_OPEN)
        closer = threading.Thread(
            target=lambda: closing.rounds.advance(round_, State.CLIENT_GRACE, actor="clock", now=9, grace_until=0)
        )
        with taking.database.transaction(exclusive=False):
            assert taking.reports.add([arrivals(round_.key, report_ids("a"), [[0]])], now=5) == ["taken"]
            closer.start()
            while not watching.database.execute(
                "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = ?", (round_.key,)
            ):
                assert closer.is_alive(), "closed while a report was on its way"
                time.sleep(0.01)
            assert watching.rounds.by_key(round_.key).state is State.CLIENT_OPEN
        closer.join(60)
        assert watching.rounds.by_key(round_.key).state is State.CLIENT_GRACE
        assert taking.reports.add([arrivals(round_.key, report_ids("b"), [[0]])], now=5) == ["closed"]
        assert watching.reports.n_seen(round_.key) == 1


def test_errors_of_the_database_quote_no_values(store):
    with pytest.raises(StoreError) as refusal:
        store.database.execute("INSERT INTO counts (round_key, shard, cell, n) VALUES (?, 0, 0, NULL)", (4711,))
    assert "4711" not in str(refusal.value)
    assert refusal.value.__cause__ is None


@pytest.mark.database_server
def test_a_lost_connection_is_made_anew(tmp_path):
    where = fresh_database("postgresql", tmp_path)
    with open_store(where) as store:
        store.database._connection.close()
        a_round(store)
        assert Path(tmp_path).exists()
