"""Releases without a ledger are remembered beside their folders, and nothing of the input is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchblend.accounting.spend import Spend
from searchblend.core.privacy import Budget, Neighbors
from searchblend.releases.make_release import REMEMBERED, SpentSoFar, remember_release

RUN = Spend.generic(Budget(4.0, 1e-5), Neighbors.REPLACE_ONE, "hybrid run")
GRAPH = Spend.generic(Budget(0.1, 1e-6), Neighbors.ADD_REMOVE_ONE, "click graph")


def remember(folder: Path, log: str | None, spend: Spend = RUN) -> SpentSoFar:
    return remember_release(folder / "out", log, spend, created="2026-11-17")


def test_releases_of_one_input_add_up_and_those_of_others_do_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert remember(tmp_path, "log.tsv") == SpentSoFar(1, 4.0)
    assert remember(tmp_path, "other.tsv") == SpentSoFar(1, 4.0)
    assert remember(tmp_path, str(tmp_path / "log.tsv")) == SpentSoFar(2, 8.0)
    (tmp_path / "elsewhere").mkdir()
    assert remember(tmp_path / "elsewhere", "log.tsv") == SpentSoFar(1, 4.0)


def test_all_of_standard_input_is_one_input(tmp_path):
    remember(tmp_path, None)
    assert remember(tmp_path, None) == SpentSoFar(2, 8.0)


@pytest.mark.parametrize(("spends", "epsilon"), [([GRAPH] * 3, 0.3), ([GRAPH, RUN, GRAPH], 4.4)])
def test_a_click_graph_beside_a_run_counts_twice(tmp_path, spends, epsilon):
    """Replacing a person is removing one and adding one; three times 0.1 is 0.3 and not a bit more."""
    assert [remember(tmp_path, "log.tsv", spend) for spend in spends][-1] == SpentSoFar(3, epsilon)


def test_nothing_of_the_input_is_kept_but_a_digest_of_its_place(tmp_path):
    log = tmp_path / "a telling name.tsv"
    log.write_text("user\tquery\n1\tembarrassing\n")
    remember(tmp_path, str(log))
    content = (tmp_path / REMEMBERED).read_text()
    document = json.loads(content)
    assert sorted(document) == ["created", "folder", "input", "spend"]
    assert not [secret for secret in ("telling", "embarrassing", str(tmp_path)) if secret in content]
    log.write_text("user\tquery\n1\tsomething else\n2\tand more\n")
    assert remember(tmp_path, str(log)).releases == 2
    lines = (tmp_path / REMEMBERED).read_text().splitlines()
    assert lines[0] == lines[1], "what the log holds must not show"


def test_lines_that_are_not_ours_stay_and_count_nothing(tmp_path):
    strange = b'[]\n{"input": 1}\nno JSON \xff\nwithout an end'
    (tmp_path / REMEMBERED).write_bytes(strange)
    assert remember(tmp_path, "log.tsv").releases == 1
    assert (tmp_path / REMEMBERED).read_bytes().startswith(strange + b"\n")
    assert remember(tmp_path, "log.tsv").releases == 2
