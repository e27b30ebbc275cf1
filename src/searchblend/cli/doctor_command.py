"""``searchblend doctor``: everything that can be checked about a service, in one go."""

from __future__ import annotations

import argparse

from searchblend.cli.service_options import opened, settings_of, show
from searchblend.core.documents import encode
from searchblend.core.errors import RunError
from searchblend.service.checkup import check_up
from searchblend.service.clock import SystemClock


def run(options: argparse.Namespace) -> None:
    settings = settings_of(options)
    with opened(options) as store:
        findings = check_up(store, SystemClock(), settings)
    faults = [finding for finding in findings if not finding.fine]
    show({"checks": encode(findings)}, as_json=options.json)
    if faults:
        raise RunError(f"{len(faults)} of {len(findings)} checks failed: {', '.join(fault.check for fault in faults)}")
