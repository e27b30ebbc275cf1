"""The page of the benchmarks: targets are judged, a peer without a figure is named, and nothing names the machine."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import run_all  # noqa: E402
from benchmark_page import draw, number, page  # noqa: E402
from selection import judged as judged_selection  # noqa: E402

ROW = {"seconds": 0.5, "start_seconds": 1.0, "peak_gb": 0.2, "kept": 7, "rounds": 3, "of_plain": 1.0}


def section(result, targets):
    kept = {name: run_all.judged(row) for name, row in targets.items()}
    return {
        "command": "python benchmarks/x.py",
        "quick": False,
        "seconds": 3.0,
        "peak_gb": 0.1,
        "load_before": 0.0,
        "result": result,
        "targets": kept,
    }


@pytest.fixture
def document():
    table = {
        "plain": ROW,
        "own_hash": {**ROW, "seconds": 0.2},
        "searchblend": {**ROW, "seconds": 0.6, "of_plain": 1.2},
        "opendp": {**ROW, "seconds": 5.0, "of_plain": 10.0, "version": "0.16.0"},
        "tumult": {"absent": "cannot be installed here: no Java"},
    }
    part = {"table": table, "targets": judged_selection(table), "left_out": ["pipelinedp"]}
    cold = {"table": {"python -c pass": {"seconds": 0.01, "peak_gb": 0.01}}}
    return {
        "machine": run_all.machine(),
        "sections": {
            "selection": section({"1000000": part}, run_all.parts_targets({"1000000": part})),
            "cold start": section(cold, {"help_beyond_python": {"value": 0.4, "at_most": 0.3}}),
            "service": {**section({}, {}), "failed": "exit code 1, no JSON"},
        },
    }


def test_targets_are_judged_against_the_best_peer_and_the_plain_count(document):
    targets = document["sections"]["selection"]["targets"]
    assert targets["1000000: of_plain"]["met"]
    assert targets["1000000: over_best_peer"]["value"] == pytest.approx(5.0 / 0.6)
    assert not targets["1000000: over_best_peer"]["met"]


@pytest.mark.parametrize(
    ("value", "limit", "excused"), [(6.0, 8.0, True), (6.0, 11.0, False), (3.0, 8.0, False), (12.0, 8.0, False)]
)
def test_a_target_beyond_the_limit_is_excused_if_the_limit_is_near(value, limit, excused):
    row = run_all.judged({"value": value, "at_least": 10.0, "limit": limit})
    assert row["excused"] is excused
    assert row["met"] is (value >= 10)


def test_a_miss_that_is_out_of_reach_and_a_part_measured_alone_are_said(document):
    row = run_all.judged({"value": 6.0, "at_least": 10.0, "limit": 8.0})
    document["sections"]["cold start"] |= {"targets": {"over": row}, "alone": True}
    text = page(document)
    assert "| cold start | over | 6 | at least 10; limit 8 | no: out of reach |" in text
    assert "*Out of reach*: the target is missed" in text
    assert "Measured again by itself" in text
    assert not any("cold start" in line for line in run_all.missed(document))


def test_what_was_missed_or_failed_is_named(document):
    assert run_all.missed(document) == [
        "service: exit code 1, no JSON",
        "selection: 1000000: over_best_peer",
        "cold start: help_beyond_python",
    ]


def test_a_peer_without_a_figure_is_named_with_the_reason(document):
    text = page(document)
    assert "**Tumult Analytics, keys only was not measured: cannot be installed here: no Java.**" in text
    assert "PipelineDP, keys only were not run at this size" in text
    assert "**Not measured: exit code 1, no JSON.**" in text
    assert "| cold start | help beyond python | 0.4 | at most 0.3 | **no** |" in text


def test_nothing_names_the_machine(document):
    text = page(document) + json.dumps(document)
    assert platform.node() not in text
    assert str(Path.home()) not in text
    assert str(ROOT) not in text


def test_the_loads_of_a_pack_are_shown(document):
    cold = {"pack": {"median_ms": 42.0, "best_ms": 38.0}}
    lookups = {"exact": {"median_us": 170.0, "p99_us": 320.0}, "Map, exact alone": {"median_us": 0.1, "p99_us": 0.2}}
    found = {"pairs": 16_000, "pack_bytes": 1, "json_bytes": 2, "cold": cold, "lookups": lookups}
    document["sections"]["pack lookup"] = section(found, run_all.pack_targets(found))
    text = page(document)
    assert "| cold load, pack | 42.0 | 38.0 |" in text
    assert "| pack lookup | lookup p99 us | 320.0 | at most 1000 | yes |" in text


def test_plots_are_drawn_of_whatever_was_measured(document, tmp_path):
    draw(document, tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".svg", ".png"}


def test_numbers_are_short():
    assert [number(v) for v in (0.12345, 12.345, 1234567.8, None, "x")] == ["0.123", "12.3", "1,234,568", "–", "x"]


def test_every_benchmark_is_in_the_list():
    assert [one.program for one in run_all.BENCHMARKS if not (ROOT / "benchmarks" / one.program).exists()] == []
    named = {one.program for one in run_all.BENCHMARKS}
    here = {path.name for path in (ROOT / "benchmarks").glob("*.py")}
    parts = {
        "run_all.py",
        "benchmark_page.py",
        "peer_environments.py",
        "best_vs_paper.py",
        "method_targets.py",
    }  # the last two measure error, not speed
    assert here - parts <= named, "a benchmark that make bench does not run"
