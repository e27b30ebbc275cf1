"""What a process reports about itself: log lines and counters, each from an allow-list.

Never a query, a URL, an address, a header, a body or a credential. Log fields are short names made of a few safe
characters; errors are logged by their class and place, not by their message. Labels of metrics are from fixed sets.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Mapping
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
PREFIX: Final = "searchblend_"
PLAIN: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
COMMIT_SECONDS: Final = "commit_seconds"
HELP: Final[Mapping[str, tuple[str, str]]] = {
    "requests_total": ("counter", "Requests by route and status."),
    "reports_total": ("counter", "Reports by result: accepted, or why refused."),
    "contributions_total": ("counter", "Sealed records by result."),
    "connections_cut_total": ("counter", "Connections that the server ended, by reason."),
    "jobs_total": ("counter", "Jobs of this process by result."),
    "alerts_total": ("counter", "Alerts of this process by channel and result."),
    "connections": ("gauge", "Open connections of the public address."),
    "reports_waiting": ("gauge", "Reports that wait for a commit."),
    "rounds": ("gauge", "Rounds by state."),
    "shredding_overdue": ("gauge", "Rounds whose raw records or key are past their deadline."),
    "oldest_unfinished_round_seconds": ("gauge", "Time since the round that waits longest has changed its state."),
    "signature_expires_seconds": ("gauge", "Time until the first manifest expires."),
    "round_keys_refused": ("gauge", "Rounds whose public key the curator has not signed."),
    "rounds_waiting_for_issuer": ("gauge", "Reviewed rounds whose issuer of tokens does not answer."),
    "relayed_total": ("counter", "Requests that the relay took, by what became of them."),
    "relay_batches_total": ("counter", "Batches that left the relay."),
    "relay_waiting": ("gauge", "Requests that wait for their batch to leave the relay."),
    "jobs_waiting": ("gauge", "Jobs that are not done."),
    "jobs_stuck": ("gauge", "Jobs that failed more often than is usual."),
    COMMIT_SECONDS: ("histogram", "Time of commits that hold reports."),
}
"""type and description of every metric there is"""
_LATENCY_BOUNDS: Final = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3, 1.0, 3.0)


class Logbook:
    """Lines of JSON on a stream."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._lock = threading.Lock()

    def write(self, event: str, **fields: str | float | int | None) -> None:
        """One line. An unknown field or an unsafe value is a bug: it is left out or replaced."""
        line: dict[str, str | float] = {"time": round(time.time(), 3), "event": event}
        for name, value in fields.items():
            if name in FIELDS and value is not None:
                line[name] = value if not isinstance(value, str) or _SAFE.fullmatch(value) else "(withheld)"
        if "task" in line and not _TASK.fullmatch(str(line["task"])):
            line["task"] = "(withheld)"
        with self._lock:
            print(json.dumps(line), file=self._stream, flush=True)

    def failure(self, event: str, error: BaseException, **fields: str | float | int | None) -> None:
        """An error by its class and where it came from; its message may hold data of a person."""
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else "unknown"
        self.write(event, error=kind_of(error), place=place, **fields)


def kind_of(error: BaseException) -> str:
    """The class of an error; of one that ended a process of ours, the class that it had there."""
    return str(getattr(error, "kind", type(error).__name__))


class ServiceMetrics:
    """Counters, gauges and one histogram for Prometheus. A sample is named with its labels: ``a{b="c"}``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._samples: dict[str, float] = defaultdict(float)
        self._buckets = [0] * (len(_LATENCY_BOUNDS) + 1)
        self._latency_sum = 0.0

    def count(self, name: str, n: float = 1, **labels: str) -> None:
        with self._lock:
            self._samples[_sample(name, labels)] += n

    def set(self, name: str, value: float, **labels: str) -> None:
        with self._lock:
            self._samples[_sample(name, labels)] = value

    def commit_took(self, seconds: float) -> None:
        with self._lock:
            place = next((i for i, bound in enumerate(_LATENCY_BOUNDS) if seconds <= bound), len(_LATENCY_BOUNDS))
            self._buckets[place] += 1
            self._latency_sum += seconds

    def exposition(self, more: Mapping[str, float] | None = None, *, openmetrics: bool = False) -> str:
        """In Prometheus' own format or OpenMetrics; ``more`` are samples that others keep."""
        with self._lock:
            samples = {**self._samples, **(more or {}), **self._histogram()}
        families: dict[str, list[str]] = defaultdict(list)
        for sample, value in samples.items():
            families[_family(sample)].append(f"{PREFIX}{sample} {value:.15g}\n")
        lines: list[str] = []
        for name, rows in sorted(families.items()):
            kind, meaning = HELP[name]
            family = PREFIX + (name.removesuffix("_total") if openmetrics else name)
            lines += [f"# HELP {family} {meaning}\n", f"# TYPE {family} {kind}\n", *rows]
        return "".join(lines) + ("# EOF\n" if openmetrics else "")

    def _histogram(self) -> dict[str, float]:
        samples: dict[str, float] = {}
        total = 0
        for bound, n in zip([*map(str, _LATENCY_BOUNDS), "+Inf"], self._buckets, strict=True):
            total += n
            samples[f'{COMMIT_SECONDS}_bucket{{le="{bound}"}}'] = total
        return {**samples, f"{COMMIT_SECONDS}_sum": self._latency_sum, f"{COMMIT_SECONDS}_count": total}


def _sample(name: str, labels: Mapping[str, str]) -> str:
    if name not in HELP:
        raise KeyError(name)
    inner = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    return f"{name}{{{inner}}}" if inner else name


def _family(sample: str) -> str:
    name = sample.partition("{")[0]
    return COMMIT_SECONDS if name.startswith(COMMIT_SECONDS) else name
