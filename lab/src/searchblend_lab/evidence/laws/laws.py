"""The exact laws in one table: what is checked, what is shipped, and the faults that the check must reject.

``tests/statistical/test_laws.py`` and ``searchblend audit`` both go through it, and ``sampled_laws``. Everything
here is enumerated, in fractions: there is no sampling and no false alarm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Final

from searchblend.blender.best.stability_histogram import CuratorDesign
from searchblend.blender.paper.create_head_list import noisy_selection
from searchblend.blender.paper.local_report import randomize
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.fixed_point import exp_fraction_bounds
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection
from searchblend.mechanisms.threshold import Threshold, noise_for_one_record, printed_threshold
from searchblend_lab.evidence.laws import attribute_counts, best_faults, faults, many_records_faults, shuffled, windows
from searchblend_lab.evidence.laws.best_curator import Curator, check_listing, check_moves, one_record_moves
from searchblend_lab.evidence.laws.best_reports import (
    Report,
    Row,
    check_formula,
    check_law,
    check_ratios,
    check_rows,
    driven_row,
    row_of_law,
)
from searchblend_lab.evidence.laws.channel import (
    SMALL_CASES,
    Channel,
    ChannelCase,
    Randomize,
    channel_of,
    check_channel,
    check_channel_is_figure_6,
    driven_channel,
)
from searchblend_lab.evidence.laws.law import Law
from searchblend_lab.evidence.laws.many_records import check_many_records
from searchblend_lab.evidence.laws.many_records import shipped_curator as shipped_many_records
from searchblend_lab.evidence.laws.selection import Law as NoiseLaw
from searchblend_lab.evidence.laws.selection import Select, check_noisy_counts, check_selection, release_rates
from searchblend_lab.evidence.laws.selection_faults import noise_of_scale

MAX_COUNT: Final = 12
FLOAT_ERROR: Final = Fraction(1, 2**48)
"""What a stated δ may be off by, being a float from a power."""
MakeChannel = Callable[[HeadList, BlenderParams], Channel]
MakeMechanism = Callable[[Fraction, int, int], SubsetSelection]


# --- the printed local report ----------------------------------------------------------------------------------------


def shipped_channel(head: HeadList, params: BlenderParams) -> Channel:
    return channel_of(ReportProbabilities.of(head, params))


def check_case(rows: Channel, case: ChannelCase) -> None:
    """(ε', δ'/2), which is more than [BLJ] Theorem 3.3 promises and what the guarantee of a release states."""
    epsilon, delta = case.params.per_record
    check_channel(rows, epsilon, delta / 2, pure=case.pure)
    check_channel_is_figure_6(rows, case.head, case.params)


def check_channels(make: MakeChannel, cases: Sequence[ChannelCase]) -> None:
    for case in cases:
        check_case(make(case.head, case.params), case)


def check_privacy(make: MakeChannel, cases: Sequence[ChannelCase]) -> None:
    """Privacy alone: a channel that is private and not the printed one passes."""
    for case in cases:
        epsilon, delta = case.params.per_record
        check_channel(make(case.head, case.params), epsilon, delta / 2, pure=True if case.pure else None)


def check_code(run: Randomize, cases: Sequence[ChannelCase]) -> None:
    """``randomize`` at every threshold: the word below it, the word at it, every lie."""
    for case in cases:
        stated = ReportProbabilities.of(case.head, case.params)
        assert driven_channel(stated, run) == channel_of(stated)


# --- the printed head list -------------------------------------------------------------------------------------------


def growth(budget: Budget) -> Fraction:
    return exp_fraction_bounds(Fraction(budget.epsilon))[0]


def rates_of(budget: Budget, select: Select = noisy_selection, noise: DiscreteLaplace | None = None) -> list[Fraction]:
    threshold = printed_threshold(budget)
    law = (noise or threshold.noise).sampled_probabilities()
    return release_rates(select, threshold, law, max(MAX_COUNT, threshold.integer + 3))


def check_stated(rates: Sequence[Fraction], budget: Budget) -> Fraction:
    """Against the δ that the release states (``mechanism_delta``), which is itself within the budget."""
    threshold = printed_threshold(budget)
    stated = threshold.single_person_rate + threshold.sampler_delta(budget.epsilon)
    assert stated <= budget.delta
    return check_selection(rates, growth(budget), Fraction(stated) * (1 + FLOAT_ERROR))


def check_select(select: Select, budget: Budget) -> None:
    check_stated(rates_of(budget, select), budget)


def check_selection_noise(factor: Fraction, budget: Budget) -> None:
    check_stated(rates_of(budget, noise=noise_of_scale(factor, noise_for_one_record(budget))), budget)


def stated_delta(budget: Budget) -> float:
    """What the release says that the sampler costs; the ideal law would cost nothing."""
    return Threshold(1.0, 2, noise_for_one_record(budget)).sampler_delta(budget.epsilon)


def check_published_noise(factor: Fraction, budget: Budget) -> None:
    noise = noise_of_scale(factor, noise_for_one_record(budget))
    check_noisy_counts(noise.sampled_probabilities(), growth(budget), stated_delta(budget))


def check_published_law(bend: Callable[[NoiseLaw], NoiseLaw], budget: Budget) -> None:
    law = bend(noise_for_one_record(budget).sampled_probabilities())
    check_noisy_counts(law, growth(budget), stated_delta(budget))


# --- the curator of method best --------------------------------------------------------------------------------------


def shipped_curator(budget: Budget, wide: bool) -> Curator:
    return Curator(CuratorDesign.of(budget, wide=wide))


def check_release(curator: Curator, budget: Budget, stated: float, beside: Sequence[int] = ()) -> float:
    """The law of the whole release, one person moved, beside these counts of a third record."""
    threshold = curator.design.threshold.integer
    moves = one_record_moves(threshold, beside or ([0, 1, threshold] if threshold < 12 else [0, 1]))
    return check_moves(curator, moves, budget.epsilon, stated)


def check_curator(make: best_faults.MakeCurator, budget: Budget) -> None:
    stated = CuratorDesign.of(budget).delta
    check_release(make(budget, False), budget, stated, beside=[0, 1])


def check_wide_list(make: best_faults.MakeCurator, budget: Budget) -> None:
    check_release(make(budget, True), budget, budget.delta, beside=[0])


def check_listed(make: best_faults.MakeCurator, budget: Budget) -> None:
    check_listing(make(budget, False), CuratorDesign.of(budget))


# --- sets of method best ---------------------------------------------------------------------------------------------


def check_thresholds(make: MakeMechanism, setting: tuple[Fraction, int, int]) -> None:
    check_law(make(*setting), setting[0])


def check_plain_sets(
    make: Callable[[Fraction, int, int], PlainSubsetSelection], setting: tuple[Fraction, int, int]
) -> None:
    """Sets without a sink, ⋆ being one more item: rows sum to 1, and no set is more than e^ε times as likely."""
    epsilon, m, d = setting
    inside, outside = make(epsilon, m, d).law()
    assert math.comb(m, d - 1) * inside + math.comb(m, d) * outside == 1
    check_ratios([[inside, outside]], epsilon)


def check_printed_sets(make: MakeMechanism, setting: tuple[Fraction, int, int]) -> None:
    check_formula(make(*setting), setting[0])


def _driven_rows(report: Report | None, mechanism: SubsetSelection) -> list[tuple[int | None, Row]]:
    return [(item, driven_row(mechanism, item, report)) for item in [*range(mechanism.n_items), None]]


def check_report_law(report: Report | None, setting: tuple[Fraction, int, int]) -> None:
    """The code at both ends of every interval of its word, all choices of sets enumerated: equal as fractions."""
    mechanism = SubsetSelection.of(*setting)
    for item, row in _driven_rows(report, mechanism):
        assert row == {output: p for output, p in row_of_law(mechanism, item).items() if p}


def check_report_privacy(report: Report | None, setting: tuple[Fraction, int, int]) -> None:
    check_rows([row for _, row in _driven_rows(report, SubsetSelection.of(*setting))], setting[0])


_SET_REPORT: Final = (Fraction(1), 4, 2)
_SETS: Final = [
    (epsilon, *shape)
    for epsilon, shape in product(map(Fraction, ("1/10", "1", "4")), [(3, 1), (3, 2), (50, 2), (60, 25), (60, 60)])
]
_CURATOR_BUDGETS: Final = (Budget(1, 1e-2), Budget(4, 1e-5))
LAWS: Final = (
    Law("local channel", check_channels, shipped_channel, faults.CHANNEL, [SMALL_CASES]),
    Law(
        "privacy of the local channel",
        check_privacy,
        shipped_channel,
        {name: faults.CHANNEL[name] for name in faults.PRIVACY_BREAKING},
        [SMALL_CASES],
    ),
    Law("code of the local report", check_code, randomize, faults.RANDOMIZE, [SMALL_CASES]),
    Law("head-list selection", check_select, noisy_selection, faults.SELECTION, [Budget(4, 1e-5), Budget(0.6, 0.5)]),
    Law("noise of the selection", check_selection_noise, Fraction(1), faults.NOISE_SCALE, [Budget(1, 1e-6)]),
    Law(
        "noise of published counts",
        check_published_noise,
        Fraction(1),
        faults.NOISE_SCALE,
        [
            Budget(4, 1e-5),
            Budget(1, 1e-6),
            Budget(1.0986122886681098, 1e-5),
            Budget(5, 1e-7),
            Budget(8, 1e-5),
            Budget(0.4, 1e-5),
        ],
    ),
    Law("ends of the noise", check_published_law, lambda law: law, faults.LAW, [Budget(4, 1e-5)]),
    Law("curator", check_curator, shipped_curator, best_faults.CURATOR, _CURATOR_BUDGETS, 0.5),
    Law(
        "curator of a wide list",
        check_wide_list,
        shipped_curator,
        best_faults.WIDE,
        [Budget(1, 1e-3), Budget(0.7, 1e-2)],
        0.5,
    ),
    Law(
        "curator over many records",
        check_many_records,
        shipped_many_records,
        many_records_faults.FAULTS,
        [(Budget(4, 1e-4), False), (Budget(4, 1e-4), True)],
        2.0,
    ),
    Law("listing rule", check_listed, shipped_curator, best_faults.LISTING, _CURATOR_BUDGETS),
    Law(
        "thresholds of sets",
        check_thresholds,
        SubsetSelection.of,
        best_faults.MECHANISM,
        _SETS,
    ),
    Law("plain sets", check_plain_sets, PlainSubsetSelection.of, best_faults.PLAIN_MECHANISM, _SETS),
    Law("formula of sets", check_printed_sets, SubsetSelection.of, best_faults.WRONG_MECHANISM, [(Fraction(1), 3, 2)]),
    Law("code of set reports", check_report_law, None, best_faults.REPORT, [_SET_REPORT]),
    Law(
        "privacy of set reports",
        check_report_privacy,
        None,
        {name: best_faults.REPORT[name] for name in sorted(best_faults.REPORT_THAT_LEAKS)},
        [_SET_REPORT],
    ),
    Law(
        "counts by attribute",
        attribute_counts.check_attribute_counts,
        attribute_counts.SHIPPED,
        attribute_counts.FAULTS,
        attribute_counts.SETTINGS,
        2.0,
    ),
    Law("windows of a month", windows.check_windows, windows.SHIPPED, windows.FAULTS, windows.SETTINGS, 1.0),
    Law("counts of reports", shuffled.check_crowd, shuffled.shipped_bound, shuffled.FAULTS, shuffled.CROWDS, cost=3.0),
)
