"""All that a device keeps, in one SQLite file: searches, consents, reports as they were sent, and the budget's ledger.

Write-ahead log with ``synchronous = FULL``: what was committed survives a crash and a power cut, so bytes that were
sent are always on disk. Every step is one transaction that takes the write lock first; that lock is what two processes
of one device race for. ``secure_delete`` overwrites what is erased.

A *turn* is this device's part in one round, at most one for each (task, round) by its primary key. A debit is written
in the same transaction and is never deleted, not even by ``erase``: budget that was spent stays spent.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from searchblend.core.documents import encode
from searchblend.core.records import WILDCARD, Record
from searchblend.device.device_errors import StateError, StorageFull
from searchblend.device.make_report import Message, Pair, ReportedPart
from searchblend.device.policy import LastManifest
from searchblend.device.transparency import LastLog, Witnesses
from searchblend.files.durable import create_private, sync
from searchblend.files.sqlite import DURABLE, IN_MEMORY, SqliteFile
from searchblend.wire.tokens import SIGNED_BYTES, TokenAccount, TokenRequest

FILE: Final = "device.db"
APPLICATION_ID: Final = 0x53424456  # "SBDV"
SCHEMA_VERSION: Final = 3
_TOKENS: Final = """CREATE TABLE tokens (
    task TEXT NOT NULL, round INTEGER NOT NULL, signed BLOB NOT NULL, request BLOB NOT NULL, inverse BLOB NOT NULL,
    token BLOB, PRIMARY KEY (task, round)) WITHOUT ROWID"""
"""one for each round, from its request until the turn that it pays for has it"""
_SCHEMA: Final = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE consents (at INTEGER NOT NULL, mode TEXT NOT NULL, digest TEXT, text TEXT, records INTEGER)",
    "CREATE TABLE searches (id INTEGER PRIMARY KEY, recorded INTEGER NOT NULL, query TEXT NOT NULL, url TEXT)",
    """CREATE TABLE debits (
        task TEXT NOT NULL, round INTEGER NOT NULL, part TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL,
        at INTEGER NOT NULL, PRIMARY KEY (task, round)) WITHOUT ROWID""",
    """CREATE TABLE turns (
        task TEXT NOT NULL, round INTEGER NOT NULL, part TEXT NOT NULL, state TEXT NOT NULL, message BLOB,
        mechanism TEXT NOT NULL, held TEXT, said TEXT, made_at INTEGER NOT NULL, send_after INTEGER NOT NULL,
        closes INTEGER NOT NULL, tries INTEGER NOT NULL DEFAULT 0, answer TEXT, answered_at INTEGER, token BLOB,
        PRIMARY KEY (task, round), FOREIGN KEY (task, round) REFERENCES debits (task, round))""",
    _TOKENS,
)
_UPGRADES: Final = {
    1: ("ALTER TABLE consents ADD COLUMN records INTEGER",),
    2: ("ALTER TABLE turns ADD COLUMN token BLOB", _TOKENS),
}
"""version of a file → what makes the next one of it"""
_PRAGMAS: Final = (*DURABLE, "foreign_keys = ON")
_TURN: Final = (
    "task, round, part, state, message, mechanism, held, said, made_at, send_after, closes, tries, answer, "
    "answered_at, token"
)
_ONE_TURN: Final = f"SELECT {_TURN} FROM turns WHERE task = ? AND round = ?"  # noqa: S608  # names of columns
_ALL_TURNS: Final = f"SELECT {_TURN} FROM turns ORDER BY made_at, round"  # noqa: S608
_ADD_TURN: Final = f"INSERT INTO turns ({_TURN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, NULL, NULL, ?)"  # noqa: S608


class Group(StrEnum):
    """Whose turn it is in a round, as the manifest's phase names them."""

    CLIENT = "client"
    OPT_IN = "opt-in"


class TurnState(StrEnum):
    """What became of a turn; a turn that is ``MADE`` waits to be sent."""

    MADE = "made"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    TOO_LATE = "too-late"
    DROPPED = "dropped"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class Enrolment:
    """The task that this device takes part in."""

    server: str
    task: str
    keys: dict[str, str]
    """key id → uncompressed public point, hexadecimal"""
    code: str | None = None
    """the enrolment code of opt-in users"""
    has_urls: bool = True
    plain_http: bool = False
    curators: dict[str, str] = field(default_factory=dict)
    """keys of curators, as above; without any, the publisher is believed about the round's key"""
    consent: str = ""
    """the operator's own words to opt-in users"""
    witnesses: dict[str, str] = field(default_factory=dict)
    """keys of witnesses of the log, as above"""
    least_witnesses: int = 0
    """how many of them must have cosigned a checkpoint"""
    relay: str = ""
    """whom to ask instead of the server, with sealed requests; empty: the server itself"""

    @property
    def pinned(self) -> dict[str, bytes]:
        return {name: bytes.fromhex(point) for name, point in self.keys.items()}

    @property
    def pinned_curators(self) -> dict[str, bytes]:
        return {name: bytes.fromhex(point) for name, point in self.curators.items()}

    @property
    def pinned_witnesses(self) -> Witnesses:
        return Witnesses({name: bytes.fromhex(point) for name, point in self.witnesses.items()}, self.least_witnesses)

    def __repr__(self) -> str:
        return f"Enrolment({self.server}, {self.task})"


@dataclass(frozen=True)
class Consent:
    """What the user agreed to, and when; no text for withdrawing."""

    at: int
    mode: str
    sha256: str | None
    text: str | None
    records: int
    """how many searches a round may take, as the user was shown; 1 if no number was kept"""


@dataclass(frozen=True)
class KeptSearch:
    """A search that is kept on this device. ``repr`` does not show it."""

    recorded: int
    query: str
    url: str | None

    def __repr__(self) -> str:
        return f"KeptSearch({self.recorded})"


@dataclass(frozen=True)
class RoundDebit:
    """What a turn in one round cost, in the manifest's own digits."""

    task: str
    round: int
    part: str
    epsilon: str
    delta: str
    at: int


@dataclass(frozen=True)
class Turn:
    """This device's part in one round. ``repr`` shows nothing of what was true or said."""

    task: str
    round: int
    part: Group
    state: TurnState
    message: bytes | None
    mechanism: str
    held: list[Pair] | None
    said: list[ReportedPart] | None
    made_at: int
    send_after: int
    closes: int
    tries: int
    answer: str | None
    answered_at: int | None
    token: bytes | None
    """what the report is paid with, where the task asks for that"""

    def __repr__(self) -> str:
        return f"Turn(round {self.round}, {self.part}, {self.state})"


class DeviceState(SqliteFile, contextlib.AbstractContextManager["DeviceState"]):
    """One device's file. ``:memory:`` keeps everything in this process, for simulations."""

    def __init__(self, path: Path | str, *, create: bool = False) -> None:
        self.in_memory = str(path) == IN_MEMORY
        if not self.in_memory:
            _prepare(Path(path), create=create)
        super().__init__(Path(path), self._error_of, pragmas=_PRAGMAS)
        try:
            if not self.in_memory and self.execute("PRAGMA journal_mode")[0][0] != "wal":
                raise StateError(f"{self.path}: the file system does not allow a write-ahead log")
            self._upgrade()
            if not self.claim(APPLICATION_ID, version=SCHEMA_VERSION, tables=_SCHEMA):
                raise StateError(f"{self.path}: not the state of a device of this version")
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def _upgrade(self) -> None:
        """A file of version 1 kept no number with a consent, one of version 2 no tokens."""
        for version, statements in _UPGRADES.items():
            if self.is_claimed(APPLICATION_ID, version=version):
                with self.transaction():
                    if self.is_claimed(APPLICATION_ID, version=version):  # another process may have been faster
                        for statement in statements:
                            self.execute(statement)
                        self.execute(f"PRAGMA user_version = {version + 1}")

    # Facts: single values

    def fact(self, name: str) -> Any:
        rows = self.execute("SELECT value FROM facts WHERE name = ?", (name,))
        return json.loads(rows[0][0]) if rows else None

    def set_fact(self, name: str, value: Any) -> None:
        self.execute(
            "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, json.dumps(value, ensure_ascii=False)),
        )

    def enrolment(self) -> Enrolment | None:
        fields = self.fact("enrolment")
        return Enrolment(**fields) if fields else None

    def account(self) -> TokenAccount | None:
        """At the issuer whose tokens pay for this device's reports."""
        fields = self.fact("account")
        return TokenAccount(**fields) if fields else None

    def last_manifest(self, task: str) -> LastManifest:
        return LastManifest(**(self.fact(f"seen {task}") or {}))

    def last_log(self, task: str) -> LastLog:
        return LastLog(**(self.fact(f"log {task}") or {}))

    def forget_fact(self, name: str) -> None:
        self.execute("DELETE FROM facts WHERE name = ?", (name,))

    # Consents

    def add_consent(self, at: int, mode: str, digest: str | None, text: str | None, records: int) -> None:
        self.execute("INSERT INTO consents VALUES (?, ?, ?, ?, ?)", (at, mode, digest, text, records))

    def consents(self) -> list[Consent]:
        rows = self.execute("SELECT at, mode, digest, text, coalesce(records, 1) FROM consents ORDER BY rowid")
        return [Consent(*row) for row in rows]

    # Searches

    def add_search(self, at: int, query: str, url: str | None) -> None:
        self.execute("INSERT INTO searches (recorded, query, url) VALUES (?, ?, ?)", (at, query, url))

    def forget_searches(self, *, before: int, keep: int) -> bool:
        """Those that are too old, and all but the newest ``keep``; whether there were any.

        A search lives on in the turn that it was drawn for, as what was true, and in a sealed one as what was said:
        that goes at the same age. Bytes and debit stay.
        """
        changes = self.changes
        self.execute("DELETE FROM searches WHERE recorded < ?", (before,))
        self.execute(
            "DELETE FROM searches WHERE id <= (SELECT id FROM searches ORDER BY id DESC LIMIT 1 OFFSET ?)", (keep,)
        )
        self.execute(
            "UPDATE turns SET held = NULL, said = CASE part WHEN ? THEN NULL ELSE said END"
            " WHERE made_at < ? AND held IS NOT NULL",
            (Group.OPT_IN, before),
        )
        return self.changes > changes

    def forget_unsent(self) -> None:
        """All searches, and what was true in reports that never left: without consent only what was sent is kept."""
        self.execute("DELETE FROM searches")
        self.execute(
            "UPDATE turns SET held = NULL, said = NULL, message = NULL, token = NULL WHERE state = ? AND tries = 0",
            (TurnState.DROPPED,),
        )
        self.execute("DELETE FROM tokens")

    def n_searches(self) -> int:
        return int(self.execute("SELECT count(*) FROM searches")[0][0])

    def searches(self) -> list[KeptSearch]:
        return [KeptSearch(*row) for row in self.execute("SELECT recorded, query, url FROM searches ORDER BY id")]

    def records(self, *, has_urls: bool, since: int) -> list[Record]:
        """What may be reported: searches with a chosen result, or the queries alone in a task without URLs."""
        rows = self.execute("SELECT query, url FROM searches WHERE recorded >= ? ORDER BY id", (since,))
        if has_urls:
            return [Record(query, url) for query, url in rows if url is not None]
        return [Record(query, WILDCARD) for query, _ in rows]

    # Ledger

    def debit(self, task: str, number: int, part: Group, epsilon: str, delta: str, at: int) -> None:
        self.execute("INSERT INTO debits VALUES (?, ?, ?, ?, ?, ?)", (task, number, part, epsilon, delta, at))

    def debits(self) -> list[RoundDebit]:
        rows = self.execute("SELECT task, round, part, epsilon, delta, at FROM debits ORDER BY at, task, round")
        return [RoundDebit(*row) for row in rows]

    def spent(self, *, since: int | None = None) -> tuple[Fraction, Fraction]:
        """Σ ε and Σ δ, exactly, of all debits or of those not before ``since``."""
        rows = self.execute(
            "SELECT epsilon, delta FROM debits WHERE at >= ?", (since if since is not None else -(1 << 62),)
        )
        return sum((Fraction(e) for e, _ in rows), Fraction(0)), sum((Fraction(d) for _, d in rows), Fraction(0))

    # Turns

    def add_turn(
        self,
        task: str,
        number: int,
        part: Group,
        message: Message,
        *,
        made_at: int,
        send_after: int,
        closes: int,
        token: bytes | None = None,
    ) -> None:
        held, said = (json.dumps(encode(value), ensure_ascii=False) for value in (message.held, message.said))
        values = (
            task,
            number,
            part,
            TurnState.MADE,
            message.content,
            message.mechanism,
            held,
            said,
            made_at,
            send_after,
            closes,
            token,
        )
        self.execute(_ADD_TURN, values)

    def turn(self, task: str, number: int) -> Turn | None:
        rows = self.execute(_ONE_TURN, (task, number))
        return _turn(rows[0]) if rows else None

    def turns(self, state: TurnState | None = None) -> list[Turn]:
        return [turn for turn in map(_turn, self.execute(_ALL_TURNS)) if state in (None, turn.state)]

    # Tokens

    def ask_for_token(self, task: str, number: int, request: TokenRequest) -> None:
        """Keep what is asked for before it is: the same bytes again cost no second token. One for each round."""
        self.execute(
            "INSERT INTO tokens (task, round, signed, request, inverse) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (task, round) DO UPDATE SET signed = excluded.signed, request = excluded.request,"
            " inverse = excluded.inverse, token = NULL",
            (task, number, request.signed, request.request, request.inverse),
        )

    def token_request(self, task: str, number: int) -> tuple[TokenRequest, bytes | None] | None:
        """What was asked for in a round, and the token if it has come."""
        rows = self.execute(
            "SELECT signed, request, inverse, token FROM tokens WHERE task = ? AND round = ?", (task, number)
        )
        return (TokenRequest(*rows[0][:3]), rows[0][3]) if rows else None

    def keep_token(self, task: str, number: int, token: bytes) -> None:
        """If it is still the one that was asked for."""
        self.execute(
            "UPDATE tokens SET token = ? WHERE task = ? AND round = ? AND signed = ?",
            (token, task, number, token[:SIGNED_BYTES]),
        )

    def spend_token(self, task: str, number: int) -> bytes | None:
        """Take the token of a round out; call it in the transaction of the turn that it pays for."""
        rows = self.execute("DELETE FROM tokens WHERE task = ? AND round = ? RETURNING token", (task, number))
        return rows[0][0] if rows else None

    def forget_tokens(self, *, unless_round: tuple[str, int]) -> None:
        """Those of rounds that are over pay for nothing any more."""
        self.execute("DELETE FROM tokens WHERE NOT (task = ? AND round = ?)", unless_round)

    def has_debit(self, task: str, number: int) -> bool:
        return bool(self.execute("SELECT 1 FROM debits WHERE task = ? AND round = ?", (task, number)))

    def note_answer(self, turn: Turn, state: TurnState, answer: str, at: int) -> None:
        """How sending it ended; only what is still waiting changes."""
        self.execute(
            "UPDATE turns SET state = ?, answer = ?, answered_at = ?, tries = tries + 1"
            " WHERE task = ? AND round = ? AND state = ?",
            (state, answer, at, turn.task, turn.round, TurnState.MADE),
        )

    def note_try(self, turn: Turn, answer: str, again_at: int) -> None:
        """No answer: the same bytes stay to be sent."""
        self.execute(
            "UPDATE turns SET tries = tries + 1, answer = ?, send_after = ? WHERE task = ? AND round = ? AND state = ?",
            (answer, again_at, turn.task, turn.round, TurnState.MADE),
        )

    def note_withdrawal(self, turn: Turn, state: TurnState) -> None:
        """``WITHDRAWN``: the service holds nothing of it. ``DROPPED``: it may, and is to be asked again."""
        self.execute("UPDATE turns SET state = ? WHERE task = ? AND round = ?", (state, turn.task, turn.round))

    def drop_waiting(self, state: TurnState = TurnState.DROPPED, *, unless_round: tuple[str, int] | None = None) -> int:
        """What waits is never sent (again), nor made again: the row, its bytes and its debit stay to be shown."""
        task, number = unless_round or ("", -1)
        before = self.changes
        self.execute(
            "UPDATE turns SET state = ? WHERE state = ? AND NOT (task = ? AND round = ?)",
            (state, TurnState.MADE, task, number),
        )
        return self.changes - before

    def erase(self) -> None:
        """Searches, true values and sent values. Debits and the bare rounds stay, so that nothing is said twice.

        Call it in a transaction, and ``scrub`` after that.
        """
        self.drop_waiting()
        self.execute("DELETE FROM searches")
        self.execute("DELETE FROM tokens")
        self.execute("UPDATE turns SET held = NULL, said = NULL, message = NULL, token = NULL")

    def scrub(self) -> None:
        """Nothing erased stays in free pages or in the log."""
        with contextlib.suppress(StorageFull):  # a copy needs room; what was deleted is overwritten in any case
            self.execute("VACUUM")
        self.empty_log()

    def empty_log(self) -> None:
        """What was overwritten in the file is not left in the log."""
        self.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _error_of(self, error: sqlite3.Error | UnicodeDecodeError, code: int) -> StateError:
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM):
            return StorageFull(f"{self.path}: no room to write; nothing was changed and nothing was sent")
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StateError(f"{self.path}: another process of this device is busy; try again")
        return StateError(f"{self.path}: {type(error).__name__} ({code})")


def _turn(row: Sequence[Any]) -> Turn:
    fields = dict(zip(_TURN.split(", "), row, strict=True))
    held, said = (json.loads(fields[name]) if fields[name] else None for name in ("held", "said"))
    statements = None if said is None else [ReportedPart(**part) for part in said]
    return Turn(
        **{
            **fields,
            "part": Group(fields["part"]),
            "state": TurnState(fields["state"]),
            "held": held,
            "said": statements,
        }
    )


def _prepare(path: Path, *, create: bool) -> None:
    """The folder and an empty file, for their owner alone."""
    if not create and not path.exists():
        raise StateError(f"{path.parent}: no device here; `searchblend device enrol` makes one")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        create_private(path)
        sync(path.parent)
    except OSError as error:
        raise StateError(f"{path}: cannot be opened: {error.strerror}") from None
