"""The exact law of what the JavaScript core draws, in fractions: every word that decides, every choice of one of n.

As for Python (searchblend_lab.evidence.laws) the code is driven: a decision word is given at both ends
of each interval between thresholds, and "one of n" is tried with each of its n results. The thresholds are
JavaScript's own. Every check raises ``AssertionError``.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from typing import Any

from node_twin import Twin

from searchblend.blender.best.subset_report import (
    GAMMA_STEPS,
    PLAIN_SETS,
    SINK_SETS,
    TWO_STAGE,
    ReportDesign,
    SubsetReport,
    subset_report,
)
from searchblend.blender.paper.local_report import local_report
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import HALF, Tape, TapeExhausted, accept_below
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.subset_selection import WORDS, PlainSubsetSelection, SubsetSelection
from searchblend.wire.report import cells_as_parts
from searchblend_lab.evidence.laws.best_reports import Row, check_rows, intervals, neighbouring_devices, row_of_law
from searchblend_lab.evidence.laws.channel import (
    SMALL_CASES,
    Channel,
    ChannelCase,
    channel_of,
    check_channel,
    check_channel_is_figure_6,
)

SHAPES = [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 2), (5, 3)]
SET_EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(4)]
HEAD = HeadList({"a": ["1", "2", "3"], "b": [], "c": ["1"]})
PARAMS = BlenderParams(Budget(1.0, 1e-3))
"""of the reports that are really drawn"""
LISTS = [HEAD, HeadList({"a": ["1"], "b": ["1", "2"]}), HeadList({"a": [], "b": [], "c": []})]
DESIGNS = [
    *(ReportDesign(10, 1, 2), ReportDesign(3, 2, 1), ReportDesign(20, 1, 1), ReportDesign(0, 1, 2, SINK_SETS)),
    *(ReportDesign(6, 1, 2, PLAIN_SETS), ReportDesign(20, 2, 1, PLAIN_SETS), ReportDesign(0, 1, 1, TWO_STAGE)),
]
SEVERAL = [Record("a", "1"), Record("a", "9"), Record("x", "1")]


def words(*values: int) -> str:
    return b"".join(value.to_bytes(8, "little") for value in values).hex()


def params_list(params: BlenderParams) -> list[Any]:
    return [params.budget.epsilon, params.budget.delta, params.query_budget_fraction, params.records_per_client]


def pairs(records: Iterable[Record]) -> list[list[str | None]]:
    return [[part if isinstance(part, str) else None for part in record] for record in records]


# --- single draws ----------------------------------------------------------------------------------------------------


def check_uniform(twin: Twin) -> None:
    """One of n: residues of what is accepted, another word instead of what is not; the high half is not looked at."""
    sizes = [2, 3, 5, 7, 10, 1000, 2**31, 2**31 + 1, 2**32 - 1]
    asked, expected = [], []
    for n in sizes:
        last = accept_below(n) - 1
        halves = sorted({0, 1, n - 1, min(n, last), last})
        tapes = [words(half) for half in halves] + [words(half + 5 * HALF) for half in halves]
        found: list[Any] = [[half % n, 0] for half in halves] * 2
        for rejected in {last + 1, HALF - 1} - {HALF, last}:
            tapes.append(words(rejected, rejected, 1))
            found.append([1 % n, 0])
        asked.append({"do": "uniform", "below": n, "tapes": tapes})
        expected.append(found)
    asked.append({"do": "uniform", "below": 1, "tapes": [""]})
    assert twin.ask(asked) == [*expected, [[0, 0]]]


# --- two stages ------------------------------------------------------------------------------------------------------


def two_stage_thresholds(twin: Twin, cases: Sequence[ChannelCase], *, exact: bool) -> list[ReportProbabilities]:
    answers = twin.ask(
        {"do": "thresholds", "queries": case.head.as_json(), "params": params_list(case.params), "exact": exact}
        for case in cases
    )
    found = [[int(below) for below in answer] for answer in answers]
    return [
        ReportProbabilities(below[0], tuple(below[1:]), case.head.n_urls)
        for below, case in zip(found, cases, strict=True)
    ]


def driven_channels(twin: Twin, all_probabilities: Sequence[ReportProbabilities]) -> Sequence[Channel]:
    """P(reported cell | true cell) of the code ``randomize`` itself, for each set of thresholds."""
    asked, plan = [], []
    for number, probabilities in enumerate(all_probabilities):
        for query, width in enumerate(probabilities.n_urls):
            for url in range(width):
                steps = list(_two_stage_steps(probabilities, query))
                below = [probabilities.keep_query_below, *probabilities.keep_record_below]
                asked.append(
                    {
                        "do": "randomize",
                        "query": query,
                        "url": url,
                        "below": [str(one) for one in below],
                        "n_urls": list(probabilities.n_urls),
                        "tapes": [tape for tape, _, _ in steps],
                    }
                )
                plan.append((number, steps))
    channels: list[list[list[Fraction]]] = [[] for _ in all_probabilities]
    for answer, (number, steps) in zip(twin.ask(asked), plan, strict=True):
        n_urls = all_probabilities[number].n_urls
        row = [Fraction(0)] * sum(n_urls)
        for ((query, url), left), (_, weight, spared) in zip(answer, steps, strict=True):
            assert left == spared, "another number of words was drawn"
            assert 0 <= query < len(n_urls)
            assert 0 <= url < n_urls[query]
            row[sum(n_urls[:query]) + url] += weight
        channels[number].append(row)
    return channels


def _two_stage_steps(probabilities: ReportProbabilities, query: int) -> Iterator[tuple[str, Fraction, int]]:
    """Tapes with their weight and what must be left of them: both ends of each interval, one period of each half."""
    edges = [0, probabilities.keep_record_below[query], probabilities.keep_query_below, WORDS]
    widths = set(probabilities.n_urls)
    period = math.lcm(*widths, *(width - 1 for width in widths if width > 1))
    highs = max(probabilities.n_queries - 1, 1)
    for number, (start, stop) in enumerate(pairwise(edges)):
        if start >= stop:
            continue
        weight = Fraction(stop - start, 2 * WORDS)
        for decision in (start, stop - 1):
            if number == 0:
                yield words(decision), weight, 0
                continue
            for high, low in product(range(highs), range(period)):
                yield words(decision, high * HALF + low), weight / highs / period, 0


def check_two_stage(twin: Twin) -> None:
    """LocalAlg: private, the printed channel, and the code draws what the thresholds say."""
    found = two_stage_thresholds(twin, SMALL_CASES, exact=False)
    for case, probabilities, driven in zip(SMALL_CASES, found, driven_channels(twin, found), strict=True):
        assert driven == channel_of(probabilities)
        epsilon, delta = case.params.per_record
        check_channel(driven, epsilon, delta / 2, pure=case.pure)
        check_channel_is_figure_6(driven, case.head, case.params)
        assert probabilities == ReportProbabilities.of(case.head, case.params)


def check_two_stage_exact(twin: Twin) -> None:
    """The two stages of method best: no column above e^ε, no δ."""
    cases = [case for case in SMALL_CASES if case.query_budget_fraction < 1]
    found = two_stage_thresholds(twin, cases, exact=True)
    for case, probabilities, driven in zip(cases, found, driven_channels(twin, found), strict=True):
        assert driven == channel_of(probabilities)
        check_channel(driven, case.params.per_record[0], Fraction(0), pure=True)
        assert probabilities == ReportProbabilities.exact(case.head, case.params)


# --- sets ------------------------------------------------------------------------------------------------------------


def set_choices(n: int, size: int) -> list[int]:
    """Among how many each draw of a uniform set chooses; where there is no choice nothing is drawn."""
    return [last + 1 for last in range(n - size, n) if last > 0]


def _set_steps(mechanism: SubsetSelection | PlainSubsetSelection, item: int | None) -> Iterator[tuple[str, Fraction]]:
    m, d = mechanism.n_items, mechanism.subset_size
    for start, stop in intervals(mechanism):
        if isinstance(mechanism, PlainSubsetSelection):
            choices = set_choices(m, d - (start == 0))
        elif item is None:
            choices = set_choices(m, d) if start else []
        else:
            choices = set_choices(m - 1, d - 1) if start == 0 else []
            choices = set_choices(m - 1, d) if start == mechanism.sink_below else choices
        results = list(product(*(range(n) for n in choices)))
        weight = Fraction(stop - start, 2 * WORDS * len(results))
        for decision, chosen in product((start, stop - 1), results):
            yield words(decision, *chosen), weight


def check_sets(twin: Twin) -> None:
    """Subset selection with a sink and without: the code's law is the stated one, and every column keeps e^ε."""
    shapes = [(kind, epsilon, m, d) for kind in ("sink", "plain") for epsilon in SET_EPSILONS for m, d in SHAPES]
    questions = [
        {"kind": kind, "epsilon": [str(e.numerator), str(e.denominator)], "n_items": m, "subset_size": d}
        for kind, e, m, d in shapes
    ]
    below = twin.ask({"do": "subset_thresholds", **question} for question in questions)
    mechanisms = [
        (PlainSubsetSelection if kind == "plain" else SubsetSelection)(m, d, *map(int, found))
        for (kind, _, m, d), found in zip(shapes, below, strict=True)
    ]
    plan = [
        (number, item, list(_set_steps(mechanism, item)))
        for number, mechanism in enumerate(mechanisms)
        for item in [*range(mechanism.n_items), None]
    ]
    answers = twin.ask(
        {"do": "subset", "mechanism": questions[number], "item": item, "tapes": [tape for tape, _ in steps]}
        for number, item, steps in plan
    )
    rows: dict[int, list[Row]] = defaultdict(list)
    for (number, item, steps), answer in zip(plan, answers, strict=True):
        row: Row = defaultdict(Fraction)
        for (items, left), (_, weight) in zip(answer, steps, strict=True):
            assert left == 0, "another number of words was drawn"
            row[tuple(items)] += weight
        assert row == {output: p for output, p in row_of_law(mechanisms[number], item).items() if p}
        rows[number].append(row)
    for number, (kind, epsilon, m, d) in enumerate(shapes):
        check_rows(rows[number], epsilon)
        assert mechanisms[number] == (PlainSubsetSelection if kind == "plain" else SubsetSelection).of(epsilon, m, d)


# --- the whole device ------------------------------------------------------------------------------------------------


def device_tapes(head: HeadList, design: ReportDesign | None, params: BlenderParams, records: int) -> list[str]:
    """The words that decide about one part, at both ends of their intervals, with two choices of lies and sets.

    The draw of a record and the coin stand in front where there is a choice.
    """
    draws: list[int | None] = [0, 1, 2] if records > 1 else [None]
    coins: list[int | None] = [None]
    if design and design.query_steps not in (0, GAMMA_STEPS):
        cut = WORDS * design.query_steps // GAMMA_STEPS
        coins = [cut * (design.query_steps - 1) // design.query_steps, cut - 1, cut]
    if design is None or design.mechanism == TWO_STAGE:
        stages = (ReportProbabilities.exact if design else ReportProbabilities.of)(head, params)
        edges = {stages.keep_query_below, *stages.keep_record_below}
    else:
        made = [kind for kind in (design.about_queries(head, params), design.about_cells(head, params)) if kind]
        edges = {edge for kind in made for _, edge in intervals(kind)}
    ends = sorted({edge - by for edge in edges for by in (0, 1) if edge - by < WORDS})
    choices = [(1, 3, 2, 1), (2 * HALF + 1, 2, 5, 4)]
    parts = [
        words(*(w for w in (*part, *more) if w is not None)) for *part, more in product(draws, coins, ends, choices)
    ]
    if params.records_per_client == 1:
        return parts
    return [first + second for first, second in zip(parts, parts[5:] + parts[:5], strict=True)]


@cache
def _device_questions() -> tuple[list[Any], list[Any]]:
    """What is asked, and what Python makes of the same words."""
    asked, expected = [], []
    for head, design, cells in product(LISTS, [None, *DESIGNS], (1, 2)):
        fraction = 0.85 if head.has_urls else 1.0
        params = BlenderParams(Budget(2.0, 1e-3), query_budget_fraction=fraction, records_per_client=cells)
        people = [*(neighbouring_devices(head) if head is HEAD else []), SEVERAL] if cells == 1 else [SEVERAL]
        for records in people:
            outcomes = [
                (tape, outcome)
                for tape in device_tapes(head, design, params, len(records))
                if (outcome := _python_parts(records, head, design, params, tape)) is not None
            ]
            assert len(outcomes) >= 4
            asked.append(
                {
                    "do": "parts",
                    "queries": head.as_json(),
                    "params": params_list(params),
                    "design": list(astuple(design)) if design else None,
                    "records": pairs(records),
                    "tapes": [tape for tape, _ in outcomes],
                }
            )
            expected.append([outcome for _, outcome in outcomes])
    return asked, expected


def check_device(twin: Twin) -> None:
    """Every mechanism over every record that a person can hold: the parts that Python makes of the same words."""
    asked, expected = _device_questions()
    assert twin.ask(asked) == expected


def _python_parts(
    records: Sequence[Record], head: HeadList, design: ReportDesign | None, params: BlenderParams, tape: str
) -> list[Any] | None:
    source = Tape(bytes.fromhex(tape))
    try:
        parts: Sequence[SubsetReport] = (
            subset_report(records, head, design, params, randomness=source)
            if design
            else cells_as_parts(local_report(records, head, params, randomness=source))
        )
    except TapeExhausted:
        return None
    return [[[about, list(items)] for about, items in parts], source.left]


# --- real draws ------------------------------------------------------------------------------------------------------


def law_of(record: Record, design: ReportDesign | None) -> Row:
    """P(part of a report) as Python's channel has it, whatever the mechanism."""
    cell = HEAD.cell_of(record)
    query = HEAD.query_of_cells()[cell]
    if design is None or design.mechanism == TWO_STAGE:
        stages = (ReportProbabilities.exact if design else ReportProbabilities.of)(HEAD, PARAMS)
        row = stages.channel_row(query, cell - HEAD.first_cells()[query])
        return {(False, (said,)): p for said, p in enumerate(row)}
    listed, share = cell < HEAD.n_cells - 1, Fraction(WORDS * design.query_steps // 20, WORDS)
    law: Row = {}
    kinds = (
        (True, share, design.about_queries(HEAD, PARAMS), query),
        (False, 1 - share, design.about_cells(HEAD, PARAMS), cell),
    )
    for about, weight, mechanism, item in kinds:
        if weight and mechanism:
            law |= {(about, said): weight * p for said, p in row_of_law(mechanism, item if listed else None).items()}
    return law


def counted(answer: dict[str, int]) -> Counter[Any]:
    parts = {text: json.loads(text)[0] for text in answer}
    return Counter({(about, tuple(items)): answer[text] for text, (about, items) in parts.items()})


CHECKS = (check_uniform, check_device, check_two_stage, check_two_stage_exact, check_sets)
"""all exact: no sampling, no false alarm"""
