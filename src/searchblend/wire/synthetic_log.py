"""A synthetic log as a file, and the document beside it that says what it is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.clickgraph.use.synthesize import NOTHING, WHAT_IT_IS_NOT, SyntheticLog
from searchblend.core.errors import RunError

COLUMNS: Final = {
    "user": "a made-up user, from 1",
    "query": "a released query",
    "url": "the URL clicked, empty if none",
    "session": "searches of one session follow one another, from 1",
    "reformulated": "1 if the search follows from the one before it in the session, else 0",
}
SYNTHETIC: Final = "SYNTHETIC: drawn at random from a released click graph; nobody searched this"
MANIFEST_SUFFIX: Final = ".manifest.json"
_LINES_AT_ONCE: Final = 1 << 16
_BREAKS: Final = ("\t", "\n", "\r")


def encode_synthetic_log(graph: ClickGraph, log: SyntheticLog) -> Iterator[bytes]:
    """Tab-separated text with a header, in pieces."""
    if any(mark in string for string in (*graph.queries, *graph.urls) for mark in _BREAKS):
        raise RunError("a released text holds a tab or a line break and cannot stand in a tab-separated file")
    urls = {NOTHING: "", **dict(enumerate(graph.urls))}
    yield ("\t".join(COLUMNS) + "\n").encode()
    for start in range(0, len(log), _LINES_AT_ONCE):
        piece = slice(start, start + _LINES_AT_ONCE)
        columns = (log.user, log.query, log.url, log.session, log.reformulated)
        lines = [
            f"{user + 1}\t{graph.queries[query]}\t{urls[url]}\t{session + 1}\t{again:d}\n"
            for user, query, url, session, again in zip(*(column[piece].tolist() for column in columns), strict=True)
        ]
        yield "".join(lines).encode()


def synthetic_manifest(
    graph: ClickGraph, log: SyntheticLog, *, users: int, sha256: str, statement: Mapping[str, Any]
) -> dict[str, Any]:
    """What the log is, what it is not, and which release it was drawn from. A release's own notice goes with it."""
    return {
        "format": "searchblend-synthetic-log",
        "version": 1,
        "notice": SYNTHETIC if graph.notice is None else f"{graph.notice}. {SYNTHETIC}",
        "is_not": list(WHAT_IT_IS_NOT),
        "columns": dict(COLUMNS),
        "searches": len(log),
        "users": users,
        "sessions": len(set(log.session.tolist())),
        "clicks": int((log.url != NOTHING).sum()),
        "reformulations": int(log.reformulated.sum()),
        "sha256": sha256,
        "drawn_from": dict(statement),
    }
