"""``searchblend serve --demo --once``: a server, devices over HTTP and a whole round, on both databases."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from databases import DATABASES, fresh_database


@pytest.mark.parametrize("kind", DATABASES)
def test_a_small_demo(kind, tmp_path):
    where = fresh_database(kind, tmp_path)
    command = [sys.executable, "-m", "searchblend.cli", "serve", "--demo", "--once", "--json", "--people", "6000"]
    command += ["--data-dir", str(tmp_path / "data"), "--method", "best" if kind == "sqlite" else "paper"]
    command += ["--database", where] if kind == "postgresql" else []
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=560)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["opt_in_users"], result["reports_counted"]) == (1500, 4500)
    assert result["conservation"]["holds"]
    assert "google" in [row["query"] for row in result["trends"]]  # which one comes first is up to the noise
    assert "clients randomize and report" in done.stderr
    log = (tmp_path / "data" / "server.log").read_text()
    assert '"event": "stopped"' in log
