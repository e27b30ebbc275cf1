"""Which links of result pages are results, in real Chromium: pages of our own with the engines' structure.

The content scripts run as they are shipped; a click is made with the mouse, the middle button and the keyboard.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from console_browser import PATIENCE_MS

ROOT = Path(__file__).parents[2]
PAGES = Path(__file__).parent / "result_pages"
SCRIPTS = ROOT / "extension" / "src" / "content"
ADDRESSES = {
    "google": "https://www.google.com/search?q=weather",
    "bing": "https://www.bing.com/search?q=weather",
    "duckduckgo": "https://duckduckgo.com/?q=weather",
    "brave": "https://search.brave.com/search?q=weather",
    "ecosia": "https://www.ecosia.org/search?q=weather",
    "startpage": "https://www.startpage.com/sp/search",
    "yahoo": "https://uk.search.yahoo.com/search?p=weather",
    "qwant": "https://www.qwant.com/?q=weather",
    "yandex": "https://yandex.com/search/?text=weather",
    "baidu": "https://www.baidu.com/s?wd=weather",
}
RESULTS = {
    "google": {
        "plain": "https://plain.example/page?x=1",
        "sitelink": "https://plain.example/more",
        "wrapped": "https://wrapped.example/",
        "no-script": "https://no-script.example/a?b=1",
        "unknown-list": "https://unknown-list.example/",
    },
    "bing": {
        "site": "https://plain.example/",
        "plain": "https://plain.example/page",
        "wrapped": "https://wrapped.example/",
    },
    "duckduckgo": {"plain": "https://plain.example/page", "wrapped": "https://wrapped.example/"},
    "brave": {"plain": "https://plain.example/page", "new-layout": "https://new-layout.example/"},
    "ecosia": {"site": "https://plain.example/page", "plain": "https://plain.example/page"},
    "startpage": {"plain": "https://plain.example/page", "new-layout": "https://new-layout.example/"},
    "yahoo": {"plain": "https://plain.example/page", "wrapped": "https://wrapped.example/a?b=1"},
    "qwant": {"plain": "https://plain.example/page", "new-layout": "https://new-layout.example/"},
    "yandex": {"plain": "https://plain.example/page", "path": "https://plain.example/page"},
    "baidu": {"carried": "https://carried.example/page", "carried-site": "https://carried.example/page"},
}
NOT_UNDERSTOOD = {
    "google": {"opaque", "opaque-picture", "renamed"},
    "bing": {"opaque"},
    "duckduckgo": {"opaque"},
    "brave": {"opaque"},
    "ecosia": {"opaque"},
    "startpage": {"opaque"},
    "yahoo": {"opaque"},
    "qwant": {"opaque"},
    "yandex": {"opaque"},
    "baidu": {"opaque", "part"},
}
WAYS = ("mouse", "middle button", "Enter")


class ResultsPage:
    """A page of results, and what the content script sent about clicks on it."""

    def __init__(self, page: Page, engine: str) -> None:
        self.page, self.engine = page, engine
        page.set_default_timeout(PATIENCE_MS)
        page.add_init_script("globalThis.sent = []; globalThis.searchblendSend = (message) => sent.push(message);")
        for name in ("engines.js", "results.js", "observe.js"):
            page.add_init_script(path=SCRIPTS / name)
        page.route(
            "**/*", lambda route: route.fulfill(body=(PAGES / f"{engine}.html").read_text(), content_type="text/html")
        )
        page.goto(ADDRESSES[engine])
        # The script listens before the page does, so that staying on the page changes nothing of what it sees.
        page.evaluate(
            "for (const kind of ['click', 'auxclick']) addEventListener(kind, (event) => event.preventDefault())"
        )

    def links(self) -> list[str]:
        return self.page.eval_on_selector_all("a[id]", "links => links.map(({id}) => id)")

    def says(self, link: str, way: str) -> list[dict[str, str]]:
        found = self.page.locator(f"#{link}")
        if way == "Enter":
            found.focus()
            found.press("Enter")
        else:
            found.click(button="middle" if way == "middle button" else "left", force=True)
        sent: list[dict[str, str]] = self.page.evaluate("sent.splice(0)")
        return sent


@pytest.fixture(scope="module", params=sorted(ADDRESSES))
def results_page(request: pytest.FixtureRequest, chromium: Browser) -> Iterator[ResultsPage]:
    with chromium.new_context() as context:
        yield ResultsPage(context.new_page(), request.param)


@pytest.mark.parametrize("way", WAYS)
def test_results_are_told_and_advertisements_never(results_page: ResultsPage, way: str):
    engine, results = results_page.engine, RESULTS[results_page.engine]
    links = results_page.links()
    assert {*results, *NOT_UNDERSTOOD[engine]} < set(links)
    for link in links:
        told = results_page.says(link, way)
        if link in results:
            assert told == [{"type": "clicked", "engine": engine, "query": "weather", "url": results[link]}], link
        elif link in NOT_UNDERSTOOD[engine]:
            assert told == [{"type": "not-understood", "engine": engine}], link
        else:
            assert told == [], link


def test_a_part_of_an_advertisement_is_the_advertisement(chromium: Browser):
    with chromium.new_context() as context:
        assert ResultsPage(context.new_page(), "google").says("ad-bottom-part", "mouse") == []
