"""Columns of text for many rows at once.

A column is an array of byte strings of fixed width (with a second dimension: several columns in a row), or one byte
string for all rows; or it is a pair of places and such texts, and stays empty in the other rows. Columns are laid side
by side in one buffer and the NULs that fill the widths are dropped in a single pass: several times faster than
joining strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from searchblend.synthetic.laws import Ints

Bytes = NDArray[np.bytes_]
Column = Bytes | bytes | tuple[Ints, Bytes | bytes]

_GROUP: Final = 10_000
_PADDED: Final = np.array([b"%04d" % number for number in range(_GROUP)], dtype="S4")
_PLAIN: Final = np.array([b"%d" % number for number in range(_GROUP)], dtype="S4")
_CLOCK: Final = np.array([b"%02d:%02d:%02d" % (s // 3600, s // 60 % 60, s % 60) for s in range(86_400)], dtype="S8")
_FIRST_DAY: Final = date(2006, 3, 1)
_DATES: Final = np.array([f"{_FIRST_DAY + timedelta(days=day)} ".encode() for day in range(92)], dtype="S11")


def decimals(numbers: Ints) -> Bytes:
    """Numbers >= 0 in decimal digits; NULs stand before the first digit."""
    shape, rest = numbers.shape, numbers.ravel()
    n_groups = max(1, -(-len(str(int(rest.max(initial=0)))) // 4))
    text = np.zeros((len(rest), n_groups), dtype="S4")
    for group in reversed(range(n_groups)):
        above, digits = np.divmod(rest, _GROUP)
        text[:, group] = np.where(above > 0, _PADDED[digits], _PLAIN[digits])
        if group < n_groups - 1:
            text[rest == 0, group] = b""
        rest = above
    return text.view(f"S{4 * n_groups}").reshape(shape)


def timestamps(seconds: Ints) -> Bytes:
    """Seconds since 2006-03-01 as ``YYYY-MM-DD HH:MM:SS``."""
    day, second = np.divmod(seconds, 86_400)
    text = np.zeros(len(seconds), dtype=[("date", "S11"), ("clock", "S8")])
    text["date"], text["clock"] = _DATES[day], _CLOCK[second]
    return text.view("S19")


def rows_text(n_rows: int, columns: Sequence[Column]) -> bytearray:
    """The columns side by side, row after row, without NULs."""
    parts = [column if isinstance(column, tuple) else (slice(None), column) for column in columns]
    layout = np.dtype([(f"column {number}", _width(texts)) for number, (_, texts) in enumerate(parts)])
    buffer = bytearray(n_rows * layout.itemsize)
    rows = np.frombuffer(buffer, dtype=layout)
    for name, (places, texts) in zip(layout.names or (), parts, strict=True):
        rows[name][places] = texts
    return buffer.translate(None, b"\0")


def _width(texts: Bytes | bytes) -> np.dtype[Any]:
    return np.dtype(f"S{len(texts)}") if isinstance(texts, bytes) else np.dtype((texts.dtype, texts.shape[1:]))
