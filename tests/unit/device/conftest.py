"""A service that writes down what it is sent, and a task."""

from __future__ import annotations

import pytest

from device_parts import MadeTask, RecordingService


@pytest.fixture
def service():
    with RecordingService() as running:
        yield running


@pytest.fixture
def task():
    return MadeTask()
