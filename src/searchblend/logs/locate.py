"""Where the malformed lines are: the first few of each kind, by a second look at the text.

The pass over the text counts them without knowing line numbers. So when there are some, the files are read
again, line by line, until the first few of each kind are found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from searchblend.logs import normal_forms
from searchblend.logs.gate import SEPARATOR, Gate
from searchblend.logs.layout import Layout, Source
from searchblend.logs.summary import (
    BAD_OPTIN,
    FIRST_PLACES,
    MISSING_USER,
    TOO_FEW_FIELDS,
    TOO_MANY_FIELDS,
    UNUSABLE_QUERY,
    UNUSABLE_URL,
    Malformed,
    Place,
)

_YES_OR_NO = {"1", "true", "t", "yes", "y", "on", "0", "false", "f", "no", "n", "off", ""}


def locate(sources: Sequence[Source], counts: Mapping[str, int], *, host_only: bool) -> dict[str, Malformed]:
    """The first places of each problem that was counted."""
    found = {problem: Malformed(count) for problem, count in counts.items()}
    left = {problem: min(count, FIRST_PLACES) for problem, count in counts.items()}
    for layout, paths in sources:
        for path in paths:
            for line, text in _numbered_lines(path, layout):
                problem = problem_of(layout, text, host_only=host_only)
                if problem is not None and left.get(problem):
                    found[problem].first.append(Place(str(path), line))
                    left[problem] -= 1
                    if not any(left.values()):
                        return found
    return found


def _numbered_lines(path: Path, layout: Layout) -> Iterator[tuple[int, str]]:
    header = layout.header
    for numbers, block in Gate(path, quotes=layout.quotes).numbered_blocks():
        lines = block[:-1].decode().split("\n")
        first = enumerate(lines, numbers) if isinstance(numbers, int) else zip(numbers, lines, strict=True)
        for number, line in first:
            if not line:
                continue
            if header:
                header = False
                continue
            yield number, line


def problem_of(layout: Layout, line: str, *, host_only: bool) -> str | None:
    """What the SQL of the pass finds wrong with a line, said once more in Python."""
    fields = line.split(SEPARATOR if layout.quotes else layout.delimiter)
    if len(fields) > layout.n_fields:
        return TOO_MANY_FIELDS
    if len(fields) < layout.n_fields and len(fields) != layout.may_end_after:
        return TOO_FEW_FIELDS
    user, query, url = (layout.role(fields, role) for role in ("user", "query", "url"))
    if not (user or "").strip(" \t\v\f\r"):
        return MISSING_USER
    if query is None or query == layout.no_query or not normal_forms.query_is_usable(query):
        return UNUSABLE_QUERY
    optin = layout.role(fields, "optin")
    if optin is not None and optin.strip(" ").lower() not in _YES_OR_NO:
        return BAD_OPTIN
    usable = normal_forms.host_is_usable if host_only else normal_forms.url_is_usable
    return UNUSABLE_URL if url and not usable(url) else None
