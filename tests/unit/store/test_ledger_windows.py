"""Windows with a day in common are charged for each other, whatever their periods and names."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from searchblend.store.ledger_windows import ALL_TIME, PERIODS, have_days_in_common, window_at


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [
        ("2027-W02", "2027-W02", True),
        ("2027-W02", "2027-W03", False),
        ("2027-W02", "2027-01", True),
        ("2027-W02", "2027", True),
        ("2027-W02", "2027-02", False),
        ("2027-W04", "2027-02", False),  # ends on Sunday, 31 January
        ("2027-W05", "2027-02", True),
        ("2026-W53", "2026", True),
        ("2026-W53", "2027", True),  # 28 December to 3 January
        ("2026-W53", "2027-01-03", True),
        ("2026-W53", "2027-01-04", False),
        ("2026-12", "2027", False),
        ("2024-02", "2024-02-29", True),
        ("2027-01", ALL_TIME, True),
        ("spring", ALL_TIME, True),
        ("spring", "2027", True),  # nothing says which days it has
        ("spring", "autumn", True),
        ("2027-W54", "2028", True),  # not a week, so a name like any other
        ("2027-13", "2028", True),
        ("2027-w02", "2028", True),
        ("9999-12", "9999-12", True),
    ],
)
def test_days_in_common(first, second, common):
    assert have_days_in_common(first, second) is common is have_days_in_common(second, first)


def test_all_windows_of_one_moment_have_days_in_common():
    """Every day from 2023 to 2029, with weeks that begin in the year before and leap days."""
    start = date(2023, 1, 1)
    for n in range(7 * 365):
        day = start + timedelta(days=n)
        now = int(datetime(day.year, day.month, day.day, 23, 59, tzinfo=UTC).timestamp())
        windows = [day.isoformat(), ALL_TIME, *(window_at(period, now) for period in PERIODS)]
        assert all(have_days_in_common(one, other) for one in windows for other in windows), day
