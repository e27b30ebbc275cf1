"""Formulas: a spreadsheet that opens a published or downloaded table must see strings, whatever people searched for."""

from __future__ import annotations

import csv
import io

from attack_service import COMMON
from searchblend.core.records import Record

URL = "http://page.example/a"
FORMULAS = [
    "=1+1",
    "=cmd|' /c calc'!a0",
    "+1+1",
    "-2+3",
    "@sum(1)",
    '=hyperlink("http://evil.example","x")',
    '"=1+1',
    ";=1+1",
    ",=1+1",
]
STARTS = tuple("=+-@\t\r\n＝＋－＠")


def test_no_cell_of_a_published_table_is_a_formula(service):
    task = service.task(max_head_queries=50)
    records = [Record(text, URL) for text in FORMULAS] * 30 + COMMON * 20
    candidate, _ = service.play_optin(task, records)
    listed = [query for query, _ in candidate["head"]]
    assert set(FORMULAS) - set(listed) == set(), "the attack needs them listed"
    hits = [{"query": hit["query"], "url": hit["url"]} for hit in candidate["hits"]]
    service.act(task, "review", "reviewer", keep=hits)
    number = service.wait_state(task, "CLIENT_OPEN")["round"]
    service.report(service.manifest(task, "client", number), records[:120])
    service.act(task, "close-clients")
    service.act(task, "end-grace")
    service.wait_state(task, "PUBLISHED")
    files = service.done("GET", f"/tasks/{task}/rounds/{number}")["files"]
    tables = {name: service.http.get(f"/v1/artifacts/{digest}") for name, digest in files.items() if "csv" in name}
    assert set(tables) >= {"trends.csv", "records.csv"}
    for name, answer in tables.items():
        assert "csv" in answer.headers["content-type"]
        assert answer.headers.get("x-content-type-options") == "nosniff", name
        check_table(name, answer.text)


def check_table(name, text):
    """With every separator that a spreadsheet may take for its own."""
    rows = list(csv.reader(io.StringIO(text)))
    assert len({len(row) for row in rows}) == 1, f"{name}: rows of different lengths"
    for cells in (rows, *(list(csv.reader(io.StringIO(text), delimiter=other)) for other in ";\t")):
        for cell in (cell for row in cells for cell in row):
            assert not cell.startswith(STARTS) or is_number(cell), f"{name}: {cell!r} is a formula"


def is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True
