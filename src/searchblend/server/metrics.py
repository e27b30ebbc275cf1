"""Counters for Prometheus. Labels are names from fixed sets: never a query, a URL or anything of a request."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

_LATENCY_BOUNDS: Final = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3, 1.0, 3.0)

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counters, gauges and one histogram, as text."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counters: dict[tuple[str, Labels], float] = defaultdict(float)
        self._gauges: dict[tuple[str, Labels], float] = {}
        self._buckets = [0] * (len(_LATENCY_BOUNDS) + 1)
        self._latency_sum = 0.0

    def count(self, name: str, n: float = 1, **labels: str) -> None:
        with self._lock:
            self._counters[name, tuple(sorted(labels.items()))] += n

    def set(self, name: str, value: float, **labels: str) -> None:
        with self._lock:
            self._gauges[name, tuple(sorted(labels.items()))] = value

    def commit_took(self, seconds: float) -> None:
        with self._lock:
            place = next((i for i, bound in enumerate(_LATENCY_BOUNDS) if seconds <= bound), len(_LATENCY_BOUNDS))
            self._buckets[place] += 1
            self._latency_sum += seconds

    def text(self) -> str:
        """The exposition format."""
        with self._lock:
            lines = [*_family(self._counters.items(), "counter"), *_family(self._gauges.items(), "gauge")]
            lines.append("# TYPE searchblend_commit_seconds histogram")
            total = 0
            for bound, n in zip([*map(str, _LATENCY_BOUNDS), "+Inf"], self._buckets, strict=True):
                total += n
                lines.append(f'searchblend_commit_seconds_bucket{{le="{bound}"}} {total}')
            lines += [f"searchblend_commit_seconds_sum {self._latency_sum:.6f}"]
            lines += [f"searchblend_commit_seconds_count {total}"]
        return "\n".join(lines) + "\n"


def _family(items: Iterable[tuple[tuple[str, Labels], float]], kind: str) -> list[str]:
    lines: list[str] = []
    last = ""
    for (name, labels), value in sorted(items):
        if name != last:
            lines.append(f"# TYPE searchblend_{name} {kind}")
            last = name
        inner = ",".join(f'{label}="{text}"' for label, text in labels)
        lines.append(f"searchblend_{name}{{{inner}}} {value:g}" if inner else f"searchblend_{name} {value:g}")
    return lines
