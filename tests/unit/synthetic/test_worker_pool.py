"""Ctrl-C goes to parent and workers alike, and ends in what the parent says alone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).parents[3]
PROGRAM = """
import sys, time
from pathlib import Path
from searchblend.synthetic.worker_pool import WorkerPool

def work(name):
    place = Path(name)
    try:
        place.with_suffix(".begun").touch()
        time.sleep(600)
    finally:
        place.with_suffix(".cleaned").touch()

if __name__ == "__main__":
    try:
        with WorkerPool(2) as pool:
            [pool.submit(work, f"{sys.argv[1]}/{number}") for number in range(6)][0].result()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
"""


def test_an_interrupt_ends_tasks_in_order_and_says_one_thing(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    try:
        give_up = time.monotonic() + 240
        while len(list(tmp_path.glob("*.begun"))) < 2:
            assert process.poll() is None
            assert time.monotonic() < give_up
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=240)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert errors.decode() == "interrupted\n"
    assert len(list(tmp_path.glob("*.begun"))) == len(list(tmp_path.glob("*.cleaned"))) == 2


def test_every_command_with_workers_has_them_from_here():
    files = [path for folder in ("src", "lab/src") for path in (SOURCE / folder).rglob("*.py")]
    own = [path.name for path in files if "ProcessPoolExecutor" in path.read_text()]
    assert own == ["worker_pool.py"]
