"""``searchblend audit-log``: who did what to which round, and whether the log is what was written."""

from __future__ import annotations

import argparse

from searchblend.cli.service_options import opened, show
from searchblend.core.documents import encode
from searchblend.store.store_errors import CorruptAudit


def run(options: argparse.Namespace) -> None:
    with opened(options) as store:
        rows = store.audit.rows()
        last = store.audit.verify()
    if options.action == "show":
        show({"rows": [encode(row.entry) for row in rows]}, as_json=options.json)
        return
    if options.head and options.head not in {row.hash for row in rows}:
        raise CorruptAudit(len(rows), "the hash noted earlier is not in the chain: rows were removed or rewritten")
    show({"rows": len(rows), "head": last.hash if last else None, "whole": True}, as_json=options.json)
