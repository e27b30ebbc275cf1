"""Every experiment × option: it changes what is computed and is named on the page, or it is refused with the reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from searchblend.core.records import Record
from searchblend_lab.papers.comparisons.real_logs import RealLog
from searchblend_lab.papers.experiment import Request
from searchblend_lab.papers.heeding import NO_EFFECT, NOT_REAL, REASONS, without_effect
from searchblend_lab.papers.people import LogPeople, Rows, Searches, make_known
from searchblend_lab.papers.registry import EXPERIMENTS

pytestmark = pytest.mark.thorough

USERS = np.repeat(np.arange(3), 3)
LOG = LogPeople(
    "log",
    [Record("a", "b")],
    np.array([9]),
    Searches(USERS, np.zeros(9, dtype=np.int64), np.arange(9) * 86_400.0),
    Rows([Record("a", "b")], np.zeros(9, dtype=np.int64), np.full(3, 3)),
)
REAL = (RealLog("a.tsv", "{}", "digest", 1000, 5000, (1.0, 4.0), 1e-5, 0.05),)
"""what the comparison on real logs is always asked with"""
ASKED = {
    "--log": Request(people=LOG.name),
    "--profile": Request(people="yandex"),
    "--algorithm": Request(algorithm="package.module:Mine"),
    "--runs": Request(runs=1),
    "--quick": Request(quick=True),
}


@pytest.mark.parametrize("option", ASKED)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_option_changes_what_is_computed_or_is_refused_with_the_reason(name: str, option: str):
    make_known(LOG)
    experiment, request = EXPERIMENTS[name], ASKED[option]
    request = replace(request, logs=REAL) if name == "real" else request
    refused = without_effect(experiment, request)
    assert refused == ({option: REASONS[option][name]} if name in REASONS[option] else {})
    assert NO_EFFECT not in refused.values()
    assert refused or option in request.options


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_logs_of_a_comparison_mean_something_to_it_alone(name: str):
    refused = without_effect(EXPERIMENTS[name], Request(logs=REAL))
    assert refused == ({} if name == "real" else {"--logs": NOT_REAL})


def test_reasons_name_experiments_that_there_are():
    assert set(REASONS) == set(ASKED)
    assert all(set(reasons) <= set(EXPERIMENTS) for reasons in REASONS.values())


@pytest.mark.parametrize("name", ["fig12", "kkmn-fig2", "kkmn-fig4", "graph-algorithms", "records-per-client"])
def test_a_log_of_ones_own_takes_the_place_of_all_synthetic_people(name: str):
    make_known(LOG)
    for cell in EXPERIMENTS[name].cells(replace(ASKED["--log"], quick=True)):
        settings = dict(cell.settings)
        assert settings["people"] == LOG.name
        assert settings.get("users") is None
        assert "vocabulary" not in settings


def test_spans_that_a_log_is_too_short_for_are_left_out():
    make_known(LOG)
    cells = EXPERIMENTS["kkmn-fig3"].cells(ASKED["--log"])
    assert {dict(cell.settings)["days"] for cell in cells} == {1, 7}
