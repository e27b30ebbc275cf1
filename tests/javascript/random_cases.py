"""Random inputs on which Python and JavaScript must agree: texts, lists, reports, messages, packs. Seeded."""

from __future__ import annotations

import copy
import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

from searchblend.blender.best.subset_report import MECHANISMS, TWO_STAGE, ReportDesign
from searchblend.core.normalization import normalize, normalize_url
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import WILDCARD, HeadList, Record
from searchblend.search.pack import PackEntry, PackInfo, PackUrl, best_first

VECTORS = Path(__file__).parents[2] / "vectors" / "v1"
ODD = (
    "aAzZ09 .-_/?#@:;=&+%[]()\\\t\n\x0b\x1c\x1f\x7f\x85\xa0\xad"
    "\u00df\u0130\u0131\u017f\u0301\u0331\u0307\u03a3\u03c3\u03c2\u0391"
    "\u1e9e\u1f88\u2000\u2028\u200b\u200d\ufeff\u212a\u2126\u3000\uff21\uff0e\uff0f\uac00\u1100\u1161\u0660\u0966\u06f5\ud7ff"
    "\ue000\ufdfa\ufdd0\uffff\U0001f600\U0001d7ce\U0001d400\U0001e900\U00010400\U0001171e\u0295\ua7dc\u1c89\u2c2f\U0001fae8\U000e0001"
)
WORDS = [
    *("weather", "new york", "ebay", "maps", "www.", "example", ".com", "http://", "https://"),
    *("HTTP://", "localhost", "ftp://", "xn--", "user:pw@", ":80", ":443", ":8080", "[::1]"),
    *(
        "192.168.0.1",
        "intranet",
        ".local",
        "?sid=1",
        "4111 1111 1111 1111",
        "a@b.example",
        "+49 30 901820",
        "de89370400440532013000",
        "078-05-1120",
    ),
    *("(at)", "ΟΔΟΣ", "e\u0301", "١٢٣٤٥٦٧٨٩", "555-0132", "1.2.3.4", "0x7f", "jsessionid=", "//"),
    "../",
]
EPSILONS = [0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 1 / 3, 5e-3, 20.0]


class Cases:
    """A stream of random cases."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self, longest: int = 12) -> str:
        pick = self.random
        kind = pick.random()
        if kind < 0.4:
            return "".join(
                pick.choice(WORDS) if pick.random() < 0.5 else pick.choice(ODD)
                for _ in range(pick.randint(0, longest // 2))
            )
        if kind < 0.8:
            return "".join(pick.choice(ODD) for _ in range(pick.randint(0, longest)))
        return "".join(chr(pick.randrange(0x110000)) for _ in range(pick.randint(1, 4)))

    def personal(self) -> str:
        """Digits, signs and words that come near what looks like somebody's own."""
        pick = self.random
        signs = "0123456789" * 4 + "١٢٣٤٥٦٧٨٩०१२" + "+-. ()/@:;?=&_abıſK\u0130"
        return "".join(
            pick.choice(WORDS) if pick.random() < 0.08 else pick.choice(signs) for _ in range(pick.randint(1, 30))
        )

    def address(self) -> str:
        pick = self.random
        scheme = pick.choice(
            [
                "http://",
                "https://",
                "HTTPS://",
                " http://",
                "ftp://",
                "file:///",
                "",
                "http:",
                "javascript:",
                "httpſ://",
            ]
        )
        user = pick.choice(["", "", "", "u@", "u:p@"])
        labels = [
            pick.choice(
                [
                    "www",
                    "example",
                    "com",
                    "org",
                    "local",
                    "corp",
                    "127",
                    "1",
                    "0x7f",
                    "",
                    "ΟΔΟΣ",
                    "xn--a",
                    "lan",
                    "home",
                ]
            )
            for _ in range(pick.randint(1, 4))
        ]
        port = pick.choice(["", "", "", ":80", ":443", ":8080", ":", ":x"])
        return (
            scheme
            + user
            + ".".join(labels)
            + port
            + pick.choice(["", "/", "/a/B", "/a b ", "?q=1", "#f", "/a?token=1", "/\\", "/é"])
        )

    def texts(self, count: int, longest: int = 6) -> list[str]:
        found = list(dict.fromkeys(self.text(longest).encode("utf-8", "ignore").decode() for _ in range(count)))
        return found[:count]

    def head(self) -> HeadList:
        pick = self.random
        with_urls = pick.random() < 0.8
        return HeadList(
            (query, self.texts(pick.randint(0, 4)) if with_urls else []) for query in self.texts(pick.randint(0, 8))
        )

    def params(self, head: HeadList) -> BlenderParams:
        pick = self.random
        epsilon = pick.choice(EPSILONS) if pick.random() < 0.7 else pick.uniform(0.01, 30)
        fraction = pick.choice([0.85, 0.5, pick.uniform(0.05, 0.95)]) if head.has_urls else pick.choice([1.0, 0.85])
        delta = pick.choice([1e-5, 1e-9, 1e-300, 0.1, pick.random() / 2 + 1e-12])
        return BlenderParams(
            Budget(epsilon, delta), query_budget_fraction=fraction, records_per_client=pick.randint(1, 3)
        )

    def design(self, head: HeadList) -> ReportDesign | None:
        pick = self.random
        if not len(head) or pick.random() < 0.3:
            return None
        mechanism = pick.choice(MECHANISMS)
        steps = 0 if mechanism == TWO_STAGE else pick.choice([0, 1, 7, 10, 19, 20])
        return ReportDesign(steps, pick.randint(1, len(head)), pick.randint(1, head.n_cells - 1), mechanism)

    def records(self, head: HeadList) -> list[Record]:
        pick, cells = self.random, list(head.cells())
        some = [
            pick.choice(cells) if pick.random() < 0.8 else Record("unlisted", "u") for _ in range(pick.randint(1, 4))
        ]
        return [Record(r.query, "elsewhere") if pick.random() < 0.1 and r.query is not WILDCARD else r for r in some]

    def tape(self, n_bytes: int = 512) -> bytes:
        """Random bytes, a part of them with long runs of ones: those make draws that must be repeated."""
        content = bytearray(self.random.randbytes(n_bytes))
        for start in range(0, n_bytes, 8):
            if self.random.random() < 0.15:
                content[start : start + 8] = self.random.choice(
                    [b"\xff" * 8, b"\xff" * 4 + content[start + 4 : start + 8], bytes(8)]
                )
        return bytes(content)

    def fraction(self) -> Fraction:
        return Fraction(self.random.randint(0, 10**6), self.random.randint(1, 10**5))

    def changed_document(self, document: Any) -> Any:
        """A JSON document with one thing changed somewhere."""
        changed = copy.deepcopy(document)
        parent, key = self.random.choice(list(_places(changed)))
        kind = self.random.random()
        if kind < 0.2:
            del parent[key]
        elif kind < 0.3 and isinstance(parent, dict):
            parent[self.random.choice(["later", "minor", "é", "__proto__", "constructor", "notice"])] = self.value()
        else:
            parent[key] = self.value(parent[key])
        return changed

    def value(self, before: Any = None) -> Any:
        pick = self.random
        near: list[Any] = []
        if isinstance(before, str):
            near = [before + "0", before[:-1], before.upper(), before + "\n", " " + before, "1e400", "4", "4.0"]
        elif isinstance(before, int) and not isinstance(before, bool):
            near = [before + 1, before - 1, -before, 2**53 - 1, 2**31]
        elif isinstance(before, float):
            near = [before * 2, -before, before / 3, 1e-310]
        elif isinstance(before, list):
            near = [before * 2, before[::-1], before[:1]]
        return pick.choice(
            [
                *near * 3,
                None,
                True,
                False,
                0,
                1,
                -1,
                "",
                "x",
                '\u2028\x7f\x00"\\',
                [],
                {},
                [[]],
                [1, "a"],
                65,
                10**15,
                "best",
                "paper",
                "client",
                "idle",
            ]
        )

    def changed_bytes(self, content: bytes) -> bytes:
        pick, changed = self.random, bytearray(content)
        for _ in range(pick.choice([1, 1, 2])):
            kind = pick.random()
            place = pick.randrange(len(changed)) if changed else 0
            if kind < 0.7 and changed:
                changed[place] = pick.choice([changed[place] ^ 1 << pick.randrange(8), pick.randrange(256), 0, 0xFF])
            elif kind < 0.85:
                del changed[place : place + pick.randint(1, 3)]
            else:
                changed[place:place] = pick.randbytes(pick.randint(1, 3))
        return bytes(changed)

    def pack(self, task: bytes = bytes(range(16)), round_number: int = 7) -> tuple[PackInfo, list[PackEntry]]:
        pick = self.random
        info = PackInfo(
            pick.choice(["paper", "best"]), pick.choice(EPSILONS), pick.choice([0.0, 1e-6]), task, round_number, 24
        )
        with_urls = pick.random() < 0.8
        urls = [
            form
            for text in [*self.texts(20), "http://a.example", "http://b.example"]
            if (form := normalize_url(text)) and len(form) < 200
        ]
        queries = {
            form
            for text in self.texts(pick.randint(0, 60), 8) + pick.sample(WORDS, 5)
            if (form := normalize(text)) and len(form) < 200
        }
        return info, [self.entry(query, urls if with_urls else []) for query in sorted(queries)]

    def entry(self, query: str, urls: list[str]) -> PackEntry:
        pick = self.random
        answers = []
        for url in pick.sample(sorted(set(urls)), pick.randint(1, min(4, len(set(urls))))) if urls else []:
            lower = pick.choice([1, 127, 128, pick.randint(1, 2**14), pick.randint(1, 2**22)])
            answers.append(PackUrl(url, lower, lower + pick.choice([0, 1, 300])))
        lower = max([pick.choice([1, 200, 2**13]), *(url.lower for url in answers)])
        probability = max([lower + pick.choice([0, 5]), *(url.probability for url in answers)])
        return PackEntry(query, lower, probability, tuple(sorted(answers, key=best_first)))


def _places(document: Any) -> Any:
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in list(items):
        yield document, key
        if isinstance(value, dict | list):
            yield from _places(value)


def vectors(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))["cases"]
    return cases
