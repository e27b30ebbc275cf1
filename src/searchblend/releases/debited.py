"""A release that a ledger pays for. Apart from ``make_release``: most runs keep no ledger and need not load one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from searchblend.accounting.spend import Spend
from searchblend.releases.make_release import Cost, Files, LedgerEntry
from searchblend.store.ledger import open_ledger
from searchblend.store.ledger_release import release_once


class DebitedRelease(AbstractContextManager["DebitedRelease"]):
    """One release id of one ledger, open until the release is written."""

    def __init__(self, entry: LedgerEntry, cost: Cost) -> None:
        self._entry, self._spend = entry, Spend.generic(cost.budget, cost.neighbors, cost.what)
        self._ledger = open_ledger(entry.path)

    def __exit__(self, *_: object) -> None:
        self._ledger.close()

    @property
    def is_published(self) -> bool:
        return self._ledger.published(self._entry.release_id) is not None

    def once(self, make: Callable[[], Files]) -> Files:
        """The files published under the id; those that ``make`` makes, after the debit, if there are none."""
        entry = self._entry
        return release_once(
            self._ledger,
            make,
            release_id=entry.release_id,
            population=entry.population,
            window=entry.window,
            spend=self._spend,
        )
