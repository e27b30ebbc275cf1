"""A search engine of our own, a round that is driven from outside, and the browser with the extension in it."""

from __future__ import annotations

import contextlib
import html
import http.server
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import parse_qs, quote, urlsplit

from playwright.sync_api import BrowserContext

from console_browser import BROWSERS, PATIENCE_MS
from console_browser import FLAGS as BROWSER_FLAGS
from searchblend.core.documents import decode
from searchblend.core.records import Record
from searchblend.service.api.documents import CandidateList, RoundDetail, RoundView
from searchblend.service.clock import SystemClock
from searchblend.service.demo import DemoConnections, Population, Staff
from searchblend.service.lifecycle import Lifecycle
from searchblend.service.task_settings import TaskSettings
from searchblend.service.workers.signing_keys import SigningKeys
from searchblend.store.service_store import open_store
from searchblend.wire.manifest import PackPart
from service_process import ServerProcess

ROOT = Path(__file__).parents[1]
EXTENSION = ROOT / "extension"
CONSENT = "I agree that one of my searches is sent, sealed, to the curator of this list."
FLAGS = (*BROWSER_FLAGS, "--disable-dev-shm-usage")


def browser_path(name: str) -> str:
    """An installed browser; tests that need one fail without it, and say what to do."""
    found = shutil.which(name)
    assert found, f"{name} is not installed: run `make browsers`"
    return found


def build_extension(folder: Path, *arguments: str) -> Path:
    command = [sys.executable, str(EXTENSION / "build.py"), "--output", str(folder), "--folder", str(folder / "loose")]
    subprocess.run([*command, *arguments], check=True, timeout=240, capture_output=True)
    return folder / "loose"


class Pages(http.server.ThreadingHTTPServer):
    """Serves on a free port of this machine, in a thread."""

    daemon_threads = True

    def __init__(self, handler: type[http.server.BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        return self

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Browsers hang up when a tab or a worker is ended; what else goes wrong is worth a look."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class EngineHandler(http.server.BaseHTTPRequestHandler):
    """Results pages like those of real engines: links that are plain, redirected or opaque, and advertisements."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query).get("q", [""])[0]
        body = self._results(query) if parts.path == "/engine/search" else "<h1>A page</h1>"
        content = f"<!doctype html><meta charset=utf-8><title>engine</title>{body}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    @staticmethod
    def _results(query: str) -> str:
        site = "-".join("".join(c if c.isalnum() else " " for c in query).split()) or "none"
        # the pages of tests/service_parts.people
        first, second = f"http://{site}.example/a", f"http://{site}.example/b"
        return (
            f"<h1>{html.escape(query)}</h1><a id=ad href='http://127.0.0.1/engine/ad?to={quote(first)}'>Ad</a>"
            f"<div class=results><p><a id=first href='{first}?from=engine#top'>First</a>"
            f"<p><a id=second href='/engine/out?to={quote(second)}'>Second</a>"
            "<div><a id=opaque href='/engine/out?token=CAESaAHrOzAV'><h3>Third</h3></a></div>"
            f"<div class=ad><a id=inner-ad href='{first}'><h3>Ad among the results</h3></a></div></div>"
            "<a id=other href='/engine/about'>About</a>"
        )

    def log_message(self, *_: object) -> None:
        pass


class DrivenRound(Population):
    """A service with one task, and the steps that the people around a device take."""

    def __init__(self, folder: Path, **settings: object) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        keys = SigningKeys(folder / "signing")
        keys.add()
        wanted = {
            "name": "searches",
            "delta": 1e-5,
            "max_head_queries": 30,
            "records_per_optin": 1,
            "min_optin": 50,
            "min_clients": 50,
            "min_queries": 2,
            "expected_clients": 400,
            "head_fraction": 0.5,
            "uncapped": True,
        }
        with open_store(str(folder / "service.db")) as store:
            task = Lifecycle(store, SystemClock()).add_task(decode(TaskSettings, {**wanted, **settings}), actor="ann")
            now = SystemClock().now()
            tokens = [store.tokens.add_admin(role, role, actor="ann", now=now) for role in ("operator", "reviewer")]
        self.task, self.staff = task.task, Staff(*tokens)
        self.key = keys.all()[0].public_point.hex()
        self.server = ServerProcess(folder, "sqlite", "--demo-server")
        self.address = self.server.start()
        with urllib.request.urlopen(f"{self.address}/enrol/{self.task}") as page:
            [link] = re.findall(r"<textarea[^>]*>([^<]*)<", page.read().decode())
            self.link = html.unescape(link)
        self._open_transport = DemoConnections(self.address)
        pinned = {key.key_id: key.public_point for key in keys.all()}
        super().__init__(self._open_transport, pinned, lambda *_: None)

    def open(self) -> None:
        number = self._admin("POST", f"/tasks/{self.task}/rounds", self.staff.operator, RoundView).round
        self.at = f"/tasks/{self.task}/rounds/{number}"
        self._admin("POST", f"{self.at}/open", self.staff.operator, RoundView)
        self.manifest = self._manifest(self.task, "opt-in")

    def contribute(self, people: Sequence[Record]) -> None:
        self._contribute(self.task, self.manifest, people)

    def name_head(self) -> CandidateList:
        """What the reviewer approved."""
        self._admin("POST", f"{self.at}/close-opt-in", self.staff.operator, RoundView)
        self._wait(self.at, self.staff.operator, "SHREDDED")
        candidate = self._admin("GET", f"{self.at}/candidate", self.staff.reviewer, CandidateList)
        self._admin("POST", f"{self.at}/review", self.staff.reviewer, RoundView)
        self.manifest = self._manifest(self.task, "client")
        return candidate

    def report(self, people: Sequence[Record]) -> None:
        self._report(self.task, self.manifest, people)

    def publish(self) -> RoundDetail:
        self._admin("POST", f"{self.at}/close-clients", self.staff.operator, RoundView)
        self._admin("POST", f"{self.at}/end-grace", self.staff.operator, RoundView)
        return self._wait(self.at, self.staff.operator, "PUBLISHED")

    def wait_for_pack(self, number: int = 1, seconds: float = 240) -> PackPart:
        """The manifest follows the result a moment later."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            pack = self._manifest(self.task, "idle").pack
            if pack is not None and pack.round == number:
                return pack
            time.sleep(0.1)
        raise AssertionError("no pack was published")

    def close(self) -> None:
        self._open_transport.close()
        if self.server.is_running:
            self.server.kill()


@contextlib.contextmanager
def driven_round(folder: Path, **settings: object) -> Iterator[DrivenRound]:
    round_ = DrivenRound(folder, **settings)
    try:
        yield round_
    finally:
        round_.close()


@contextlib.contextmanager
def chromium(
    profile: Path, extension: Path | None = None, *, color_scheme: Literal["light", "dark"] = "light"
) -> Iterator[BrowserContext]:
    """A browser with a profile of its own, and the extension if one is given."""
    loaded = [f"--disable-extensions-except={extension}", f"--load-extension={extension}"] if extension else []
    context = BROWSERS.playwright().chromium.launch_persistent_context(
        str(profile),
        executable_path=browser_path("chromium"),
        headless=True,
        args=[*FLAGS, *loaded],
        timeout=PATIENCE_MS,
        color_scheme=color_scheme,
        viewport={"width": 1000, "height": 800},
    )
    context.set_default_timeout(PATIENCE_MS)
    try:
        yield context
    finally:
        context.close()
