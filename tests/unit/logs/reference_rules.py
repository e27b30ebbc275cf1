"""The rules of ``searchblend.logs.engine`` once more, in plain Python: what every engine must agree with."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from searchblend.core.normalization import normalize, normalize_url
from searchblend.core.records import WILDCARD, Record

KEY = bytes(range(16))
Line = tuple[str, str, str, str, str]
"""user, time, query, url, rank"""


def number(text: str) -> int:
    return int.from_bytes(hashlib.md5(text.encode()).digest(), "little")


def scores(line: Line, n: int, draw: int = 1) -> list[int]:
    digest = number("\x1f".join([KEY.hex(), *line]))
    if draw == 1:
        return [digest, *(number(f"{digest:032x}:{i}") for i in range(2, n + 1))]
    return [number(f"{digest:032x}:{i}/{draw}") for i in range(1, n + 1)]


def record(line: Line) -> Record:
    query, url = normalize(line[2]), normalize_url(line[3]) if line[3] else WILDCARD
    assert query is not None
    assert url is not None
    return Record(query, url)


def picks(lines: Iterable[Line], draw: int = 1, at_most: int = 1) -> dict[str, list[Record]]:
    """Of each user the records with the smallest scores."""
    scored: dict[str, list[tuple[int, Line]]] = defaultdict(list)
    for line, n in Counter(lines).items():
        scored[line[0]] += [(score, line) for score in scores(line, n, draw)]
    return {user: [record(line) for _, line in sorted(found)[:at_most]] for user, found in scored.items()}


def person(user: str) -> str:
    return hashlib.md5(f"{KEY.hex()}\x1fperson\x1f{user}".encode()).hexdigest()


def is_opted_in(user: str, fraction: float) -> bool:
    digits = hashlib.md5(f"opt-in\x1f{person(user)}".encode()).hexdigest()[:13]
    return int(digits, 16) < fraction * 16**13


def tally(records: Iterable[Record]) -> Counter[Record]:
    return Counter(records)


def sizes(counts: Counter[Record]) -> dict[int, int]:
    return dict(Counter(counts.values()))


def tsv(lines: Sequence[Line]) -> str:
    rows = ["user\ttime\tquery\turl\trank", *("\t".join(line) for line in lines)]
    return "\n".join(rows) + "\n"
