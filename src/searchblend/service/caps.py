"""The cap on what rounds cost: an operator asks for a first one or a lower one, the curator puts it on record.

The ledger is the curator's to write. Raising a cap is for whoever runs the service (``searchblend task cap``): no
operator lifts their own limit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from searchblend.accounting.totals import BudgetCap
from searchblend.core.documents import decode, encode
from searchblend.core.errors import InvalidParameter
from searchblend.store.service_store import ServiceStore

_ASKED_CAP: Final = "cap asked for"
_NO_RISE: Final = "only whoever runs the service raises a cap (searchblend task cap)"


def ask_for_cap(store: ServiceStore, cap: BudgetCap, *, actor: str, now: int) -> None:
    """Leave it for the curator; ``InvalidParameter`` if it would allow more than the cap on record."""
    with store.transaction():
        before = store.ledger.book().cap
        cap = replace(cap, planned=before is not None and before.planned)
        if why := why_not_lower(before, cap):
            raise InvalidParameter(*why)
        store.artifacts.keep_json(0, _ASKED_CAP, cap)
        store.audit.append(actor, "cap asked for", now, encode(cap))


def set_asked_cap(store: ServiceStore, *, actor: str, now: int) -> int:
    """Put on record what was asked for, if it is still no rise; how many caps: 0 or 1."""
    asked = store.artifacts.kept_json(0, _ASKED_CAP)
    if asked is None:
        return 0
    with store.transaction():
        store.artifacts.drop(0, _ASKED_CAP)
        cap = decode(BudgetCap, asked)
        if why_not_lower(store.ledger.book().cap, cap):
            store.audit.append(actor, "cap refused", now, encode(cap))
            return 0
        store.ledger.set_cap(cap)
        store.audit.append(actor, "cap set", now, encode(cap))
    return 1


def why_not_lower(before: BudgetCap | None, after: BudgetCap) -> tuple[str, str] | None:
    """Field and reason, if a cap would allow anything that the one before forbids."""
    for name, old, new in (
        ("per_window", before and before.window, after.window),
        ("lifetime", before and before.lifetime, after.lifetime),
    ):
        if old and (new is None or new.epsilon > old.epsilon or new.delta > old.delta):
            return name, f"expected at most ε = {old.epsilon:g}, δ = {old.delta:g}: {_NO_RISE}"
    if before and after.planned and not before.planned:
        return "planned", _NO_RISE
    return None
