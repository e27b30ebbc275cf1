"""What fits a sealed record, and keys that nothing can be sealed to."""

from __future__ import annotations

import pytest

from searchblend.core.errors import MessageError
from searchblend.core.records import WILDCARD, Record
from searchblend.wire.sealed import BUCKETS, OVERHEAD, SealingContext, fits_sealed, new_round_key, seal_records

CONTEXT = SealingContext(bytes(16), 1, bytes(32))
TAG = CONTEXT.tag_of("a credential")
AROUND = len('{"records":[["",null]]}') + 2


def test_the_largest_record_that_fits():
    _, key = new_round_key()
    largest = Record("x" * (BUCKETS[-1] - AROUND), WILDCARD)
    assert fits_sealed([largest])
    assert len(seal_records([largest], CONTEXT, TAG, key)) == OVERHEAD + BUCKETS[-1]
    for n_more in (1, 100_000):
        longer = Record(str(largest.query) + "x" * n_more, WILDCARD)
        assert not fits_sealed([longer])
        with pytest.raises(MessageError, match="at most 4094 bytes"):
            seal_records([longer], CONTEXT, TAG, key)


@pytest.mark.parametrize("key", [bytes(32), bytes([1]) + bytes(31)])
def test_points_of_small_order_are_no_keys(key):
    with pytest.raises(MessageError, match="public_key"):
        seal_records([Record("weather", WILDCARD)], CONTEXT, TAG, key)


def test_no_record_is_no_message():
    with pytest.raises(MessageError, match="at least one"):
        seal_records([], CONTEXT, TAG, new_round_key()[1])
