"""The rules of ``searchblend.logs.activity`` once more, in plain Python: people's searches from the lines of a log."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from reference_rules import KEY, Line, number

from searchblend.clickgraph.release.click_log import InMemoryClickLog, Search
from searchblend.core.normalization import normalize, normalize_url

Key = tuple[float, str, int, str, int | None]
"""moment, late, hash of the query, query, and the place of a line without a time"""

_LAST = float("inf")


def moment(time: str) -> float | None:
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}", time):
        with suppress(ValueError):
            return datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp()
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", time):
        value = float(time)
        return value / 1e6 if value >= 1e14 else value / 1e3 if value >= 1e11 else value
    return None


def id_of(text: str) -> int:
    return number(KEY.hex() + text)


def click_log(
    lines: Iterable[Line],
    synonyms: Mapping[str, str] | None = None,
    window: tuple[float, float] = (-_LAST, _LAST),
) -> InMemoryClickLog:
    """Searches in the order of their times, ties by the hash of the query; clicks by rank, ties by that of the URL."""
    users: dict[str, dict[Key, list[Line]]] = defaultdict(lambda: defaultdict(list))
    for place, line in enumerate(lines):
        user, time, query, _, _ = line
        at = moment(time)
        if window != (-_LAST, _LAST) and (at is None or not window[0] <= at < window[1]):
            continue
        form = normalize(query)
        assert form is not None
        form = (synonyms or {}).get(form, form)
        key = (
            _LAST if at is None else at,
            (time or "\U0010ffff") if at is None else "",
            id_of(form),
            form,
            None if time else place,
        )
        users[user][key].append(line)
    return InMemoryClickLog(
        [
            Search(key[3], key[0], tuple(_clicks(found)))
            for key, found in sorted(searches.items(), key=lambda item: (item[0][:3], _first_click(item)))
        ]
        for searches in users.values()
    )


def _first_click(search: tuple[Key, list[Line]]) -> tuple[float, float]:
    """The rank and the URL by which searches of one query without a time are ordered."""
    (*_, place), lines = search
    if place is None:
        return 0, 0
    rank, url = _target(lines[0])
    return _number(rank), id_of(url) if url else _LAST


def _number(rank: str) -> float:
    return float(rank) if rank.isdecimal() else _LAST


def _clicks(lines: list[Line]) -> list[str]:
    clicked = [(_number(rank), id_of(url), url) for rank, url in map(_target, lines) if url]
    return [url for _, _, url in sorted(clicked)]


def _target(line: Line) -> tuple[str, str]:
    return line[4], (normalize_url(line[3]) or "") if line[3] else ""
