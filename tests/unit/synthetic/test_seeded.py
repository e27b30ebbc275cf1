"""The seeded generator repeats itself, and says that it is not private."""

from searchblend.synthetic.seeded import SeededRandomness


def test_repeatable_and_never_private():
    one, two, other = SeededRandomness(1), SeededRandomness(1), SeededRandomness(2)
    assert one.take(16) == two.take(16)
    assert one.take(16) != other.take(16)
    assert len(one.take(3)) == 3
    assert not one.cryptographic
