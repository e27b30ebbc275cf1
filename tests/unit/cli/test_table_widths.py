"""Every table at 60, 80 and 120 columns and in three encodings: names stay whole, figures of lesser use go first."""

from __future__ import annotations

import ast
import io
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.table import Column, Table
from rich.text import Text

from searchblend.cli import printing
from searchblend.cli.main import _escape_what_cannot_be_encoded
from searchblend.cli.printing import fit, new_table, print_table
from searchblend.cli.terminal import Terminal
from table_samples import NAMES, SAMPLES

ROOT = Path(__file__).parents[3]
WIDTHS = (60, 80, 120)
ENCODINGS = ("ascii", "latin-1", "utf-8")


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


def letters(text: str) -> str:
    """Without blanks and folds."""
    return re.sub(r"\s", "", text)


def columns_as_printed(table: Table, width: int) -> list[str]:
    """What a terminal shows of each column from top to bottom; no line may be wider than it."""
    stream = io.StringIO()
    console = Terminal(file=stream, width=width, highlight=False, markup=False, emoji=False)
    console.print(table)
    lines = [
        [part for sign in line for part in (sign, *[""] * (cell_len(sign) - 1))]
        for line in stream.getvalue().splitlines()
    ]
    assert max(map(len, lines)) <= width
    texts, start = [], 1
    for wide in table._calculate_column_widths(console, console.options.update_width(width - table._extra_width)):
        texts.append(letters("".join("".join(line[start : start + wide]) for line in lines)))
        start += wide + 1
    return texts


def check_table(before: list[Column], table: Table, width: int) -> None:
    """All cells of what is left are whole; what is gone are figures, the last first."""
    assert table.columns[0] is before[0]
    figures = [column for column in before if column.justify == "right"]
    left = [column for column in table.columns if column.justify == "right"]
    assert left == figures[: len(left)]
    assert [column for column in table.columns if column not in figures] == [c for c in before if c not in figures]
    for column, text in zip(table.columns, columns_as_printed(table, width), strict=True):
        for cell in column.cells:
            assert letters(cell.plain if isinstance(cell, Text) else str(cell)) in text
        assert "…" not in text


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("module", "name"), SAMPLES, ids=lambda value: getattr(value, "__name__", value))
def test_every_table_fits_and_keeps_its_names(monkeypatch, module, name: str, width: int, encoding: str):
    fitted = []

    def fit_and_check(table: Table, console: Terminal) -> None:
        before = list(table.columns)
        fit(table, console)
        fitted.append(table)
        if encoding == "utf-8":
            check_table(before, table, width)

    monkeypatch.setattr(printing, "fit", fit_and_check)
    text = printed(monkeypatch, width, encoding, SAMPLES[module, name])
    assert fitted
    assert "?" not in text  # no encoder's stand-in


def makers_of_tables() -> Iterator[tuple[str, str]]:
    """File and function of every call of ``new_table``."""
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "lab/src").rglob("*.py")]:
        if "new_table(" in (source := path.read_text(encoding="utf-8")) and path.name != "printing.py":
            yield from ((str(path), name) for name in calling_functions(ast.parse(source)))


def calling_functions(tree: ast.AST, prefix: str = "") -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from calling_functions(node, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            calls = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
            if any(isinstance(call, ast.Name) and call.id == "new_table" for call in calls):
                yield prefix + node.name


def test_every_table_has_a_sample(monkeypatch):
    made = set()

    def new_table_of_caller(*arguments: Any, **named: Any) -> Table:
        code = sys._getframe(1).f_code
        made.add((code.co_filename, code.co_qualname))
        return new_table(*arguments, **named)

    for module, _ in SAMPLES:
        monkeypatch.setattr(module, "new_table", new_table_of_caller)
    for show in SAMPLES.values():
        printed(monkeypatch, 120, "utf-8", show)
    assert made == {(str(Path(str(module.__file__))), name) for module, name in SAMPLES} == set(makers_of_tables())


def test_no_command_prints_a_table_by_itself():
    for path in [*(ROOT / "src/searchblend/cli").rglob("*.py"), *(ROOT / "lab/src").rglob("command.py")]:
        if path.name not in ("printing.py", "terminal.py"):
            assert not re.search(r"output\(\)\.print|Console\(", path.read_text(encoding="utf-8")), path


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
