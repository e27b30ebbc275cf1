"""Settings of all tests: a slow machine is no failure."""

import sys

from hypothesis import settings

settings.register_profile("searchblend", deadline=None)
settings.load_profile("searchblend")


def pytest_sessionfinish() -> None:
    """End the database server, if a test has started one."""
    if "databases" in sys.modules:
        sys.modules["databases"].stop_servers()
