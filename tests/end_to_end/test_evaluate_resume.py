"""An evaluation that is interrupted keeps its runs, says so, and gives the same bytes when it goes on."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

COMMAND = [str(Path(sys.executable).parent / "searchblend"), "evaluate", "fig12", "--runs", "6"]


def kept(folder: Path) -> int:
    try:
        with sqlite3.connect(f"file:{folder / '.cells.sqlite'}?mode=ro", uri=True) as store:
            return int(store.execute("SELECT count(*) FROM cell").fetchone()[0])
    except sqlite3.Error:
        return 0


def outputs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("[!.]*")}


def test_interrupted_then_continued(tmp_path):
    arguments = [*COMMAND, "--workers", "2", "-o", str(tmp_path / "stopped")]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not kept(tmp_path / "stopped") and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    before = kept(tmp_path / "stopped")
    assert process.returncode == 130
    assert "the same command goes on from there" in errors
    assert not outputs(tmp_path / "stopped")
    assert 0 < before < 60, "it was over before it could be interrupted"

    subprocess.run(arguments, check=True, capture_output=True, timeout=120)
    subprocess.run(
        [*COMMAND, "--workers", "1", "-o", str(tmp_path / "whole")], check=True, capture_output=True, timeout=120
    )
    assert outputs(tmp_path / "stopped") == outputs(tmp_path / "whole")
