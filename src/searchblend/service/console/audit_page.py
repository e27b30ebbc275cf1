"""The audit log for people, and as files to take away."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from searchblend.core.csv_cells import write_csv
from searchblend.core.documents import encode
from searchblend.service.api.documents import AuditView, audit_lines
from searchblend.service.console.words import iso
from searchblend.store.audit import AuditEntry, AuditRow, verify_chain
from searchblend.store.errors import CorruptAudit
from searchblend.store.service_store import ServiceStore

PER_PAGE: Final = 100
_COLUMNS: Final = ("position", "when", "actor", "action", "detail", "previous", "hash")


@dataclass(frozen=True)
class AuditPage:
    """The audit log for people: who did what and when, and whether the chain of hashes is whole."""

    rows: list[AuditEntry]
    """newest first"""
    first: int
    n_rows: int
    broken: str
    """where the log is not what was written, if so"""
    head: str
    """the last row's hash, to be noted elsewhere"""


def read_audit(store: ServiceStore, first: int) -> AuditPage:
    rows = store.audit.rows()
    try:
        last, broken = verify_chain(rows), ""
    except CorruptAudit as error:
        last, broken = None, str(error)
    first = max(0, min(first, len(rows) - 1)) // PER_PAGE * PER_PAGE
    shown = [row.entry for row in rows[::-1][first : first + PER_PAGE]]
    return AuditPage(shown, first, len(rows), broken, last.hash if last else "")


def _as_csv(rows: list[AuditRow]) -> bytes:
    return write_csv(_COLUMNS, [_line(row.entry) for row in rows]).encode()


def _line(entry: AuditEntry) -> dict[str, object]:
    detail = json.dumps(entry.detail, ensure_ascii=False, sort_keys=True)
    return {**vars(entry), "when": iso(entry.when), "detail": detail}


def _as_json(rows: list[AuditRow]) -> bytes:
    """The document of the admin API."""
    return json.dumps(encode(AuditView([row.entry for row in rows])), ensure_ascii=False).encode()


def _as_lines(rows: list[AuditRow]) -> bytes:
    return "".join(audit_lines(rows)).encode()


AUDIT_FILES: Final[Mapping[str, tuple[str, Callable[[list[AuditRow]], bytes]]]] = {
    "audit.csv": ("text/csv; charset=utf-8", _as_csv),
    "audit.json": ("application/json", _as_json),
    "audit.jsonl": ("application/x-ndjson", _as_lines),
}
