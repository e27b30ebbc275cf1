"""Sensitivity fuzz: random logs, one user changed, and every contribution policy asked what it counts.

The noise is made for a bound on what one user can move. Nothing here is random in its verdict: one log that breaks a
bound refutes it. The logs are made from the operating system's bits, few names and many repeats, so that caps are hit.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from searchblend.blender.best.subset_report import ReportDesign, subset_report
from searchblend.blender.groups import InMemoryGroup, UserGroup, Weights
from searchblend.blender.paper.local_report import local_report
from searchblend.clickgraph.release.click_log import AttributedLog, Cap, ClickLog, InMemoryClickLog, Search
from searchblend.core.attributes import OF_CLICKS, Attribute
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness, Tape, uniform_below
from searchblend.core.records import HeadList, Record
from searchblend.logs.read import read_log
from searchblend.mechanisms.tally import Ints, Tally
from searchblend.wire.report import ReportShape, cells_as_parts, encode_report
from searchblend_lab.evidence.evidence import ADD_REMOVE, REPLACE_ONE, Effort, Finding, judged

Person = list[Search]
Counts = Mapping[Any, int]
_QUERIES: Final = ("a", "b", "c", "d", "e")
_URLS: Final = ("u", "v", "w")
_KEY: Final = bytes(range(16))
_SOURCE: Final = SystemRandomness()
_WEIGHTS: Final = Weights(3, 60)
ATTRIBUTES: Final = (
    Attribute("country", ("de", "fr")),
    Attribute("device", ("phone",)),
    Attribute("rank", ("1", "2-3"), OF_CLICKS),
)
_WORLDS: Final = 30
_LOGS: Final = 400


@dataclass
class Bound:
    """What one user may move: single counts, their sum, and the root of the sum of their squares."""

    each: float
    total: float
    norm: float = math.inf
    seen: list[tuple[float, float, float]] = field(default_factory=list)

    def add(self, one: Counts, other: Counts) -> None:
        moved = [one.get(key, 0) - other.get(key, 0) for key in {*one, *other}]
        largest, total = max(map(abs, moved), default=0), sum(map(abs, moved))
        self.seen.append((float(largest), float(total), math.sqrt(sum(x * x for x in moved))))

    @property
    def worst(self) -> tuple[float, float, float]:
        return tuple(max(column) for column in zip(*self.seen, strict=True))

    def finding(self, subject: str, neighbours: str) -> Finding:
        each, total, norm = self.worst
        holds = each <= self.each and total <= self.total and norm <= self.norm * (1 + 1e-12)
        limits = f"{self.each:g}, {self.total:g}" + (f", {self.norm:.4g}" if self.norm < math.inf else "")
        detail = (
            f"{neighbours}, {len(self.seen)} logs: one count moved by {each:g}, all by {total:g}, norm {norm:.4g}; "
            f"bounds {limits}"
        )
        return Finding(subject, judged(holds=holds, has_power=total > 0), detail, trials=len(self.seen))


# --- people ----------------------------------------------------------------------------------------------------------


def _person() -> Person:
    """Up to twelve searches, often repeated, some at the same time, some with several clicks."""
    return [
        _search(_one_of(_QUERIES), float(600 * _below(20)), *(_one_of(_URLS) for _ in range(_below(3))))
        for _ in range(1 + _below(12))
    ]


def _search(query: str, time: float, *clicks: str) -> Search:
    fields = {"country": _one_of(("de", "FR", "at")), "device": _one_of(("phone", "tv"))}
    return Search(query, time, clicks, fields, tuple({**fields, "rank": str(n)} for n in range(1, len(clicks) + 1)))


def _busy_person() -> Person:
    """Someone with searches, clicks and reformulations for every policy to count."""
    return [_search("a", 0.0, "u", "v"), _search("b", 60.0, "u"), _search("c", 120.0, "v"), *_person()]


def _below(n: int) -> int:
    return uniform_below(n, _SOURCE)


def _one_of(names: Sequence[str]) -> str:
    return names[_below(len(names))]


def _log() -> list[Person]:
    """A few people; the last one is busy."""
    return [*(_person() for _ in range(1 + _below(6))), _busy_person()]


def _worlds(effort: Effort) -> int:
    """How many logs DuckDB reads, which takes longest."""
    return min(effort.runs // 20 + 8, max(effort.runs // 4, 1), _WORLDS)


def counted(tally: Tally) -> dict[Any, int]:
    return {record: n for n, records in tally.at_least(1).items() for record in records}


# --- hybrid runs -----------------------------------------------------------------------------------------------------


def groups(effort: Effort) -> list[Finding]:
    """One user's records are replaced: of a group in memory, and of a log that DuckDB reads with the same key."""
    return [
        *_group_findings("in memory", _memory_groups(min(effort.runs, _LOGS))),
        *_group_findings("DuckDB", _duckdb_groups(_worlds(effort))),
    ]


def _group_findings(engine: str, pairs: Iterator[tuple[UserGroup, UserGroup]]) -> list[Finding]:
    head = HeadList({"a": ["u"], "b": []})
    one, weights, shares, cells = Bound(1, 2), *(Bound(60, math.inf, 60 * math.sqrt(2)) for _ in range(2)), Bound(1, 2)
    for group, neighbour in pairs:
        one.add(*(counted(g.tally()) for g in (group, neighbour)))
        weights.add(*(counted(g.weighted_queries(_WEIGHTS, randomness=_zeros())) for g in (group, neighbour)))
        shares.add(*(_shares(g, head) for g in (group, neighbour)))
        cells.add(*(dict(enumerate(g.cell_counts(head).tolist())) for g in (group, neighbour)))
    return [
        one.finding(f"one record per user ({engine})", REPLACE_ONE),
        weights.finding(f"weights of norm 60 over 3 queries per user ({engine})", REPLACE_ONE),
        shares.finding(f"60 units of own shares per user ({engine})", REPLACE_ONE),
        cells.finding(f"cells of a head list ({engine})", REPLACE_ONE),
    ]


def _shares(group: UserGroup, head: HeadList) -> Counts:
    """Own shares of the listed cells, which have the whole noise; the others' is √2 times as large."""
    return dict(enumerate(group.own_shares(head, 60, randomness=_zeros()).cells[:-1].tolist()))


def _zeros() -> Tape:
    """The same choices for everyone but the changed user, who comes last."""
    return Tape(bytes(1 << 16))


def _records(person: Person) -> list[Record]:
    return [Record(search.query, url) for search in person for url in search.clicks or ("none",)]


def _two(number: int) -> tuple[Person, Person]:
    """Who is replaced and by whom. The first two differ in everything that is counted, so that something moves."""
    return (_person(), _person()) if number else ([Search("a", 0.0, ("u",))], [Search("b", 0.0)])


def _memory_groups(n: int) -> Iterator[tuple[UserGroup, UserGroup]]:
    for number in range(n):
        others = [_records(person) for person in _log()]
        yield tuple(  # type: ignore[misc]
            InMemoryGroup.from_users([*others, _records(person)], randomness=_zeros()) for person in _two(number)
        )


def _duckdb_groups(n: int) -> Iterator[tuple[UserGroup, UserGroup]]:
    with tempfile.TemporaryDirectory(prefix="searchblend-audit-") as folder:
        for number in range(n):
            others = _log()
            paths = [Path(folder, f"{number}-{side}.tsv") for side in range(2)]
            for path, person in zip(paths, _two(number), strict=True):
                _write(path, [*others, person], opt_in=True)
            options = {"key": _KEY, "rows": True, "optin_column": "agrees"}
            with read_log(paths[0], **options) as one, read_log(paths[1], **options) as other:  # type: ignore[arg-type]
                yield one.split()[0], other.split()[0]


def _write(path: Path, people: Sequence[Person], *, opt_in: bool = False) -> None:
    """A log with a line for each click, in columns that the reader knows."""
    names = ["user", "query", "url", "time", "rank", "country", "device"]
    lines = ["\t".join([*names, *(["agrees"] if opt_in else [])])]
    for user, person in enumerate(people):
        for search in person:
            for rank, url in enumerate(search.clicks or (("none",) if opt_in else ("",)), start=1):
                fields = [f"p{user}", search.query, url and f"{url}.example", f"{search.time:.0f}", str(rank)]
                fields += [search.fields.get(name, "") for name in ("country", "device")]
                lines.append("\t".join([*fields, *(["yes"] if opt_in else [])]))
    path.write_text("\n".join(lines) + "\n")


# --- click graphs ----------------------------------------------------------------------------------------------------


def activity(effort: Effort) -> list[Finding]:
    """One user with all their searches is removed: from people in memory, and from a log that DuckDB reads."""
    return [
        *_activity_findings("in memory", _memory_logs(min(effort.runs, _LOGS))),
        *_activity_findings("DuckDB", _duckdb_logs(_worlds(effort))),
    ]


def _activity_findings(engine: str, pairs: Iterator[tuple[ClickLog, ClickLog]]) -> list[Finding]:
    bounds = {name: bound() for name, (bound, _) in _POLICIES.items()}
    for log, neighbour in pairs:
        for name, (_, ask) in _POLICIES.items():
            bounds[name].add(ask(log), ask(neighbour))
    return [bound.finding(f"{name} ({engine})", ADD_REMOVE) for name, bound in bounds.items()]


def _clicks(log: ClickLog, cap: Cap) -> Counts:
    return counted(log.clicks(_QUERIES[:3], cap, within=Cap(2)))


_PAIRS: Final = [Record(q, u) for q in _QUERIES[:3] for u in ("u", "v", "u.example", "v.example")]
_POLICIES: Final[Mapping[str, tuple[Callable[[], Bound], Callable[[ClickLog], Counts]]]] = {
    "searches, 2 different ones": (
        lambda: Bound(1, 2, math.sqrt(2)),
        lambda log: counted(log.searches(Cap(2))),
    ),
    "searches, the first 3": (lambda: Bound(3, 3), lambda log: counted(log.searches(Cap(3, distinct=False)))),
    "weighted searches": (
        lambda: Bound(100, math.inf, 100),
        lambda log: counted(log.weighted_searches(3, 100, ["e"])),
    ),
    "weights of queries in the running": (
        lambda: Bound(100, math.inf, 100),
        lambda log: dict(log.weighted_searches_of(_QUERIES[:4], 3, 100)),
    ),
    "counts of published queries": (
        lambda: Bound(1, 2, math.sqrt(2)),
        lambda log: dict(log.searches_of(_QUERIES[:4], Cap(2))),
    ),
    "clicks, 2 different ones": (lambda: Bound(1, 2, math.sqrt(2)), lambda log: _clicks(log, Cap(2))),
    "clicks, the first 2": (lambda: Bound(2, 2), lambda log: _clicks(log, Cap(2, distinct=False))),
    "clicks on public pairs": (
        lambda: Bound(1, 2, math.sqrt(2)),
        lambda log: dict(log.clicks_of(_PAIRS, Cap(2), within=Cap(3))),
    ),
    "searches by country and device": (
        lambda: Bound(1, 2, math.sqrt(2)),
        lambda log: _cells(_attributed(log).searches_by(_QUERIES[:4], ATTRIBUTES[:2], Cap(2))),
    ),
    "searches by country, the first 2": (
        lambda: Bound(2, 2),
        lambda log: _cells(_attributed(log).searches_by(_QUERIES[:4], ATTRIBUTES[:1], Cap(2, distinct=False))),
    ),
    "people by country and device": (
        lambda: Bound(1, 1, 1),
        lambda log: _cells(_attributed(log).searches_by(None, ATTRIBUTES[:2], Cap(1))),
    ),
    "clicks by country and rank": (
        lambda: Bound(1, 2, math.sqrt(2)),
        lambda log: _cells(_attributed(log).clicks_by(_PAIRS, ATTRIBUTES[::2], Cap(2), within=Cap(3))),
    ),
    "typed reformulations": (
        lambda: Bound(1, 1, 1),
        lambda log: counted(log.reformulations(_QUERIES, Cap(1))),
    ),
}


def _attributed(log: ClickLog) -> AttributedLog:
    assert isinstance(log, AttributedLog)
    return log


def _cells(counts: Ints) -> Counts:
    return dict(enumerate(counts.ravel().tolist()))


def _memory_logs(n: int) -> Iterator[tuple[ClickLog, ClickLog]]:
    for _ in range(n):
        people = _log()
        yield InMemoryClickLog(people), InMemoryClickLog(people[:-1])


def _duckdb_logs(n: int) -> Iterator[tuple[ClickLog, ClickLog]]:
    with tempfile.TemporaryDirectory(prefix="searchblend-audit-") as folder:
        for number in range(n):
            people = _log()
            paths = [Path(folder, f"{number}-{side}.tsv") for side in range(2)]
            _write(paths[0], people)
            _write(paths[1], people[:-1])
            one, other = (read_log(path, key=_KEY, draws=0, attributes=ATTRIBUTES) for path in paths)
            with one, other:
                yield one.activity(), other.activity()


# --- devices ---------------------------------------------------------------------------------------------------------


def reports(effort: Effort) -> list[Finding]:
    """A report has one size: m_C cells, and as many bytes, whatever a device holds."""
    head, findings = HeadList({"a": ["u", "v"], "b": ["u"]}), []
    params = BlenderParams(Budget(4.0, 1e-5), records_per_client=3)
    task = bytes(16)
    for name, design in (("paper", None), ("best", ReportDesign(10, 1, 2))):
        shape = ReportShape.of(task, 1, head, params, design)
        sizes = set()
        for _ in range(min(effort.runs, 200)):
            held = _records(_person())
            parts = (
                subset_report(held, head, design, params)
                if design
                else cells_as_parts(local_report(held, head, params))
            )
            sizes.add((len(parts), len(encode_report(parts, shape))))
        detail = f"parts and bytes of the reports of {min(effort.runs, 200)} devices: {sorted(sizes)}"
        findings.append(Finding(f"size of a report ({name})", judged(holds=len(sizes) == 1), detail))
    return findings


def split(effort: Effort) -> list[Finding]:
    """S and T are disjoint: the counts of both parts add up to those of the whole group."""
    wrong = 0
    for _ in range(effort.runs):
        group = InMemoryGroup.from_users([_records(person) for person in _log()])
        parts = group.split(0.5)
        together = np.sort(np.concatenate([part.drawn for part in parts]))
        wrong += not np.array_equal(together, np.sort(group.drawn))
    detail = f"{effort.runs} groups; the two parts hold each user once"
    return [Finding("split of the opt-in users", judged(holds=not wrong), detail, trials=effort.runs)]
