"""``searchblend doctor``: everything that can be checked about a service, in one go."""

from __future__ import annotations

import argparse

from searchblend.cli.service_options import add_passphrase, add_place, opened, print_document, serve_settings
from searchblend.core.documents import encode
from searchblend.core.errors import RunError
from searchblend.service.clock import SystemClock

EXAMPLES = """\
examples:
  searchblend doctor                                   checks all that can be checked; exit code 1 if it finds a fault
  searchblend doctor --database postgresql://db.internal/searchblend --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    add_passphrase(parser)
    parser.add_argument("--key-dir", metavar="DIR", help="the curator's keys")
    parser.add_argument("--curator-key", metavar="HEX", help="the curator's public key, where its keys are not")


def run(options: argparse.Namespace) -> None:
    from searchblend.service.checkup import check_up

    settings = serve_settings(options)
    with opened(options) as store:
        findings = check_up(store, SystemClock(), settings)
    faults = [finding for finding in findings if not finding.fine]
    document = {"checks": encode(findings)}
    print_document({"fine": not faults, **document} if options.json else document, as_json=options.json)
    if faults:
        raise RunError(f"{len(faults)} of {len(findings)} checks failed: {', '.join(fault.check for fault in faults)}")
