"""Every planted fault in the JavaScript core is rejected by the checks that the shipped core passes."""

from __future__ import annotations

import subprocess

import pytest
from js_law import CHECKS, check_device, check_sets, check_two_stage, check_two_stage_exact, check_uniform
from js_mutants import MUTANTS, SHARED, planted
from node_twin import Twin

from searchblend_lab.evidence.laws import best_faults, faults

NEAREST = {
    "report_probabilities.js": [check_two_stage, check_two_stage_exact],
    "local_report.js": [check_two_stage],
    "randomized_response.js": [check_two_stage],
    "fixed_point.js": [check_two_stage],
    "subset_selection.js": [check_sets],
    "randomness.js": [check_uniform],
}
"""where a fault of a file is most likely seen; the other checks follow"""


def rejecting_check(name: str, twin: Twin) -> str | None:
    """The first check that refuses this core; one that does not end is refused too, one that is no program is not."""
    nearest = NEAREST.get(MUTANTS[name][0][0], [check_device])
    for check in [*nearest, *(check for check in CHECKS if check not in nearest)]:
        try:
            check(twin)
        except (AssertionError, subprocess.TimeoutExpired, TypeError, ValueError):
            return check.__name__
    return None


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_fault_is_rejected(name, tmp_path):
    assert rejecting_check(name, Twin(planted(name, tmp_path), seconds=60)) is not None


def test_every_fault_of_a_device_in_the_python_suite_is_planted_here():
    device = [faults.CHANNEL, faults.RANDOMIZE, best_faults.MECHANISM, best_faults.WRONG_MECHANISM]
    device += [best_faults.REPORT, best_faults.SEND, best_faults.WRONG_SEND, best_faults.SEND_SEVERAL]
    assert {name for group in device for name in group} == set(SHARED)
    print(f"{len(MUTANTS)} planted faults, {len(SHARED)} of them shared with the Python suite")
