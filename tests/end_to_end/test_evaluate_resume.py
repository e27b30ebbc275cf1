"""An evaluation that is interrupted keeps its runs, says so, and gives the same bytes when it goes on."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

from searchblend.cli.main import main

WORDS = ["evaluate", "fig12", "--runs", "2"]
INTERRUPTED = """
import os, signal
from searchblend.cli.main import entry_point
from searchblend_lab.papers.store import CellStore

keep = CellStore.put

def keep_and_interrupt(store, results):
    keep(store, results)
    os.kill(os.getpid(), signal.SIGINT)

CellStore.put = keep_and_interrupt
entry_point()
"""
"""the command, with an interrupt as soon as the first runs are kept"""


def kept(folder: Path) -> int:
    try:
        with sqlite3.connect(f"file:{folder / '.cells.sqlite'}?mode=ro", uri=True) as store:
            return int(store.execute("SELECT count(*) FROM cell").fetchone()[0])
    except sqlite3.Error:
        return 0


def outputs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("[!.]*")}


def test_an_interrupted_evaluation_goes_on_and_gives_the_same_bytes(tmp_path):
    words = [*WORDS, "--workers", "2", "-o", str(tmp_path / "stopped")]
    stopped = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *words], capture_output=True, text=True, check=False, timeout=240
    )
    before = kept(tmp_path / "stopped")
    assert stopped.returncode == 130, stopped.stderr
    assert "the same command goes on from there" in stopped.stderr
    assert not outputs(tmp_path / "stopped")
    assert 0 < before < 20

    assert main(words) == 0
    assert main([*WORDS, "--workers", "1", "-o", str(tmp_path / "whole")]) == 0
    assert outputs(tmp_path / "stopped") == outputs(tmp_path / "whole")
