"""Small logs with everything that can be odd in them, made from a seed."""

from __future__ import annotations

import random

QUERIES = [
    "google", "yahoo mail", " Leading", "ÄÖÜ Straße", "ΣΊΣΥΦΟΣ", "日本語", "\u0378 unassigned", "", "   ", "-",
    "x" * 3000,
    'a "quote', "a\x01b", "😀 smile", "NULL", "nan", "\u3000wide", "it's", "ſtrange", "İstanbul", "double  blank ",
]  # fmt: skip
URLS = [
    "http://a.com", "http://b.org/x?y=1", "HTTP://UP.COM/", "http://x.com:80/", "not a url", "http://ex ample.com", "",
    "http://ä.de/p", "https://c.net/#f", "http://[::1]/", "http://bad[/", " http://lead.com", "http://user@h.com/",
    "page title", "http://a.com/ü", "a.com/b", "  ",
]  # fmt: skip
HEADER = "user\tquery\turl\ttime\trank"


def odd_rows(n: int, seed: int) -> list[list[str]]:
    """Rows of user, query, url, time, rank; one in ten without a proper user, one in five twice."""
    chance = random.Random(seed)
    rows: list[list[str]] = []
    for _ in range(n):
        user = f"u{chance.randrange(n // 6 + 1)}"
        if chance.random() < 0.1:
            user = chance.choice(["  ", "", "Üser", "'"])
        time = f"2006-03-0{chance.randrange(1, 9)} 10:00:00"
        rows.append([user, chance.choice(QUERIES), chance.choice(URLS), time, str(chance.randrange(3))])
        if chance.random() < 0.2:
            rows.append(rows[-1])
    return rows


def odd_lines(n: int, seed: int) -> list[str]:
    """The rows as tab-separated lines, some too short, too long, blank, or like the header."""
    chance = random.Random(-seed)
    lines = [HEADER]
    for row in odd_rows(n, seed):
        lines.append("\t".join(row))
        odd = ["", lines[-1] + "\tmore", "\t".join(row[:3]), "x", HEADER, None]
        lines += [line for line in chance.choices(odd, [1, 1, 1, 1, 1, 60]) if line is not None]
    return lines
