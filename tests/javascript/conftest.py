"""Node ends with the module that asked it: beside browsers and databases its memory is wanted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from node_twin import NODES


@pytest.fixture(scope="module", autouse=True)
def node_ends() -> Iterator[None]:
    yield
    NODES.close()
