"""Every mechanism that a client's device runs, as pairs of inputs in a crowd: what ``shuffle_cost`` is asked about.

Outputs are enumerated by class, not one by one: sets by which of the inputs in question they hold, cells by query and
width. The mechanisms are symmetric in their items, so a few pairs stand for all (proofs/shuffle.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, combinations, product
from math import comb
from typing import NamedTuple, Protocol

from searchblend.accounting.shuffle import OutputClass, Pair, ShuffledReports
from searchblend.core.errors import InvalidParameter
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection

SetMechanism = SubsetSelection | PlainSubsetSelection
Input = int | None
"""an item of a mechanism, or ⋆"""
Held = tuple[Input, ...]
"""what a client holds, in each part of the coin"""


class _Outputs(NamedTuple):
    """Outputs that every input in question sends alike: how likely they are for each, and what is certain."""

    rows: tuple[Fraction, ...]
    floor: Fraction


# --- sets ------------------------------------------------------------------------------------------------------------


def shuffled_sets(parts: Sequence[tuple[Fraction, SetMechanism]], *, records_per_client: int = 1) -> ShuffledReports:
    """Reports of subset selection; ``parts`` are the mechanisms, each with its chance under the public coin.

    With two parts, about queries and about cells, two clients may differ in both, or in their cells alone.
    """
    if sum(weight for weight, _ in parts) != 1:
        raise InvalidParameter("parts", "expected chances that sum to 1")
    fewest = min(mechanism.n_items for _, mechanism in parts)
    everywhere: list[Held] = [(item,) * len(parts) for item in (*range(min(fewest, 3)), None)]
    first, star = everywhere[0], everywhere[-1]
    pairs = [(first, star), (star, first), *([(first, everywhere[1])] if fewest > 1 else [])]
    concrete = [_pair_of_sets(parts, (*pair, third)) for pair in pairs for third in _thirds(everywhere, pair)]
    if len(parts) > 1:
        pairs.append((first, (*first[1:], 1)))
    return ShuffledReports(tuple(_pair_of_sets(parts, pair) for pair in pairs), tuple(concrete), records_per_client)


def _thirds(inputs: Sequence[Held], pair: tuple[Held, Held]) -> tuple[Held, ...]:
    """What all others may hold: an input beside the two, or where there is none one of the two."""
    beside = [held for held in inputs if held not in pair]
    return tuple(beside[:1]) or pair


def _pair_of_sets(parts: Sequence[tuple[Fraction, SetMechanism]], inputs: Sequence[Held]) -> Pair:
    """Two inputs among others who send the blanket, or with a third one: who all hold that."""
    return _as_pair(
        _Outputs(tuple(weight * value for value in outputs.rows), weight * outputs.floor)
        for part, (weight, mechanism) in enumerate(parts)
        for outputs in _set_outputs(mechanism, [held[part] for held in inputs])
    )


def _set_outputs(mechanism: SetMechanism, held: Sequence[Input]) -> Iterator[_Outputs]:
    """Sets by which of the held items are in them, and the sink."""
    if isinstance(mechanism, PlainSubsetSelection):
        held = [mechanism.n_items if item is None else item for item in held]
        named, other = mechanism.law()
        laws = [(named, other)] * len(held)
        n_items, floor = mechanism.n_items + 1, min(named, other)
    else:
        rows = [mechanism.law(item) for item in held]
        laws = [(named, other) for _, named, other in rows]
        n_items, floor = mechanism.n_items, _least_of_a_set(mechanism)
        sinks = (mechanism.law(0)[0], mechanism.law(None)[0])
        yield _Outputs(tuple(sink for sink, _, _ in rows), min(sinks))
    items = sorted({item for item in held if item is not None})
    for size in range(len(items) + 1):
        left = mechanism.subset_size - size
        count = comb(n_items - len(items), left) if left >= 0 else 0
        for inside in combinations(items, size) if count else ():
            law = (named if item in inside else other for item, (named, other) in zip(held, laws, strict=True))
            yield _Outputs(tuple(count * value for value in law), count * floor)


def _least_of_a_set(mechanism: SubsetSelection) -> Fraction:
    """The least probability with which any client sends a given set."""
    _, named, other = mechanism.law(0)
    any_set = mechanism.law(None)[1]
    return min(named, any_set, other) if mechanism.subset_size < mechanism.n_items else min(named, any_set)


# --- cells in two stages ---------------------------------------------------------------------------------------------


class TwoStageChannel(Protocol):
    """What is needed of ``ReportProbabilities``."""

    @property
    def n_urls(self) -> tuple[int, ...]: ...

    def channel_row(self, query: int, url: int) -> list[Fraction]: ...


def shuffled_cells(channel: TwoStageChannel, *, records_per_client: int = 1) -> ShuffledReports:
    """Reports of one cell in two stages ([BLJ] Fig. 6, or calibrated exactly); a list of queries alone is k-ary."""
    widths, stages = Counter(channel.n_urls), _stages(channel)
    pairs = [
        (_Cell(0, one, 0), _Cell(1, other, 0))
        for one, other in product(widths, repeat=2)
        if one != other or widths[one] > 1
    ]
    pairs += [(_Cell(0, width, 0), _Cell(0, width, 1)) for width in widths if width > 1]
    return ShuffledReports(
        tuple(_pair_of_cells(stages, widths, pair) for pair in pairs),
        tuple(_pair_of_cells(stages, widths, (*pair, third)) for pair in pairs for third in _beside(pair, widths)),
        records_per_client,
    )


class _Cell(NamedTuple):
    """A cell that a client holds: which of the queries in question, how many URLs that has, which URL."""

    query: int
    width: int
    url: int


def _beside(pair: tuple[_Cell, _Cell], widths: Counter[int]) -> tuple[_Cell, ...]:
    """What all others may hold: a cell of another query, or where there is none one of the two."""
    left = widths - Counter({cell.query: cell.width for cell in pair}.values())
    return (_Cell(2, next(iter(left)), 0),) if left else pair


class _Stage(NamedTuple):
    """One cell of a query, by who sends it."""

    truth: Fraction
    lie: Fraction
    """a holder of another URL of the query"""
    other: Fraction
    """a holder of another query"""

    def floor(self, width: int) -> Fraction:
        return min(self.truth, self.lie, self.other) if width > 1 else min(self.truth, self.other)


def _stages(channel: TwoStageChannel) -> dict[int, _Stage]:
    """By width of a query; queries of one width are alike."""
    starts = [0, *accumulate(channel.n_urls)]
    stages: dict[int, _Stage] = {}
    for query, width in enumerate(channel.n_urls):
        if width not in stages:
            row, away = channel.channel_row(query, 0), channel.channel_row((query + 1) % len(channel.n_urls), 0)
            lie = row[starts[query] + 1] if width > 1 else Fraction(0)
            other = away[starts[query]] if len(channel.n_urls) > 1 else row[starts[query]]
            stages[width] = _Stage(row[starts[query]], lie, other)
    return stages


def _pair_of_cells(stages: dict[int, _Stage], widths: Counter[int], inputs: Sequence[_Cell]) -> Pair:
    """Two inputs among others who send the blanket, or with a third one: who all hold that."""
    queries = {cell.query: cell.width for cell in inputs}
    outputs: list[_Outputs] = []
    for query, width in queries.items():
        urls = sorted({cell.url for cell in inputs if cell.query == query})
        cells = [(1, url) for url in urls] + [(width - len(urls), -1)]
        outputs += [
            _cells(stages[width], width, count, [_sent(stages[width], query, url, cell) for cell in inputs])
            for count, url in cells
        ]
    for width, left in (widths - Counter(queries.values())).items():
        stage = stages[width]
        outputs.append(_cells(stage, width, width * left, [stage.other] * len(inputs)))
    return _as_pair(outputs)


def _sent(stage: _Stage, query: int, url: int, held: _Cell) -> Fraction:
    """How likely one cell is sent by the holder of another or of the same."""
    if held.query != query:
        return stage.other
    return stage.truth if held.url == url else stage.lie


def _cells(stage: _Stage, width: int, count: int, rows: Sequence[Fraction]) -> _Outputs:
    return _Outputs(tuple(count * value for value in rows), count * stage.floor(width))


# --- both ------------------------------------------------------------------------------------------------------------


def _as_pair(outputs: Iterable[_Outputs]) -> Pair:
    """Classes for ``shuffle_cost``: the third row, where there is one, is what all the others hold."""
    pair = (OutputClass(rows[0], rows[1], rows[2] if len(rows) > 2 else floor) for rows, floor in outputs)
    return tuple(one for one in pair if one.upper or one.lower)
