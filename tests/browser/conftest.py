"""One Chromium for all tests of this folder that a process runs, one after the other."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import console_browser


@pytest.fixture(scope="module")
def chromium() -> Browser:
    return console_browser.BROWSERS.chromium()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """Close it after the last of them, when their own fixtures have ended."""
    try:
        return (yield)
    finally:
        if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
            console_browser.BROWSERS.close()
