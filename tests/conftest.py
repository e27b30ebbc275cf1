"""Settings of all tests: a slow machine is no failure, and examples are the same in every run.

``--hypothesis-profile exploring`` draws new ones; ``make slow`` does.
"""

import atexit
import gc
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

gc.disable()  # while the tests are collected, which only makes things that stay
QUICK = ("architecture", "properties", "unit", "vectors")
"""the folders of `make quick`, which leaves out what is marked database_server or thorough"""

settings.register_profile("searchblend", deadline=None, derandomize=True)
settings.register_profile("exploring", deadline=None)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=10)
settings.load_profile("searchblend")


def pytest_configure() -> None:
    """A shell starts what it puts into the background with Ctrl-C ignored, and whatever a test starts inherits that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """What collecting made stays to the end: the garbage collector need not look through it after every few tests."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if "databases" in sys.modules:
        is_quick = item.path.relative_to(Path(__file__).parent).parts[0] in QUICK
        marked = item.get_closest_marker("database_server") is not None
        sys.modules["databases"].unmarked = item.name if is_quick and not marked else ""


def pytest_sessionfinish() -> None:
    """End the database server, if a test has started one, and look for what no one has closed.

    Twice through everything, for what an object that goes sets free; pytest's own five times need not look through
    what stays then. When the interpreter ends it is let go: libraries count what is left of them.
    """
    gc.unfreeze()
    for _ in range(2):
        gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)
    if "databases" in sys.modules:
        sys.modules["databases"].stop_servers()
