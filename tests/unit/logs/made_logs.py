"""Small logs made for tests, and what a group in a database holds."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
from reference_rules import KEY, Line

from searchblend.core.records import Record
from searchblend.logs.read import read_log
from searchblend.logs.search_log import SearchLog
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


def read(path: Path | list[Path], **options: object) -> SearchLog:
    return read_log(path, key=KEY, threads=2, **options)  # type: ignore[arg-type]


def counts_of(tally: RecordTally) -> Counter[Record]:
    """All records of a tally with their counts, by picking every rank."""
    found: Counter[Record] = Counter()
    for count, size in tally.sizes().items():
        for record in tally.pick(count, np.arange(size)):
            found[record] = count
    return found
