"""Every kind of check holds on the shipped code and sees a planted fault; the fault is gone afterwards."""

from __future__ import annotations

import pytest

from searchblend_lab.evidence import plan
from searchblend_lab.evidence.deterministic import deterministic_threshold
from searchblend_lab.evidence.evidence import Effort, Verdict
from searchblend_lab.evidence.laws.sampled_laws import SAMPLED_LAWS
from searchblend_lab.evidence.mutants import MUTANTS
from searchblend_lab.evidence.randomness_source import import_graph_of
from searchblend_lab.evidence.run import do_check, try_mutant

pytestmark = pytest.mark.thorough

EFFORT = Effort(40_000, 40, 1e-9)
BY_NAME = {check.name: check for check in plan.CHECKS}
MUTANT = {mutant.name: mutant for mutant in MUTANTS}
PAIRS = [
    ("exact-noise", "Gaussian noise of σ/√2"),
    ("exact-head-lists", "stability histogram: half the residual noise"),
    ("exact-click-graphs", "kkmn2009: δ of one query for all of them"),
    ("sampled-noise", "noise without a sign"),
    ("sampled-head-lists", "opt-in shares: half the noise"),
    ("law-discrete-Laplace-sampler", "each noise used twice"),
    ("law-noise-that-reaches-a-floor", "rare noise from 16 bits"),
    ("law-sets-of-a-report", "plain sets: e^(ε+0.7) for e^ε"),
    ("boundary-head-list", "head list: ≥ for > at τ"),
    ("boundary-stability-histogram", "wide list: threshold one lower"),
    ("boundary-click-graph-weighted_gaussian", "weighted_gaussian: threshold half a user lower"),
    ("boundary-edges", "private clicks without a threshold"),
    ("sensitivity-groups", "a person counts twice"),
    ("sensitivity-activity", "activity not limited"),
    ("boundary-values", "values: threshold one lower"),
    ("sensitivity-values", "values: every row of a user counts"),
    ("support-numbers", "opt-in shares: noise in doubles"),
    ("source-forks", "random bytes kept in a buffer"),
]


FEW = Effort(40_000, 12, 1e-9)
"""of the shipped code: bounds hold for every log, and one pair of logs that differ is enough for power"""
LAW = {f"law-{law.name.replace(' ', '-')}": law for law in SAMPLED_LAWS}


@pytest.mark.parametrize(("check", "mutant"), PAIRS)
def test_a_check_sees_its_fault_and_nothing_else(check, mutant):
    """All settings of a law are in test_laws.py: its first one shows that the fault is gone."""
    assert try_mutant(MUTANT[mutant], EFFORT).outcome == "killed"
    if check in LAW and check != "law-discrete-Laplace-sampler":
        LAW[check].check(LAW[check].shipped, LAW[check].settings[0])
        return
    entry = do_check(BY_NAME[check], FEW if check.startswith("sensitivity-") else EFFORT)
    assert entry.passed, [finding for finding in entry.findings if not finding.verdict.is_good]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "mutant"),
    [
        ("exact-local-reports", "local report: a lie may be the truth"),
        ("exact-subset-reports", "sets: the coin looks at the record"),
        ("law-local-reports-in-bulk", "bulk reports: a lie may be the truth"),
        ("sampled-click-graph-kkmn2009", "kkmn2009: counts without noise"),
        ("sampled-values", "values: half the noise"),
        ("source-imports", "numpy's generator in the reader"),
        ("source-commands", "a seeded generator for the system's"),
        ("program-javascript", "JavaScript: a lie may be the truth"),
        ("program-service", "service: threshold one lower"),
    ],
)
def test_a_long_check_sees_its_fault_and_nothing_else(check, mutant):
    test_a_check_sees_its_fault_and_nothing_else(check, mutant)


@pytest.mark.parametrize("folder", ["service", "device", "releases"])
def test_what_releases_reaches_no_seeded_generator(folder):
    """The audit's own check of the source, before anyone runs the audit."""
    found = import_graph_of(folder)
    assert found.verdict.is_good, found.detail


def test_a_threshold_without_noise_is_shown_to_be_not_private():
    (found,) = deterministic_threshold(EFFORT)
    assert found.verdict is Verdict.AS_EXPECTED
    assert found.measured == pytest.approx(found.resolution)
    assert found.measured > found.claim.epsilon


def test_there_are_enough_faults_and_their_names_are_unique():
    assert len(MUTANTS) >= 25
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({check.name for check in plan.CHECKS}) == len(plan.CHECKS)


@pytest.mark.parametrize("check", ["sensitivity-reports", "sensitivity-split", "support-low-bits", "exact-choices"])
def test_the_other_checks_hold(check):
    assert do_check(BY_NAME[check], EFFORT).passed
