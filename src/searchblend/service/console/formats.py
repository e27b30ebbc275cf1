"""Numbers, shares, moments and sizes as people write them. Every page uses these and no others."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

from searchblend.core.visible import visible

NOTHING: Final = "–"
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400


def number(value: float | None) -> str:
    """12,345"""
    return NOTHING if value is None else f"{value:,.0f}"


def percent(value: float | None) -> str:
    """A share with three significant digits: 12.3 %, 0.0123 %."""
    if value is None or not math.isfinite(value):
        return NOTHING
    hundredth = 100 * value
    if hundredth == 0:
        return "0 %"
    digits = max(0, min(6, 2 - math.floor(math.log10(abs(hundredth)))))
    return f"{hundredth:.{digits}f} %".replace("-", "−")


def points(value: float | None) -> str:
    """A difference of shares, with its sign: +0.12 pp."""
    if value is None:
        return NOTHING
    hundredth = 100 * value
    digits = 0 if hundredth == 0 else max(0, min(6, 1 - math.floor(math.log10(abs(hundredth)))))
    return f"{hundredth:+.{digits}f} pp".replace("-", "−")


def plain(value: float | None, digits: int = 4) -> str:
    """An ε, a δ or another number without a unit."""
    if value is None or math.isnan(value):
        return NOTHING
    return "∞" if math.isinf(value) else f"{value:.{digits}g}"


def moment(when: int | None) -> str:
    """16 Nov 2026, 02:29 UTC"""
    if when is None:
        return NOTHING
    day = datetime.fromtimestamp(when, UTC)
    return f"{day.day} {day:%b %Y, %H:%M} UTC"


def iso(when: int | None) -> str:
    """For machines: the ``datetime`` attribute of a time."""
    return "" if when is None else datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(seconds: float) -> str:
    """How long: 3 days, 5 h 20 min, 12 s."""
    seconds = int(abs(seconds))
    if seconds >= 2 * _DAY:
        return f"{seconds // _DAY} days"
    if seconds >= _HOUR:
        hours, minutes = seconds // _HOUR, seconds % _HOUR // _MINUTE
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    if seconds >= _MINUTE:
        return f"{seconds // _MINUTE} min"
    return f"{seconds} s"


def until(when: int | None, now: int) -> str:
    """in 3 days, or 5 min ago"""
    if when is None:
        return NOTHING
    return f"in {span(when - now)}" if when > now else f"{span(now - when)} ago"


def size(n: int | None) -> str:
    """1.2 kB, in thousands"""
    if n is None:
        return NOTHING
    for unit, step in (("MB", 1_000_000), ("kB", 1_000)):
        if n >= step:
            return f"{n / step:.3g} {unit}"
    return f"{n} B"


def plural(n: int, one: str, many: str | None = None) -> str:
    """1 round, 2 rounds"""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


FILTERS: Final = {
    "number": number,
    "percent": percent,
    "points": points,
    "plain": plain,
    "moment": moment,
    "iso": iso,
    "span": span,
    "size": size,
    "plural": plural,
    "visible": visible,
}
