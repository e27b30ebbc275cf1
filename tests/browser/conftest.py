"""One Chromium for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

import console_browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with console_browser.chromium() as browser:
        yield browser
