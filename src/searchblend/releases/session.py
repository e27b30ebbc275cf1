"""Releases from Python that a ledger pays for: what the commands do with ``--ledger`` and ``--release-id``."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from searchblend.core.errors import UsageError
from searchblend.core.params import BlenderParams, ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.logs.formats.files import LogInput
from searchblend.logs.options import ReadOptions
from searchblend.releases.click_graph import ReleaseSettings, run_release
from searchblend.releases.hybrid import HybridSettings, run_hybrid
from searchblend.releases.make_release import LedgerEntry, WrittenRelease, now
from searchblend.releases.saved_release import SavedRelease
from searchblend.releases.select_values import Selection, run_selection
from searchblend.store.ledger import Ledger, check_name
from searchblend.store.ledger_windows import ALL_TIME


class Session(contextlib.AbstractContextManager["Session"]):
    """Releases about the same people, each debited to a ledger before anything is drawn, or refused.

    Beyond the ledger's cap every call raises ``BudgetExceeded`` and nothing is charged; nor is anything charged for an
    input that cannot be read or parameters that cannot be used. A release id is never paid twice: called again under
    the same id, with the same budget, a call reads nothing and returns what was published, byte for byte.
    All noise is the operating system's.

    Example:
        >>> with sb.Session("budget.ledger", population="searchers") as session:
        ...     released = session.select_values(table, sb.Budget(1.0, 1e-7), release_id="march")
    """

    def __init__(
        self,
        ledger: Ledger | str | os.PathLike[str],
        population: str = "all users",
        *,
        window: str = ALL_TIME,
        release_id: str | None = None,
    ) -> None:
        """
        Args:
            ledger: who keeps account, or the path of its file, which is made if it is not there
            population: name of the people whom the releases are about
            window: the budget period that is debited, such as ``2027-W02``
            release_id: the name of the release in the ledger, for a session with one release
        """
        self._path = ledger.path if isinstance(ledger, Ledger) else Path(ledger)
        self._population, self._window, self._release_id = population, window, release_id
        check_name("population", population)
        check_name("window", window)
        self._is_open, self._used = False, set[str]()

    def __enter__(self) -> Session:
        Ledger(self._path).close()  # one that cannot be used is refused before a log is read
        self._is_open = True
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_open = False

    def run(
        self,
        log: LogInput,
        params: BlenderParams,
        *,
        release_id: str | None = None,
        optin_fraction: float = 0.05,
        method: str = "best",
        project: bool = True,
        wide_list: bool = False,
        allow_large_delta: bool = False,
        html: bool = False,
        **reading: Any,
    ) -> SavedRelease:
        """The hybrid run over a log, the clients' devices played: what ``searchblend run --ledger`` does.

        Args:
            log: files, or a table in memory, as for ``read_log``
            params: ε, δ and how they are used
            release_id: the release's name in the ledger; the session's unless given
            optin_fraction: random share that opts in; unused with ``optin_column``
            method: ``best`` or ``paper``
            project: whether estimates are made shares
            wide_list: whether queries without a listed URL are listed too
            allow_large_delta: whether δ may reach 1/users
            html: whether there is a page for people among the files
            reading: further arguments of ``read_log``, such as ``columns``

        Example:
            ``session.run("searches.tsv", sb.BlenderParams(sb.Budget(4.0, 1e-5)), release_id="march")``
        """
        entry = self._entry(release_id)
        settings = HybridSettings(
            log=ReadOptions(log, **reading),
            params=params,
            optin_fraction=None if reading.get("optin_column") else optin_fraction,
            method=method,
            project=project,
            wide_list=wide_list,
            html=html,
            allow_large_delta=allow_large_delta,
            ledger=entry,
            created=now(),
        )
        return self._delivered(run_hybrid(settings), entry)

    def release(
        self,
        log: LogInput,
        params: ClickGraphParams,
        *,
        release_id: str | None = None,
        public_urls: str | os.PathLike[str] | None = None,
        synonyms: str | os.PathLike[str] | None = None,
        first_moment: float | None = None,
        last_moment: float | None = None,
        html: bool = False,
        **reading: Any,
    ) -> SavedRelease:
        """The click graph of a log that you hold: what ``searchblend release run --ledger`` does.

        Args:
            log: files, or a table in memory, as for ``read_log``
            params: ε, δ, what is released and how
            release_id: the release's name in the ledger; the session's unless given
            public_urls: table ``query,url`` from outside the log, with ``urls="public"``
            synonyms: public table ``query,meaning`` of queries to merge
            first_moment: lines before it are left out, in seconds since 1970
            last_moment: lines from it on are left out
            html: whether there is a page for people among the files
            reading: further arguments of ``read_log``, such as ``columns``

        Example:
            ``session.release("searches.tsv", sb.ClickGraphParams(sb.Budget(2.0, 1e-6)), release_id="march")``
        """
        entry = self._entry(release_id)
        settings = ReleaseSettings(
            log=ReadOptions(log, **reading),
            params=params,
            public_urls=None if public_urls is None else Path(public_urls),
            synonyms=None if synonyms is None else Path(synonyms),
            first_moment=first_moment,
            last_moment=last_moment,
            html=html,
            ledger=entry,
            created=now(),
        )
        return self._delivered(run_release(settings), entry)

    def select_values(
        self,
        table: LogInput,
        budget: Budget,
        *,
        release_id: str | None = None,
        allow_large_delta: bool = False,
        **options: Any,
    ) -> SavedRelease:
        """The values that enough users have, as ``sb.select_values`` selects them.

        Args:
            table: files, or a table in memory
            budget: (ε, δ) of each user
            release_id: the release's name in the ledger; the session's unless given
            allow_large_delta: whether δ may reach 1/users
            options: further arguments of ``sb.select_values``, such as ``user`` and ``value``

        Example:
            ``session.select_values(table, sb.Budget(1.0, 1e-7), release_id="versions")``
        """
        selection, entry = Selection.of(table, budget, **options), self._entry(release_id)
        return self._delivered(run_selection(selection, allow_large_delta=allow_large_delta, ledger=entry), entry)

    def _entry(self, release_id: str | None) -> LedgerEntry:
        """Where a call is debited. The session's own id names one release: a second call must bring its own."""
        if not self._is_open:
            raise UsageError("the session is not open: with sb.Session(…) as session: …")
        name = release_id or self._release_id
        if name is None or (release_id is None and name in self._used):
            raise UsageError("release_id: name this release; the same name is never paid twice")
        check_name("release_id", name)
        return LedgerEntry(self._path, name, self._population, self._window)

    def _delivered(self, written: WrittenRelease[Any], entry: LedgerEntry) -> SavedRelease:
        self._used.add(entry.release_id)
        return SavedRelease.of_files(written.files)

    def __repr__(self) -> str:
        return f"Session(population {self._population!r}, window {self._window!r})"
