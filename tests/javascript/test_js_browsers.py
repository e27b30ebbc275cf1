"""The core in real browsers: the same answers as in Node, with their own Unicode tables, BigInts and WebCrypto."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.server
import json
import shutil
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import js_law
import pytest
from node_twin import EXTENSION, Twin, answer_of, node
from random_cases import Cases, vectors

from console_browser import PATIENCE_MS, chromium
from searchblend.core.normalization import normalize, normalize_url
from searchblend.core.records import Record
from searchblend.wire.sealed import Opener, SealingContext, new_round_key
from searchblend_lab.evidence.laws.best_reports import check_sampled


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Nothing is printed."""


@contextlib.contextmanager
def served() -> Iterator[str]:
    """The address of the extension's folder."""
    handler = functools.partial(QuietHandler, directory=str(EXTENSION))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/tests/twin.html"
        finally:
            server.shutdown()
            thread.join()


class ChromiumTwin(Twin):
    """Asks a page."""

    def __init__(self, page: Any) -> None:
        self._page = page

    def ask(self, questions: Iterable[Mapping[str, Any]]) -> list[Any]:
        said = self._page.evaluate(
            "async (text) => JSON.stringify(await window.ask(JSON.parse(text)))", json.dumps(list(questions))
        )
        return [answer_of(one) for one in json.loads(said)]


class FirefoxTwin(Twin):
    """Asks a page of Firefox, one start for all questions of a call (extension/tests/firefox_twin.js)."""

    def __init__(self, address: str) -> None:
        self._address = address

    def ask(self, questions: Iterable[Mapping[str, Any]]) -> list[Any]:
        firefox = shutil.which("firefox-esr") or shutil.which("firefox")
        assert firefox, "firefox is missing: `make browsers` installs it"
        done = subprocess.run(
            [node(), "--no-warnings", "tests/firefox_twin.js", firefox, self._address],
            cwd=EXTENSION,
            input=json.dumps(list(questions)).encode("ascii"),
            capture_output=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        return [answer_of(one) for one in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def chromium_twin() -> Iterator[Twin]:
    with served() as address, chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(address)
        page.wait_for_function("window.ask !== undefined")
        yield ChromiumTwin(page)


@pytest.mark.parametrize("check", js_law.CHECKS, ids=lambda check: check.__name__)
def test_chromium_has_the_exact_law(chromium_twin, check):
    check(chromium_twin)


def test_chromium_answers_like_python(chromium_twin):
    check_browser(chromium_twin)


def test_firefox_answers_like_python():
    with served() as address:
        check_browser(FirefoxTwin(address))


def check_browser(twin: Twin) -> None:
    """Every code point, texts, real draws, thresholds, signatures, sealing on WebCrypto and on BigInts, packs."""
    code = "sbe_an-enrolment-code-of-26"
    private, public = new_round_key()
    context = SealingContext(bytes(16), 9, hashlib.sha256(b"consent").digest())
    words = {"task": context.task.hex(), "round": 9, "consent": context.consent.hex(), "credential": code}
    cases = Cases(31)
    texts, urls = [cases.text() for _ in range(400)], [cases.address() for _ in range(200)]
    held = [Record("weather", "http://weather.example"), Record("new york", "http://a.example")]
    manifests, packs = vectors("manifest"), vectors("pack")
    asked: list[tuple[dict[str, Any], Any]] = [
        *(({"do": "normalize", "text": text}, normalize(text)) for text in texts),
        *(({"do": "normalize_url", "text": url, "host_only": False}, normalize_url(url)) for url in urls),
        *(
            (
                {"do": "verify_manifest", "message": case["message"].encode().hex(), "pinned": case["pinned"]},
                case["manifest"],
            )
            for case in manifests
        ),
        *(({"do": "decode_pack", "pack": case["pack"]}, case["entries"]) for case in packs),
    ]
    sealing = [
        {"do": "seal", "records": js_law.pairs(held), "context": words, "public_key": public.hex(), "ladder": ladder}
        for ladder in (False, True)
    ]
    drawing = {
        "do": "draw_reports",
        "queries": js_law.HEAD.as_json(),
        "params": [1.0, 1e-3, 0.85, 1],
        "design": None,
        "records": [["a", "2"]],
        "n": 10_000,
    }
    every, drawn, *found = twin.ask(
        [{"do": "every_code_point"}, drawing, *sealing, *(question for question, _ in asked)]
    )
    forms = ((point, normalize(chr(point))) for point in range(0x110000))
    text = "\n".join(f"{point}:{form}" for point, form in forms if form is not None)
    assert every == hashlib.sha256(text.encode()).hexdigest()
    opener = Opener(private, context, at_most=4)
    assert [opener.open(bytes.fromhex(message), context.tag_of(code)) for message in found[:2]] == [held, held]
    assert found[2:] == [expected for _, expected in asked]
    check_sampled(js_law.counted(drawn), js_law.law_of(Record("a", "2"), None))
