"""Alerts by webhook and e-mail: what the console's first page warns of, a review that waits, a window that ends.

A message has a title, a level, the task's and the round's numbers and a link; names, figures and everything that people
searched for stay behind the sign-in. An alert is sent when it begins, once a day while it lasts, and when it is over.
What was sent is on record in the database, so that a restart repeats nothing; what could not be sent is tried again in
the next pass, for each channel by itself. Of admin processes that share a database one sends; if it falls silent,
another goes on.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import re
import secrets
import smtplib
import ssl
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import Final, Literal
from urllib.parse import urlsplit

from searchblend.core.documents import decode
from searchblend.core.errors import InvalidParameter
from searchblend.files.durable import read_named_secret
from searchblend.service.clock import DAY, Clock
from searchblend.service.console.overview import Alert, Figures, alerts, round_link
from searchblend.service.settings import ServeSettings
from searchblend.service.telemetry import Logbook, ServiceMetrics
from searchblend.store.rounds import Round
from searchblend.store.service_store import ServiceStore, open_store
from searchblend.store.states import State
from searchblend.wire.addresses import check_secure, is_this_machine

EVERY_SECONDS: Final = 300.0
"""between two looks: counting what a large round has takes a moment"""
_AGAIN_SECONDS: Final = DAY
_ENDS_SOON: Final = DAY
_ENDS_SOON_SHARE: Final = 10
"""a window is said to end a day before, or a tenth of its length, whichever is shorter"""
_SEND_SECONDS: Final = 15.0
_SILENT_SECONDS: Final = 900
"""after which another process sends: three looks"""
_RECORD: Final = "alerts sent"
_SENDER: Final = "alerts sender"
_SIGNATURE: Final = "X-Searchblend-Signature"
_SMTPS: Final = 465
_PLACE: Final = re.compile(r"/console/tasks/([0-9a-f]{32})(?:/rounds/([0-9]+))?")
Change = Literal["begins", "lasts", "over"]


@dataclass(frozen=True)
class AlertMessage:
    """What leaves the service."""

    alert: str
    level: str
    change: Change
    task: str | None
    round: int | None
    link: str
    since: int


@dataclass(frozen=True)
class SentAlert(AlertMessage):
    """A message on record, and when it was sent."""

    sent: int


Send = Callable[[AlertMessage], None]


def current_alerts(store: ServiceStore, now: int) -> list[Alert]:
    """All that is so now, without the figures."""
    figures = Figures.read(store, now)
    all_alerts = [*alerts(figures, now), *_of_rounds(figures, now)]
    return list({(alert.title, alert.link): alert for alert in all_alerts}.values())


def _of_rounds(figures: Figures, now: int) -> Iterator[Alert]:
    for round_ in figures.rounds:
        if round_.state is State.SHREDDED:
            yield Alert("warn", "A review waits", "", f"{round_link(round_)}/review")
        for opens, closes in _windows(round_):
            soon = min(_ENDS_SOON, (closes - opens) // _ENDS_SOON_SHARE)
            if 0 <= closes - now <= soon:
                yield Alert("warn", "A window ends soon", "", round_link(round_))


def _windows(round_: Round) -> Iterator[tuple[int, int]]:
    """The window that is open now: from when to when, as far as the round's settings say."""
    if round_.state is State.OPTIN_OPEN and round_.optin_closes is not None:
        length = round_.settings.get("optin_seconds", 0)
        yield round_.optin_closes - (length if isinstance(length, int) else 0), round_.optin_closes
    if round_.state is State.CLIENT_OPEN and round_.client_opens is not None and round_.client_closes is not None:
        yield round_.client_opens, round_.client_closes


class AlertSender:
    """Compares what is so with what was sent."""

    def __init__(
        self,
        store: ServiceStore,
        clock: Clock,
        channels: Mapping[str, Send],
        logbook: Logbook,
        metrics: ServiceMetrics,
        *,
        console: str = "",
        name: str = "",
    ) -> None:
        """``console``: the address that links begin with; ``name``: of this process, apart from every other one."""
        self._store, self._clock, self._channels, self._console = store, clock, channels, console.rstrip("/")
        self._name = name or secrets.token_hex(16)
        self._logbook, self._metrics = logbook, metrics

    def update(self) -> int:
        """Send what is new, what lasts and what is over; how many messages."""
        if not self._is_sender():
            return 0
        now = self._clock.now()
        current = {f"{alert.title} {alert.link}": alert for alert in current_alerts(self._store, now)}
        record = _read_record(self._store)
        sent = 0
        for name, send in self._channels.items():
            known = record.setdefault(name, {})
            for key, message in list(self._due(current, known, now)):
                if not self._is_sender():
                    return sent  # this process was held up for so long that another one goes on
                if not self._sent(name, send, message):
                    break  # the channel is away: the others go on, and this one is tried again
                sent += 1
                if message.change == "over":
                    del known[key]
                else:
                    known[key] = SentAlert(**vars(message), sent=now)
                self._store.artifacts.keep_json(0, _RECORD, record)
        return sent

    def _is_sender(self) -> bool:
        """Whether it is this process that sends; from now on it is, if no other has been for a while."""
        now = self._clock.now()
        with self._store.transaction():
            last = self._store.artifacts.kept_json(0, _SENDER)
            if last and last["name"] != self._name and 0 <= now - last["at"] < _SILENT_SECONDS:
                return False
            self._store.artifacts.keep_json(0, _SENDER, {"name": self._name, "at": now})
        return True

    def stop(self) -> None:
        """Another process need not wait for this one to fall silent."""
        with self._store.transaction():
            last = self._store.artifacts.kept_json(0, _SENDER)
            if last and last["name"] == self._name:
                self._store.artifacts.drop(0, _SENDER)

    def _due(
        self, current: Mapping[str, Alert], known: Mapping[str, SentAlert], now: int
    ) -> Iterator[tuple[str, AlertMessage]]:
        for key, alert in current.items():
            before = known.get(key)
            if before is None:
                yield key, self._message(alert.title, alert.level, alert.link, "begins", now)
            elif now - before.sent >= _AGAIN_SECONDS:
                yield key, self._message(alert.title, alert.level, alert.link, "lasts", before.since)
        for key, before in known.items():
            if key not in current:
                link = before.link.removeprefix(self._console)
                yield key, self._message(before.alert, before.level, link, "over", before.since)

    def _message(self, title: str, level: str, link: str, change: Change, since: int) -> AlertMessage:
        place = _PLACE.match(link)
        task, number = place.groups() if place else (None, None)
        return AlertMessage(title, level, change, task, int(number) if number else None, self._console + link, since)

    def _sent(self, name: str, send: Send, message: AlertMessage) -> bool:
        try:
            send(message)
        except (OSError, smtplib.SMTPException) as error:  # urllib's errors are OSErrors
            self._logbook.failure("alert not sent", error, job=name)
            self._metrics.count("alerts_total", channel=name, result="failed")
            return False
        self._metrics.count("alerts_total", channel=name, result="sent")
        return True


def _read_record(store: ServiceStore) -> dict[str, dict[str, SentAlert]]:
    """By channel and alert."""
    channels = store.artifacts.kept_json(0, _RECORD) or {}
    return {name: {key: decode(SentAlert, message) for key, message in sent.items()} for name, sent in channels.items()}


def channels_of(settings: ServeSettings) -> dict[str, Send]:
    """Where alerts go; nothing where no channel is set up."""
    channels: dict[str, Send] = {}
    if settings.alert_webhook:
        check_secure("alert_webhook", settings.alert_webhook)
        secret = read_named_secret(settings.alert_secret_file) if settings.alert_secret_file else b""
        channels["webhook"] = Webhook(settings.alert_webhook, secret)
    if settings.alert_mail:
        channels["mail"] = Mail(settings)
    return channels


class Webhook:
    """A POST of JSON, with an HMAC-SHA-256 of the body where a secret is set up. No redirect is followed."""

    def __init__(self, address: str, secret: bytes) -> None:
        self._address, self._secret = address, secret
        handler = urllib.request.HTTPSHandler(context=ssl.create_default_context())
        self._opener = urllib.request.build_opener(_NoRedirect, handler)

    def __call__(self, message: AlertMessage) -> None:
        body = json.dumps(asdict(message), sort_keys=True).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "searchblend"}
        if self._secret:
            headers[_SIGNATURE] = f"sha256={hmac.new(self._secret, body, hashlib.sha256).hexdigest()}"
        request = urllib.request.Request(self._address, body, headers, method="POST")  # noqa: S310  # checked: https
        with self._opener.open(request, timeout=_SEND_SECONDS):
            pass


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


class Mail:
    """One e-mail for each message. TLS always, but for a server on this machine."""

    def __init__(self, settings: ServeSettings) -> None:
        self._to = [address.strip() for address in settings.alert_mail.split(",")]
        self._from = settings.alert_mail_from
        for field, addresses in (("alert_mail", self._to), ("alert_mail_from", [self._from])):
            if not all(re.fullmatch(r"[^\s@<>,]+@[^\s@<>,]+", address) for address in addresses):
                raise InvalidParameter(field, "expected e-mail addresses, name@host")
        parts = urlsplit(f"//{settings.smtp_server}")
        try:
            self._host, self._port = parts.hostname or "", parts.port or 587
        except ValueError:
            raise InvalidParameter("smtp_server", "expected HOST:PORT") from None
        if not self._host:
            raise InvalidParameter("smtp_server", "expected with alert_mail: HOST:PORT")
        self._user = settings.smtp_user
        self._password = read_named_secret(settings.smtp_password_file).decode() if settings.smtp_password_file else ""

    def __call__(self, message: AlertMessage) -> None:
        with self._connection() as server:
            if self._user:
                server.login(self._user, self._password)
            server.send_message(self._mail(message), self._from, self._to)

    @contextlib.contextmanager
    def _connection(self) -> Iterator[smtplib.SMTP]:
        context = ssl.create_default_context()
        if self._port == _SMTPS:
            with smtplib.SMTP_SSL(self._host, self._port, timeout=_SEND_SECONDS, context=context) as server:
                yield server
            return
        with smtplib.SMTP(self._host, self._port, timeout=_SEND_SECONDS) as server:
            server.ehlo()
            if server.has_extn("starttls") or not is_this_machine(self._host):
                server.starttls(context=context)
            yield server

    def _mail(self, message: AlertMessage) -> EmailMessage:
        where = f", round {message.round}" if message.round is not None else ""
        subject = {"begins": message.alert, "lasts": f"Still: {message.alert}", "over": f"Over: {message.alert}"}
        mail = EmailMessage()
        mail["Subject"] = f"searchblend: {subject[message.change]}{where}"
        mail["From"], mail["To"] = self._from, ", ".join(self._to)
        mail["Date"], mail["Message-ID"] = formatdate(), make_msgid(domain=self._from.rpartition("@")[2])
        mail["Auto-Submitted"] = "auto-generated"
        lines = [f"{name}: {value}" for name, value in asdict(message).items() if value is not None]
        mail.set_content("\n".join(lines) + "\n", cte="8bit")  # links stay in one piece
        return mail


@contextlib.contextmanager
def alerting(
    settings: ServeSettings, clock: Clock, logbook: Logbook, metrics: ServiceMetrics, *, every: float = EVERY_SECONDS
) -> Iterator[None]:
    """A thread and a database connection of their own: a mail server that does not answer holds up no round."""
    channels = channels_of(settings) if settings.plays("admin") else {}
    if not channels:
        yield
        return
    stop, name = threading.Event(), secrets.token_hex(16)

    def each_time(step: Callable[[AlertSender], object]) -> None:
        try:
            with open_store(settings.where) as store:
                console = settings.console_address
                step(AlertSender(store, clock, channels, logbook, metrics, console=console, name=name))
        except Exception as error:  # the next pass may succeed
            logbook.failure("alerts failed", error)

    def run() -> None:
        while not stop.is_set():
            each_time(AlertSender.update)
            stop.wait(every)
        each_time(AlertSender.stop)

    thread = threading.Thread(target=run, name="alerts", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_SEND_SECONDS)
