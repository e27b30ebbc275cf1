"""Alerts arrive at a web server and a mail server, once, and carry nothing of what people searched for."""

from __future__ import annotations

import contextlib
import email
import hashlib
import hmac
import io
import json
import socket
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from certificates import certificate
from databases import DATABASES, fresh_database
from searchblend.core.errors import InvalidParameter
from searchblend.service import alerts
from searchblend.service.alerts import AlertSender, alerting, channels_of, current_alerts
from searchblend.service.settings import ServeSettings
from searchblend.service.telemetry import Logbook, ServiceMetrics
from searchblend.store.service_store import open_store
from service_parts import QUERIES, SMALL, ManualClock, Service, crowd

CONSOLE = "https://console.example"
NAME = "canary-task"


class Inbox:
    """What has arrived at either server."""

    def __init__(self):
        self.posts, self.mails, self.status, self.logins = [], [], 200, []

    async def handle_DATA(self, server, session, envelope):
        self.mails.append(email.message_from_bytes(envelope.content))
        return "250 OK"

    def authenticate(self, server, session, envelope, mechanism, given):
        self.logins.append((given.login, given.password))
        return AuthResult(success=given.password == b"pass word")


@contextlib.contextmanager
def web_server(inbox):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            inbox.posts.append((body, dict(self.headers)))
            self.send_response(inbox.status)
            if inbox.status == 302:
                self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/other")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook"
    finally:
        server.shutdown()
        server.server_close()


class FreePort(Controller):
    """On a port that is free: the controller's own probe asks the one that it was given, which is none."""

    @property
    def address(self):
        return self.server.sockets[0].getsockname()

    def _trigger_server(self):
        with socket.create_connection(self.address, timeout=240) as probe:
            probe.recv(1024)


@contextlib.contextmanager
def mail_server(inbox, **options):
    controller = FreePort(inbox, hostname="127.0.0.1", port=0, ready_timeout=240, **options)
    controller.start()
    try:
        yield "{}:{}".format(*controller.address)
    finally:
        controller.stop()


@pytest.fixture(scope="module")
def servers():
    inbox = Inbox()
    with web_server(inbox) as hook, mail_server(inbox) as smtp:
        yield inbox, hook, smtp


@pytest.fixture
def inbox(servers):
    inbox = servers[0]
    inbox.posts.clear()
    inbox.mails.clear()
    inbox.status = 200
    return inbox


@pytest.fixture
def settings(servers, tmp_path):
    secret = tmp_path / "hook-secret"
    secret.write_text("hook secret\n")
    secret.chmod(0o600)
    return ServeSettings(
        alert_webhook=servers[1],
        alert_secret_file=str(secret),
        alert_mail="ann@example.com, rob@example.com",
        smtp_server=servers[2],
        data_dir=str(tmp_path),
        console_address=CONSOLE,
    )


@pytest.fixture
def parts(tmp_path):
    service = Service.start(str(tmp_path / "service.db"), tmp_path)
    yield service
    service.store.close()


def sender(parts, settings, log=None, metrics=None, name="one"):
    return AlertSender(
        parts.store,
        parts.clock,
        channels_of(settings),
        Logbook(log or io.StringIO()),
        metrics or ServiceMetrics(),
        console=settings.console_address,
        name=name,
    )


def candidate(parts, **changes):
    task = parts.task(name=NAME, **changes)
    parts.contribute(parts.open(task), crowd(seed=1))
    parts.lifecycle.close_optin(parts.current(task), actor="ann")
    parts.work()
    return task


def titles(parts):
    return {alert.title for alert in current_alerts(parts.store, parts.clock.now())}


def test_a_review_that_waits_is_told_once_and_when_it_is_over(parts, settings, inbox):
    task = candidate(parts)
    send = sender(parts, settings)
    assert send.update() == 2
    body, headers = inbox.posts[0]
    link = f"{CONSOLE}/console/tasks/{task.task}/rounds/1/review"
    assert json.loads(body) == {
        "alert": "A review waits",
        "change": "begins",
        "level": "warn",
        "link": link,
        "round": 1,
        "since": parts.clock.now(),
        "task": task.task,
    }
    signature = hmac.new(b"hook secret", body, hashlib.sha256).hexdigest()
    assert headers["X-Searchblend-Signature"] == f"sha256={signature}"
    (mail,) = inbox.mails
    assert mail["Subject"] == "searchblend: A review waits, round 1"
    assert mail["To"] == "ann@example.com, rob@example.com"
    assert link in mail.get_payload()
    sent = str(inbox.posts) + str(mail)
    assert not [word for word in (NAME, *QUERIES) if word in sent]
    assert sender(parts, settings).update() == 0  # one that was started again
    parts.clock.time += 10
    parts.lifecycle.review(parts.current(task), actor="rob")
    assert send.update() == 2
    assert json.loads(inbox.posts[1][0])["change"] == "over"
    assert inbox.mails[1]["Subject"] == "searchblend: Over: A review waits, round 1"


@pytest.mark.parametrize("kind", DATABASES)
def test_of_two_processes_on_one_database_one_sends(kind, tmp_path):
    """Both begin at the same moment, and the first that sends waits until the other has had its turn."""
    where, log, metrics = fresh_database(kind, tmp_path), Logbook(io.StringIO()), ServiceMetrics()
    parts = Service.start(where, tmp_path)
    candidate(parts)
    both, sent, ended = threading.Barrier(2), [], threading.Semaphore(0)

    def send(message):
        sent.append(message.alert)
        assert ended.acquire(timeout=240)

    def update(name):
        with open_store(where) as store:
            both.wait(240)
            AlertSender(store, parts.clock, {"channel": send}, log, metrics, name=name).update()
        ended.release()

    threads = [threading.Thread(target=update, args=(name,)) for name in ("one", "other")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    assert sent == ["A review waits"]
    parts.store.close()


def test_another_process_goes_on_when_one_has_ended_or_is_silent(parts, settings, inbox):
    task = candidate(parts, shred_seconds=10 * 86_400)
    one, other, third = (sender(parts, settings, name=name) for name in ("one", "other", "third"))
    assert one.update() == 2
    parts.clock.time += 10
    parts.lifecycle.review(parts.current(task), actor="rob")
    other.stop()  # of one that does not send: nothing changes
    assert other.update() == 0
    one.stop()
    assert other.update() == 2
    parts.clock.time += 899
    assert third._is_sender() is False
    parts.clock.time += 1
    assert third._is_sender() is True
    assert other.update() == 0


def test_what_lasts_is_repeated_once_a_day(parts, settings, inbox):
    candidate(parts, shred_seconds=10 * 86_400)
    send = sender(parts, settings)
    send.update()
    parts.clock.time += 86_399
    assert send.update() == 0
    parts.clock.time += 1
    parts.publisher.refresh_manifests()
    assert send.update() == 2
    assert inbox.mails[1]["Subject"] == "searchblend: Still: A review waits, round 1"


@pytest.mark.parametrize("status", [500, 302])
def test_a_channel_that_is_away_holds_up_no_other_and_is_tried_again(parts, settings, inbox, status):
    candidate(parts)
    log, metrics = io.StringIO(), ServiceMetrics()
    send = sender(parts, settings, log, metrics)
    inbox.status = status
    assert send.update() == 1
    assert (len(inbox.posts), len(inbox.mails)) == (1, 1)  # a redirect is not followed
    assert "alert not sent" in log.getvalue()
    assert 'alerts_total{channel="webhook",result="failed"} 1' in metrics.exposition()
    inbox.status = 200
    assert send.update() == 1
    assert (len(inbox.posts), len(inbox.mails)) == (2, 1)


def test_everything_that_may_be_wrong_is_told(parts):
    task = parts.task(name=NAME)
    parts.publisher.refresh_manifests()
    assert titles(parts) == set()
    round_ = parts.open(task)
    parts.publisher.refresh_manifests()
    assert titles(parts) == set()
    parts.clock.time += 95
    assert titles(parts) == {"A window ends soon"}
    parts.contribute(round_, crowd(seed=1))
    parts.store.reports.refuse({(round_.key, "malformed"): 50})
    assert "Many messages are refused" in titles(parts)
    parts.head_list(task)
    parts.publisher.refresh_manifests()
    parts.store.database.execute("INSERT INTO counts (round_key, shard, cell, n) VALUES (?, 0, 0, 7)", (round_.key,))
    assert "Conservation check failed" in titles(parts)
    parts.clock.time += 95
    assert "A window ends soon" in titles(parts)
    parts.clock.time += 6 * 86_400 + 80_000
    assert "Signature near its end" in titles(parts)
    parts.clock.time += 86_400
    assert "Signature has expired" in titles(parts)


def test_raw_records_past_their_deadline_are_told(parts):
    task = parts.task(name=NAME)
    parts.open(task)
    parts.clock.time += SMALL["optin_seconds"] + SMALL["shred_seconds"] + 60
    assert "Shredding is overdue" in titles(parts)


def test_e_mail_over_tls_with_an_account(tmp_path, settings, parts, monkeypatch):
    certificate_file, key_file = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_file, key_file)
    password = tmp_path / "password"
    password.write_text("pass word\n")
    password.chmod(0o600)
    candidate(parts)
    inbox = Inbox()
    options = {"tls_context": context, "require_starttls": True, "auth_required": True}
    with mail_server(inbox, authenticator=inbox.authenticate, **options) as smtp:
        changes = {"alert_webhook": "", "smtp_server": smtp, "smtp_user": "ann", "smtp_password_file": str(password)}
        secure = ServeSettings(**{**vars(settings), **changes})
        assert sender(parts, secure).update() == 0  # no one vouches for the certificate
        assert not inbox.logins
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate_file))
        assert sender(parts, secure).update() == 1
    assert (inbox.logins, len(inbox.mails)) == ([(b"ann", b"pass word")], 1)


def test_no_password_and_no_alert_leave_without_tls(parts, settings, inbox, monkeypatch):
    """A mail server elsewhere that offers no TLS, or whose offer someone on the way has taken out."""
    candidate(parts)
    monkeypatch.setattr(alerts, "is_this_machine", lambda host: False)
    assert sender(parts, ServeSettings(**{**vars(settings), "alert_webhook": ""})).update() == 0
    assert not inbox.mails


def test_the_thread_of_a_server_sends_and_ends(parts, settings, inbox):
    candidate(parts)
    log = Logbook(io.StringIO())
    clock, end = ManualClock(parts.clock.now()), time.monotonic() + 240
    with alerting(settings, clock, log, ServiceMetrics(), every=0.01):
        while not (inbox.posts and inbox.mails) and time.monotonic() < end:
            time.sleep(0.01)
    assert (len(inbox.posts), len(inbox.mails)) == (1, 1)
    assert "alerts" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"alert_webhook": "http://hook.example"}, "alert_webhook"),
        ({"alert_mail": "nobody"}, "alert_mail"),
        ({"alert_mail": "a@b", "alert_mail_from": "x\ny@b", "smtp_server": "h"}, "alert_mail_from"),
        ({"alert_mail": "a@b"}, "smtp_server"),
        ({"alert_mail": "a@b", "smtp_server": "h:port"}, "smtp_server"),
    ],
)
def test_channels_that_cannot_work_are_refused(changes, field):
    with pytest.raises(InvalidParameter) as raised:
        channels_of(ServeSettings(**changes))
    assert raised.value.field == field
