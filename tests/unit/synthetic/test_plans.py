"""Plans from Python: the documents of the commands, as tables, files and figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import searchblend as sb
from searchblend.cli.main import main
from searchblend.synthetic.count_group import RecordModel
from searchblend.synthetic.plans import PlannedPeople

BUDGET = sb.Budget(2.0, 1e-6)


def test_the_plan_of_a_release_is_the_document_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = sb.plan_release(sb.ClickGraphParams(BUDGET))
    assert main(["release", "plan", "--epsilon", "2", "--delta", "1e-6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(plan.document))
    plan.save(tmp_path / "plans")
    assert json.loads((tmp_path / "plans/plan.json").read_text())["threshold"] == plan.document["threshold"]
    assert plan.columns()["probability"][-1] > 0.99
    assert plan.plot(tmp_path / "plan.svg").axes[0].get_xlabel()
    assert (tmp_path / "plan.svg").exists()
    assert repr(plan) == "ReleasePlan(ε = 2, nothing was read)"
    assert "probability" in plan._repr_html_()


@pytest.mark.thorough
def test_the_plan_of_a_run_has_a_row_for_each_figure() -> None:
    records = [sb.Record(f"query {i}", "u.example") for i in range(4)]
    people = PlannedPeople("four", RecordModel.of_records(records, [0.4, 0.3, 0.2, 0.1]), 1000, 0.5, 4)
    plan = sb.plan_run(sb.BlenderParams(BUDGET, max_head_queries=4), profile=people, runs=1)
    columns = plan.columns()
    assert columns["figure"] == 2 * ["head_queries", "covered", "plus_minus", "error"]
    assert columns["mean"][0] == 4
    assert plan.document["profile"] == "four"
    assert plan.document["records_per_optin"] == 100
    assert "ε = 2" in repr(plan)
    with pytest.raises(sb.InvalidParameter, match="at least 2 people"):
        sb.plan_run(sb.BlenderParams(BUDGET), profile=people, users=3)
    with pytest.raises(sb.InvalidParameter, match="profile"):
        sb.plan_run(sb.BlenderParams(BUDGET), profile="no such profile")
