"""Workers of a long parallel run may be ended before their interpreters are, so the fuzzer's folder goes here."""

from __future__ import annotations


def pytest_sessionfinish():
    from fuzz_texts import HELD

    for folder in HELD:
        folder.cleanup()
