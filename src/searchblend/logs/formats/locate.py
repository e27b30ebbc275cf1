"""Where the malformed lines are: the first few of each kind, by reading the text again.

The pass over the text counts them without knowing line numbers. So when there are some, the files are read
again, until the first few of each kind are found. Lines that are good at a glance are passed over by the million.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.logs.formats.gate import SEPARATOR, Gate
from searchblend.logs.formats.judge import MAX_LENGTH, judge_for
from searchblend.logs.formats.layout import Columns, Delimited, Source, TextLayout
from searchblend.logs.summary import BAD_OPTIN, FIRST_PLACES, Malformed, Place

Bytes = NDArray[np.uint8]
Positions = NDArray[np.intp]

_LINE_FEED: Final = 10
_SPACE: Final = 32
_RARE: Final = np.array([byte not in b"\t\n" and (byte < 32 or byte > 126 or byte in b"[]\\") for byte in range(256)])


def locate(sources: Sequence[Source], counts: Mapping[str, int], *, host_only: bool) -> dict[str, Malformed]:
    """The first places of each problem that was counted."""
    located = {problem: Malformed(count) for problem, count in counts.items()}
    left = {problem: min(count, FIRST_PLACES) for problem, count in counts.items()}
    for layout, paths in sources:
        if isinstance(layout, Columns):  # its rows are found by the engine
            continue
        for path in paths:
            judge = judge_for(layout, host_only=host_only)
            judge_all = host_only or bool(left.get(BAD_OPTIN))
            for line, content in _doubtful_lines(path, layout, judge_all=judge_all):
                problem = judge(content)
                if problem is not None and left.get(problem):
                    located[problem].first.append(Place(str(path), line))
                    left[problem] -= 1
                    if not any(left.values()):
                        return located
    return located


def _doubtful_lines(path: Path, layout: TextLayout, *, judge_all: bool) -> Iterator[tuple[int, str]]:
    """Lines that may be malformed, with their numbers; all that are malformed are among them."""
    gate = Gate(path, layout.rules)
    header = layout.rules.header
    for numbers, block in gate.numbered_blocks():
        text = np.frombuffer(block, dtype=np.uint8)
        ends = np.flatnonzero(text == _LINE_FEED)
        starts = np.concatenate(([0], ends[:-1] + 1))
        doubtful = ends > starts
        if header:
            doubtful[np.argmax(doubtful)] = False
            header = False
        if isinstance(layout, Delimited) and not judge_all:
            doubtful &= _not_good_at_a_glance(layout, text, ends)
        for i in np.flatnonzero(doubtful).tolist():
            yield numbers + i if isinstance(numbers, int) else numbers[i], block[starts[i] : ends[i]].decode()


def _not_good_at_a_glance(layout: Delimited, text: Bytes, ends: Positions) -> NDArray[np.bool_]:
    """Which lines have a wrong number of fields, a field that begins with a blank, or any unusual byte."""
    delimiter = SEPARATOR if layout.quotes else layout.delimiter
    marks = np.flatnonzero((text == _LINE_FEED) | (text == ord(delimiter)))
    line_ends = np.searchsorted(marks, ends)
    doubtful: NDArray[np.bool_] = np.diff(line_ends, prepend=-1) != layout.n_fields
    rare = np.flatnonzero(_RARE[text] & (text != ord(delimiter)))
    doubtful[np.searchsorted(ends, rare)] = True
    regular = np.flatnonzero(~doubtful)
    for role in ("user", "query", "url"):
        if role in layout.positions:
            mark = line_ends[regular] - (layout.n_fields - 1 - layout.positions[role])
            start, end = np.where(mark > 0, marks[mark - 1] + 1, 0), marks[mark]
            check = _unlike_a_url if role == "url" else _unlike_a_string
            doubtful[regular[check(layout, text, start, end)]] = True
    return doubtful


def _unlike_a_string(layout: Delimited, text: Bytes, start: Positions, end: Positions) -> NDArray[np.bool_]:
    length = end - start
    suspect = -1 if layout.no_query is None else len(layout.no_query)
    odd: NDArray[np.bool_] = (length == 0) | (length > MAX_LENGTH) | (text[start] <= _SPACE) | (length == suspect)
    return odd


def _unlike_a_url(layout: Delimited, text: Bytes, start: Positions, end: Positions) -> NDArray[np.bool_]:
    """A blank in it, or a second colon (a port)."""
    blanks, colons = np.flatnonzero(text == _SPACE), np.flatnonzero(text == ord(":"))
    n_blanks = np.searchsorted(blanks, end) - np.searchsorted(blanks, start)
    n_colons = np.searchsorted(colons, end) - np.searchsorted(colons, start)
    odd: NDArray[np.bool_] = (n_blanks > 0) | (n_colons > 1) | (end - start > MAX_LENGTH)
    return odd
