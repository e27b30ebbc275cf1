"""Words, halves and exactly uniform choices."""

from __future__ import annotations

from collections import Counter

import pytest

from searchblend.core.randomness import (
    HALF,
    Randomness,
    SystemRandomness,
    Tape,
    TapeExhausted,
    accept_below,
    uniform_below,
    uniform_from_half,
    word,
)
from searchblend.synthetic.seeded import SeededRandomness


def tape(*words: int) -> Tape:
    return Tape(b"".join(w.to_bytes(8, "little") for w in words))


def test_only_the_operating_system_is_cryptographic():
    assert SystemRandomness().cryptographic
    assert not Tape(b"").cryptographic
    assert not SeededRandomness(1).cryptographic
    assert all(isinstance(source, Randomness) for source in (SystemRandomness(), Tape(b""), SeededRandomness(1)))


def test_system_randomness_does_not_repeat():
    assert len({SystemRandomness().take(16) for _ in range(100)}) == 100
    assert len(SystemRandomness().take(7)) == 7


def test_a_tape_is_read_once_and_ends():
    source = Tape(bytes(range(5)))
    assert source.take(3) == b"\x00\x01\x02"
    assert source.left == 2
    with pytest.raises(TapeExhausted, match="2 bytes left, 3"):
        source.take(3)
    assert source.take(2) == b"\x03\x04"


def test_a_word_is_little_endian():
    assert word(Tape(b"\x01" + b"\x00" * 7)) == 1
    assert word(Tape(b"\x00" * 7 + b"\x80")) == 1 << 63


@pytest.mark.parametrize("n", [1, 2, 3, 7, 51, 1000, 2**31, 2**32 - 1])
def test_whole_periods_are_accepted(n: int):
    """Everything below the limit is a whole number of periods, and less than one period is rejected."""
    assert accept_below(n) % n == 0
    assert 0 <= HALF - accept_below(n) < n


def test_a_half_in_the_last_period_is_drawn_again_until_it_fits():
    n = 3
    bad = accept_below(n)
    assert bad == HALF - 1
    source = tape(bad, (5 << 32) | bad, (bad << 32) | 4, 0)
    assert uniform_from_half(bad, n, source) == 4 % n
    assert source.left == 8
    assert uniform_from_half(bad - 1, n, Tape(b"")) == (bad - 1) % n


def test_no_choice_draws_nothing():
    assert uniform_below(1, Tape(b"")) == 0
    assert uniform_below(10, tape(HALF + 27)) == 7


def test_uniform_below_hits_every_value_equally_over_a_period():
    n = 6
    assert Counter(uniform_below(n, tape(half)) for half in range(5 * n)) == dict.fromkeys(range(n), 5)
