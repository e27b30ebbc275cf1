"""A task that signs manifests, a service that writes down what it is sent, and devices on a clock moved by hand."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, Protocol, TypedDict, Unpack

from searchblend.blender.best.subset_report import ReportDesign
from searchblend.core.documents import decode, encode
from searchblend.core.errors import MessageError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness
from searchblend.core.records import HeadList
from searchblend.device.agent import DeviceAgent
from searchblend.device.consent_texts import LOCAL, OPT_IN, text_digest, text_of
from searchblend.device.policy import POLICY, Policy
from searchblend.device.rounds import Outcome
from searchblend.device.transport import Transport
from searchblend.wire.canonical import canonical_json
from searchblend.wire.head_list import encode_head_list
from searchblend.wire.manifest import Manifest, decode_signed, encode_signed
from searchblend.wire.merkle import TILE, leaf_hash, root_of
from searchblend.wire.optin_result import DrawnBy, OptinResult, certify
from searchblend.wire.report import ReportShape
from searchblend.wire.sealed import new_round_key
from searchblend.wire.signing import RoundKey, SigningKey, sign_checkpoint, sign_manifest
from searchblend.wire.transparency import Checkpoint, LogEntry, encode_bundle, encode_checkpoint, encode_entry

NOW = 1_800_000_000
TASK = bytes(range(16)).hex()
FILLERS = [(f"filler {i}", [f"https://filler{i}.example"]) for i in range(POLICY.fewest_queries)]
"""what makes a list long enough for a device to answer"""
HEAD = HeadList(
    [("weather", ["https://weather.example", "https://sky.example"]), ("news", ["https://news.example"]), *FILLERS]
)
CODE = "a code of sixteen signs"
Reply = int | bytes | tuple[int, str] | Literal["drop", "slow"]
"""a status, bytes to write as they are, a status and the name of a problem, or no whole answer"""


class MadeTask:
    """Signs what a test wants, right or wrong."""

    def __init__(
        self, *, task: str = TASK, epsilon: float = 1.0, delta: float = 1e-6, design: ReportDesign | None = None
    ) -> None:
        self.task, self.key, self.design = task, SigningKey.new(), design
        self.curator = SigningKey.new()
        self.params = BlenderParams(Budget(epsilon, delta))
        self.private_key, self.public_key = new_round_key()
        self._drawn: dict[tuple[str, int], OptinResult] = {}
        self.sequence = 0
        self.consent = text_of("opt-in")
        self.tokens: dict[str, str] | None = None
        """what its reports are paid with, as the manifest says it"""
        self.agreed = 1
        """how many searches its devices agree to"""

    @property
    def point(self) -> str:
        return self.key.public_point.hex()

    def head_list(self, head: HeadList = HEAD, number: int = 1, **changes: object) -> bytes:
        """The same bytes for the same list and round, since the manifest names their digest."""
        key = (head.digest, number)
        if key not in self._drawn:
            self._drawn[key] = self.drawn(head, number)
        document = encode_head_list(head, self.params, self.design, optin_result=self._drawn[key])
        return json.dumps({**document, **changes}, ensure_ascii=False).encode()

    def drawn(self, head: HeadList, number: int) -> OptinResult:
        """The word of this task's curator for a list."""
        budget = self.params.budget
        drawn_by = DrawnBy(self.task, number, repr(budget.epsilon), repr(budget.delta))
        return certify(head, drawn_by, self.curator.sign, self.curator.public_point, SystemRandomness())

    def shape(self, number: int, head: HeadList = HEAD) -> ReportShape:
        return ReportShape.of(bytes.fromhex(self.task), number, head, self.params, self.design)

    def document(
        self, phase: str = "client", number: int = 1, head: HeadList = HEAD, **changes: object
    ) -> dict[str, Any]:
        self.sequence += 1
        content = self.head_list(head, number)
        client = {
            "artifact": hashlib.sha256(content).hexdigest(),
            "digest": head.digest,
            "mechanism": self.design.mechanism if self.design else "two-stage",
            "report_bytes": self.shape(number, head).size,
            "opens": NOW,
            "closes": NOW + 7 * 86_400,
            **({"tokens": self.tokens} if self.tokens else {}),
        }
        optin: dict[str, Any] = {
            "public_key": self.public_key.hex(),
            "consent": text_digest(self.consent),
            "closes": NOW + 86_400,
            "settings": "00" * 32,
        }
        manifest: dict[str, Any] = {
            "format": "searchblend-manifest",
            "version": 1,
            "minor": 2 if self.tokens else 1,
            "task": self.task,
            "name": "searches",
            "engine": "any",
            "market": "any",
            "sequence": self.sequence,
            "issued": NOW,
            "expires": NOW + 7 * 86_400,
            "phase": phase,
            "round": number,
            "killed": False,
            "min_device_version": "0.1",
            "silent_devices": "skip",
            "method": "best" if self.design else "paper",
            "epsilon": repr(self.params.budget.epsilon),
            "delta": repr(self.params.budget.delta),
            "records_per_client": 1,
            "records_per_optin": 1,
            "optin": optin if phase == "opt-in" else None,
            "client": client if phase == "client" else None,
            "pack": None,
        }
        if phase == "opt-in":
            key = RoundKey.of_manifest(decode(Manifest, manifest))
            optin["curator"] = encode(self.curator.sign(key.signed_bytes))
        return {**manifest, **changes}

    def sign(self, document: Mapping[str, Any], key: SigningKey | None = None) -> bytes:
        return encode_signed(sign_manifest(canonical_json(document), [key or self.key]))

    def manifest(self, phase: str = "client", number: int = 1, head: HeadList = HEAD, **changes: object) -> bytes:
        return self.sign(self.document(phase, number, head, **changes))


class PublicLog:
    """The transparency log of a service in a test: what it was shown is in it, signed by the task's key."""

    def __init__(self, origin: str = "searchblend/tests") -> None:
        self.origin, self.key = origin, SigningKey.new()
        self.entries: list[bytes] = []

    def add(self, manifest: bytes) -> None:
        """A served manifest; what no device can read is in no log."""
        with contextlib.suppress(MessageError, KeyError, TypeError):
            payload = decode_signed(manifest).payload
            document = json.loads(payload)
            entry = encode_entry(LogEntry.of_manifest(document["task"], document["sequence"], payload))
            if entry not in self.entries:
                self.entries.append(entry)

    @property
    def leaves(self) -> list[bytes]:
        return [leaf_hash(entry) for entry in self.entries]

    @property
    def checkpoint(self) -> bytes:
        leaves = self.leaves
        return encode_checkpoint(sign_checkpoint(Checkpoint(self.origin, len(leaves), root_of(leaves)), [self.key]))

    def answer(self, path: str) -> bytes | None:
        """Of what is below /v1/log."""
        name = path.partition("/v1/log/")[2]
        if name == "checkpoint":
            return self.checkpoint
        match = re.fullmatch(r"tile/(0|entries)/([0-9]{3})(?:\.p/([0-9]+))?", name)
        if match is None:
            return None
        first = int(match[2]) * TILE
        entries = self.entries[first : first + int(match[3] or TILE)]
        return encode_bundle(entries) if match[1] == "entries" else b"".join(map(leaf_hash, entries))


class RecordingService:
    """Answers as it is told to and writes down every report and contribution, with the headers it came with."""

    def __init__(self) -> None:
        self.manifest = b""
        self.log = PublicLog()
        self.artifacts: dict[str, bytes] = {}
        self.answers: list[Reply] = []
        """what the next reports are answered with; then 200"""
        self.received: list[tuple[str, str, bytes]] = []
        self.headers: list[dict[str, str]] = []
        self.asked: list[str] = []
        self._lock = threading.Lock()
        service = self

        class Handler(BaseHTTPRequestHandler):
            disable_nagle_algorithm = True
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                service._get(self)

            def do_POST(self) -> None:
                service._take(self)

            def do_DELETE(self) -> None:
                service._take(self)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    def serve(
        self,
        task: MadeTask,
        manifest: bytes | None = None,
        head: HeadList = HEAD,
        *,
        phase: str = "client",
        number: int = 1,
        **changes: object,
    ) -> None:
        """Put a manifest and its head list online.

        Args:
            task: Signs the manifest.
            manifest: Served instead of the one that the task would make of the other arguments.
            head: The list.
            phase: Of the manifest.
            number: Of the round.
            **changes: Other fields of the manifest.
        """
        content = task.head_list(head, number)
        self.artifacts[hashlib.sha256(content).hexdigest()] = content
        self.manifest = task.manifest(phase, number, head, **changes) if manifest is None else manifest

    def reports(self) -> list[bytes]:
        return [body for _, path, body in self.received if path.endswith("/reports")]

    def _get(self, handler: BaseHTTPRequestHandler) -> None:
        self.asked.append(handler.path)
        if "/v1/log/" in handler.path:
            content = self.log.answer(handler.path)
            self._write(handler, 404 if content is None else 200, content or b"")
            return
        if handler.path.endswith("/manifest"):
            self.log.add(self.manifest)
            self._write(handler, 200, self.manifest)
            return
        content = self.artifacts.get(handler.path.rsplit("/", 1)[1])
        self._write(handler, 404 if content is None else 200, content or b"")

    def _take(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        with self._lock:
            self.received.append((handler.command, handler.path, body))
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
            usual = 204 if handler.command == "DELETE" else 200
            answer: Reply = self.answers.pop(0) if self.answers else usual
        if answer == "drop":
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)
        elif answer == "slow":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
            for _ in range(200):
                with contextlib.suppress(OSError):
                    handler.wfile.write(b"x")
                time.sleep(0.05)
            handler.close_connection = True
        elif isinstance(answer, bytes):
            handler.wfile.write(answer)
            handler.close_connection = True
        elif isinstance(answer, tuple):
            self._write(handler, answer[0], problem(answer[1]))
        else:
            self._write(handler, answer, b"")

    def _write(self, handler: BaseHTTPRequestHandler, status: int, content: bytes) -> None:
        with contextlib.suppress(OSError):
            handler.send_response(status)
            handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
            handler.wfile.write(content)

    def __enter__(self) -> RecordingService:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


def problem(name: str) -> bytes:
    return json.dumps({"type": f"urn:searchblend:problem:{name}", "title": name}).encode()


class HandClock:
    def __init__(self, now: int = NOW + 60) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


class Addressed(Protocol):
    """Anything that serves devices."""

    address: str


class DeviceOptions(TypedDict, total=False):
    """What a test changes in a device; the rest is as ``DeviceAgent`` has it."""

    transport: Transport
    policy: Policy
    on_point: Callable[[str], None]


@contextlib.contextmanager
def device(
    folder: Path,
    service: Addressed,
    task: MadeTask,
    *,
    mode: str = LOCAL,
    clock: HandClock | None = None,
    **options: Unpack[DeviceOptions],
) -> Iterator[DeviceAgent]:
    """An enrolled device that has consented and kept one search.

    Args:
        folder: For its state.
        service: Where it is enrolled.
        task: In which it takes part.
        mode: What its user consents to; ``off`` for nothing.
        clock: A new one unless given.
        **options: As of ``DeviceAgent``.
    """
    with DeviceAgent.open(folder, create=True, clock=clock or HandClock(), **options) as agent:
        if isinstance(service, RecordingService):
            service.log.key = task.key
        if agent.status().task is None:
            agent.enrol(service.address, task.task, [task.point], code=CODE)
            if mode != "off":
                text = task.consent if mode == OPT_IN else text_of(mode, task.agreed)
                agent.consent(mode, text, records=task.agreed)
                assert agent.record("Weather", "https://weather.example/").kept
        yield agent


def sync(agent: DeviceAgent) -> Outcome:
    return agent.sync(immediately=True)


def nothing_was_sent(service: RecordingService, agent: DeviceAgent) -> bool:
    return not service.received and not agent.sent() and not agent.export().ledger
