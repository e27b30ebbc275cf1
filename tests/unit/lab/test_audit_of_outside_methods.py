"""The audit attacks a method from outside as it does ours: it refutes one that promises what it does not keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import searchblend as sb
from searchblend.blender.guarantees import paper_guarantee
from searchblend.cli.main import main
from searchblend.core.errors import UsageError
from searchblend.core.privacy import Guarantee, TrustModel
from searchblend_lab.evidence import pipelines, plan
from searchblend_lab.evidence.evidence import Effort, Verdict

EFFORT = Effort(20_000, 250, plan.LEVEL / plan.STATEMENTS)
HERE = "test_audit_of_outside_methods"


class Honest(sb.PrintedSteps):
    """The printed steps, as someone else's."""

    name = "honest"


class TellsAll(sb.PrintedSteps):
    """Devices send what they hold, under the promise of those that do not."""

    name = "tells all"

    def collect_reports(self, clients: Any, head: sb.HeadList, params: Any, devices: Any, randomness: Any) -> Any:
        return clients.cell_counts(head, 1, randomness=randomness)

    def guarantee(self, figures: Any, params: sb.BlenderParams, trust: TrustModel) -> Guarantee:
        return paper_guarantee(params, trust, cryptographic=True)


def verdicts(check: Any, method: str) -> list[Verdict]:
    return [finding.verdict for finding in check(f"{HERE}:{method}", EFFORT)]


def test_a_client_of_a_method_that_tells_all_is_found():
    assert verdicts(pipelines.outside_clients, "TellsAll") == [Verdict.REFUTED]
    assert verdicts(pipelines.outside_clients, "Honest") == [Verdict.HOLDS]


def test_ours_are_audited_by_the_other_checks():
    with pytest.raises(UsageError, match="expected a method from outside"):
        pipelines.outside_clients("best", EFFORT)


def test_a_method_has_one_audit(capsys: Any, tmp_path: Path):
    assert main(["audit", "--method", f"{HERE}:Honest", "--quick"]) == 2
    assert "not with --quick" in capsys.readouterr().err
