"""The laws that are sampled, in one table: what is drawn, the shipped code, and the faults that the check must reject.

``tests/statistical/test_laws.py`` and ``searchblend audit`` both go through it. Draws come from the operating system
and each test has a false-alarm rate of 1e-6 (``sampler.FALSE_ALARM``); an audit draws again before it refutes anything.
Estimates are simulated with a seed, so that bounds such as 6 % need no such rate. Exact laws are in ``laws``.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Final

from searchblend.blender.best.set_law import SetLaw
from searchblend.blender.best.subset_report import PLAIN_SETS, SINK_SETS
from searchblend.blender.paper.create_head_list import noisy_selection
from searchblend.blender.paper.estimate_client import estimate_client_probabilities
from searchblend.blender.paper.estimate_optin import estimate_optin_probabilities
from searchblend.blender.paper.local_report import randomize
from searchblend.blender.paper.local_report_bulk import BulkReporter
from searchblend.core.privacy import Budget
from searchblend.core.randomness import uniform_below
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian
from searchblend.mechanisms.subset_selection import SubsetSelection
from searchblend_lab.evidence.laws import best_faults, click_graph_faults, faults
from searchblend_lab.evidence.laws import sampled_graph as graph
from searchblend_lab.evidence.laws import sampled_noise as noise
from searchblend_lab.evidence.laws import sampled_reports as reports
from searchblend_lab.evidence.laws.channel import ChannelCase
from searchblend_lab.evidence.laws.law import Law

_SCALES: Final = tuple(map(Fraction, ("1/2", "1", "37/10", "20")))
_SIGMAS: Final = (*map(Fraction, ("1/2", "1", "1801/1024", "63/8", "100")),)
_LOOSE: Final = (Budget(1, 1e-5), Budget(4, 1e-5))
SAMPLED_LAWS: Final = (
    Law("discrete Laplace sampler", noise.check_laplace, noise.laplace_draws, noise.LAPLACE_FAULTS, _SCALES, 0.5),
    Law("rounded Gaussian sampler", noise.check_gaussian, noise.gaussian_draws, noise.GAUSSIAN_FAULTS, _SIGMAS, 1),
    Law(
        "noise that reaches a floor",
        noise.check_reaching,
        0,
        {"floor one lower": -1, "floor one higher": 1},
        [
            *product(
                (RoundedGaussian(Fraction(5, 2)), DiscreteLaplace(Fraction(2, 3))), (0, 1, 3, 5, 6), [noise.AT_ONCE]
            ),
            (DiscreteLaplace(Fraction(1)), 10, 20 * noise.AT_ONCE),  # so rare that 16 bits are not enough
        ],
        4,
    ),
    Law(
        "uniform choice",
        noise.check_choice,
        uniform_below,
        {"the first now and then": noise.first_now_and_then},
        (2, 7, 100),
    ),
    Law("noise by count and rank", noise.check_joint_law, noise.publish, noise.TALLY_FAULTS, [12_000], 2),
    Law(
        "local reports in bulk",
        reports.check_reports,
        reports.in_bulk(BulkReporter),
        {name: reports.in_bulk(fault) for name, fault in faults.BULK.items()},
        [(reports.REPORT_CASES[0], 100_000)],
        0.5,
    ),
    Law(
        "local reports one by one",
        reports.check_reports,
        reports.one_by_one(randomize),
        {"a lie may equal the truth": reports.one_by_one(faults.RANDOMIZE["a lie may equal the truth"])},
        [(case, 10_000) for case in reports.REPORT_CASES[:2]],
        2,
    ),
    Law("sets of a report", reports.check_sets, 1.0, {"a quarter more ε": 1.25}, (SINK_SETS, PLAIN_SETS), 2),
    Law(
        "records of one person",
        graph.check_lone_records,
        noisy_selection,
        faults.BOUNDARY,
        [(Fraction(1), 2), (Fraction(2), 3), (Fraction(1, 2), 4)],
        1,
    ),
    Law(
        "queries of one person",
        graph.check_lone_queries,
        graph.unchanged,
        click_graph_faults.EVERY,
        list(graph.LONE_USERS.values()),
        3,
    ),
    Law("clicks of one person", graph.check_lone_clicks, graph.unchanged, graph.CLICK_FAULTS, list(graph.EDGES), 1),
    Law("rewrites of one person", graph.check_lone_rewrites, graph.unchanged, graph.EDGE_FAULTS, list(graph.EDGES), 1),
    Law(
        "counts with the noise that selected",
        graph.check_reused_counts,
        graph.unchanged,
        graph.COUNT_FAULTS,
        [(options, 0) for options in graph.REUSED],
    ),
    Law(
        "counts with noise of their own",
        graph.check_fresh_counts,
        graph.unchanged,
        graph.COUNT_FAULTS,
        list(product(graph.FRESH, (0, 2))),
    ),
    Law(
        "noise of opt-in counts",
        reports.check_optin_noise,
        estimate_optin_probabilities,
        faults.PUBLISHED_NOISE,
        _LOOSE,
        0.5,
    ),
    Law(
        "opt-in estimates",
        reports.check_optin_estimates,
        estimate_optin_probabilities,
        faults.OPTIN_ESTIMATE,
        [Budget(4, 1e-5)],
        2,
    ),
    Law(
        "client estimates",
        reports.check_client_estimates,
        estimate_client_probabilities,
        {
            name: fault
            for name, fault in faults.CLIENT_ESTIMATE.items()
            if name not in faults.OFF_BY_ONE_IN_N  # enumeration finds those
        },
        [ChannelCase((2, 2), epsilon=1.0, query_budget_fraction=0.6)],
        3,
    ),
    Law(
        "estimates from sets",
        reports.check_set_estimates,
        SetLaw,
        {**best_faults.SET_ESTIMATE, **best_faults.SET_NOISE},
        [(SubsetSelection, 4, 1)],
        1,
    ),
)
