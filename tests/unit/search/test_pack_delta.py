"""Deltas lead to the same bytes as a full download, and to nothing else; their size on realistic texts."""

from __future__ import annotations

import gzip
import random
from collections import Counter
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.normalization import normalize, normalize_url
from searchblend.search.pack import Pack, PackEntry, PackInfo, PackUrl, best_first, encode_pack
from searchblend.search.pack_delta import apply_delta, encode_delta, read_delta_info
from searchblend.synthetic.aol import aol_chunk
from searchblend.synthetic.pieces import aol_table, chunk_generator

pytestmark = pytest.mark.thorough

OLD = PackInfo("best", 4.0, 1e-5, bytes(range(16)), 1)
NEW = PackInfo("best", 2.0, 1e-6, bytes(range(16)), 2)
N_PAIRS = 16_000


def entry(query, numbers):
    urls = [PackUrl(f"http://{name}.example", lower, lower + gap) for name, (lower, gap) in numbers.items()]
    top = (max((url[i] for url in urls), default=3) for i in (1, 2))
    return PackEntry(query, *top, tuple(sorted(urls, key=best_first)))


ENTRIES = st.dictionaries(
    st.text("abcdé", min_size=1, max_size=5),
    st.dictionaries(st.sampled_from("uvwxyz"), st.tuples(st.integers(1, 5), st.integers(0, 5)), min_size=1, max_size=3),
    max_size=30,
)


@settings(max_examples=100, deadline=None)
@given(ENTRIES, ENTRIES, st.data())
def test_a_delta_leads_to_the_same_bytes(old, other, data):
    kept = data.draw(st.sets(st.sampled_from(sorted(old)))) if old else set()
    new = {**{query: old[query] for query in kept}, **other}
    base = encode_pack(OLD, [entry(*item) for item in old.items()])
    result = encode_pack(NEW, [entry(*item) for item in new.items()])
    delta = encode_delta(Pack(base), Pack(result))
    assert apply_delta(Pack(base), delta) == result
    about = read_delta_info(delta)
    assert (about.base, about.result) == (Pack(base).digest, Pack(result).digest)
    assert (about.base_round, about.info) == (1, NEW)


BASE = encode_pack(OLD, [entry(f"query {i}", {"u": (i + 1, 2), "v": (1, 1)}) for i in range(12)])
RESULT = encode_pack(NEW, [entry(f"query {i}", {"u": (i % 7 + 1, 3), "v": (1, 1)}) for i in range(5, 15)])
DELTA = encode_delta(Pack(BASE), Pack(RESULT))


def test_cut_anywhere_it_is_refused():
    for size in range(len(DELTA)):
        with pytest.raises(MessageError):
            apply_delta(Pack(BASE), DELTA[:size])


def test_a_changed_bit_is_refused():
    for bit in range(8 * len(DELTA)):
        changed = bytearray(DELTA)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(MessageError):
            apply_delta(Pack(BASE), bytes(changed))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.integers(124, len(DELTA)), st.binary(min_size=1, max_size=9))
def test_garbage_raises_nothing_but_message_errors(tail, place, patch):
    for content in (tail, DELTA[:124] + tail, DELTA[:place] + patch + DELTA[place:]):
        with pytest.raises(MessageError):
            apply_delta(Pack(BASE), content)


def test_packs_of_different_tasks_have_no_delta():
    other = PackInfo("best", 2.0, 1e-6, bytes(15) + b"\1", 2)
    with pytest.raises(InvalidParameter, match="one task"):
        encode_delta(Pack(BASE), Pack(encode_pack(other, [])))


@cache
def common_pairs():
    """The most clicked ⟨query, URL⟩ pairs of made-up people: texts as long as those of a real log."""
    counts = Counter()
    for number in range(4):
        text = bytes(aol_table(aol_chunk(number * 4096, 4096, 4 * 4096, chunk_generator(1, number)))).decode()
        for line in text.split("\n"):
            fields = line.split("\t")
            if len(fields) > 2 and fields[2]:
                counts[fields[1], fields[2]] += 1
    pairs = {}
    for (query, url), count in counts.most_common(N_PAIRS + N_PAIRS // 5):
        pairs.setdefault((normalize(query), normalize_url(url)), count)
    return [(*pair, count) for pair, count in pairs.items()][: N_PAIRS + N_PAIRS // 10]


def noisy_pack(info, pairs, seed=None):
    """The pack of counts, as estimates from a million people would be; with a seed each gets fresh noise."""
    source, n, top = random.Random(seed), 1_000_000, 1 << info.fraction_bits
    urls = {}
    for query, url, count in pairs:
        if seed is not None:
            count = max(count + source.gauss(0, count**0.5), 1)
        probability, spread = count / n, (count**0.5) / n
        lower = max(int((probability - 1.96 * spread) * top), 1)
        urls.setdefault(query, []).append(PackUrl(url, lower, max(int(probability * top), lower)))
    entries = [
        PackEntry(query, max(url.lower for url in found), sum(url.probability for url in found), tuple(found))
        for query, found in urls.items()
    ]
    return Pack(encode_pack(info, entries))


@cache
def common_pack():
    return noisy_pack(OLD, common_pairs()[:N_PAIRS])


def test_at_most_35_bytes_for_a_pair_of_45():
    """The limit is for pairs of 45 bytes, as AOL has them; those of the synthetic world are longer, and so is it."""
    pack = common_pack()
    assert pack.n_pairs == N_PAIRS
    raw = sum(len(query.encode()) + len(url.encode()) for query, url, _ in common_pairs()[:N_PAIRS]) / N_PAIRS
    assert 45 < raw < 65
    assert len(pack.content) / N_PAIRS <= 35 / 45 * raw
    assert len(gzip.compress(pack.content)) / N_PAIRS <= 18


def test_a_tenth_changed_costs_less_than_three_tenths():
    pairs = common_pairs()
    gone = set(random.Random(1).sample(range(N_PAIRS), N_PAIRS // 10))
    base = common_pack()
    result = noisy_pack(NEW, [pair for place, pair in enumerate(pairs) if place not in gone])
    assert result.n_pairs == N_PAIRS
    delta = encode_delta(base, result)
    assert apply_delta(base, delta) == result.content
    assert len(delta) < 0.3 * len(result.content)


def test_fresh_noise_on_every_number_costs_less_than_three_tenths():
    """What really happens from round to round: the texts mostly stay, no number does."""
    base, result = (noisy_pack(info, common_pairs()[:N_PAIRS], seed) for info, seed in ((OLD, 1), (NEW, 2)))
    delta = encode_delta(base, result)
    assert apply_delta(base, delta) == result.content
    assert len(delta) < 0.3 * len(result.content)
