"""A synthetic log as a file, and the document beside it that says what it is not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.clickgraph.use.synthesize import NOTHING, WHAT_IT_IS_NOT, SyntheticLog
from searchblend.core.documents import JsonObject
from searchblend.core.errors import RunError
from searchblend.wire.release import STATEMENT

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


def write_synthetic_log(
    file: BinaryIO, graph: ClickGraph, log: SyntheticLog, *, users: int, release: Path
) -> JsonObject:
    """Write the log, and give what it is, what it is not, and which release it was drawn from.

    A release's own notice goes with it; ``release`` is its folder.
    """
    digest, statement = hashlib.sha256(), (release / STATEMENT).read_bytes()
    for piece in encode_synthetic_log(graph, log):
        digest.update(piece)
        file.write(piece)
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
        "sha256": digest.hexdigest(),
        "drawn_from": {
            "statement_sha256": hashlib.sha256(statement).hexdigest(),
            "release": json.loads(statement)["release"],
        },
    }
