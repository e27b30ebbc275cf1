"""Structured logs of an allow-list of fields: what is not on it cannot be written, whoever tries.

Never a query, a URL, an address, a header, a body or a credential. Texts are short names made of a few safe characters;
errors are logged by their class and place, not by their words.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
import traceback
from typing import Final, TextIO

FIELDS: Final = frozenset(
    {
        "task",
        "round",
        "state",
        "job",
        "attempt",
        "role",
        "status",
        "problem",
        "route",
        "method",
        "seconds",
        "count",
        "error",
        "place",
        "version",
        "port",
        "health_port",
        "connections",
        "database",
        "key_id",
        "moved",
    }
)
_SAFE: Final = re.compile(r"[A-Za-z0-9_.:{}/ -]{0,80}")
_TASK: Final = re.compile("[0-9a-f]{32}")


class Logbook:
    """Lines of JSON on a stream."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._lock = threading.Lock()

    def write(self, event: str, **fields: str | float | int | None) -> None:
        """One line. An unknown field or an unsafe text is a mistake of ours and is replaced, not passed on."""
        line: dict[str, str | float] = {"time": round(time.time(), 3), "event": event}
        for name, value in fields.items():
            if name in FIELDS and value is not None:
                line[name] = value if not isinstance(value, str) or _SAFE.fullmatch(value) else "(withheld)"
        if "task" in line and not _TASK.fullmatch(str(line["task"])):
            line["task"] = "(withheld)"
        with self._lock:
            print(json.dumps(line), file=self._stream, flush=True)

    def failure(self, event: str, error: BaseException, **fields: str | float | int | None) -> None:
        """An error by its class and where it came from; its message may hold somebody's data."""
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else "unknown"
        self.write(event, error=type(error).__name__, place=place, **fields)
