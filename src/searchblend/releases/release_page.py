"""The page of a release that is there already, from its files alone: what ``searchblend page`` does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from searchblend.core.errors import InputError
from searchblend.pages.click_graph_page import click_graph_page
from searchblend.pages.hybrid_page import hybrid_page
from searchblend.pages.layout import PAGE
from searchblend.wire.click_graph import STATEMENT, STATEMENT_KIND
from searchblend.wire.click_graph_files import read_click_graph

RESULT: Final = "result.json"


def page_of_folder(folder: Path, *, on_step: Callable[[str], None] = lambda step: None) -> str:
    """The same page that ``--html`` would have put there; files must have the hashes that the statement states."""
    if not folder.is_dir():
        raise InputError(folder, "expected the folder of a release")
    statement = _document(folder / STATEMENT, _bytes(folder / STATEMENT))
    if statement.get("format") != "searchblend-statement":
        raise InputError(folder / STATEMENT, "expected a searchblend statement", field="format")
    try:
        kind = statement["release"]["kind"]
        statement["files"].pop(PAGE, None)
        if kind == STATEMENT_KIND:
            return click_graph_page(read_click_graph(folder, on_step=on_step), statement)
        return hybrid_page(_result(folder, statement["files"][RESULT]["sha256"]), statement)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(folder, "expected the files of a release as searchblend writes them") from error


def _result(folder: Path, stated: str) -> dict[str, Any]:
    path = folder / RESULT
    content = _bytes(path)
    if hashlib.sha256(content).hexdigest() != stated:
        raise InputError(path, "is not the file that statement.json describes (SHA-256 differs)")
    return _document(path, content)


def _document(path: Path, content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(path, "expected a JSON document") from error
    if not isinstance(document, dict):
        raise InputError(path, "expected a JSON object")
    return document


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from error
