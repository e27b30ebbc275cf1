"""Settings of all tests: a slow machine is no failure, and examples are the same in every run.

``--hypothesis-profile exploring`` draws new ones; ``make slow`` does.
"""

import sys

from hypothesis import settings

settings.register_profile("searchblend", deadline=None, derandomize=True)
settings.register_profile("exploring", deadline=None)
settings.load_profile("searchblend")


def pytest_sessionfinish() -> None:
    """End the database server, if a test has started one."""
    if "databases" in sys.modules:
        sys.modules["databases"].stop_servers()
