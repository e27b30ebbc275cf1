"""Windows has neither uvloop nor the module ``resource``: the extra resolves there, and the server answers without."""

from __future__ import annotations

import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx2
import pytest

ROOT = Path(__file__).parents[3]
WITHOUT = """
import sys
sys.modules["uvloop"] = None
sys.platform = "win32"
import searchblend.service.process
sys.platform = "linux"
searchblend.service.process.sys = type("Windows", (), {"platform": "win32"})
assert not hasattr(searchblend.service.process, "resource")
import searchblend.cli.main
sys.exit(searchblend.cli.main.main(sys.argv[1:]))
"""


def test_the_servers_extra_resolves_on_windows():
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["server"]
    wanted = next(one for one in extra if one.startswith("uvloop"))
    assert wanted.partition(";")[2].strip() == "sys_platform != 'win32'"


@pytest.mark.thorough
def test_the_server_answers_without_uvloop(tmp_path):
    command = [sys.executable, "-c", WITHOUT, "serve", "--data-dir", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        address, health = server.stdout.readline().strip(), server.stdout.readline().strip().removeprefix("health: ")
        try:
            assert httpx2.get(f"{address}/healthz", timeout=240).text == "ok\n"
            assert httpx2.get(f"{health}/readyz", timeout=240).status_code in (200, 503)
        finally:
            server.send_signal(signal.SIGTERM)
        assert server.wait(240) == 0
