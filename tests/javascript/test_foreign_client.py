"""Our gateway and an oblivious client of other people's HPKE and binary HTTP, installed from npm."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from searchblend.service.clock import SystemClock
from searchblend.wire.ohttp import GATEWAY_PATH
from service_parts import Service
from service_process import ServerProcess, running

pytestmark = pytest.mark.slow
CLIENT = Path(__file__).with_name("foreign_client.mjs")
PACKAGES = ("@hpke/core@1.9.0", "@hpke/dhkem-x25519@1.8.0", "bhttp-js@0.2.1")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("client")
    install = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES]
    done = subprocess.run(install, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        pytest.skip(f"NOT RUN: no other implementation of oblivious HTTP could be installed ({', '.join(PACKAGES)})")
    shutil.copy(CLIENT, folder)
    return folder / CLIENT.name


def test_a_client_of_other_peoples_making_is_answered(client, tmp_path):
    parts = Service.start(str(tmp_path / "service.db"), tmp_path, SystemClock())
    task = parts.task()
    content = bytes(range(256)) * 1024
    large = parts.store.artifacts.put(content, "application/octet-stream")
    parts.work()
    with running(ServerProcess(tmp_path, str(tmp_path / "service.db"))) as server:
        paths = [f"/v1/artifacts/{large}", f"/v1/tasks/{task.task}/manifest", "/console"]
        command = ["node", str(client), server.address + GATEWAY_PATH, *paths]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    first, manifest, console = (line.split() for line in done.stdout.splitlines())
    assert first == ["200", hashlib.sha256(content).hexdigest()]
    assert manifest[0] == "200"
    assert console[0] == "404"
