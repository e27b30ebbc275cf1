"""The documentation builds without a warning, every link of it leads somewhere, and it loads nothing from elsewhere."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import build_site
import pytest

from made_once import documentation

ROOT = Path(__file__).parents[2]
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}
LOADED_LINKS = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "preconnect", "dns-prefetch"}


class Page(HTMLParser):
    """What a page of the site refers to, and what can be referred to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.title = ""
        self._in_title = False
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self._in_title = tag == "title"
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        for name, value in values.items():
            if name in ("href", "src", "data") and value and tag not in ("use", "meta"):
                self.targets.append(value)
                relations = set((values.get("rel") or "").split())
                if (tag, name) in LOADED or (tag == "link" and relations & LOADED_LINKS):
                    self.loaded.append(value)

    def handle_data(self, data):
        if self._in_title:
            self.title += data

    def handle_endtag(self, tag):
        if tag == "title":
            self._in_title = False


class Site:
    def __init__(self, folder: Path, output: str) -> None:
        self.folder = folder
        self.output = output

    @cached_property
    def pages(self) -> dict[Path, Page]:
        return {path: Page(path) for path in sorted(self.folder.rglob("*.html")) if path.name != "404.html"}

    def broken(self) -> list[str]:
        return [
            f"{path.relative_to(self.folder)}: {target}"
            for path, page in self.pages.items()
            for target in page.targets
            if not self._leads_somewhere(path, target)
        ]

    def _leads_somewhere(self, path: Path, target: str) -> bool:
        parts = urlsplit(target)
        if parts.scheme in ("http", "https"):
            return "." in parts.netloc and " " not in target
        if parts.scheme:
            return parts.scheme in ("mailto", "data", "urn")
        there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        there = there / "index.html" if there.is_dir() else there
        if not there.is_file():
            return False
        anchor = unquote(parts.fragment)
        return not anchor or anchor == "__skip" or there.suffix != ".html" or anchor in self.pages[there].ids


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(*documentation(tmp_path_factory))


def test_the_site_builds_without_a_warning(site: Site):
    assert "No issues found" in site.output


def test_every_page_of_the_repository_is_in_the_site(site: Site):
    sources = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    sources += [path.relative_to(ROOT) for path in (ROOT / "proofs").glob("*.md")]
    html = {path.relative_to(site.folder) for path in site.pages}
    names = {"README": "index"}
    missing = [s for s in sources if s.with_name(f"{names.get(s.stem, s.stem)}.html") not in html]
    assert missing == []
    assert all(page.title.strip() for page in site.pages.values())


def test_every_link_and_anchor_leads_somewhere(site: Site):
    assert sum(len(page.targets) for page in site.pages.values()) > 1000
    assert site.broken() == []


def test_nothing_is_loaded_from_elsewhere(site: Site):
    elsewhere = [
        f"{path.name}: {target}"
        for path, page in site.pages.items()
        for target in page.loaded
        if urlsplit(target).netloc
    ]
    assert elsewhere == []


def test_every_page_can_be_reached_from_the_navigation(site: Site):
    listed = set(pages_of(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]))
    assert {str(path.relative_to(site.folder).with_suffix(".md")) for path in site.pages} == {
        name.replace("README.md", "index.md") for name in listed
    }


def pages_of(navigation: Any) -> Iterator[str]:
    """The files of a navigation, whatever its depth."""
    if isinstance(navigation, str):
        yield navigation
    else:
        for part in navigation.values() if isinstance(navigation, dict) else navigation:
            yield from pages_of(part)


def test_a_warning_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def gather_one(folder: Path) -> None:
        folder.mkdir()
        (folder / "index.md").write_text("# Page\n\n[nowhere](nowhere.md)\n")

    monkeypatch.setattr(build_site, "gather", gather_one)
    assert build_site.build(tmp_path / "site") != 0
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize(
    ("markup", "found"),
    [
        ('<a href="nowhere.html">x</a>', True),
        ('<a href="#nowhere">x</a>', True),
        ('<a href="https://nowhere">x</a>', True),
        ('<a href="javascript:alert(1)">x</a>', True),
        ('<b id="here"></b><a href="#here">x</a>', False),
        ('<a href="https://example.org/">x</a>', False),
    ],
)
def test_the_link_check_sees_what_is_broken(tmp_path: Path, markup: str, found: bool):
    (tmp_path / "page.html").write_text(f"<title>t</title>{markup}")
    assert bool(Site(tmp_path, "").broken()) is found
