"""How storage refuses: the service's database, and the ledger wherever it is.

RunError
├── StoreError                 the database cannot be used for this
│   ├── StoreUnavailable       busy, full or out of reach: the same call may be repeated
│   ├── UnsafeDatabase         its settings would lose what was acknowledged
│   ├── WrongSchema            its tables are of another version: `searchblend database migrate`
│   ├── WrongState             the round is not in the state that this needs, or another caller was faster
│   ├── UnknownName            there is no such task or round
│   ├── LeaseLost              the job was taken over by another worker: nothing of this one's work counts
│   └── CorruptAudit           a row of the audit log was changed, removed or forged
└── LedgerError                the file is not a ledger, is locked, or cannot be written
    ├── BudgetExceeded         one more release would pass the cap: nothing was charged
    ├── ConflictingRelease     the release id already stands for something else
    └── CorruptLedger          the chain is broken: names the row
"""

from __future__ import annotations

from searchblend.core.errors import RunError


class StoreError(RunError):
    """The database cannot be used for this."""


class StoreUnavailable(StoreError):
    """Busy, full or out of reach. The same request may be repeated unchanged."""


class UnsafeDatabase(StoreError):
    """The database would lose what was acknowledged."""


class WrongSchema(StoreError):
    """The tables are of another version than this program needs."""


class WrongState(StoreError):
    """The round is in another state than this needs."""


class UnknownName(StoreError):
    """No such task or round."""


class LeaseLost(StoreError):
    """Another worker has the job."""


class CorruptAudit(StoreError):
    """The audit log is not what was written."""

    def __init__(self, row: int, problem: str) -> None:
        self.row = row
        super().__init__(f"audit log row {row}: {problem}")


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
