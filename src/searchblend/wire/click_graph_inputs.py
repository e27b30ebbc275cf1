"""Small tables for a released graph, written by hand or cut out of its CSV: seeds, categories, stop lists."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from searchblend.core.csv_cells import read_cell
from searchblend.core.errors import InputError


def read_seeds(path: Path) -> dict[str, list[str]]:
    """Lines of ``class,url-or-domain`` by class; a first line ``class,url`` is a header."""
    classes: dict[str, list[str]] = {}
    for _, name, seed in _pairs(path, "class", "url or domain"):
        classes.setdefault(name, []).append(seed)
    return classes


def read_categories(path: Path) -> dict[str, str]:
    """Lines of ``term,category``; a first line of that text is a header. A term has one category."""
    categories: dict[str, str] = {}
    for line, term, category in _pairs(path, "term", "category"):
        if categories.setdefault(term, category) != category:
            raise InputError(path, "expected one category for each term; this one has another above", line=line)
    return categories


def read_stop_list(path: Path) -> list[str]:
    """One term or query a line; empty lines say nothing."""
    return [line for line in (string.strip() for string in _text(path).splitlines()) if line]


def _pairs(path: Path, first: str, second: str) -> Iterator[tuple[int, str, str]]:
    reader = csv.reader(_text(path).splitlines(), strict=True)
    n_pairs = 0
    try:
        for row in reader:
            fields = [read_cell(field.strip()) for field in row]
            is_header = reader.line_num == 1 and fields[:1] == [first] and second.startswith(fields[-1])
            if is_header or not any(fields):
                continue
            if len(fields) != 2 or not all(fields):
                raise InputError(path, f"expected {first},{second}", line=reader.line_num)
            n_pairs += 1
            yield reader.line_num, fields[0], fields[1]
    except csv.Error as error:
        raise InputError(path, f"expected comma-separated values: {error}", line=reader.line_num) from error
    if not n_pairs:
        raise InputError(path, f"holds nothing; expected lines of {first},{second}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(path, "expected UTF-8 text") from error
