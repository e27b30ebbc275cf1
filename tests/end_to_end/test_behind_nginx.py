"""``deploy/nginx.conf`` with a real nginx in front of a real server: what works through it, and what does not pass."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from certificates import certificate
from searchblend.service.clock import SystemClock
from searchblend.wire.signing import verify_manifest
from service_parts import Service, people
from service_process import REPORT, REPORTS, ServerProcess, free_port, running

CONFIGURATION = Path(__file__).parents[2] / "deploy" / "nginx.conf"
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
PATIENT = 240.0
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed: scripts/install-servers.sh")


def adapted(folder, upstream, ports):
    """The file as it is, with the places of this test instead of those that are marked CHANGE or belong to Debian."""
    cert, key = certificate(folder)
    text = CONFIGURATION.read_text()
    changes = {
        "127.0.0.1:8470;": f"{urlsplit(upstream).netloc};",
        "listen 80;": f"listen 127.0.0.1:{ports[0]};",
        "listen 443 ssl http2;": f"listen 127.0.0.1:{ports[1]} ssl http2;",
        "/etc/nginx/tls/certificate.pem": str(cert),
        "/etc/nginx/tls/key.pem": str(key),
        "/run/nginx.pid": str(folder / "nginx.pid"),
        "/var/log/nginx": str(folder),
        "/var/cache/nginx": str(folder),
        "client_header_timeout 10s": "client_header_timeout 1s",
        "client_body_timeout 10s": "client_body_timeout 1s",
    }
    for there, here in changes.items():
        assert there in text, there
        text = text.replace(there, here)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = text.replace("http {\n", f"http {{\n{temporary}", 1)
    return ("user root;\n" if os.geteuid() == 0 else "") + text


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A service with a round that takes reports, and a client that comes through nginx."""
    folder = tmp_path_factory.mktemp("nginx")
    parts = Service.start(str(folder / "service.db"), folder, SystemClock())
    day = 100_000
    task = parts.task(optin_seconds=day, shred_seconds=2 * day, client_seconds=day)
    parts.contribute(parts.open(task), people(400, seed=1))
    round_ = parts.head_list(task)
    server = ServerProcess(folder, str(folder / "service.db"))
    with running(server):
        proxy, ports = start_nginx(folder, server.address)
        try:
            context = ssl.create_default_context(cafile=str(folder / "cert.pem"))
            address = f"https://127.0.0.1:{ports[1]}"
            headers = {"origin": "moz-extension://one-installation"}
            with httpx2.Client(base_url=address, verify=context, timeout=PATIENT, headers=headers) as client:
                yield client, parts, round_, ports, folder
        finally:
            proxy.terminate()
            proxy.wait(PATIENT)
    parts.store.close()


def start_nginx(folder, upstream):
    """On two ports that are free; another process may take one meanwhile."""
    command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]
    said = folder / "nginx.said"
    for _ in range(5):
        ports = free_port(), free_port()
        (folder / "nginx.conf").write_text(adapted(folder, upstream, ports))
        with said.open("wb") as errors:
            proxy = subprocess.Popen(command, stderr=errors)
        if listens(ports[1], proxy):
            return proxy, ports
        assert "Address already in use" in said.read_text(), said.read_text()
    raise AssertionError("nginx finds no free ports")


def listens(port, proxy):
    """Whether it comes to listen; False if it ends instead."""
    deadline = time.monotonic() + PATIENT
    while proxy.poll() is None:
        assert time.monotonic() < deadline, "nginx does not listen"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return True
    return False


def test_devices_get_their_manifest_and_report(site):
    client, parts, round_, _, _ = site
    pinned = {key.key_id: key.public_point for key in parts.signing_keys.all()}
    for _ in range(2):  # from the service, and from the cache
        manifest = verify_manifest(client.get(f"/v1/tasks/{round_.task}/manifest").content, pinned).document
        assert manifest["phase"] == "client"
    assert client.get(f"/v1/artifacts/{manifest['client']['artifact']}").status_code == 200
    messages, at = parts.messages(round_, people(4, seed=2)), f"/v1/tasks/{round_.task}/rounds/{round_.number}"
    assert client.post(f"{at}/reports", content=messages[0], headers={"content-type": REPORT}).status_code == 200
    batch = client.post(f"{at}/report-batches", content=b"".join(messages), headers={"content-type": REPORTS})
    assert batch.json() == {"accepted": 4, "refused": {}}
    assert parts.store.reports.n_seen(round_.key) == 4


def test_people_sign_in_to_the_console_with_a_secure_cookie(site):
    client, parts, round_, _, _ = site
    token = parts.store.tokens.add_admin("olive", "operator", actor="test", now=1)
    page = client.get("/console/sign-in")
    assert page.status_code == 200
    form = page.text.split('name="form" value="')[1].split('"')[0]
    answer = client.post("/console/sign-in", data={"token": token, "form": form})
    assert (answer.status_code, answer.headers["location"]) == (303, "/console")
    assert "secure" in answer.headers["set-cookie"].lower()
    assert round_.task in client.get(f"/console/tasks/{round_.task}").text
    style = client.get("/console/static/console.css")
    assert (style.status_code, style.headers["content-type"]) == (200, "text/css; charset=utf-8")
    listed = client.get("/admin/v1/tasks", headers={"authorization": f"Bearer {token}"})
    assert [row["task"] for row in listed.json()["tasks"]] == [round_.task]


def test_everybody_reads_the_trends_and_nobody_the_metrics(site):
    client, _, round_, ports, _ = site
    assert client.get(f"/trends/{round_.task}").status_code == 200
    assert client.get("/healthz").text == "ok\n"
    for inside in ("/metrics", "/readyz", "/", "/.git/config"):
        assert client.get(inside).status_code == 404
    plain = httpx2.get(f"http://127.0.0.1:{ports[0]}/healthz", timeout=PATIENT)
    assert (plain.status_code, plain.headers["location"]) == (301, "https://127.0.0.1/healthz")


def test_what_is_too_large_or_too_slow_ends_at_the_proxy(site):
    client, _, round_, ports, folder = site
    at = f"/v1/tasks/{round_.task}/rounds/{round_.number}/reports"
    assert client.post(at, content=bytes(2**20 + 1), headers={"content-type": REPORT}).status_code == 413
    assert client.get("/healthz", headers={"x": "x" * 50_000}).status_code == 400
    context = ssl.create_default_context(cafile=str(folder / "cert.pem"))
    with (
        socket.create_connection(("127.0.0.1", ports[1]), timeout=PATIENT) as wire,
        context.wrap_socket(wire, server_hostname="127.0.0.1") as stranger,
    ):
        stranger.sendall(b"GET /healthz HTTP/1.1\r\nHo")
        stranger.settimeout(PATIENT)
        assert not stranger.recv(1000).startswith(b"HTTP/1.1 200")


def test_the_proxys_log_tells_of_nobody(site):
    client, _, _, _, folder = site
    log = folder / "access.log"
    n_before = len(log.read_text().splitlines())
    assert client.get("/v1/tasks/canary-task/manifest?q=canary-query").status_code == 404
    deadline = time.monotonic() + PATIENT
    while len((text := log.read_text()).splitlines()) == n_before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert " 404 GET " in text
    assert not [word for word in ("127.0.0.1", "canary", "one-installation", "moz-extension") if word in text]
