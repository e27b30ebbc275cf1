"""Node and Chromium end with the module that asked them: beside databases and Spark their memory is wanted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from node_twin import NODES

from console_browser import BROWSERS


@pytest.fixture(scope="module", autouse=True)
def programs_end() -> Iterator[None]:
    yield
    NODES.close()
    BROWSERS.close()
