"""Published rounds over time: lines with bands, what changed, and what is within noise."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from searchblend.core.errors import MessageError
from searchblend.core.visible import visible
from searchblend.pages.charts import COLOURS, Chart, Series
from searchblend.pages.release_pages import release_figures
from searchblend.pages.statement_words import StatementWords
from searchblend.service.console.words import percent
from searchblend.store.artifacts import TrendRow
from searchblend.store.rounds import Round, Task
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import State
from searchblend.wire.release import decode_result, decode_statement

LEVEL: Final = 0.05
_SHOWN_CHANGES: Final = 10
_SHOWN_NOISE: Final = 25
_DEFAULT_LINES: Final = 5
_LISTED: Final = 100


@dataclass(frozen=True)
class Change:
    """A query in two rounds."""

    query: str
    before: float
    after: float
    z: float
    p_value: float
    significant: bool

    @property
    def difference(self) -> float:
        return self.after - self.before


@dataclass(frozen=True)
class Changes:
    """All queries of two rounds, by whether noise explains the difference."""

    before: int
    after: int
    rising: list[Change]
    falling: list[Change]
    within_noise: list[Change]
    n_within_noise: int
    compared: int
    new: list[str]
    gone: list[str]
    of: dict[str, Change]
    """of every compared query"""


@dataclass(frozen=True)
class Latest:
    """The list of the latest round, its most frequent queries."""

    number: int
    rows: list[TrendRow]
    n_rows: int
    most: float
    """the end of the drawn intervals"""
    since: int | None
    """the round that changes are told from, if any"""


@dataclass(frozen=True)
class ReleaseWords:
    """What the latest round promises, in the words of every result page."""

    figures: list[tuple[str, str]]
    method: str
    statement: StatementWords


@dataclass(frozen=True)
class Trends:
    task: Task
    numbers: list[int]
    """of published rounds"""
    shown: list[str]
    known: list[str]
    """all queries of the latest round, best first"""
    chart: Chart | None
    """over rounds, so from the second on"""
    latest: Latest | None
    changes: Changes | None
    files: dict[str, str]
    """of the latest round"""
    published: int | None
    collected: tuple[int, int] | None
    """from when to when people took part in the latest round"""


def read_trends(
    store: ServiceStore, task_name: str, wanted: Sequence[str], between: tuple[int, int] | None = None
) -> Trends:
    """Five statements, however many rounds there are; a year of long lists is never read as a whole.

    Read are the rows of the shown queries in all rounds, and of all queries in the two rounds that are compared.
    """
    task = store.rounds.task(task_name)
    rounds = store.rounds.rounds(task.task, states={State.PUBLISHED})
    keys = {round_.number: round_.key for round_ in rounds}
    pair = _pair(list(keys), between)
    needed = {number: keys[number] for number in (*(pair or ()), *list(keys)[-1:])}
    read = store.artifacts.lists(sorted(set(needed.values())))
    lists = {number: _by_query(read[key]) for number, key in needed.items()}
    latest = list(lists[rounds[-1].number]) if rounds else []
    shown = list(dict.fromkeys(query for query in wanted if query))[:COLOURS] or latest[:_DEFAULT_LINES]
    read = store.artifacts.lines(task.task, shown)
    lines = {number: _by_query(read.get(key, [])) for number, key in keys.items()}
    shown = [query for query in shown if any(query in rows for rows in lines.values())]
    return Trends(
        task=task,
        numbers=list(keys),
        shown=shown,
        known=latest,
        chart=_chart(lines, shown) if len(lines) > 1 else None,
        latest=_latest(rounds[-1].number, list(lists[rounds[-1].number].values()), pair) if rounds else None,
        changes=compare(lists[pair[0]], lists[pair[1]], *pair) if pair else None,
        files=store.artifacts.of_round(rounds[-1].key) if rounds else {},
        published=rounds[-1].changed if rounds else None,
        collected=_collected(rounds[-1]) if rounds else None,
    )


def _collected(round_: Round) -> tuple[int, int] | None:
    """From the opening of the opt-in window to the end of the client window, as manifests have stated them."""
    optin = round_.settings.get("optin_seconds")
    if round_.optin_closes is None or round_.client_closes is None or not isinstance(optin, int):
        return None
    return round_.optin_closes - optin, round_.client_closes


def read_release(store: ServiceStore, view: Trends) -> ReleaseWords | None:
    """What was released last; nothing if its statement is not of the form that we write."""
    contents = [
        store.artifacts.get(view.files[name]) for name in ("result.json", "statement.json") if name in view.files
    ]
    if len(contents) < 2 or contents[0] is None or contents[1] is None:
        return None
    try:
        result, statement = decode_result(contents[0][0]), decode_statement(json.loads(contents[1][0]))
    except (MessageError, KeyError, TypeError, ValueError):
        return None
    words = StatementWords(statement, view.task.name, result.head.digest)
    return ReleaseWords(release_figures(result), result.method, words) if statement.guarantee else None


def _latest(number: int, rows: list[TrendRow], pair: tuple[int, int] | None) -> Latest:
    most = max((row.high or row.probability or 0.0 for row in rows), default=1.0) or 1.0
    return Latest(number, rows[:_LISTED], len(rows), most, pair[0] if pair and pair[1] == number else None)


def _by_query(rows: Sequence[TrendRow]) -> dict[str, TrendRow]:
    return {row.query: row for row in rows if row.query is not None}


def _pair(numbers: list[int], wanted: tuple[int, int] | None) -> tuple[int, int] | None:
    if wanted and wanted[0] in numbers and wanted[1] in numbers and wanted[0] != wanted[1]:
        return min(wanted), max(wanted)
    return (numbers[-2], numbers[-1]) if len(numbers) > 1 else None


def _chart(by_round: dict[int, dict[str, TrendRow]], shown: list[str]) -> Chart:
    def column(query: str, name: str) -> list[float | None]:
        return [getattr(rows[query], name) if query in rows else None for rows in by_round.values()]

    return Chart(
        title="Share of searches by round, with 95 % intervals",
        x_label="round",
        y_label="share of searches",
        xs=[float(number) for number in by_round],
        x_names=[str(number) for number in by_round],
        series=[
            Series(visible(query), column(query, "probability"), column(query, "low"), column(query, "high"))
            for query in shown
        ],
        form=percent,
        unit="percent",
    )


def compare(first: dict[str, TrendRow], second: dict[str, TrendRow], before: int, after: int) -> Changes:
    """Two-sided tests of every query in both lists, corrected for their number by Holm's rule."""
    tested = [_tested(query, first[query], second[query]) for query in second if query in first]
    changes = _holm([entry for entry in tested if entry is not None])
    by_size = sorted(changes, key=lambda entry: -abs(entry.z))
    significant = [entry for entry in by_size if entry.significant]
    noise = [entry for entry in by_size if not entry.significant]
    return Changes(
        before=before,
        after=after,
        rising=[entry for entry in significant if entry.difference > 0][:_SHOWN_CHANGES],
        falling=[entry for entry in significant if entry.difference < 0][:_SHOWN_CHANGES],
        within_noise=noise[:_SHOWN_NOISE],
        n_within_noise=len(noise),
        compared=len(changes),
        new=[query for query in second if query not in first][:_SHOWN_CHANGES],
        gone=[query for query in first if query not in second][:_SHOWN_CHANGES],
        of={entry.query: entry for entry in changes},
    )


def _tested(query: str, first: TrendRow, second: TrendRow) -> Change | None:
    if first.probability is None or second.probability is None or first.variance is None or second.variance is None:
        return None
    variance = first.variance + second.variance
    if variance <= 0:
        return None
    z = (second.probability - first.probability) / math.sqrt(variance)
    return Change(query, first.probability, second.probability, z, math.erfc(abs(z) / math.sqrt(2)), False)


def _holm(changes: list[Change]) -> list[Change]:
    ordered = sorted(changes, key=lambda entry: entry.p_value)
    kept: list[Change] = []
    holds = True
    for place, entry in enumerate(ordered):
        holds = holds and entry.p_value <= LEVEL / (len(ordered) - place)
        kept.append(replace(entry, significant=holds))
    return kept
