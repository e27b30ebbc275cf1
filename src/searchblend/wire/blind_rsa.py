"""Blind RSA signatures (RFC 9474, RSABSSA-SHA384-PSS-Deterministic): who signs sees neither message nor signature.

    device   blind       encodes the message with a salt (EMSA-PSS) and multiplies it by r^e for a random r
    issuer   blind_sign  raises what it got to d
    device   finalize    divides by r; what is left is an RSASSA-PSS signature that anyone can verify

The private operation is Python's own ``pow``, since ``cryptography`` has none without padding, and ``pow`` takes longer
for some numbers than for others. So it never sees the number that a stranger chose, nor the same exponent twice: the
base is multiplied by a fresh r^e, and to each exponent a fresh multiple of its group's order is added (``blind_sign``).
What can be measured is then independent of the request and of the key. Residues, and a fault in either half, which
would give the key away, are caught by verifying the result before anyone sees it.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Final

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateNumbers, RSAPublicNumbers

from searchblend.core.errors import MessageError
from searchblend.core.randomness import Randomness, SystemRandomness

SALT_BYTES: Final = 48
_DIGEST_BYTES: Final = 48
_EXPONENT_BLIND_BYTES: Final = 16
_SYSTEM: Final = SystemRandomness()


@dataclass(frozen=True)
class Blinded:
    """A message on its way to the signer, and what takes the blinding off again. ``repr`` shows neither."""

    content: bytes
    """goes to the signer"""
    inverse: bytes
    """stays here"""

    def __repr__(self) -> str:
        return f"Blinded({len(self.content)} bytes)"


def blind(message: bytes, key: RSAPublicNumbers, *, randomness: Randomness = _SYSTEM) -> Blinded:
    """RFC 9474, 4.2. Takes the salt, then r."""
    size = _size(key.n)
    encoded = int.from_bytes(_emsa_pss(message, key.n, randomness.take(SALT_BYTES)))
    if math.gcd(encoded, key.n) != 1:
        raise MessageError("token: the message has a factor in common with the key")
    r = _random_unit(key.n, randomness)
    content = encoded * pow(r, key.e, key.n) % key.n
    return Blinded(content.to_bytes(size), pow(r, -1, key.n).to_bytes(size))


def finalize(signed: bytes, inverse: bytes, key: RSAPublicNumbers) -> bytes:
    """RFC 9474, 4.4, without its last step: verify the signature that comes out before it is used."""
    size = _size(key.n)
    if len(signed) != size or int.from_bytes(signed) >= key.n:
        raise MessageError(f"token: expected a blind signature of {size} bytes")
    return (int.from_bytes(signed) * int.from_bytes(inverse) % key.n).to_bytes(size)


def blind_sign(content: bytes, key: RSAPrivateNumbers, *, randomness: Randomness = _SYSTEM) -> bytes:
    """RFC 9474, 4.3: the blinded message to the power of d. The same message gives the same bytes.

    By the Chinese remainder theorem, with base and both exponents blinded afresh each time. ``MessageError`` for what
    is not a blinded message under this key; ``ArithmeticError`` for a result that is wrong, which must not be shown.
    """
    n, e = key.public_numbers.n, key.public_numbers.e
    size, given = _size(n), int.from_bytes(content)
    if len(content) != size or given >= n:
        raise MessageError(f"token request: expected a blinded message of {size} bytes below the key's modulus")
    r = _random_unit(n, randomness)
    base = given * pow(r, e, n) % n
    p_part, q_part = (
        pow(base % prime, exponent + int.from_bytes(randomness.take(_EXPONENT_BLIND_BYTES)) * (prime - 1), prime)
        for prime, exponent in ((key.p, key.dmp1), (key.q, key.dmq1))
    )
    signed = (q_part + (p_part - q_part) * key.iqmp % key.p * key.q) * pow(r, -1, n) % n
    if pow(signed, e, n) != given:
        raise ArithmeticError("a wrong signature was computed")
    return signed.to_bytes(size)


def _emsa_pss(message: bytes, n: int, salt: bytes) -> bytes:
    """RFC 8017, 9.1.1, for a number of one bit less than the modulus."""
    bits = n.bit_length() - 1
    length = (bits + 7) // 8
    digest = hashlib.sha384(bytes(8) + hashlib.sha384(message).digest() + salt).digest()
    block = bytes(length - len(salt) - _DIGEST_BYTES - 2) + b"\x01" + salt
    masked = int.from_bytes(block) ^ int.from_bytes(_mgf1(digest, len(block)))
    masked &= (1 << (bits - 8 * (_DIGEST_BYTES + 1))) - 1
    return masked.to_bytes(len(block)) + digest + b"\xbc"


def _mgf1(seed: bytes, length: int) -> bytes:
    blocks = range(-(-length // _DIGEST_BYTES))
    return b"".join(hashlib.sha384(seed + block.to_bytes(4)).digest() for block in blocks)[:length]


def _random_unit(n: int, randomness: Randomness) -> int:
    """Uniform among the numbers below n that have an inverse."""
    while (r := int.from_bytes(randomness.take(_size(n)))) >= n or math.gcd(r, n) != 1:
        pass
    return r


def _size(n: int) -> int:
    return (n.bit_length() + 7) // 8
