"""Every exact law holds of the shipped code and rejects each of its planted faults, at each of its settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from searchblend_lab.evidence.exact_laws import LAW_CHECKS, LAW_MUTANTS
from searchblend_lab.evidence.laws.laws import LAWS, ExactLaw
from searchblend_lab.evidence.plan import CHECKS, mutant_effort
from searchblend_lab.evidence.run import do_check, try_mutant

laws = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)


def planted() -> Iterator[Any]:
    for law in LAWS:
        for name in law.faults:
            for i, setting in enumerate(law.settings):
                yield pytest.param(law, name, setting, id=f"{law.name}, {name}, {i}")


@laws
def test_the_shipped_code_keeps_the_law(law: ExactLaw):
    for setting in law.settings:
        law.check(law.shipped, setting)
    assert law.accepts(law.shipped)


@pytest.mark.parametrize(("law", "fault", "setting"), list(planted()))
def test_a_planted_fault_breaks_the_law(law: ExactLaw, fault: str, setting: object):
    with pytest.raises(AssertionError):
        law.check(law.faults[fault], setting)


def test_a_fault_that_passes_at_one_setting_is_not_rejected():
    def check(subject: int, setting: int) -> None:
        assert subject <= setting

    law = ExactLaw("small", check, 0, {"two": 2}, [1, 2])
    assert law.accepts(0)
    assert not law.accepts(2)
    assert not law.rejects(2)
    assert law.rejects(3)


def test_the_audit_has_every_law_and_every_fault_of_it():
    assert set(LAW_CHECKS) <= set(CHECKS)
    assert len(LAW_CHECKS) == len(LAWS)
    assert len({mutant.name for mutant in LAW_MUTANTS}) == sum(len(law.faults) for law in LAWS) > 40
    effort = mutant_effort(1e-6)
    assert do_check(LAW_CHECKS[0], effort).passed
    assert try_mutant(LAW_MUTANTS[0], effort).outcome == "killed"
