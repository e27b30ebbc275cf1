"""Packs: every cut is refused, a changed bit is refused or makes another pack, and a lookup reads little."""

from __future__ import annotations

import contextlib
import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.normalization import normalize, normalize_url
from searchblend.search.front_coding import BLOCK
from searchblend.search.pack import Pack, PackEntry, PackInfo, PackUrl, best_first, decode_pack, encode_pack

INFO = PackInfo("best", 4.0, 1e-5, bytes(range(16)), 3)
TOP = 1 << INFO.fraction_bits


def entries_of(drawn):
    """Valid entries of drawn texts and numbers."""
    made = {}
    for query, urls in drawn:
        if not (text := normalize(query)):
            continue
        answers = {}
        for url, lower, gap in urls:
            if normal := normalize_url(url):
                answers[normal] = PackUrl(normal, lower, lower + gap)
        if answers:
            lower, probability = (max(url[i] for url in answers.values()) for i in (1, 2))
            made[text] = PackEntry(text, lower, probability, tuple(sorted(answers.values(), key=best_first)))
    return list(made.values())


TEXTS = st.text(min_size=1, max_size=12)
NUMBERS = st.integers(1, TOP // 2)
DRAWN = st.lists(st.tuples(TEXTS, st.lists(st.tuples(TEXTS, NUMBERS, NUMBERS), min_size=1, max_size=4)), max_size=40)


@settings(max_examples=60, deadline=None)
@given(DRAWN)
def test_what_goes_in_comes_out_sorted(drawn):
    entries = entries_of(drawn)
    content = encode_pack(INFO, entries)
    pack = decode_pack(content)
    assert list(pack.entries()) == sorted(entries, key=lambda entry: entry.query.encode())
    assert [pack.find(entry.query) for entry in entries] == entries
    assert [entry for block in range(pack.n_blocks) for entry in pack.block(block)] == list(pack.entries())
    assert pack.n_pairs == sum(len(entry.urls) for entry in entries)
    assert pack.find("\x00") is None
    assert encode_pack(INFO, reversed(entries)) == content


SMALL = encode_pack(
    INFO,
    [
        PackEntry(f"query {i:02}", 500 + i, 900, (PackUrl(f"http://www.site{i % 5}.example", 400, 500),))
        for i in range(BLOCK + 4)
    ],
)


def test_cut_anywhere_it_is_refused():
    for size in range(len(SMALL)):
        with pytest.raises(MessageError, match="truncated"):
            decode_pack(SMALL[:size])


@pytest.mark.thorough
def test_a_changed_bit_is_refused_or_makes_another_pack():
    """Not everything is an error: another letter is another query. But then it is that pack's one encoding."""
    refused = 0
    for bit in range(8 * len(SMALL)):
        changed = bytearray(SMALL)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            pack = decode_pack(bytes(changed))
        except MessageError:
            refused += 1
            continue
        assert encode_pack(pack.info, pack.entries()) == changed
        assert pack.digest != hashlib.sha256(SMALL).hexdigest()
    assert refused > 4 * len(SMALL)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 250), st.binary(max_size=12))
def test_garbage_raises_nothing_but_message_errors(tail, place, patch):
    for content in (tail, SMALL[:64] + tail, SMALL[:place] + patch + SMALL[place + len(patch) :]):
        for read in (decode_pack, lambda content: list(Pack(content).entries()), lambda c: Pack(c).find("query 07")):
            with contextlib.suppress(MessageError):
                read(content)


def test_reading_in_place_reads_little():
    """A lookup reads the first text of a few blocks and one block, whatever the size of the pack."""
    read = []

    class Counting(bytes):
        def __getitem__(self, place):
            read.append(place)
            return super().__getitem__(place)

    n = 4000
    entries = [PackEntry(f"query {i:06}", 9, 9, (PackUrl(f"http://u{i}.example", 9, 9),)) for i in range(n)]
    pack = Pack(Counting(encode_pack(INFO, entries)))
    read.clear()
    assert pack.find("query 002345") == entries[2345]
    assert len(read) < 600
    assert len(bytes(pack.content)) > 60_000


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"method": "worst"}, "method"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"delta": -0.0}, "delta"),
        ({"task": b"short"}, "task"),
        ({"round": 0}, "round"),
        ({"fraction_bits": 31}, "fraction_bits"),
    ],
)
def test_impossible_headers_are_not_made(changes, field):
    fields = {"method": "best", "epsilon": 1.0, "delta": 0.0, "task": bytes(15) + b"\1", "round": 1}
    with pytest.raises(InvalidParameter, match=field):
        PackInfo(**{**fields, **changes})


@pytest.mark.parametrize(
    "entry",
    [
        PackEntry("Upper", 5, 9, (PackUrl("http://a.example", 5, 9),)),
        PackEntry("a", 0, 9, (PackUrl("http://a.example", 5, 9),)),
        PackEntry("a", 9, 8),
        PackEntry("a", 5, TOP + 1),
        PackEntry("a", 5, 9, (PackUrl("http://a.example", 6, 9),)),
        PackEntry("x" * 2049, 5, 9),
    ],
)
def test_impossible_entries_are_not_written(entry):
    with pytest.raises(MessageError):
        encode_pack(INFO, [entry])


def test_nothing_of_an_entry_is_shown():
    entry = PackEntry("secret words", 5, 9, (PackUrl("http://secret.example", 5, 9),))
    assert "secret" not in repr(entry) + repr(entry.urls) + repr(Pack(encode_pack(INFO, [entry])))
