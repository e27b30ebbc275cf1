"""What axe-core says about a page that is open in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

AXE = Path(__file__).parents[1] / "extension/node_modules/axe-core/axe.min.js"
BAD = ("serious", "critical")
RULES: dict[str, dict[str, Any]] = {
    "light": {},
    "dark": {"runOnly": ["color-contrast", "link-in-text-block"]},
    "phone": {"rules": {"color-contrast": {"enabled": False}}},
}
"""the same page in another look: in the dark only its colours differ, on a phone everything else"""


def serious_violations(page: Page, look: str = "light") -> list[str]:
    """Rule and place of every serious or critical violation; moderate ones are left to the eye.

    The script is given to the page by the browser's debugger, so that no policy of the page has to allow it.
    """
    assert AXE.is_file(), f"{AXE} is missing: `make browsers` installs it"
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    # A page that was opened as a file may not fetch its own style sheets, which axe would do.
    options = {"resultTypes": ["violations"], "preload": not page.url.startswith("file:"), **RULES[look]}
    found = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{violation['id']}: {node['target']}: {node['failureSummary']}"
        for violation in found["violations"]
        if violation["impact"] in BAD
        for node in violation["nodes"]
    ]
