"""The page of a pack in real Chromium, opened from a disk without a network: it answers what Python answers."""

from __future__ import annotations

import contextlib

import pytest

from accessibility import serious_violations
from console_browser import LOOKS, PATIENCE_MS, photograph, sideways, wear
from lighthouse import low_scores, served
from searchblend.cli.main import main
from searchblend.search.build_pack import SearchIndex
from searchblend.search.pack import Pack, PackEntry, PackInfo, PackUrl, encode_pack

HOSTILE = "<img src=x onerror=document.title='owned'>"
TURNED = "turned\u202edrow"
TYPED = ("weather", "WEA", "wether", "weather forcast", "maps", "b", "météo", "nothing of this", HOSTILE.upper())


def made_pack():
    towns = ("berlin", "bern", "boston", "brest", "bonn")
    queries = ["weather", "weather forecast", "maps", "météo", *(f"weather {town}" for town in towns), *towns]
    entries = [
        PackEntry(
            query,
            1000 + 37 * place % 200,
            2000,
            (PackUrl(f"http://www.{query.split(' ')[0]}.example/{place}", 900, 1000), PackUrl("maps.example", 5, 9)),
        )
        for place, query in enumerate(queries)
    ]
    links = ("javascript:alert(1)", "http://ok.example/<b>", "ftp://old.example")
    odd = PackEntry(HOSTILE, 50, 60, tuple(PackUrl(url, 40 - i, 50) for i, url in enumerate(links)))
    turned = PackEntry(TURNED, 40, 50, (PackUrl("turned.example/\u202egnp.exe", 30, 40),))
    return Pack(encode_pack(PackInfo("best", 4.0, 1e-5, bytes(range(16)), 3), [*entries, odd, turned]))


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pack-page")
    (folder / "p.sbpack").write_bytes(made_pack().content)
    assert main(["pack", "page", str(folder / "p.sbpack"), "-o", str(folder / "p.html"), "--title", "Answers"]) == 0
    return folder / "p.html"


@contextlib.contextmanager
def opened(browser, path, width=1000):
    with contextlib.closing(browser.new_context(offline=True, viewport={"width": width, "height": 800})) as context:
        context.set_default_timeout(PATIENCE_MS)
        page, wrong = context.new_page(), []
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda asked: None if asked.url.startswith(("file:", "data:")) else wrong.append(asked.url))
        page.goto(path.as_uri())
        page.wait_for_function("document.getElementById('said').textContent.includes('Type a few letters')")
        yield page
        assert wrong == []


def test_it_answers_as_python_does(chromium, page_file):
    index = SearchIndex(made_pack())
    with opened(chromium, page_file) as page:
        for typed in TYPED:
            page.fill("#typed", typed)
            found = index.search(typed, 8)
            assert page.locator("#found li").count() == len(found)
            assert page.locator("#found .query bdi").all_inner_texts() == [item.entry.query for item in found]
            urls = [u.url for f in found for u in f.entry.urls[: 8 if f.kind == "exact" else 1]]
            assert page.locator("#found .url :first-child").all_inner_texts() == urls
        page.fill("#typed", "")
        assert page.locator("#found li").count() == 0


def test_texts_of_a_pack_are_texts(chromium, page_file):
    """A query that is markup is shown as it is; only web addresses become links."""
    with opened(chromium, page_file) as page:
        page.fill("#typed", HOSTILE)
        assert page.locator("#found img").count() == 0
        assert page.title() == "Answers"
        links = page.locator("#found a")
        assert [link.get_attribute("href") for link in links.all()] == ["http://ok.example/<b>"]
        page.fill("#typed", "maps")
        hosts = [link.get_attribute("href") for link in page.locator("#found a").all()]
        assert "https://maps.example" in hosts


@pytest.mark.parametrize("typed", ["turned", TURNED])
def test_signs_that_turn_a_line_around_are_spelt_out(chromium, page_file, typed):
    with opened(chromium, page_file) as page:
        page.fill("#typed", typed)
        assert page.locator("#found .query bdi").all_inner_texts() == ["turned[U+202E]drow"]
        assert page.locator("#found .url :first-child").all_inner_texts() == ["turned.example/[U+202E]gnp.exe"]


def test_it_is_accessible_and_fits(chromium, page_file):
    with opened(chromium, page_file, LOOKS["phone"][1]) as page:
        page.fill("#typed", "weather")
        for look in LOOKS:
            wear(page, look)
            photograph(page, f"pack-page/{look}", full_page=False)
            assert (look, sideways(page)) == (look, [])
            assert (look, serious_violations(page)) == (look, [])


@pytest.mark.slow
def test_lighthouse_scores_it(page_file, tmp_path):
    with served(page_file.parent) as address:
        assert low_scores(f"{address}/{page_file.name}", tmp_path) == []
