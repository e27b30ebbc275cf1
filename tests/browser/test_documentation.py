"""The documentation in real Chromium, opened as files: it can be searched, reads in every look, loads nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from accessibility import serious_violations
from console_browser import LOOKS, photograph, sideways, wear
from made_once import documentation
from watched_page import opened

PHONE = LOOKS["phone"][1]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder, _ = documentation(tmp_path_factory)
    return folder


@pytest.mark.parametrize(
    ("name", "looks"), [("index", LOOKS), ("explanation/hybrid-model", LOOKS), ("reference/cli/run", ["phone"])]
)
def test_the_documentation_reads_well_and_loads_nothing_from_elsewhere(chromium, site, name, looks):
    with opened(chromium, site / f"{name}.html", PHONE) as watched:
        page = watched.page
        for look in looks:
            wear(page, look)
            page.evaluate("localStorage.clear()")  # the system's colours are asked for on a first visit, and remembered
            page.reload()
            dark = page.evaluate("document.body.dataset.mdColorScheme") == "slate"
            assert (look, dark) == (look, LOOKS[look][0] == "dark")
            photograph(page, f"documentation/{name.replace('/', '-')}-{look}", full_page=name != "reference/cli/run")
            assert (look, sideways(page)) == (look, [])
            assert (look, serious_violations(page, look)) == (look, [])
        assert watched.errors == []
        assert watched.elsewhere() == []


@pytest.mark.parametrize("width", [PHONE, 1280])
def test_a_word_that_is_typed_finds_a_page(chromium, site, width):
    with opened(chromium, site / "index.html", width) as watched:
        page = watched.page
        page.locator("[for=__search], .md-search__button").filter(visible=True).first.click()
        page.get_by_role("combobox", name="Search").press_sequentially("reformulation")
        page.get_by_role("option", name="The release").first.click()
        page.wait_for_url("**/tutorial/first-click-graph.html*")
        assert watched.elsewhere() == []
        assert watched.errors == []
