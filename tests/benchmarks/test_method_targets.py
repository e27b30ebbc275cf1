"""The targets of method best: bars are judged, rows are kept and gone on with, and every part runs at a tiny size."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import method_targets
from method_targets import PARTS, Target, main, ratio


def test_a_bar_is_met_or_missed_and_said_with_its_value():
    assert Target("coverage", 0.95, at_least=0.93, at_most=0.97).met
    assert not Target("coverage", 0.98, at_least=0.93, at_most=0.97).met
    assert Target("L1", 0.914, at_most=0.9, error=0.02).line() == "MISSED  L1: 0.914 ± 0.02 (bar ≤ 0.9)"
    assert Target("queries", 4.0, at_least=3.5).line() == "   met  queries: 4 (bar ≥ 3.5)"
    assert Target("L1", 0.9).line() == "     –  L1: 0.9"
    assert not Target("nothing measured", float("nan"), at_most=1).met


def test_a_ratio_is_of_means():
    rows = [{"a": 1.0, "b": 2.0}, {"a": 2.0, "b": 4.0}]
    assert ratio(rows, "a", "b") == (0.5, 0.0)
    assert ratio([{"a": 3.0, "b": 2.0}], "a", "b") == (1.5, None)


def test_every_list_is_judged_by_every_bar():
    """What the judges make of rows, without measuring: four ε, a log that lost, fakes and alarms."""
    row = {"one_queries": 10, "many_queries": 40, "one_l1": 1.0, "many_l1": 0.8, "one_top": 1.0, "many_top": 0.5}
    row |= {f"{name}_{what}": n for name in ("one", "many") for what, n in (("inside", 95), ("intervals", 100))}
    rows = [{**row, "epsilon": epsilon, "log": "x.tsv"} for epsilon in (1.0, 2.0, 4.0, 6.0) for _ in range(2)]
    assert all(target.met for target in method_targets.judge_lists(rows))
    assert len(method_targets.judge_lists(rows)) == 4 * 4 + 2
    shorter = [{**one, "many_queries": 9, "many_l1": 1.2 + i / 100} for i, one in enumerate(rows[:2])]
    assert [target.met for target in method_targets.judge_real(shorter)] == [False, False]
    nothing_shared = [{**one, "one_queries": 0, "one_l1": 0.0, "many_l1": 0.0} for one in rows[:2]]
    assert all(target.met for target in method_targets.judge_real(nothing_shared))


def test_simulated_parts_run_and_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(method_targets, "TILTS", (0.0, 0.6))
    arguments = ["--quick", "--only", "tilt", "shuffle", "-o", str(tmp_path / "rows.jsonl")]
    first = main(arguments)
    assert set(first) == {"tilt", "shuffle"}
    assert all(target.met for target in first["shuffle"])
    assert any("coverage" in target.what for target in first["tilt"])
    monkeypatch.setattr(method_targets, "simulated", None)  # nothing is measured again
    assert main(arguments) == first


@pytest.mark.slow
def test_every_part_runs_at_a_tiny_size(tmp_path: Path):
    found = main(["--quick", "-o", str(tmp_path / "rows.jsonl")])
    assert set(found) == set(PARTS)
    assert all(found[part] for part in ("lists", "tilt", "alarm", "shuffle", "speed"))
    assert (tmp_path / "rows.jsonl").read_text().count("\n") > 30
