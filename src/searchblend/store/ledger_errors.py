"""How a ledger refuses.

RunError
└── LedgerError               the file is not a ledger, is locked, or cannot be written
    ├── BudgetExceeded        one more release would pass the cap: nothing was charged
    ├── ConflictingRelease    the release id stands for something else already
    └── CorruptLedger         the chain is broken: says at which row
"""

from __future__ import annotations

from searchblend.core.errors import RunError


class LedgerError(RunError):
    """The ledger cannot be used, or refuses."""


class BudgetExceeded(LedgerError):
    """One more release would pass the cap; nothing was charged."""


class ConflictingRelease(LedgerError):
    """The release id was charged with another spend, or for other people."""


class CorruptLedger(LedgerError):
    """A row was changed, removed or forged."""

    def __init__(self, row: int, problem: str) -> None:
        self.row = row
        super().__init__(f"ledger row {row}: {problem}")
