"""People with habits leave something for reformulations and spelling to find, and change nothing without the option."""

from __future__ import annotations

from pathlib import Path

import pytest

import searchblend as sb
from searchblend.clickgraph.use.spell import spelling_corrections
from searchblend.core.errors import InvalidParameter
from searchblend.synthetic.generator import generate_log
from searchblend.synthetic.pieces import LogRequest

pytestmark = pytest.mark.thorough

PARAMS = sb.ClickGraphParams(sb.Budget(8.0, 1e-4), reformulations="typed", urls="private", allow_large_delta=True)


def made(folder: Path, *, habits: bool) -> Path:
    path = folder / f"{habits}.txt"
    generate_log(LogRequest("aol", 6_000, "aol", 1, habits), str(path))
    return path


def test_reformulations_and_corrections_are_found(tmp_path: Path):
    with sb.read_log(made(tmp_path, habits=True), draws=0) as log:
        graph = sb.release_data(log.activity(), PARAMS).graph()
    found = spelling_corrections(graph)
    assert len(found) >= 3
    assert ("waether", "weather") in {(one.query, one.correction) for one in found[:20]}
    assert len(graph.reformulations.source) >= len(found)


def test_habits_change_queries_of_searches_without_a_click_alone(tmp_path: Path):
    plain, habits = (made(tmp_path, habits=one).read_text().splitlines() for one in (False, True))
    assert len(plain) == len(habits)
    changed = [(old.split("\t"), new.split("\t")) for old, new in zip(plain, habits, strict=True) if old != new]
    assert 0.05 < len(changed) / len(plain) < 0.5
    assert all(old[:1] + old[2:] == new[:1] + new[2:] and not new[4] for old, new in changed)


def test_numbers_of_yandex_have_no_spelling():
    with pytest.raises(InvalidParameter, match="only of the profile aol"):
        LogRequest("yandex", 10, "yandex", 1, habits=True)
