"""What Lighthouse scores a page that is served on this machine, below what is asked of it."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from console_browser import FLAGS

PACKAGE = "lighthouse@12.8.2"
"""the last that runs on the Node of Debian 12 and 13"""
LOWEST = 95
CATEGORIES = ("accessibility", "best-practices")


def low_scores(url: str, folder: Path, headers: Mapping[str, str] | None = None) -> list[str]:
    """Each category below the lowest score, with the audits that failed.

    Args:
        url: Of the page; Lighthouse opens no files.
        folder: Where its report is written.
        headers: Sent with every request, such as the cookie of a user who is signed in.
    """
    report = folder / "lighthouse.json"
    words = ["npm", "exec", "--yes", "--package", PACKAGE, "--", "lighthouse", url, "--quiet"]
    words += ["--output=json", f"--output-path={report}", f"--only-categories={','.join(CATEGORIES)}"]
    words += ["--throttling-method=provided", "--disable-full-page-screenshot", "--max-wait-for-load=60000"]
    words += [f"--chrome-flags={' '.join(['--headless=new', *FLAGS])}"]
    words += [f"--extra-headers={json.dumps(dict(headers or {}))}"]
    chromium = shutil.which("chromium")
    assert chromium, "chromium is missing: `make browsers` installs it"
    environment = {**os.environ, "CHROME_PATH": chromium}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    content = json.loads(report.read_text(encoding="utf-8"))
    assert content["finalDisplayedUrl"] == url, "scored another page"
    assert set(content["categories"]) == set(CATEGORIES)
    return [
        f"{name} {100 * category['score']:.0f}: {', '.join(failed(category, content['audits']))}"
        for name, category in content["categories"].items()
        if 100 * category["score"] < LOWEST
    ]


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder's files on a server of their own."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def failed(category: dict[str, Any], audits: dict[str, Any]) -> list[str]:
    """Names of the audits that cost points, each with the first place that it names."""
    named = (audits[each["id"]] for each in category["auditRefs"] if each["weight"])
    return [f"{audit['id']} {first_place(audit)}".strip() for audit in named if (audit["score"] or 0) < 1]


def first_place(audit: dict[str, Any]) -> str:
    items = audit.get("details", {}).get("items", [])
    return str(items[0].get("node", {}).get("snippet", "") or items[0].get("description", "")) if items else ""
