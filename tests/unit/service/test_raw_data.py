"""Raw records and secrets: where they must never be, looked for byte by byte."""

from __future__ import annotations

import base64
import shutil
import sqlite3
import time

import httpx2
import psycopg
import pytest

from databases import DATABASES, fresh_database, postgres_server
from searchblend.core.errors import MessageError
from searchblend.core.records import Record
from searchblend.service.clock import SystemClock
from searchblend.service.review import Removal, Review
from searchblend.service.round_model import sealing_context
from searchblend.store.backup import one_moment, read_backup, write_backup
from searchblend.store.schema import BACKED_UP, MIGRATIONS
from searchblend.store.service_store import open_store
from searchblend.store.states import State
from searchblend.wire.sealed import Opener, new_round_key, seal_records
from service_http import http_service
from service_parts import Service, crowd, people
from service_process import ServerProcess, running

NAMED_ALONE = 1e-9
"""δ: the planted query itself is published by the mechanism at most this often"""
PLANTED = "planted canary query 7f3a"
PLANTED_URL = "http://planted-canary.example/7f3a"


def spellings(secret: bytes) -> list[bytes]:
    return [secret, secret.hex().encode(), base64.b64encode(secret), base64.urlsafe_b64encode(secret).rstrip(b"=")]


def found_in(folder, needles) -> list[str]:
    """Files below a folder that hold one of the needles."""
    hits = []
    for path in sorted(folder.rglob("*")):
        try:
            content = path.read_bytes() if path.is_file() else b""
        except OSError:
            continue
        hits += [f"{path.name}: {needle!r}" for needle in needles if needle in content]
    return hits


def database_folders(kind, tmp_path):
    """Where the database keeps its files: table spaces, logs, spill files."""
    if kind == "sqlite":
        return [tmp_path]
    with psycopg.connect(postgres_server(), autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        row = connection.execute("SELECT current_setting('data_directory')").fetchone()
    return [tmp_path, type(tmp_path)(row[0])]


@pytest.fixture(autouse=True)
def sqlite_that_leaves_deleted_bytes(monkeypatch):
    """As SQLite does unless its maker chose otherwise: then only our own setting overwrites them."""
    connect = sqlite3.connect

    def connect_with_that_default(*arguments, **named):
        connection = connect(*arguments, **named)
        connection.execute("PRAGMA secure_delete = OFF")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_with_that_default)


@pytest.mark.parametrize("kind", DATABASES)
def test_after_shredding_nothing_on_any_disk_opens_a_record(kind, tmp_path, monkeypatch):
    spill, service_folder, copies = tmp_path / "tmp", tmp_path / "service", tmp_path / "copies"
    for folder in (spill, service_folder, copies):
        folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(spill))
    where = fresh_database(kind, service_folder)
    service = Service.start(where, service_folder)
    task = service.task(delta=NAMED_ALONE)
    round_ = service.open(task)
    service.contribute(round_, [*people(300, seed=1), Record(PLANTED, PLANTED_URL)])
    private = service.vault.private_key(round_.task, round_.number, round_.public_key)
    assert found_in(service_folder, [private]), "the search itself must find a key that is there"
    sealed = list(service.store.contributions.all(round_.key))
    # Everything but the key folder, as a thief or a backup program would take it before the shredding.
    write_backup(service.store.database, copies / "backup.db")
    if kind == "sqlite":
        for path in service_folder.glob("service.db*"):
            shutil.copy(path, copies / path.name)
    service.lifecycle.close_optin(round_, actor="ann")
    service.work()
    assert service.current(task).state is State.SHREDDED

    needles = [PLANTED.encode(), PLANTED_URL.encode(), *spellings(private)]
    for folder in database_folders(kind, tmp_path):
        assert found_in(folder, needles) == []
    assert list(spill.iterdir()) == []
    assert service.vault.held() == []
    context = sealing_context(round_)
    for tag, message in sealed[:5]:
        with pytest.raises(MessageError):
            Opener(new_round_key()[0], context, at_most=1).open(message, tag)
    # The backup never had them, and the live database has none left.
    with open_store(copies / "backup.db") as copy:
        assert copy.contributions.count(round_.key) == 0
    if kind == "sqlite":
        assert found_in(service_folder, [message[66:] for _, message in sealed[:50]]) == []
    service.store.close()


def test_text_that_a_reviewer_removes_is_in_no_file_while_the_service_runs(tmp_path):
    """SQLite; what PostgreSQL keeps in its log is said in the threat model."""
    service = Service.start(str(tmp_path / "service.db"), tmp_path)
    task = service.task()
    service.contribute(service.open(task), [*crowd(seed=1), *[Record(PLANTED, PLANTED_URL)] * 100])
    service.lifecycle.close_optin(service.current(task), actor="ann")
    service.work()
    needles = [PLANTED.encode(), PLANTED_URL.encode()]
    assert found_in(tmp_path, needles), "the search itself must find the list before its review"
    head = service.lifecycle.candidate(service.current(task))[0].head
    place = list(head.queries).index(PLANTED)
    with open_store(tmp_path / "service.db") as reader, one_moment(reader.database):
        reader.rounds.tasks()
        service.store.database.execute("PRAGMA busy_timeout = 10")
        service.lifecycle.review(service.current(task), Review((Removal(place, None, "other"),)), actor="rob")
        service.work()
        assert found_in(tmp_path, needles), "a reader still has the database as it was before"
    service.work()
    assert service.current(task).state is State.CLIENT_OPEN
    assert found_in(tmp_path, needles) == []
    assert PLANTED not in str(service.store.audit.rows())
    assert head.digest not in str(service.store.audit.rows()), "a digest would confirm a guess"
    service.store.close()


def test_a_planted_key_would_be_found(tmp_path):
    """The check above is not blind: a curator that forgets to destroy the key is found out."""
    service = Service.start(str(tmp_path / "service.db"), tmp_path)
    round_ = service.open(service.task())
    key = service.vault.private_key(round_.task, round_.number, round_.public_key)
    (tmp_path / "leak.bin").write_bytes(b"..." + key.hex().encode())
    assert len(found_in(tmp_path, spellings(key))) == 2
    service.store.close()


@pytest.mark.parametrize("kind", DATABASES)
def test_canaries_reach_no_log_metric_table_or_file(kind, tmp_path):
    """Secrets in every place of a request, and what the service leaves behind."""
    where = fresh_database(kind, tmp_path)
    parts = Service.start(where, tmp_path, SystemClock())
    task = parts.task(client_seconds=100_000, optin_seconds=100_000, shred_seconds=200_000, delta=NAMED_ALONE)
    operator = parts.store.tokens.add_admin("ann", "operator", actor="t", now=1)
    code = parts.lifecycle.enrol(task, 1, actor="t")[0]
    round_ = parts.open(task)
    headers = {
        "origin": "moz-extension://canary7f3a-origin",
        "user-agent": "canary7f3a-agent",
        "x-forwarded-for": "198.51.100.77",
        "forwarded": "for=198.51.100.77",
        "cookie": "canary7f3a-cookie=1",
        "referer": "http://canary7f3a-referer.example",
    }
    server = ServerProcess(tmp_path, where)
    with running(server):
        with httpx2.Client(base_url=server.address, headers=headers, timeout=240) as client:
            context = sealing_context(round_)
            sealed = seal_records([Record(PLANTED, PLANTED_URL)], context, context.tag_of(code), round_.public_key)
            at = f"/v1/tasks/{round_.task}/rounds/{round_.number}"
            kind_of = {"content-type": "application/vnd.searchblend.sealed", "authorization": f"Bearer {code}"}
            assert client.post(f"{at}/contributions", content=sealed, headers=kind_of).status_code == 200
            stranger = {**kind_of, "authorization": "Bearer sbe_canary7f3a-credential-unknown"}
            assert client.post(f"{at}/contributions", content=sealed, headers=stranger).status_code == 401
            assert client.post(f"{at}/contributions", content=b"canary7f3a-body", headers=kind_of).status_code == 400
            assert client.post(f"{at}/reports", content=b"canary7f3a-body").status_code in (409, 415)
            assert client.get("/v1/tasks/canary7f3a-task/manifest?q=canary7f3a-argument").status_code == 404
            assert client.get("/canary7f3a-path?q=canary7f3a-argument").status_code == 404
            wrong = {"authorization": "Bearer sba_canary7f3a-token"}
            assert client.get("/admin/v1/tasks", headers=wrong).status_code == 401
            right = {"authorization": f"Bearer {operator}"}
            assert client.post("/admin/v1/tasks", json={"name": "canary7f3a\0name"}, headers=right).status_code == 400
            bad = client.post(
                "/admin/v1/tasks", content=b'{"canary7f3a-json', headers={**right, "content-type": "application/json"}
            )
            assert bad.status_code == 400
            parts.contribute(round_, people(300, seed=1))
            assert client.post(f"/admin/v1/tasks/{round_.task}/rounds/1/close-opt-in", headers=right).status_code == 200
            deadline = time.monotonic() + 240
            while parts.current(task).state is not State.SHREDDED and time.monotonic() < deadline:
                time.sleep(0.05)
            metrics = client.get(f"{server.health}/metrics").text
        assert server.terminate() == 0
    assert parts.current(task).state is State.SHREDDED
    needles = [b"canary7f3a", PLANTED.encode(), b"198.51.100.77", operator.encode(), code.encode()]
    assert not [needle for needle in needles if needle in metrics.encode()]
    for folder in database_folders(kind, tmp_path):
        assert found_in(folder, needles) == []
    for table in BACKED_UP:
        rows = str(parts.store.database.execute(f"SELECT * FROM {table}"))
        assert not [needle for needle in needles if needle.decode() in rows], table
    log = server.log.read_text()
    assert '"event": "job done"' in log
    assert not [needle for needle in needles if needle.decode() in log]
    parts.store.close()


def test_every_table_is_copied_or_left_out_on_purpose(tmp_path):
    made = {word.split("CREATE TABLE ")[1].split()[0] for step in MIGRATIONS for word in step if "CREATE TABLE" in word}
    assert made - set(BACKED_UP) == {"contributions", "gateway_keys", "sessions"}


@pytest.mark.parametrize("source", DATABASES)
@pytest.mark.parametrize("target", DATABASES)
def test_a_backup_of_either_database_is_restored_into_either(source, target, tmp_path):
    """In the middle of the clients' window: reports that were counted stay counted, others still arrive."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    with http_service(fresh_database(source, first), first) as http:
        round_ = http.client_round()
        messages = http.parts.messages(round_, people(120, seed=2))
        assert http.reports(round_, b"".join(messages[:60])).status_code == 200
        rows = write_backup(http.parts.store.database, tmp_path / "backup.db")
        clock = http.parts.clock
    where = fresh_database(target, second)
    with open_store(where) as empty:
        assert read_backup(tmp_path / "backup.db", empty.database) == rows
    shutil.copytree(first / "signing", second / "signing")
    with http_service(where, second, clock=clock) as http:
        assert http.reports(round_, b"".join(messages)).json()["accepted"] == 120
        assert http.parts.store.reports.n_seen(round_.key) == 120
        task = http.parts.store.rounds.task(round_.task)
        assert http.parts.finish(task).state is State.PUBLISHED
        http.parts.store.audit.verify()
        http.parts.store.ledger.check()
