"""Tables at 60, 80 and 120 columns and in three encodings: names stay whole, figures of lesser use go first."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.table import Table

from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.pipeline import run_blender
from searchblend.blender.result import Result, result_of
from searchblend.cli import printing
from searchblend.cli.commands import device, ledger, pack, plan, release, search, serve, stats
from searchblend.cli.main import _escape_what_cannot_be_encoded
from searchblend.cli.printing import new_table, print_table
from searchblend.cli.tables import comparison_table, explanation, trends_table
from searchblend.cli.terminal import Terminal
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import Record
from searchblend.synthetic.seeded import SeededRandomness

WIDTHS = (60, 80, 120)
ENCODINGS = ("ascii", "latin-1", "utf-8")
NAMES = (
    "weather",
    "recette crêpes",
    "a query that is a good deal longer than any column would like it to be",
    "天気予報",
)


@pytest.fixture(scope="module")
def result() -> Result:
    people = [[Record(name, "http://forecast.example")] for name in NAMES for _ in range(300)]
    randomness = SeededRandomness(3)
    groups = [InMemoryGroup.from_users(people, randomness=randomness) for _ in range(2)]
    release_ = run_blender(*groups, BlenderParams(Budget(4.0, 1e-5)), randomness=randomness)
    shares = {row.query: 0.25 for row in result_of(release_).trends}
    cells = {(row.query, row.url): 0.25 for row in result_of(release_).records}
    return result_of(release_).evaluated({"query_l1": 0.0, "record_l1": 0.0, "ndcg": 1.0}, shares, cells)


def printed(monkeypatch: pytest.MonkeyPatch, width: int, encoding: str, show: Callable[[], None]) -> str:
    """What a terminal of this width and encoding gets."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr("sys.stdout", stream)
    _escape_what_cannot_be_encoded()
    console = Terminal(file=stream, width=width, highlight=False, markup=False, emoji=False)
    monkeypatch.setattr(printing, "output", lambda: console)
    show()
    stream.flush()
    content = stream.buffer
    assert isinstance(content, io.BytesIO)
    return content.getvalue().decode(encoding)


def one_word(text: str) -> str:
    """Without the folds, blanks and rules of a table."""
    return re.sub(r"[\s|─+-]", "", text)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("width", WIDTHS)
def test_names_stay_whole_in_the_tables_of_a_run(monkeypatch, result: Result, width: int, encoding: str):
    for make in (trends_table, comparison_table):
        text = printed(monkeypatch, width, encoding, lambda make=make: print_table(make(result, 20)))
        lines = text.splitlines()
        assert max(map(len, lines[1:])) <= max(width, 30) + 40 * (encoding != "utf-8")  # an escaped name is longer
        assert "%" in text
        for name in NAMES[:1] if encoding == "ascii" else NAMES[:2]:
            assert one_word(name) in one_word(text)
        if encoding == "utf-8":
            assert all(part in text for name in NAMES for part in name.split())


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("width", WIDTHS)
def test_an_explanation_is_printed_everywhere(monkeypatch, result: Result, width: int, encoding: str):
    text = printed(monkeypatch, width, encoding, lambda: print_table(*explanation(result)))
    assert "chosen" in text
    assert "subset selection" in " ".join(text.split())


def wide_table() -> Table:
    table = new_table("A title that is longer than sixty columns and must not be broken into pieces: /some/path.tsv")
    table.add_column("name")
    for figure in range(9):
        table.add_column(f"figure {figure}", justify="right")
    table.add_column("what it means")
    for name in NAMES:
        table.add_row(name, *(f"{figure},000" for figure in range(9)), "words that may be folded")
    return table


@pytest.mark.parametrize("width", WIDTHS)
def test_figures_go_from_the_last_and_titles_stay_in_one_line(monkeypatch, width: int):
    text = printed(monkeypatch, width, "utf-8", lambda: print_table(wide_table()))
    title, *rest = text.splitlines()
    assert title.endswith("/some/path.tsv")
    shown = [figure for figure in range(9) if f"figure {figure}" in text]
    assert shown == list(range(len(shown)))
    assert 1 <= len(shown) < 9
    assert max(map(len, rest)) <= width


def test_a_wide_terminal_shows_every_column(monkeypatch):
    text = printed(monkeypatch, 240, "utf-8", lambda: print_table(wide_table()))
    assert all(f"figure {figure}" in text for figure in range(9))


def test_our_own_signs_have_plain_ones(monkeypatch):
    text = printed(monkeypatch, 80, "ascii", lambda: printing.print_line("ε = 4, δ ≥ 1/users, 2 – 3 → ⋆ …"))
    assert text == "eps = 4, delta >= 1/users, 2 - 3 -> * ...\n"


def test_every_table_of_a_command_goes_through_the_one_printer():
    """What is tested here holds for all of them: no command prints a table by itself."""
    for module in (device, ledger, pack, plan, release, search, serve, stats):
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        assert "new_table(" not in source or "print_table(" in source
        assert not re.search(r"output\(\)\.print|Console\(", source), module.__name__
