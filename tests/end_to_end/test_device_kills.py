"""150 crash points: a device killed at named steps and at random instants never says two things in one round."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from device_kill_loop import POINTS

TESTS = Path(__file__).parents[1]
MUTANTS = ["sends before it keeps", "makes it again after no answer"]


@pytest.fixture
def folder(tmp_path):
    """In memory where there is such a place: a kill loses nothing that was written, so no disk need be waited for."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as made:
        yield Path(made)


def kill_loop(folder: Path, kills: int, seed: int, *mutant: str) -> dict:
    command = [sys.executable, str(TESTS / "device_kill_loop.py"), str(folder), str(kills), str(seed), *mutant]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=560, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_a_hundred_and_fifty_crash_points(folder):
    """Ten times as many as the wrong devices below survive."""
    found = kill_loop(folder, 150, 1)
    assert found["broken"] == []
    assert found["kills"] >= 150
    assert found["rounds_reported"] == found["rounds"] == found["different_reports"]
    assert found["reports_received"] > found["different_reports"], "no report was ever repeated"
    assert {f"at {point}" for point in POINTS} <= set(found["where"]), "some step was never the last"
    assert found["where"]["at a random instant"] > 25


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_two_thousand_at_other_places(folder, part):
    """In parts: beside other work all of them together took longer than one program may."""
    found = kill_loop(folder, 250, time.time_ns() % 1_000_000 + part)
    assert found["broken"] == []
    assert found["rounds_reported"] == found["rounds"] == found["different_reports"]


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_device_that_does_it_in_another_order_is_found_out(folder, mutant):
    found = kill_loop(folder, 150, 1, mutant)
    assert any("different reports" in text for text in found["broken"])
