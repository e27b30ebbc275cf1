"""The attack panel: releases hold, at budgets loose enough to see it; planted faults are caught; rules tell much."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from searchblend.clickgraph.release.click_log import Cap
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.mechanisms.tally import InMemoryTally
from searchblend_lab.comparison.attacks import Finding, ReleaseUnderAttack, RememberedLog, rule_findings, shown_epsilon
from searchblend_lab.comparison.people import KINDS, PEOPLE
from searchblend_lab.comparison.rules import rules_of
from searchblend_lab.evidence.laws.click_graph_faults import (
    delta_not_divided,
    every_round,
    noise_scaled,
    whole_delta_each_round,
)

pytestmark = pytest.mark.thorough

FALSE_ALARM = 1e-6
RUNS = 400
ALGORITHMS = ("gaussian", "weighted_gaussian", "adaptive_gaussian", "dp_sips", "kkmn2009")
Change = Callable[[ClickGraphDesign], ClickGraphDesign]


def design_of(algorithm: str, **changes) -> ClickGraphDesign:
    """δ is large, so that what it allows is seen in a few thousand draws."""
    options = {"max_queries_per_user": 5, "max_clicks_per_user": 5, "urls": "private"} | changes
    return ClickGraphDesign.of(ClickGraphParams(Budget(2.0, 0.2), algorithm=algorithm, **options))


def attacked(design: ClickGraphDesign, change: Change = lambda design: design, **named) -> dict[str, Finding]:
    named = {"runs": RUNS, "seed": 7} | named
    found = ReleaseUnderAttack("release", design, run_with=change(design), **named).findings()
    return {finding.attack: finding for finding in found}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_release_tells_what_its_law_says_and_never_more_than_is_allowed(algorithm):
    found = attacked(design_of(algorithm))
    assert list(found) == [kind.name for kind in KINDS] + ["member", "inference"]
    assert {finding.verdict for finding in found.values()} == {"holds"}
    for finding in found.values():
        assert finding.law is not None
        assert finding.allowed is not None
        assert finding.law <= finding.allowed
        assert binomtest(finding.successes, finding.trials, finding.law).pvalue > FALSE_ALARM
        assert finding.low <= finding.rate <= finding.high
    assert found["name"].trials == RUNS * PEOPLE
    assert sum(found[kind.name].successes for kind in KINDS) > 100, "too few to see a fault"
    for name, most in (("member", 2.0), ("inference", 2.0)):
        measured = found[name].measured_epsilon
        assert measured is not None
        assert 0 <= measured <= most
        assert found[name].rate > 0.5 + 0.03, "an attack that is no better than a coin proves nothing"


class NotNormalised(RememberedLog):
    """Every query of a user weighs as much as if it were the only one."""

    def weighted_searches(self, first, units, without):
        tally = super().searches(Cap(first))
        return InMemoryTally(tally._universe, tally._numbers, tally._counts * units)


@pytest.mark.parametrize(
    ("algorithm", "fault", "seen_by"),
    [
        ("gaussian", every_round(lambda step: delta_not_divided(step, 0.2)), "session"),
        ("gaussian", every_round(noise_scaled(2)), "name"),
        ("gaussian", every_round(noise_scaled(1 / 8)), "member"),
        ("kkmn2009", every_round(noise_scaled(2)), "address"),
        ("weighted_gaussian", every_round(noise_scaled(2)), "accounts"),
        ("dp_sips", whole_delta_each_round, "session"),
    ],
)
def test_a_planted_fault_is_caught(algorithm, fault, seen_by):
    found = attacked(design_of(algorithm), fault)
    assert found[seen_by].verdict == "exceeds"


def test_weights_that_are_not_normalised_are_caught():
    assert attacked(design_of("weighted_gaussian"), log=NotNormalised)["session"].verdict == "exceeds"


def test_pairs_without_a_threshold_of_their_own_are_caught():
    """The paper's experiment: clicks of published queries, however few clicked."""

    def every_pair(design: ClickGraphDesign) -> ClickGraphDesign:
        steps = (replace(s, threshold=1) if s is design.click_counts else s for s in design.steps)
        return replace(design, steps=tuple(steps))

    found = attacked(design_of("gaussian"), every_pair)
    assert found["page"].verdict == "exceeds"
    assert found["name"].verdict == "holds"


def test_counts_without_noise_tell_everything():
    found = attacked(design_of("gaussian"), every_round(noise_scaled(1e-3)))
    assert found["inference"].verdict == "exceeds"
    assert found["member"].measured_epsilon is not None
    assert found["member"].measured_epsilon > 2.0


def test_two_accounts_are_two_steps_between_neighbours():
    design = ClickGraphDesign.of(ClickGraphParams(Budget(2.0, 1e-6)))
    found = attacked(design, runs=1)
    assert found["name"].allowed == 1e-6
    assert found["accounts"].allowed == pytest.approx(1e-6 * (1 + math.exp(2.0)))
    assert found["inference"].allowed == pytest.approx(math.exp(4.0) / (1 + math.exp(4.0)), rel=1e-5)


def test_a_log_without_clicks_is_attacked_too():
    found = attacked(design_of("gaussian", urls="none"))
    assert "page" not in found
    assert {finding.verdict for finding in found.values()} == {"holds"}


def test_the_same_seed_gives_the_same_figures():
    design = design_of("dp_sips")
    assert attacked(design, runs=20) == attacked(design, runs=20)


def test_an_epsilon_is_shown_of_scores_that_differ_and_none_of_equal_ones():
    generator = np.random.Generator(np.random.PCG64(3))
    same = [generator.normal(0, 1, 4000).tolist() for _ in range(2)]
    assert shown_epsilon(*same, delta=1e-6) < 0.2
    assert shown_epsilon([1.0] * 4000, [0.0] * 4000, delta=1e-6) > 5


def rule_rates(text: str) -> dict[str, float]:
    (rule,) = rules_of(text)
    found = rule_findings(rule)
    assert {finding.verdict for finding in found} == {"no guarantee"}
    return {finding.attack: finding.rate for finding in found}


def test_a_threshold_hides_lone_people_and_is_told_everything_by_accounts_that_were_put_there():
    assert rule_rates("threshold:30/5") == dict.fromkeys([kind.name for kind in KINDS], 0.0) | {
        "member": 1.0,
        "inference": 1.0,
    }


def test_a_threshold_for_queries_alone_publishes_what_one_person_clicked():
    rates = rule_rates("threshold:30")
    assert (rates["name"], rates["page"]) == (0.0, 1.0)


def test_two_accounts_pass_a_threshold_of_two():
    rates = rule_rates("threshold:2/2")
    assert (rates["name"], rates["accounts"]) == (0.0, 1.0)


def test_filters_know_shapes_and_not_people():
    rates = rule_rates("filters:digits+e-mail+personal")
    assert (rates["name"], rates["session"], rates["accounts"]) == (1.0, 1.0, 1.0)
    assert (rates["address"], rates["e-mail"]) == (0.0, 0.0)


def test_an_allow_list_publishes_a_lone_person_whose_words_are_on_it(tmp_path):
    (tmp_path / "list.txt").write_text("ada\nquillfeather\nweather\n")
    rates = rule_rates(f"allow-list:{tmp_path / 'list.txt'}")
    assert rates["name"] == 1 / PEOPLE
    assert rates["session"] == 0.0
    assert rates["page"] == rates["member"] == 1.0
