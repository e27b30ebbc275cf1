"""Every law holds of the shipped code and rejects each of its planted faults, at each of its settings.

Exact laws have no false alarm; those that are sampled have one of 1e-6 for each test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from searchblend_lab.evidence.law_checks import LAW_CHECKS, LAW_MUTANTS
from searchblend_lab.evidence.laws.law import Law
from searchblend_lab.evidence.laws.laws import LAWS
from searchblend_lab.evidence.laws.sampled_laws import SAMPLED_LAWS
from searchblend_lab.evidence.plan import CHECKS, mutant_effort
from searchblend_lab.evidence.run import do_check, try_mutant

ALL = (*LAWS, *SAMPLED_LAWS)


def settings() -> Iterator[Any]:
    for law in ALL:
        for i, setting in enumerate(law.settings):
            yield pytest.param(law, setting, id=f"{law.name}, {i}")


def planted() -> Iterator[Any]:
    for law in ALL:
        for name in law.faults:
            for i, setting in enumerate(law.settings):
                yield pytest.param(law, name, setting, id=f"{law.name}, {name}, {i}")


@pytest.mark.parametrize(("law", "setting"), list(settings()))
def test_the_shipped_code_keeps_the_law(law: Law, setting: object):
    law.check(law.shipped, setting)


@pytest.mark.parametrize(("law", "fault", "setting"), list(planted()))
def test_a_planted_fault_breaks_the_law(law: Law, fault: str, setting: object):
    with pytest.raises(AssertionError):
        law.check(law.faults[fault], setting)


def test_a_fault_that_passes_at_one_setting_is_not_rejected():
    def check(subject: int, setting: int) -> None:
        assert subject <= setting

    law = Law("small", check, 0, {"two": 2}, [1, 2])
    assert law.accepts(0)
    assert not law.accepts(2)
    assert not law.rejects(2)
    assert law.rejects(3)


def test_the_audit_has_every_law_and_every_fault_of_it():
    assert set(LAW_CHECKS) <= set(CHECKS)
    assert len({check.name for check in LAW_CHECKS}) == len(ALL)
    assert len({mutant.name for mutant in LAW_MUTANTS}) == sum(len(law.faults) for law in ALL) > 80
    effort = mutant_effort(1e-6)
    assert do_check(LAW_CHECKS[0], effort).passed
    assert try_mutant(LAW_MUTANTS[0], effort).outcome == "killed"
