"""The page of a release that is there already, from its files alone: what ``searchblend page`` does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from searchblend.core.errors import InputError, MessageError
from searchblend.core.outlet import Where
from searchblend.core.silent import SILENT
from searchblend.core.statement import PAGE
from searchblend.pages.click_graph_page import click_graph_page
from searchblend.pages.hybrid_page import hybrid_page
from searchblend.wire.click_graph import STATEMENT_KIND
from searchblend.wire.click_graph_files import read_click_graph
from searchblend.wire.release import RESULT, STATEMENT, read_result, read_statement


def page_of_folder(where: Where, *, on_step: Callable[[str], None] = SILENT) -> str:
    """The same page that ``--html`` would have put there; files must have the hashes that the statement states.

    Args:
        where: the folder of a blend or of a click graph
        on_step: called with the name of each step

    Example:
        ``Path("release.html").write_text(sb.page_of_folder("out"))``
    """
    folder = Path(where)
    if not folder.is_dir():
        raise InputError(folder, "expected the folder of a release")
    statement = read_statement(folder / STATEMENT).without_file(PAGE)
    try:
        if statement.kind == STATEMENT_KIND:
            return click_graph_page(read_click_graph(folder, on_step=on_step), statement)
        return hybrid_page(read_result(folder / RESULT, statement), statement)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, MessageError) as error:
        raise InputError(folder, "expected the files of a release as searchblend writes them") from error
