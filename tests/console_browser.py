"""Real Chromium for the console's tests: looks, people who sign in, and what a page must never do."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from accessibility import serious_violations

SCREENSHOTS = Path(__file__).parents[1] / "build/screenshots"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-software-rasterizer",  # nor a program that plays one
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 240_000
"""how long a page may take beside other work; nothing that goes well waits for it"""
LOOKS: dict[str, tuple[Literal["light", "dark"], int]] = {
    "phone": ("light", 390),
    "light": ("light", 1280),
    "dark": ("dark", 1280),
}
"""the first is that in which pages are loaded: what a script draws too wide then shows"""
STILL = """async () => {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const ending = document.getAnimations().filter(({ effect }) => effect.getComputedTiming().endTime < Infinity);
  await Promise.allSettled(ending.map(({ finished }) => finished));
}"""


def wear(page: Page, look: str) -> None:
    """Change an open page's look, far cheaper than loading it anew, and wait until it is drawn and nothing slides."""
    scheme, width = LOOKS[look]
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate(STILL)


def sideways(page: Page) -> list[str]:
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return [f"scrolls sideways by {wide} px"] if wide > 0 else []


def photograph(page: Page, name: str, *, full_page: bool = True) -> None:
    """A picture for people, in ``make screenshots`` only: drawing whole pages without a graphics card takes long."""
    if os.environ.get("SCREENSHOTS"):
        page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=full_page)


class Browsers:
    """Playwright and one Chromium for all tests of a process: starting them costs more CPU than most tests.

    Tests stay apart by contexts of their own. Whoever runs tests closes this after the last one that needs a browser:
    while Playwright runs, no event loop can be run in the same thread.
    """

    def __init__(self) -> None:
        self._playwright: Playwright | None = None
        self._chromium: Browser | None = None

    def playwright(self) -> Playwright:
        if self._playwright is None:
            self._playwright = sync_playwright().start()
        return self._playwright

    def chromium(self) -> Browser:
        """The running one, or another if it has come to an end."""
        if self._chromium is None or not self._chromium.is_connected():
            path = shutil.which("chromium")
            assert path, "chromium is missing: `make browsers` installs it"
            launch = self.playwright().chromium.launch
            self._chromium = launch(executable_path=path, headless=True, args=FLAGS, timeout=PATIENCE_MS)
        return self._chromium

    def close(self) -> None:
        playwright, chromium, self._playwright, self._chromium = self._playwright, self._chromium, None, None
        if chromium is not None:
            chromium.close()
        if playwright is not None:
            playwright.stop()


BROWSERS = Browsers()


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """The browser of this process; what is opened in it is closed by who has opened it."""
    yield BROWSERS.chromium()


class Visitor:
    """A browser profile of one person, and everything that went wrong in it."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.context, self.address = context, address
        context.set_default_timeout(PATIENCE_MS)
        self.page: Page = context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.bytes = 0
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def sign_in(self, token: str) -> Visitor:
        self.go("/console/sign-in")
        self.page.get_by_label("Admin token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url("**/console")
        return self

    def go(self, path: str) -> Page:
        self.page.goto(self.address + path)
        return self.page

    def click(self, name: str, role: Literal["button", "link"] = "button") -> None:
        self.page.get_by_role(role, name=name, exact=True).click()

    def complaints(self, look: str = "light") -> list[str]:
        """Errors of scripts and policies, requests to other hosts, sideways scrolling, and what axe-core finds."""
        elsewhere = [url for url in self.requests if not url.startswith((self.address, "data:", "blob:"))]
        hacked = ["a script of the data has run"] if self.page.evaluate("window.hacked") is not None else []
        return [*self.errors, *elsewhere, *sideways(self.page), *hacked, *serious_violations(self.page, look)]


@contextlib.contextmanager
def visiting(
    browser: Browser,
    address: str,
    *,
    java_script_enabled: bool = True,
    reduced_motion: Literal["reduce", "no-preference"] = "reduce",
    timezone_id: str = "UTC",
) -> Iterator[Visitor]:
    """A new profile of a browser.

    Args:
        browser: Where it is opened.
        address: Of the console.
        java_script_enabled: Whether scripts run.
        reduced_motion: What the user asks of animations.
        timezone_id: Where the user is.
    """
    context = browser.new_context(
        viewport={"width": 1280, "height": 900},
        java_script_enabled=java_script_enabled,
        reduced_motion=reduced_motion,
        timezone_id=timezone_id,
    )
    with contextlib.closing(context):
        yield Visitor(context, address)
