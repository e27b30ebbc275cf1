"""Filters, vault, logs, metrics, limits: the small parts, each on its own."""

from __future__ import annotations

import asyncio
import io
import json
import re
import socket

import pytest

from databases import fresh_database
from searchblend.core.documents import encode
from searchblend.core.errors import RunError
from searchblend.core.records import HeadList
from searchblend.service.api.writers import ReportWriter, StoreThread
from searchblend.service.process import VARIABLE, crash_points
from searchblend.service.review import query_reason, suspicious_entries, url_reason
from searchblend.service.serve import listen
from searchblend.service.services import TokenBucket
from searchblend.service.telemetry import Logbook, ServiceMetrics
from searchblend.service.workers.vault import KeyLost, Vault
from searchblend.wire.sealed import new_round_key, public_key_of
from service_parts import Service

LATER = 2**40


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("weather new york", None),
        ("windows 11", None),
        ("area 51 1947", None),
        ("ann@mail.example", "email"),
        ("write to ann.b@mail.example now", "email"),
        ("4111 1111 1111 1111", "card"),
        ("4111111111111111", "card"),
        ("4111 1111 1111 1112", "long-number"),
        ("+49 170 123 4567", "phone"),
        ("call 030-1234-5678", "long-number"),
        ("call (415) 555 0132", "phone"),
        ("078-05-1120", "long-number"),
        ("router 192.168.0.1", None),
        ("123456789", "long-number"),
        ("something forbidden here", "blocklist"),
    ],
)
def test_texts(text, reason):
    assert query_reason(text, ["forbidden"]) == reason


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://news.example/2026/11/story", None),
        ("https://shop.example/item?id=12", None),
        ("http://ann:secret@host.example/", "credentials"),
        ("https://host.example/login?token=abc", "credentials"),
        ("https://host.example/#access_token=abc", "credentials"),
        ("javascript:alert(1)", "unsafe-url"),
        ("data:text/html,x", "unsafe-url"),
        ("gopher://old.example", "unsafe-url"),
        ("http://[broken", "unsafe-url"),
        ("http://host.example/ann@mail.example", "email"),
    ],
)
def test_urls(url, reason):
    assert url_reason(url) == reason


def test_hits_say_where_and_why_and_nothing_else():
    head = HeadList({"fine": ["http://a.example"], "ann@mail.example": ["http://x.example/?sid=1"]})
    assert encode(suspicious_entries(head)) == [
        {"query": 1, "url": None, "reason": "email"},
        {"query": 1, "url": 0, "reason": "credentials"},
    ]


def test_a_key_is_made_kept_and_destroyed(tmp_path):
    vault = Vault(tmp_path / "keys")
    public = vault.create("ab", 3, destroy_by=LATER)
    assert public_key_of(vault.private_key("ab", 3, public)) == public
    path = next((tmp_path / "keys").iterdir())
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [key[:2] for key in vault.held()] == [("ab", 3)]
    vault.create("ab", 31, destroy_by=LATER)
    vault.destroy("ab", 3)
    vault.destroy("ab", 3)
    assert [key[:2] for key in vault.held()] == [("ab", 31)]
    with pytest.raises(KeyLost):
        vault.private_key("ab", 3, public)


def test_making_a_key_of_a_round_leaves_its_live_key_as_it_is(tmp_path):
    vault = Vault(tmp_path)
    first, second = vault.create("ab", 3, destroy_by=LATER), vault.create("ab", 3, destroy_by=LATER)
    assert [public_key_of(vault.private_key("ab", 3, public)) for public in (first, second)] == [first, second]
    vault.destroy("ab", 3)
    assert vault.held() == []


def test_a_key_file_of_an_earlier_version_is_still_read_and_destroyed(tmp_path):
    vault = Vault(tmp_path)
    private, public = new_round_key()
    (tmp_path / "ab-3.key").write_bytes(private)
    (tmp_path / "ab-3.key").chmod(0o600)
    assert vault.private_key("ab", 3, public) == private
    with pytest.raises(KeyLost, match="damaged"):
        vault.private_key("ab", 3, new_round_key()[1])
    vault.destroy("ab", 3)
    assert not (tmp_path / "ab-3.key").exists()


def test_a_folder_of_keys_has_one_identity(tmp_path):
    first = Vault(tmp_path / "a").identity
    assert Vault(tmp_path / "a").identity == first != Vault(tmp_path / "b").identity
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["curator.id"]


def test_a_key_is_overwritten_before_its_name_goes(tmp_path):
    vault = Vault(tmp_path)
    vault.create("ab", 1, destroy_by=LATER)
    path = next(tmp_path.iterdir())
    other_name = tmp_path / "other-name"
    other_name.hardlink_to(path)
    vault.destroy("ab", 1)
    assert other_name.read_bytes() == b"\0" * 32


def test_a_damaged_key_is_a_lost_one(tmp_path):
    vault = Vault(tmp_path)
    public = vault.create("ab", 1, destroy_by=LATER)
    next(tmp_path.iterdir()).write_bytes(b"short")
    with pytest.raises(KeyLost):
        vault.private_key("ab", 1, public)


def test_only_fields_of_the_list_are_logged():
    stream = io.StringIO()
    logbook = Logbook(stream)
    logbook.write("event", task="f" * 32, round=3, query="secret", route="GET /v1/x", problem='a "quoted" text')
    logbook.write("event", task="weather in berlin")
    try:
        raise ValueError("secret words")
    except ValueError as error:
        logbook.failure("failed", error, job="estimate")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert "secret" not in stream.getvalue()
    assert (lines[0]["task"], lines[0]["round"], lines[0]["problem"]) == ("f" * 32, 3, "(withheld)")
    assert lines[1]["task"] == "(withheld)"
    assert (lines[2]["error"], lines[2]["job"]) == ("ValueError", "estimate")
    assert lines[2]["place"].startswith("test_service_small_parts.py:")


def test_metrics_are_in_the_exposition_format():
    metrics = ServiceMetrics()
    metrics.count("reports_total", 12_345_678, result="accepted")
    metrics.set("reports_waiting", 3)
    for seconds in (0.001, 0.004, 5):
        metrics.commit_took(seconds)
    text = metrics.exposition()
    assert '# TYPE searchblend_reports_total counter\nsearchblend_reports_total{result="accepted"} 12345678\n' in text
    assert "searchblend_reports_waiting 3\n" in text
    assert 'searchblend_commit_seconds_bucket{le="0.005"} 2\n' in text
    assert 'searchblend_commit_seconds_bucket{le="+Inf"} 3\n' in text


def test_a_metric_without_a_description_cannot_be_counted():
    with pytest.raises(KeyError):
        ServiceMetrics().count("nameless_total")


def test_a_batch_above_the_rate_is_taken_and_paid_back(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("searchblend.service.services.time.monotonic", lambda: now[0])
    bucket = TokenBucket(10)
    assert [bucket.take(4) for _ in range(4)] == [True, True, True, False]
    now[0] += 0.3
    assert bucket.take(35)
    for _ in range(3):
        now[0] += 1
        assert not bucket.take(1)
    now[0] += 1
    assert bucket.take(1)
    assert TokenBucket(0).take(10**9)


def test_a_bucket_gives_its_rate_in_the_long_run(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("searchblend.service.services.time.monotonic", lambda: now[0])
    bucket, taken = TokenBucket(10), 0
    for _ in range(10_000):
        now[0] += 0.01
        taken += 1000 * bucket.take(1000)
    assert 1000 <= taken <= 10 * 100 + 10 + 1000


def test_crash_points_do_nothing_unless_asked(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    crash_points()("reports: before commit")
    monkeypatch.setenv(VARIABLE, "elsewhere@2")
    crash_points()("reports: before commit")


def test_a_refusal_that_comes_while_the_last_ones_are_written_is_counted(tmp_path):
    """The server is told to stop in the middle of its regular flush."""
    parts = Service.start(fresh_database("sqlite", tmp_path), tmp_path)
    round_ = parts.open(parts.task())

    async def stop_meanwhile() -> None:
        thread = StoreThread(str(tmp_path / "service.db"), "test")
        writer, call = ReportWriter(thread, parts.clock, ServiceMetrics()), thread.call
        stopping: list[asyncio.Task[None]] = []

        async def call_and_stop(function):
            result = await call(function)
            if not stopping:
                writer.refuse(round_.key, "malformed")
                stopping.append(asyncio.create_task(writer.stop()))
                await asyncio.sleep(0)
            return result

        thread.call = call_and_stop
        await writer.start()
        writer.refuse(round_.key, "malformed")
        while not stopping:
            await asyncio.sleep(0.01)
        await stopping[0]

    asyncio.run(asyncio.wait_for(stop_meanwhile(), 240))
    assert parts.store.reports.refusals(round_.key) == {"malformed": 2}
    parts.store.close()


def test_a_port_in_use_is_named_once():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            RunError, match=f"^{re.escape(f'127.0.0.1:{port}: cannot listen: Address already in use')}$"
        ):
            listen("127.0.0.1", port)


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_head():
    """Whatever the event loop does with a connection: without uvloop each answer took 40 ms longer."""
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
