"""Windows of a ledger by name: which period each one is, and which of them have days in common.

A cap per window must hold in every window that is in use. Were a debit to count only in the window whose name it bears,
``2027-W02``, ``2027-01`` and ``2027`` would be three accounts of the same people on the same day, each with a full cap.
Nor may another spelling be another account: a name that is not a period in its one spelling may be any day.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

ALL_TIME: Final = "all time"
"""the window that has every day in it"""
PERIODS: Final = ("week", "month", "year")
SPELLINGS: Final = f"2027 (year), 2027-01 (month), 2027-W02 (week), 2027-01-12 (day) or {ALL_TIME}"
"""all names that a debit under a cap per window may bear"""
_NAME: Final = re.compile(r"([0-9]{4})(?:-W([0-9]{2})|-([0-9]{2})(?:-([0-9]{2}))?)?")
_Days = tuple[date, date]
"""the first day and the last"""


def window_at(period: str, now: int) -> str:
    """The week, month or year (``PERIODS``) of a moment, in UTC, by its name in ISO 8601."""
    day = datetime.fromtimestamp(now, UTC)
    year, week, _ = day.isocalendar()
    return {"week": f"{year:04}-W{week:02}", "month": f"{day.year:04}-{day.month:02}", "year": f"{day.year:04}"}[period]


def have_days_in_common(first: str, second: str) -> bool:
    """Whether a debit of one window counts in the other. A name that is not a period counts everywhere, as all time."""
    days, others = _days_of(first), _days_of(second)
    return days is None or others is None or (days[0] <= others[1] and others[0] <= days[1])


def is_spelt_out(window: str) -> bool:
    """Whether the name says which days the window has, in the one spelling of that period (``SPELLINGS``)."""
    return window == ALL_TIME or _days_of(window) is not None


@lru_cache(maxsize=4096)
def _days_of(window: str) -> _Days | None:
    match = _NAME.fullmatch(window)
    if match is None:
        return None
    year, week, month, day = (int(digits or 0) for digits in match.groups())
    has_week, has_month, has_day = (digits is not None for digits in match.groups()[1:])
    try:
        if has_week:
            return date.fromisocalendar(year, week, 1), date.fromisocalendar(year, week, 7)
        if has_day:
            return date(year, month, day), date(year, month, day)
        if has_month:
            return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)
        return date(year, 1, 1), date(year, 12, 31)
    except ValueError:
        return None
