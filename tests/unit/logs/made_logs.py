"""Small logs made for tests, and what a group in a database holds."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from reference_rules import KEY, Line

from searchblend.core.records import Record
from searchblend.logs.read import SearchLog, read_log
from searchblend.mechanisms.tally import RecordTally

QUERIES = [
    "google",
    "Google ",
    "weather  Berlin",
    "null",
    "nan",
    "na",
    "Ünïcode",
    "東京 天気",
    '"quoted',
    "a\\b",
    "x" * 40,
]
URLS = ["http://a.example", "HTTP://B.example/", "http://c.example/path?q=1", "/only/a/path", "http://a.example:8080"]
LISTED = ["google", "null", "nan", "ünïcode", "東京 天気", "weather berlin"]
"""some of the queries, in their normal form"""


def some_lines(n_users: int, seed: int = 1, *, urls: bool = True) -> list[Line]:
    """Lines with many repeats, in no order."""
    chance = random.Random(seed)
    lines: list[Line] = []
    for user in range(n_users):
        for _ in range(chance.randrange(1, 9)):
            query, url = chance.choice(QUERIES), chance.choice(URLS) if urls else ""
            line = (f"u{user}", f"{chance.randrange(3)}", query, url, str(chance.randrange(2)) if url else "")
            lines += [line] * chance.choice([1, 1, 2, 5])
    chance.shuffle(lines)
    return lines


def timed_lines(n_users: int, seed: int, *, times: str = "dates") -> list[Line]:
    """Lines whose times tie often, with clicks and without."""
    chance = random.Random(seed)
    return [
        (user, _time(int(time), chance, times), query, url if chance.random() < 0.7 else "", rank)
        for user, time, query, url, rank in some_lines(n_users, seed)
    ]


def _time(step: int, chance: random.Random, times: str) -> str:
    seconds = 1200 * step
    return {
        "dates": f"2006-03-01 {7 + seconds // 3600:02}:{seconds // 60 % 60:02}:12",
        "numbers": f"{1_141_200_000 + seconds}",
        "mixed": chance.choice([f"{seconds}", f"day {step}", "", f"2006-03-01T0{step}:00:00"]),
        "none": "",
    }[times]


def read(path: Path | list[Path], **options: Any) -> SearchLog:
    """With arguments of ``read_log``."""
    return read_log(path, key=KEY, threads=2, **options)


def counts_of(tally: RecordTally) -> Counter[Record]:
    """All records of a tally with their counts, by picking every rank: of all counts at once, since a database needs
    the same few statements for one count and for many."""
    picked = tally.pick_each({count: np.arange(size) for count, size in tally.sizes().items()})
    return Counter({record: count for count, records in picked.items() for record in records})
