"""The extension in real Chromium: consent, searches, a whole round against a real server, answers without a network.

The package under test has the host 127.0.0.1 granted from the start, because a browser without a head cannot be asked
for permission; all else is what people get.
"""

from __future__ import annotations

import contextlib
import json
import re
import time

import pytest
from playwright.sync_api import Error as TargetClosedError

from accessibility import AXE, RULES
from console_browser import LOOKS, PATIENCE_MS, photograph, sideways
from extension_parts import CONSENT, EngineHandler, Pages, build_extension, chromium, driven_round
from service_parts import enough_to_answer, people

SEARCHES = ["weather", "news", "maps", "mail", "video", "weather", "news", "Weather ", "cats", "dogs"]


@pytest.fixture
def extension(tmp_path):
    return build_extension(tmp_path / "package", "--for-tests") / "chromium"


def extension_id(context) -> str:
    worker = context.service_workers[0] if context.service_workers else context.wait_for_event("serviceworker")
    return worker.url.split("/")[2]


def settled(page) -> None:
    page.wait_for_selector("body[data-ready=yes]", state="attached")


def press(page, selector: str) -> None:
    page.click(selector)
    settled(page)


class Installed:
    """The browser's pages of the extension."""

    def __init__(self, context) -> None:
        self.context = context
        self.base = f"chrome-extension://{extension_id(context)}/src/ui"
        self._wait_for_settings()

    def _wait_for_settings(self) -> None:
        """Installing opens the settings, in a blank tab if there is one, which must not be a tab of the test's."""
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while not any(page.url == f"{self.base}/options.html" for page in self.context.pages):
            assert time.monotonic() < deadline, "installing the extension did not open its settings"
            self.context.pages[0].wait_for_timeout(100)

    def page(self, name: str):
        page = self.context.new_page()
        page.goto(f"{self.base}/{name}.html")
        settled(page)
        return page

    def device(self, page, expression: str):
        """Ask the device itself, in a page of the extension."""
        made = "import('../platform/make_device.js').then(({theDevice}) => theDevice())"
        return page.evaluate(f"{made}.then(async (device) => {expression})")

    def records(self, page, wanted: int) -> list:
        """All searches, once there are so many: clicks are told to a worker that has to wake first."""
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while True:
            found = self.device(page, "(await device.overview()).records")
            if len(found) >= wanted or time.monotonic() > deadline:
                return found
            page.wait_for_timeout(100)

    def join(self, options, link: str) -> None:
        options.fill("[name=link]", link)
        press(options, "#enrol button")
        press(options, "#offer .main")

    def consent(self, options, mode: str) -> None:
        options.check(f"[name=mode][value={mode}]")
        options.check("#engine-test-engine")
        press(options, "#agree")


def pictures(page, name: str) -> None:
    """Every look, checked by axe too: contrast, labels, roles, in the dark its colours, and that it fits a phone."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    size = page.viewport_size
    for look, (scheme, width) in LOOKS.items():
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 800} if look == "phone" else size)
        found = page.evaluate(
            "options => axe.run(options).then(({violations}) => violations)",
            {"resultTypes": ["violations"], **RULES[look]},
        )
        assert [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found] == []
        assert (look, sideways(page)) == (look, [])
        photograph(page, f"extension/{name}-{look}")
    page.emulate_media(color_scheme="light")


def search(tab, engine: str, query: str, link: str = "#first", button: str = "left") -> None:
    """One tab for all searches: a new one costs more than everything that happens in it."""
    tab.goto(f"{engine}/engine/search?q={query}")
    if button == "middle":
        with tab.context.expect_page() as opened:
            tab.click(link, button=button)
        opened.value.close()
    else:
        tab.click(link)
        tab.wait_for_url(lambda url: "/engine/search" not in url)
    tab.wait_for_timeout(100)


def test_a_round_and_answers_offline(tmp_path, extension):
    with (
        Pages(EngineHandler) as engine,
        driven_round(tmp_path / "service") as round_,
        chromium(tmp_path / "profile", extension) as context,
    ):
        context.route(
            re.compile(r"http://([a-z-]+\.example|127\.0\.0\.1)/"), lambda route: route.fulfill(body="a result")
        )
        installed = Installed(context)
        options = installed.page("options")
        pictures(options, "options-before-consent")

        # Before consent nothing is noticed.
        tab = context.new_page()
        search(tab, engine.address, "before")
        assert installed.device(options, "(await device.overview()).records") == []

        search_only(installed, options, round_)
        installed.consent(options, "local")
        assert options.inner_text("#state") == "On"
        for query, link in (
            ("mail of ann@example.com", "#first"),
            ("advert", "#ad"),
            ("advert", "#inner-ad"),
            ("opaque", "#opaque"),
            ("about", "#other"),
        ):
            search(tab, engine.address, query, link)
        for i, query in enumerate(SEARCHES):
            search(tab, engine.address, query, "#second" if i % 3 == 1 else "#first", "middle" if i == 2 else "left")
        records = installed.records(options, len(SEARCHES))
        found = sorted((record["query"], record["url"]) for record in records)
        expected = [
            (query.strip().lower(), f"http://{query.strip().lower()}.example/{'b' if i % 3 == 1 else 'a'}")
            for i, query in enumerate(SEARCHES)
        ]
        assert found == sorted(expected)
        assert installed.device(options, "(await device.settings()).dropped") == {"e-mail": 1, "not-understood": 1}

        press(options, "#check")
        assert "the other group" in options.inner_text(".task-status")
        round_.contribute([*people(400, seed=1), *enough_to_answer()])
        round_.name_head()
        round_.report(people(600, seed=2))
        press(options, "#check")
        assert "goes out at a random time" in options.inner_text(".task-status")
        pictures(options, "options-report-waiting")
        press(options, ".send-now")
        assert "was received" in options.inner_text(".task-status")
        press(options, "#check")  # the round is done: no second report
        assert options.locator(".report").count() == 1
        assert re.match(r"In the last 7 days: 1 randomized report\. Whoever .* to at most \d+ %\.", recent(options))

        published = round_.publish()
        assert published.reports_counted == 601
        assert published.conservation.holds
        pack = round_.wait_for_pack()
        press(options, "#check")
        kept = installed.device(options, "(await device.overview()).packs")
        assert [(one["round"], one["bytes"], one["slot"]) for one in kept] == [(1, pack.bytes, "current")]
        assert "1 × a result whose link this extension cannot read" in options.inner_text("#dropped")
        options.locator("#records-count").click()
        pictures(options, "options-after-a-round")
        opt_in(installed, options, round_)

        # The network is cut: no server, and a browser that is offline.
        round_.server.kill()
        context.set_offline(True)
        check_popup(installed, context)
        check_omnibox(context, options)
        check_no_traces(installed, options)


def recent(options) -> str:
    return options.inner_text("#budget-recent")


def search_only(installed, options, round_) -> None:
    """A link is shown before it is taken; with local search alone the manifest is read and nothing is given."""
    options.fill("[name=link]", round_.link[:-30])
    press(options, "#enrol button")
    assert "Copy the whole link" in options.inner_text("#message")
    options.fill("[name=link]", round_.link)
    press(options, "#enrol button")
    assert round_.address in options.inner_text("#offer-facts")
    assert installed.device(options, "device.tasks()") == []
    options.locator("#offer summary").click()
    pictures(options, "options-offer")
    press(options, "#decline")
    assert not options.is_visible("#offer")
    options.evaluate("hash => { location.hash = hash }", round_.link.partition("#")[2])
    options.wait_for_selector("#offer-facts dd")
    settled(options)
    assert "#" not in options.url
    press(options, "#offer .main")
    round_.open()
    options.check("[name=mode][value=search]")
    assert not options.is_visible("#engines")
    press(options, "#agree")
    assert "You give nothing" in options.inner_text(".task-status")
    pictures(options, "options-search-only")
    options.set_viewport_size({"width": 360, "height": 800})
    assert options.evaluate("document.documentElement.scrollWidth") <= 360
    options.set_viewport_size({"width": 1000, "height": 800})
    assert recent(options) == "In the last 7 days: nothing."


def opt_in(installed, options, round_) -> None:
    """The next round with a true search, sealed; the next pack comes as a delta."""
    options.check("[name=mode][value=opt-in]")
    assert CONSENT in options.inner_text("#optin-text")
    pictures(options, "options-opt-in")
    round_.open()
    press(options, "#agree")
    press(options, ".send-now")
    assert options.locator(".report[data-status=sent]").count() == 2
    round_.contribute(people(400, seed=3))
    review = round_.name_head()
    assert review.opt_in_users == 401  # the curator could open it
    press(options, "#check")
    assert options.locator(".report").count() == 2  # not in both groups
    round_.report(people(600, seed=4))
    assert round_.publish().reports_counted == 600
    round_.wait_for_pack(2)
    press(options, "#check")
    kept = installed.device(options, "(await device.overview()).packs")
    assert [(one["round"], one["slot"]) for one in kept] == [(2, "current"), (1, "previous")]


def check_popup(installed, context) -> None:
    popup = installed.page("popup")
    popup.set_viewport_size({"width": 400, "height": 260})
    assert popup.inner_text("#not-understood") == "1 click on a result was not understood and not kept."
    pictures(popup, "popup-empty")
    popup.fill("#typed", "wea")
    assert popup.locator("#answers li").count() >= 1
    assert popup.locator("#answers li .query").first.inner_text() == "weather"
    assert popup.locator("#answers li .url").first.inner_text() == "weather.example/a"
    pictures(popup, "popup-answers")
    popup.fill("#typed", "wether")
    assert popup.locator("#answers li .query").first.inner_text() == "weather"
    popup.fill("#typed", "no such thing at all")
    assert "Not among" in popup.inner_text("#hint")
    pictures(popup, "popup-nothing")
    popup.fill("#typed", "weather")
    with context.expect_page() as opened, contextlib.suppress(TargetClosedError):
        popup.keyboard.press("Enter")  # the popup closes itself, at times before the key is up
    opened.value.wait_for_url("http://weather.example/a")


PACKED = {
    "server": "http://127.0.0.1:9",
    "task": "0" * 32,
    "keys": ["04" + "ab" * 64],
    "consent": "",
    "has_urls": False,
}


def packed(folder, enrolment: dict):
    """A package for one list; what it says of the list may be wrong, as if it had been edited by hand."""
    (folder / "enrolment.json").write_text(json.dumps(PACKED))
    made = build_extension(folder / "package", "--for-tests", "--enrolment", str(folder / "enrolment.json"))
    (made / "chromium" / "enrolment.json").write_text(json.dumps(enrolment))
    return made / "chromium"


def test_who_left_the_packed_list_is_not_brought_back(tmp_path):
    with chromium(tmp_path / "profile", packed(tmp_path, PACKED)) as context:
        installed = Installed(context)
        options = installed.page("options")
        assert installed.device(options, "(await device.tasks()).map(({hasUrls}) => hasUrls)") == [False]
        options.check("[name=mode][value=local]")
        options.check("#engine-test-engine")
        press(options, "#agree")
        press(options, "#tasks button")
        for _ in range(2):  # neither in this page nor when the settings are opened anew
            assert options.is_visible("#rejoin")
            assert installed.device(options, "device.tasks()") == []
            options = installed.page("options")
        pictures(options, "options-left")
        press(options, "#rejoin")
        assert not options.is_visible("#rejoin")
        assert "again" in options.inner_text("#message")
        assert installed.device(options, "(await device.tasks()).map(({hasUrls}) => hasUrls)") == [False]


def test_a_packed_list_that_cannot_be_joined_leaves_the_settings_alive(tmp_path):
    with chromium(tmp_path / "profile", packed(tmp_path, {**PACKED, "task": "xyz", "keys": []})) as context:
        installed = Installed(context)
        options = installed.page("options")
        assert "“task” must be 32 hexadecimal digits" in options.inner_text("#message")
        for change, said in (({"note": "x"}, "“note”"), ({"server": "http://lists.example"}, "“server”")):
            options.fill("[name=link]", json.dumps({**PACKED, **change}))
            press(options, "#enrol button")
            assert said in options.inner_text("#message")
        file = tmp_path / "enrolment.json"
        file.write_text(json.dumps({**PACKED, "task": "1" * 32}))
        options.fill("[name=link]", "")
        options.set_input_files("[name=file]", file)
        press(options, "#enrol button")
        press(options, "#offer .main")
        assert installed.device(options, "(await device.tasks()).map(({hasUrls}) => hasUrls)") == [False]


PUT_PACK = """
async ({ task, entries }) => {
  const { encodePack } = await import("../core/pack.js");
  const { bytes } = await import("../core/index.js");
  const device = await (await import("../platform/make_device.js")).theDevice();
  const info = { method: "best", epsilon: 4, delta: 1e-5, task, round: 1, fractionBits: 20 };
  const numbers = { lower: 1000, probability: 2000 };
  const entryOf = ([query, ...urls]) => ({ query, ...numbers, urls: urls.map((url) => ({ url, ...numbers })) });
  const content = encodePack(info, entries.map(entryOf));
  const artifact = bytes.toHex(await bytes.sha256(content));
  const pack = { content, artifact, round: 1, at: 0 };
  await device.storage.write((transaction) => transaction.put("packs", [task, "current"], pack));
}
"""


def test_answers_that_are_no_link_or_turn_a_line_around_are_spelt_out(tmp_path, extension):
    """Lists without pages, pages that are no link, paths that are not UTF-8, and direction controls, in the popup."""
    entries = [
        ["cafe", "https://cafe.example/caf%E9"],
        ["hundred", "https://hundred.example/100%"],
        ["user", "google.com@evil.example"],
        ["turned\u202edrow", "https://turned.example/%E2%80%AEgnp.exe"],
    ]
    with chromium(tmp_path / "profile", extension) as context:
        installed = Installed(context)
        options = installed.page("options")
        options.evaluate(PUT_PACK, {"task": "1" * 32, "entries": entries})
        options.evaluate(PUT_PACK, {"task": "2" * 32, "entries": [["weather"]]})
        popup = installed.page("popup")
        for typed, expected in (
            ("caf", ["cafe", "cafe.example/caf%E9"]),
            ("hun", ["hundred", "hundred.example/100%"]),
            ("use", ["user", "google.com@evil.example"]),
            ("tur", ["turned[U+202E]drow", "turned.example/[U+202E]gnp.exe"]),
            ("wea", ["weather"]),
        ):
            popup.fill("#typed", typed)
            assert popup.locator("#answers li").first.locator("span").all_inner_texts() == expected
            assert popup.inner_text("#hint") == ""
        pages = len(context.pages)
        for typed, query in (("use", "user"), ("wea", "weather")):
            popup.fill("#typed", typed)
            popup.keyboard.press("Enter")
            assert popup.input_value("#typed") == query
        assert len(context.pages) == pages


@pytest.mark.parametrize("language", ["de", "fr"])
def test_the_settings_in_another_language(tmp_path, extension, language):
    """The browser of the tests speaks English alone: it is given another language's messages under that name."""
    messages = (extension / "_locales" / language / "messages.json").read_text()
    (extension / "_locales" / "en" / "messages.json").write_text(messages)
    words = {name: entry["message"] for name, entry in json.loads(messages).items()}
    with chromium(tmp_path / "profile", extension) as context:
        installed = Installed(context)
        options = installed.page("options")
        assert options.evaluate("document.documentElement.lang") == language
        installed.join(options, json.dumps(PACKED))
        options.check("[name=mode][value=opt-in]")
        agreed = options.inner_text("#consent-text")
        assert words["optin_consent_one"] in agreed
        assert CONSENT in agreed  # as it is recorded
        pictures(options, f"options-{language}")
        options.set_viewport_size({"width": 360, "height": 800})
        assert options.evaluate("document.documentElement.scrollWidth") <= 360


OMNIBOX = """
async (text) => new Promise((resolve) => chrome.omnibox.onInputChanged.dispatch(text, resolve))
"""


def check_omnibox(context, options) -> None:
    press(options, "#check")  # wakes the worker, which the browser ends when it is idle
    assert "could not be reached" in options.inner_text(".task-status")
    worker = context.service_workers[-1]
    answers = worker.evaluate(OMNIBOX, "wea")
    assert answers[0]["content"] == "http://weather.example/a"
    assert answers[0]["description"] == ("<match>weather</match><dim> – </dim><url>http://weather.example/a</url>")
    escaped = options.evaluate("import('../platform/browser.js').then(({escapeXml}) => escapeXml('a<b>&\"\\'\\u0001'))")
    assert escaped == "a&lt;b&gt;&amp;&quot;&apos; "


def check_no_traces(installed, options) -> None:
    """A page that was opened from a suggestion is not a search of the user's own; erasing leaves numbers alone."""
    outcome = installed.device(
        options, "device.observe({query: 'weather', url: 'http://weather.example/a', engine: 'google'})"
    )
    assert outcome == "own-suggestion"
    options.once("dialog", lambda dialog: dialog.accept())
    press(options, "#erase")
    exported = json.dumps(installed.device(options, "device.exported()"))
    assert "weather" not in exported
    assert '"epsilon": 4' in exported
