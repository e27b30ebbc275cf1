"""A page that is open in Chromium, and what it did that it should not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page

from console_browser import PATIENCE_MS


class Watched:
    """A page, its errors, and its requests to other hosts."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def elsewhere(self) -> list[str]:
        return [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]


@contextlib.contextmanager
def opened(browser: Browser, path: Path, width: int = 1280) -> Iterator[Watched]:
    """A file in a profile of its own."""
    with contextlib.closing(browser.new_context(viewport={"width": width, "height": 900})) as context:
        context.set_default_timeout(PATIENCE_MS)
        watched = Watched(context.new_page())
        watched.page.goto(path.as_uri())
        yield watched
