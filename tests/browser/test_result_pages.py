"""Result pages in real Chromium: search, sort, no error, no request to anywhere, accessible."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from playwright.sync_api import Page

from accessibility import serious_violations
from console_browser import LOOKS, PATIENCE_MS, photograph, sideways, wear
from lighthouse import low_scores, served
from made_once import made_once
from made_releases import IMAGE, SCRIPT, graph_release, hybrid_release
from searchblend.cli.main import main
from watched_page import opened

KINDS = ["hybrid", "click-graph", "evaluated", "results"]
PHONE = LOOKS["phone"][1]


def make_pages(folder: Path) -> None:
    """A page of every kind, as the commands make them."""
    for kind in ("hybrid", "click-graph", "evaluated"):
        (folder / kind).mkdir()
    hybrid_release(folder / "hybrid")
    graph_release(folder / "click-graph")
    hybrid_release(folder / "evaluated", "--evaluate", "--seed", "1")
    assert main(["evaluate", "fig12", "--quick", "--html", "-o", str(folder / "results/release")]) == 0


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    folder = made_once(tmp_path_factory, "pages", make_pages)
    return {kind: folder / kind / "release/index.html" for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_quiet_accessible_and_fits(chromium, pages, kind):
    with opened(chromium, pages[kind], PHONE) as watched:
        page = watched.page
        for look in LOOKS:
            wear(page, look)
            photograph(page, f"pages/{kind}-{look}")
            assert (look, sideways(page)) == (look, [])
            assert (look, serious_violations(page, look)) == (look, [])
        assert page.evaluate("window.hacked") is None
        assert watched.errors == []
        assert watched.elsewhere() == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_lighthouse_scores_a_page(pages, tmp_path, kind):
    with served(pages[kind].parent) as address:
        assert low_scores(f"{address}/index.html", tmp_path) == []


@pytest.mark.slow
def test_lighthouse_sees_what_is_wrong_with_a_page(tmp_path):
    image = "<img src=x>"
    (tmp_path / "index.html").write_text(f"<html><body><p style='color:#ccc'>pale</p>{image}<input></body></html>")
    with served(tmp_path) as address:
        low = low_scores(f"{address}/index.html", tmp_path)
    assert [text.split()[0] for text in low] == ["accessibility", "best-practices"]
    assert "image-alt" in low[0]


def shown_rows(page: Page, table: str) -> list[str]:
    return page.eval_on_selector_all(
        f"#{table} tbody tr:not([hidden])", "rows => rows.map(row => row.cells[0].textContent)"
    )


def test_search_filters_and_says_how_many_are_left(chromium, pages):
    with opened(chromium, pages["hybrid"]) as watched:
        page = watched.page
        every = shown_rows(page, "query-table")
        assert {SCRIPT, IMAGE, "weather", "news"} <= set(every)
        page.get_by_label("Search queries").fill("WEATH")
        assert shown_rows(page, "query-table") == ["weather"]
        assert page.locator(".search output").first.inner_text() == f"1 of {len(every)} rows"
        page.get_by_label("Search queries").fill("<script>")
        assert shown_rows(page, "query-table") == [SCRIPT]
        page.get_by_label("Search queries").fill("no such query")
        assert shown_rows(page, "query-table") == []
        page.get_by_label("Search queries").fill("")
        assert shown_rows(page, "query-table") == every
        assert page.evaluate("window.hacked") is None


def test_a_click_on_a_heading_sorts(chromium, pages):
    with opened(chromium, pages["click-graph"]) as watched:
        page = watched.page
        heading = page.locator("#queries-table thead th", has_text="count")
        heading.get_by_role("button").click()
        falling = page.eval_on_selector_all(
            "#queries-table tbody tr td:nth-child(2)", "c => c.map(x => +x.dataset.value)"
        )
        assert falling == sorted(falling, reverse=True)
        assert heading.get_attribute("aria-sort") == "descending"
        heading.get_by_role("button").press("Enter")
        rising = page.eval_on_selector_all(
            "#queries-table tbody tr td:nth-child(2)", "c => c.map(x => +x.dataset.value)"
        )
        assert rising == sorted(falling)


def test_a_planted_script_is_not_executed(chromium, pages, tmp_path):
    """The policy stops what escaping would let through: this page has a script put into it by hand."""
    broken = tmp_path / "broken.html"
    text = pages["hybrid"].read_text()
    broken.write_text(
        text.replace("<main>", "<main><script>window.hacked=1</script><img src=x onerror=window.hacked=1>")
    )
    with opened(chromium, broken) as watched:
        assert watched.page.evaluate("window.hacked") is None
        assert any("Content Security Policy" in error for error in watched.errors)


def test_the_page_can_be_read_without_its_script(chromium, pages):
    with contextlib.closing(chromium.new_context(java_script_enabled=False)) as context:
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.goto(pages["hybrid"].as_uri())
        assert page.locator("#query-table tbody tr").count() > 3
        assert not page.get_by_label("Search queries").is_visible()
