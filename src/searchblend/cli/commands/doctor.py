"""``searchblend doctor``: everything that can be checked about a service, in one go."""

from __future__ import annotations

import argparse

from searchblend.cli.printing import print_json, print_line
from searchblend.cli.service_options import add_passphrase, add_place, opened, serve_settings
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
    if options.json:
        print_json({"fine": not faults, "checks": encode(findings)})
    for finding in [] if options.json else findings:
        print_line(f"{'ok' if finding.fine else 'FAULT':<6}{finding.check}: {finding.detail}")
    if faults:
        raise RunError(f"{len(faults)} of {len(findings)} checks failed: {', '.join(fault.check for fault in faults)}")
