"""Write the vectors of local search: packs, signed packs and deltas, good and bad, and what a pack answers.

Signing is randomized, so ``signed_pack.json`` changes when it is made anew, though its meaning does not.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from searchblend.search.build_pack import SearchIndex
from searchblend.search.front_coding import BLOCK, write_blocks, write_number, write_text
from searchblend.search.pack import DEFAULT_FRACTION_BITS, METHODS, Pack, PackEntry, PackInfo, PackUrl, encode_pack
from searchblend.search.pack_delta import apply_delta, encode_delta
from searchblend.wire.signing import SigningKey, sign_pack

HERE = Path(__file__).parent / "v1"
TASK = bytes(range(16))
INFO = PackInfo("best", 4.0, 1e-5, TASK, 7)
UNIT = 1 << DEFAULT_FRACTION_BITS


def entry(query: str, lower: int, probability: int, *urls: tuple[str, int, int]) -> PackEntry:
    return PackEntry(query, lower, probability, tuple(PackUrl(*url) for url in urls))


FEW = [
    entry("google", 800_000, 900_000, ("http://www.google.com", 700_000, 750_000), ("http://images.example", 9, 300)),
    entry("google.com", 50_000, 60_000, ("http://www.google.com", 50_000, 60_000)),
    entry("ebay", 90_000, 90_001, ("http://www.ebay.com", 80_000, 80_000)),
]
ODD = [
    entry("météo ⋆ 天気", 5, 5, ("http://例え.example/ü?a=%20", 5, 5)),
    entry("*", 1, UNIT, ("*", 1, UNIT), ("a", 1, 5), ("b", 1, 5)),
    entry("ß", 127, 128, ("http://a.example", 127, 128)),
    entry("ßa", 16_383, 16_384, ("http://a.example/" + "x" * 2031, 16_383, 16_384)),
    entry("\U0001f600", 3, 4, ("javascript:alert(1)", 2, 3)),
    entry("￼", 3, 4, ("http://a.example", 2, 3)),
    entry("x" * 2048, 3, 4, ("http://a.example", 2, 3)),
]
"""texts beyond ASCII, of the largest size, and numbers where another byte begins; U+1F600 sorts after U+FFFC"""
WORDS = ("weather", "weather forecast", "whether", "wether", "news", "new york", "new york times", "newegg", "maps")
TOWNS = ("berlin", "boston", "bern", "bergen", "brno", "bonn", "basel", "bristol", "brest", "bremen", "burgos")
MANY = [
    entry(
        text,
        (place * 7919) % 9973 + 20,
        (place * 7919) % 9973 + 20 + place % 3,
        *(
            (f"http://{name}.example", (place * 7919) % 9973 + 20 - cut, (place * 7919) % 9973 + 20 - cut // 2)
            for cut, name in enumerate(("www." + text.split(" ", maxsplit=1)[0], "maps", "wiki")[: place % 3 + 1])
        ),
    )
    for place, text in enumerate(
        [*WORDS, *TOWNS, *(f"{word} {town}" for word in ("weather", "maps", "news") for town in TOWNS)]
    )
]
NO_URLS = [entry(text, 10 + place, 20 + place) for place, text in enumerate(TOWNS)]
SAME_NUMBERS = [entry(text, 10, 20, ("http://www.example", 10, 20)) for text in ("aab", "aac", "aaa", "aa", "caa")]


def document(info: PackInfo) -> dict[str, Any]:
    return {**asdict(info), "task": info.task.hex()}


def listed(entries: list[PackEntry]) -> list[list[Any]]:
    return [[e.query, e.lower, e.probability, [list(url) for url in e.urls]] for e in entries]


PACKS: dict[str, tuple[PackInfo, list[PackEntry]]] = {
    "three queries": (INFO, FEW),
    "empty": (INFO, []),
    "one query": (INFO, FEW[:1]),
    "a full block": (INFO, MANY[:BLOCK]),
    "one more than a block": (INFO, MANY[: BLOCK + 1]),
    "several blocks": (INFO, MANY),
    "queries alone": (INFO, NO_URLS),
    "odd texts and numbers": (replace(INFO, fraction_bits=24), ODD),
    "no task": (PackInfo("paper", 0.5, 0.0), FEW),
    "finer numbers": (replace(INFO, fraction_bits=30), FEW),
    "equal numbers": (replace(INFO, round=8), SAME_NUMBERS),
}


def packs() -> list[dict[str, Any]]:
    cases = []
    for name, (info, entries) in PACKS.items():
        content = encode_pack(info, entries)
        cases.append(
            {
                "name": name,
                "info": document(info),
                "entries": listed(list(Pack(content).entries())),
                "pack": content.hex(),
                "sha256": hashlib.sha256(content).hexdigest(),
            }
        )
    return cases


class Parts:
    """A pack taken apart, to be put together wrongly."""

    def __init__(self, entries: list[PackEntry], info: PackInfo = INFO) -> None:
        self.info, self.version, self.magic, self.method, self.zero = (
            info,
            1,
            b"SBPK",
            METHODS.index(info.method) + 1,
            0,
        )
        self.fraction_bits, self.epsilon, self.delta = info.fraction_bits, info.epsilon, info.delta
        self.task, self.round = info.task, info.round
        self.urls = sorted({url.url.encode() for e in entries for url in e.urls})
        self.entries = sorted(entries, key=lambda e: e.query.encode())
        self.sizes: dict[int, int] = {}
        self.query_starts: list[int] | None = None
        self.query_part: bytes | None = None
        self.url_part: bytes | None = None
        self.url_starts: list[int] | None = None

    def bytes(self) -> bytes:
        starts, part = self._queries()
        url_starts, url_part = write_blocks(self.urls)
        part = self.query_part if self.query_part is not None else part
        starts = self.query_starts if self.query_starts is not None else starts
        url_part = self.url_part if self.url_part is not None else url_part
        url_starts = self.url_starts if self.url_starts is not None else url_starts
        sizes = [len(self.entries), sum(len(e.urls) for e in self.entries), len(self.urls), len(part), len(url_part)]
        for place, value in self.sizes.items():
            sizes[place] = value
        head = struct.pack(
            *(">4sBBBB16sIddIIIII", self.magic, self.version, self.fraction_bits, self.method, self.zero, self.task),
            *(self.round, self.epsilon, self.delta, *sizes),
        )
        offsets = [*starts, *url_starts]
        return head + struct.pack(f">{len(offsets)}I", *offsets) + part + url_part

    def _queries(self) -> tuple[list[int], bytes]:
        starts, out, before = [], bytearray(), b""
        for place, e in enumerate(self.entries):
            if place % BLOCK == 0:
                starts.append(len(out))
                before = b""
            write_text(out, e.query.encode(), before)
            before = e.query.encode()
            write_number(out, e.lower)
            write_number(out, max(e.probability - e.lower, 0))
            write_number(out, len(e.urls))
            for url in e.urls:
                write_number(out, self.urls.index(url.url.encode()) if url.url.encode() in self.urls else 99)
                write_number(out, url.lower)
                write_number(out, max(url.probability - url.lower, 0))
        return starts, bytes(out)


def changed(entries: list[PackEntry], **values: Any) -> bytes:
    parts = Parts(entries)
    for name, value in values.items():
        assert hasattr(parts, name)
        setattr(parts, name, value)
    return parts.bytes()


def bad_packs() -> list[dict[str, Any]]:
    good = encode_pack(INFO, FEW)
    assert changed(FEW) == good
    many = Parts(MANY)
    second = many._queries()[0][1]
    one = [entry("a", 5, 9, ("http://a.example", 5, 9))]
    part = Parts(one)._queries()[1]
    no_urls: dict[str, Any] = {"url_part": b"", "url_starts": [], "urls": []}
    cases: list[tuple[str, bytes, str]] = [
        ("no bytes", b"", "truncated"),
        ("within the header", good[:63], "truncated"),
        ("one byte short", good[:-1], "truncated"),
        ("one byte more", good + b"\0", "trailing bytes"),
        ("another magic", changed(FEW, magic=b"SBPX"), "a searchblend pack"),
        ("version 0", changed(FEW, version=0), "version 0"),
        ("version 2", changed(FEW, version=2), "version 2"),
        ("15 fraction bits", changed(FEW, fraction_bits=15), "fraction_bits"),
        ("31 fraction bits", changed(FEW, fraction_bits=31), "fraction_bits"),
        ("method 0", changed(FEW, method=0), "method"),
        ("method 3", changed(FEW, method=3), "method"),
        ("byte 7 is not 0", changed(FEW, zero=1), "a searchblend pack"),
        ("epsilon 0", changed(FEW, epsilon=0.0), "epsilon"),
        ("epsilon infinite", changed(FEW, epsilon=float("inf")), "epsilon"),
        ("epsilon not a number", changed(FEW, epsilon=float("nan")), "epsilon"),
        ("delta 1", changed(FEW, delta=1.0), "delta"),
        ("delta -0", changed(FEW, delta=-0.0), "delta"),
        ("delta not a number", changed(FEW, delta=float("nan")), "delta"),
        ("a round without a task", changed(FEW, task=bytes(16)), "round"),
        ("a task without a round", changed(FEW, round=0), "round"),
        ("one query too many", changed(FEW, sizes={0: 4}), "pack: "),
        ("one query too few", changed(FEW, sizes={0: 2}), "end of the block"),
        ("one pair too many", changed(FEW, sizes={1: 5}), "canonical"),
        ("one URL too few", changed(FEW, sizes={2: 2}), "pack: "),
        ("2^32 - 1 queries", changed(FEW, sizes={0: 0xFFFFFFFF}), "truncated"),
        ("2^32 - 1 bytes of URLs", changed(FEW, sizes={4: 0xFFFFFFFF}), "truncated"),
        ("sizes that overlap", changed(FEW, sizes={3: 0, 4: 0}), "trailing bytes"),
        ("first block not at 0", changed(FEW, query_starts=[1]), "block offsets"),
        ("block offsets that descend", changed(MANY, query_starts=[0, second, 1, 2]), "block offsets"),
        (
            "block offset past the end",
            changed(MANY, query_starts=[0, 1 << 31, *many._queries()[0][2:]]),
            "block offsets",
        ),
        (
            "block offset within an entry",
            changed(MANY, query_starts=[0, second + 1, *many._queries()[0][2:]]),
            "pack: ",
        ),
        ("URL block offset past the end", changed(FEW, url_starts=[77_777]), "block offsets"),
        ("number in too many bytes", changed(one, query_part=b"\0\x81\0" + part[2:]), "as few bytes"),
        ("number of 2^32", changed(one, query_part=part[:3] + b"\x80\x80\x80\x80\x10" + part[4:]), "below 2^32"),
        ("number of 6 bytes", changed(one, query_part=part[:3] + b"\x80\x80\x80\x80\x80\x01" + part[4:]), "5 bytes"),
        ("number past the end", changed(one, query_part=part[:-1] + b"\x80"), "ends within a number"),
        ("text past the end", changed(one, query_part=b"\0\x7f" + part[2:]), "expected a text"),
        ("empty query", changed(one, query_part=b"\0\0" + part[3:]), "expected a text"),
        ("first text shares", changed(one, query_part=b"\1" + part[1:]), "expected a text"),
        ("text of 2049 bytes", changed([entry("x" * 2049, 5, 9, ("http://a.example", 5, 9))]), "expected a text"),
        ("more after the last entry", changed(one, query_part=part + b"\0"), "end of the block"),
        (
            "more after the last URL",
            changed(one, url_part=write_blocks(Parts(one).urls)[1] + b"\0"),
            "end of the block",
        ),
        ("a query twice", changed([FEW[0], FEW[0]]), "sorted texts"),
        ("queries not sorted", _unsorted(), "sorted texts"),
        ("queries not sorted across blocks", _unsorted_blocks(), "order of their bytes"),
        (
            "URLs not sorted",
            changed(FEW[:1], urls=[b"http://www.google.com", b"http://images.example"]),
            "sorted texts",
        ),
        ("shares less than it can", _shares_less(), "share all they can"),
        ("not UTF-8", changed(one, query_part=b"\0\1\xff" + part[3:]), "UTF-8"),
        ("query not in normal form", changed([entry("Google", 5, 9, ("http://a.example", 5, 9))]), "normal form"),
        ("query with two blanks", changed([entry("a  b", 5, 9, ("http://a.example", 5, 9))]), "normal form"),
        ("URL not in normal form", changed([entry("a", 5, 9, ("HTTP://a.example/", 5, 9))]), "normal form"),
        ("lower bound 0", changed([entry("a", 0, 9)], **no_urls), "lower bound"),
        ("probability above 1", changed([entry("a", 5, UNIT + 1)], **no_urls), "lower bound"),
        ("lower bound of a URL 0", changed([entry("a", 5, 9, ("http://a.example", 0, 9))]), "lower bound"),
        ("URL that is not in the table", changed(one, urls=[b"http://b.example"]), "not in the table"),
        ("URL that nobody uses", changed(one, urls=[b"http://a.example", b"http://b.example"]), "canonical"),
        (
            "URL twice",
            changed(
                [entry("a", 5, 9, ("http://a.example", 5, 9), ("http://a.example", 5, 9))], urls=[b"http://a.example"]
            ),
            "no more URLs than there are",
        ),
        (
            "URL twice beside another",
            changed(
                [
                    entry("a", 5, 9, ("http://a.example", 5, 9), ("http://a.example", 5, 9)),
                    entry("b", 5, 9, ("x", 5, 9)),
                ]
            ),
            "a URL twice",
        ),
        ("best URL last", _worst_first(), "best URL first"),
        ("equal URLs not by place", _ties_wrong(), "best URL first"),
        ("URL above its query", changed([entry("a", 5, 9, ("http://a.example", 6, 9))]), "above its query"),
        ("URL more likely than its query", changed([entry("a", 5, 9, ("http://a.example", 5, 10))]), "above its query"),
        ("a query without a URL", changed([*one, entry("b", 5, 9)]), "for every query or for none"),
    ]
    return [{"name": name, "pack": content.hex(), "says": says} for name, content, says in cases]


def _unsorted() -> bytes:
    parts = Parts(FEW)
    parts.entries = [FEW[0], FEW[2], FEW[1]]
    return parts.bytes()


def _unsorted_blocks() -> bytes:
    parts = Parts(MANY)
    parts.entries = [*parts.entries[BLOCK : 2 * BLOCK], *parts.entries[:BLOCK], *parts.entries[2 * BLOCK :]]
    return parts.bytes()


def _shares_less() -> bytes:
    out = bytearray()
    entries = [entry("aa", 5, 9), entry("ab", 5, 9)]
    for e in entries:
        write_text(out, e.query.encode(), b"")
        for value in (e.lower, e.probability - e.lower, 0):
            write_number(out, value)
    return changed(entries, query_part=bytes(out))


def _worst_first() -> bytes:
    return changed([entry("a", 5, 9, ("http://a.example", 4, 9), ("http://b.example", 5, 9))])


def _ties_wrong() -> bytes:
    return changed([entry("a", 5, 9, ("http://b.example", 5, 9), ("http://a.example", 5, 9))])


def signed_packs() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    keys = [SigningKey.new(), SigningKey.new()]
    pinned = {key.key_id: key.public_point.hex() for key in keys[:1]}
    pack = encode_pack(INFO, FEW)
    one, both = sign_pack(pack, keys[:1]), sign_pack(pack, keys)
    good = [
        {"name": name, "pinned": pinned, "message": message.hex(), "pack": pack.hex()}
        for name, message in (
            ("one signature", one),
            ("two signatures", both),
            ("the second", sign_pack(pack, keys[::-1])),
        )
    ]
    flipped = bytearray(one)
    flipped[-1] ^= 1
    bad = [
        ("no bytes", b"", "a signed searchblend pack"),
        ("a pack alone", pack, "a signed searchblend pack"),
        ("another version", one[:4] + b"\2" + one[5:], "version 2"),
        ("no signatures", one[:5] + b"\0" + pack, "1 to 8"),
        ("nine signatures", one[:5] + b"\x09" + one[6:78] * 9 + pack, "1 to 8"),
        ("ends within the signatures", one[:70], "truncated"),
        ("changed pack", bytes(flipped), "no valid signature"),
        ("truncated pack", one[:-1], "no valid signature"),
        ("signed by a stranger", sign_pack(pack, [SigningKey.new()]), "no valid signature"),
        ("zeros for a signature", one[:14] + bytes(64) + pack, "no valid signature"),
        ("a manifest's signature", _other_domain(pack, keys[0]), "no valid signature"),
    ]
    return good, [{"name": name, "pinned": pinned, "message": text.hex(), "says": says} for name, text, says in bad]


def _other_domain(pack: bytes, key: SigningKey) -> bytes:
    """Signed as a manifest would be, not as a pack."""
    signature = key.sign(b"searchblend manifest v1\n" + pack)
    raw = base64.urlsafe_b64decode(signature.signature + "==")
    return b"SBPS\1\1" + bytes.fromhex(signature.key_id) + raw + pack


def _next_round(entries: list[PackEntry]) -> list[PackEntry]:
    """Some queries go, some come, some get other numbers or URLs."""
    changed_entries = []
    for place, e in enumerate(entries):
        if place % 7 == 3:
            continue
        if place % 5 == 1:
            urls = tuple(
                url._replace(lower=url.lower + 2 * i, probability=url.probability + 9) for i, url in enumerate(e.urls)
            )
            e = PackEntry(e.query, e.lower + 9, e.probability + 9, tuple(sorted(urls, key=_rank)))
        elif place % 5 == 2:
            e = e._replace(urls=(*e.urls[:1], PackUrl("http://new.example", 1, 1)))
        changed_entries.append(e)
    extra = [entry(f"weather in {town}", 30, 40, ("http://weather.example", 20, 30)) for town in TOWNS[:3]]
    return [
        *changed_entries,
        *extra,
        entry("aaa", 5, 6, ("http://maps.example", 5, 6)),
        entry("zzz", 5, 6, ("http://z.example", 5, 6)),
    ]


def _rank(url: PackUrl) -> tuple[int, int, bytes]:
    return -url.lower, -url.probability, url.url.encode()


def deltas() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    later = replace(INFO, round=8, epsilon=2.0)
    pairs = {
        "some of everything": ((INFO, MANY), (later, _next_round(MANY))),
        "nothing but the round": ((INFO, MANY), (later, MANY)),
        "from empty": ((INFO, []), (later, MANY[:20])),
        "to empty": ((INFO, FEW), (later, [])),
        "empty to empty": ((INFO, []), (later, [])),
        "nothing in common": ((INFO, FEW), (later, MANY[:5])),
        "all numbers": (
            (INFO, FEW),
            (later, [e._replace(lower=e.lower + 1, probability=e.probability + 1) for e in FEW]),
        ),
        "queries alone": ((INFO, NO_URLS), (later, NO_URLS[1:])),
        "odd texts": ((INFO, ODD[:4]), (later, ODD[2:])),
        "back again": ((later, _next_round(MANY)), (INFO, MANY)),
        "no task": ((PackInfo("paper", 0.5, 0.0), FEW), (PackInfo("best", 0.5, 0.0), FEW[1:])),
    }
    good = []
    for name, (old, new) in pairs.items():
        base, result = encode_pack(*old), encode_pack(*new)
        delta = encode_delta(Pack(base), Pack(result))
        assert apply_delta(Pack(base), delta) == result
        good.append({"name": name, "base": base.hex(), "delta": delta.hex(), "result": result.hex()})
    return good, bad_deltas(bytes.fromhex(good[0]["base"]), bytes.fromhex(good[0]["delta"]))


def bad_deltas(base: bytes, good: bytes) -> list[dict[str, Any]]:
    n_queries = Pack(base).n_queries
    few = encode_pack(INFO, FEW)
    small = encode_delta(Pack(few), Pack(few))

    def put(content: bytes, place: int, new: bytes) -> bytes:
        return content[:place] + new + content[place + len(new) :]

    def steps(*numbers: int) -> bytes:
        out = bytearray()
        for number in numbers:
            write_number(out, number)
        return put(small[:124], 120, len(out).to_bytes(4, "big")) + out

    cases: list[tuple[str, bytes, bytes, str]] = [
        ("no bytes", base, b"", "124 bytes"),
        ("within the header", base, good[:123], "124 bytes"),
        ("one byte short", base, good[:-1], "expected"),
        ("one byte more", base, good + b"\0", "expected"),
        ("another magic", base, b"SBPK" + good[4:], "a searchblend pack delta"),
        ("another version", base, put(good, 4, b"\2"), "version 2"),
        ("byte 7 is not 0", base, put(good, 7, b"\1"), "a searchblend pack delta"),
        ("another base", few, good, "another pack"),
        ("another task", base, put(good, 8, b"\xff"), "does not fit"),
        ("another round of the base", base, put(good, 27, b"\x06"), "does not fit"),
        ("other fraction bits", base, put(good, 5, b"\x18" if good[5] != 24 else b"\x19"), "does not fit"),
        ("another round of the result", base, put(good, 31, b"\x09"), "not the pack that it names"),
        ("another epsilon", base, put(good, 32, struct.pack(">d", 3.0)), "not the pack that it names"),
        ("another result", base, put(good, 80, b"\0\1\2\3"), "not the pack that it names"),
        ("one URL too many", base, put(good, 115, bytes([good[115] + 1])), "pack delta: URLs"),
        ("one URL too few", base, put(good, 115, bytes([good[115] - 1])), "end of the URLs"),
        ("an unknown step", few, steps(3 * 8 + 5), "expected a step"),
        ("a step over no query", few, steps(0, 3 * 8), "expected a step"),
        ("a step past the end", few, steps(4 * 8), "expected a step"),
        ("ends before the last query", few, steps(2 * 8), "every query"),
        ("2^29 steps", few, steps((1 << 29) - 1 << 3), "expected a step"),
        ("a URL that is not there", few, steps(1 * 8 + 3, 5, 5, 1, 99, 5, 5, 2 * 8), "number of a URL"),
        ("ends within a step", few, steps(1 * 8 + 2, 5), "ends within a number"),
        ("what comes out is no pack", few, steps(1 * 8 + 2, 1, 0, 7, 0, 2 * 8), "above its query"),
        ("what comes out is another pack", few, steps(1 * 8 + 1, 2 * 8), "not the pack that it names"),
    ]
    assert n_queries
    return [{"name": name, "base": b.hex(), "delta": d.hex(), "says": says} for name, b, d, says in cases]


def searches() -> dict[str, Any]:
    named = {
        name: encode_pack(*PACKS[name])
        for name in ("several blocks", "empty", "queries alone", "equal numbers", "odd texts and numbers")
    }
    asked: list[tuple[str, str, int]] = [
        *(
            ("several blocks", typed, limit)
            for typed in (
                "weather",
                " WEATHER  ",
                "wea",
                "w",
                "whe",
                "weathr",
                "wetaher",
                "eather",
                "xweather",
                "weather forcast",
                "waether froecast",
                "new",
                "new york",
                "new york tmies",
                "newyork",
                "nwes",
                "map",
                "maps b",
                "brelin",
                "bern",
                "nowhere",
                "",
                "   ",
                "z",
                "aaa",
                "weather berlni",
                "maps basle",
                "ber",
                "b",
                "be",
                "\ud800",
                "weather" * 10,
                "new york timess",
                "onw york times",
                "ne",
                "mpas",
                "abcd",
            )
            for limit in (3, 50)
        ),
        *(("several blocks", "weather b", limit) for limit in (1, 2, 5)),
        ("empty", "weather", 5),
        *(("queries alone", typed, 5) for typed in ("b", "berl", "brelin", "bremen", "brmeen", "basell")),
        *(("equal numbers", typed, limit) for typed in ("a", "aa", "aaa", "aaaa", "caaa", "acaa") for limit in (2, 9)),
        *(
            ("odd texts and numbers", typed, 5)
            for typed in ("MÉTÉO", "météo ⋆ 天", "ß", "ẞ", "*", "\U0001f600", "￼", "x" * 70, "méteo ⋆ 天氣")
        ),
    ]
    cases = []
    for name, typed, limit in asked:
        found = SearchIndex(Pack(named[name])).search(typed, limit)
        cases.append(
            {
                "name": f"{name}: {typed[:20]!r}, {limit}".encode("ascii", "backslashreplace").decode(),
                "pack": name,
                "typed": typed,
                "limit": limit,
                "found": [
                    {
                        "query": f.entry.query,
                        "kind": f.kind,
                        "distance": f.distance,
                        "lower": f.entry.lower,
                        "probability": f.entry.probability,
                        "urls": [list(url) for url in f.entry.urls],
                    }
                    for f in found
                ],
            }
        )
    return {"version": 1, "packs": {name: content.hex() for name, content in named.items()}, "cases": cases}


def main() -> None:
    good_signed, bad_signed = signed_packs()
    good_deltas, wrong_deltas = deltas()
    made: dict[str, list[dict[str, Any]]] = {
        "pack": packs(),
        "bad_pack": bad_packs(),
        "signed_pack": good_signed,
        "bad_signed_pack": bad_signed,
        "pack_delta": good_deltas,
        "bad_pack_delta": wrong_deltas,
    }
    documents = {name: {"version": 1, "cases": cases} for name, cases in made.items()}
    for name, content in {**documents, "pack_search": searches()}.items():
        text = json.dumps(content, ensure_ascii=True, indent=1)
        (HERE / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
