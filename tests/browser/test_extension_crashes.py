"""The device's logic with real IndexedDB and Web Locks in Chromium, ended again and again.

A dedicated worker is terminated at random moments and at every named step, at times with another window beside it, and
with a service that takes a report and loses the answer. Afterwards: never two different reports in a round, and never
one that the ledger does not have.
"""

from __future__ import annotations

import hashlib
import http.server
import json
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import BrowserContext

from device_parts import PublicLog
from extension_parts import CONSENT, EXTENSION, Pages, chromium
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness
from searchblend.core.records import HeadList
from searchblend.device.policy import POLICY
from searchblend.wire.canonical import canonical_json
from searchblend.wire.head_list import encode_head_list
from searchblend.wire.manifest import encode_signed
from searchblend.wire.optin_result import DrawnBy, certify
from searchblend.wire.report import ReportShape
from searchblend.wire.sealed import new_round_key
from searchblend.wire.signing import SigningKey, sign_manifest

TASK = "0123456789abcdef0123456789abcdef"
START = 1_800_000_000
HEAD = HeadList(
    [
        ["news", ["https://news.example"]],
        ["weather 1", ["https://weather.example/a"]],
        *([f"filler {i}", []] for i in range(POLICY.fewest_queries)),
    ]
)
PARAMS = BlenderParams(budget=Budget(0.5, 1e-5), records_per_client=1)
PAGE = b"<!doctype html><meta charset=utf-8><body>crashes<script type=module src=/tests/crashes/page.js></script>"


class Recorder:
    """What a service would sign, and every body that it ever got."""

    def __init__(self) -> None:
        self.key, self.curator = SigningKey.new(), SigningKey.new()
        self.lists: dict[str, bytes] = {}
        self.log = PublicLog()
        self.log.key = self.key
        self.bodies: dict[int, set[bytes]] = {}
        self.manifest, self.drop, self._sequence = b"", False, 0

    def control(self, wanted: dict) -> None:
        self.drop, self._sequence = wanted["drop"], self._sequence + 1
        now, phase = wanted["now"], wanted["kind"]
        shape = ReportShape.of(bytes.fromhex(TASK), wanted["round"], HEAD, PARAMS, None)
        drawn_by = DrawnBy(TASK, wanted["round"], "0.5", "0.00001")
        drawn = certify(HEAD, drawn_by, self.curator.sign, self.curator.public_point, SystemRandomness())
        content = json.dumps(encode_head_list(HEAD, PARAMS, optin_result=drawn)).encode()
        artifact = hashlib.sha256(content).hexdigest()
        self.lists[artifact] = content
        client = {
            "artifact": artifact,
            "digest": HEAD.digest,
            "mechanism": "two-stage",
            "report_bytes": shape.size,
            "opens": now - 10,
            "closes": now + 1000,
        }
        consent = hashlib.sha256(CONSENT.encode()).hexdigest()
        optin = {"public_key": new_round_key()[1].hex(), "consent": consent, "closes": now + 1000}
        payload = canonical_json(
            {
                "format": "searchblend-manifest",
                "version": 1,
                "minor": 0,
                "task": TASK,
                "name": "crashes",
                "engine": "any",
                "market": "any",
                "sequence": self._sequence,
                "issued": now,
                "expires": now + 86_400,
                "phase": phase,
                "round": wanted["round"],
                "killed": False,
                "min_device_version": "0.1",
                "silent_devices": "skip",
                "method": "paper",
                "epsilon": "0.5",
                "delta": "0.00001",
                "records_per_client": 1,
                "records_per_optin": 1,
                "client": client if phase == "client" else None,
                "optin": optin if phase == "opt-in" else None,
                "pack": None,
            }
        )
        self.manifest = encode_signed(sign_manifest(payload, [self.key]))
        self.log.add(self.manifest)


def recording(recorder: Recorder) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/":
                self._answer(PAGE, "text/html")
            elif parts.path.endswith("/manifest"):
                self._answer(recorder.manifest, "application/json")
            elif parts.path.startswith("/v1/log/"):
                self._answer(recorder.log.answer(parts.path) or b"", "text/plain")
            elif parts.path.startswith("/v1/artifacts/"):
                self._answer(recorder.lists[parts.path.rsplit("/", 1)[1]], "application/json")
            elif parts.path == "/recorded":
                bodies = recorder.bodies.get(int(parse_qs(parts.query)["round"][0]), set())
                self._answer(json.dumps([body.hex() for body in bodies]).encode(), "application/json")
            else:
                self._file(parts.path)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/control":
                recorder.control(json.loads(body))
            else:
                recorder.bodies.setdefault(int(self.path.split("/")[5]), set()).add(body)
                if recorder.drop:
                    self.close_connection = True
                    return
            self._answer(b"", "text/plain")

        def _file(self, path: str) -> None:
            found = (EXTENSION / path.lstrip("/")).resolve()
            if not found.is_relative_to(EXTENSION) or found.suffix != ".js":
                return self.send_error(404)
            self._answer(found.read_bytes(), "text/javascript", "max-age=3600")

        def _answer(self, content: bytes, kind: str, cache: str = "no-store") -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", cache)
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")  # both: for memory that a worker waits on
            self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture(scope="module")
def profile(tmp_path_factory) -> Iterator[BrowserContext]:
    """On a disk, as people have it; what a test stores is under the address of its own service."""
    with chromium(tmp_path_factory.mktemp("profile")) as context:
        yield context


def crash(profile: BrowserContext, crashes: int, **changes: object) -> dict:
    recorder = Recorder()
    with Pages(recording(recorder)) as service, profile.new_page() as page:
        page.goto(service.address)
        page.wait_for_selector("body[data-ready=yes]", state="attached")
        enrolment = {"server": service.address, "task": TASK, "keys": [recorder.key.public_point.hex()]}
        wanted = {"crashes": crashes, "seed": 20, "start": START, "enrolment": {**enrolment, "consent": CONSENT}}
        result = page.evaluate("(wanted) => window.crashTest(wanted)", {**wanted, **changes})
    result["rounds"] = len(recorder.bodies)
    return result


POINTS = {
    "manifest-read",
    "list-read",
    "locked",
    "randomized",
    "half-written",
    "written",
    "debited",
    "sending",
    "answered",
    "noted",
    "random moment",
}


def check(result: dict, crashes: int) -> None:
    assert result["faults"] == []
    assert result["rounds"] == crashes
    assert set(result["ended"]) >= POINTS
    assert sum(n for at, n in result["ended"].items() if at != "not reached") >= 0.6 * crashes


def test_30_crashes(profile):
    check(crash(profile, 30), 30)


@pytest.mark.slow
def test_500_crashes(profile):
    """So many devices that were really ended, not only started."""
    result = crash(profile, 700, seed=21)
    check(result, 700)
    assert sum(n for at, n in result["ended"].items() if at != "not reached") >= 500


def test_a_full_disk(profile):
    """The browser's own refusal is recognized, nothing is sent; with room again the device goes on."""
    recorder = Recorder()
    with Pages(recording(recorder)) as service, profile.new_page() as page:
        page.goto(service.address)
        recorder.control({"round": 1, "kind": "client", "now": START, "drop": False})
        keys = [recorder.key.public_point.hex()]
        wanted = {"database": "full", "now": START, "mode": "local", "count": 1}
        wanted["enrolment"] = {"server": service.address, "task": TASK, "keys": keys}
        run = "(wanted) => import('/tests/crashes/run_device.js').then(({runDevice}) => runDevice(wanted))"
        quota = {"origin": service.address, "quotaSize": 1}
        session = profile.new_cdp_session(page)
        session.send("Storage.overrideQuotaForOrigin", quota)
        said = page.evaluate(f"(wanted) => ({run})(wanted).catch((error) => error.constructor.name)", wanted)
        assert (said, recorder.bodies) == ("StorageFull", {})
        session.send("Storage.overrideQuotaForOrigin", {"origin": service.address})
        assert page.evaluate(run, wanted)["status"] == "sent"


def test_a_forgetful_ledger_is_found(profile):
    """The test can fail: without the debit there are second reports and rounds that nobody paid for."""
    problems = {fault["problem"] for fault in crash(profile, 4, forgetful=True)["faults"]}
    assert "the ledger is short" in problems
