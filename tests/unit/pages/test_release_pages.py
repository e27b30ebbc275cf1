"""Result pages: what they say is in the released files, nothing in them is executed, nothing is loaded."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from made_releases import IMAGE, LONG, RIGHT_TO_LEFT, SCRIPT, graph_release, hybrid_release
from searchblend.cli.main import main
from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.pages.layout import MOST_ROWS, code, foreign
from searchblend.pages.release_pages import click_graph_page, hybrid_page, percent
from searchblend.pages.statement_words import StatementWords
from searchblend.releases.paperwork import page_of_folder
from searchblend.wire.click_graph import STATEMENT_KIND
from searchblend.wire.click_graph_files import read_click_graph
from searchblend.wire.release import decode_result, decode_statement

ACTIVE = {"script", "style", "link", "iframe", "object", "embed", "form", "base", "img", "a"}


class Markup(HTMLParser):
    """Elements, attributes and the tables of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[list[list[str]]] = []
        self._cell: list[str] | None = None
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self._cell = []

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.tables[-1][-1].append("".join(self._cell or []))
            self._cell = None

    def handle_data(self, data):
        self.text += data
        if self._cell is not None:
            self._cell.append(data)


def documents(folder: Path) -> tuple[dict, dict]:
    return json.loads((folder / "result.json").read_text()), json.loads((folder / "statement.json").read_text())


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory) -> Path:
    return hybrid_release(tmp_path_factory.mktemp("hybrid"))


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> Path:
    return graph_release(tmp_path_factory.mktemp("graph"))


@pytest.fixture(params=["hybrid", "graph"])
def page(request) -> str:
    return (request.getfixturevalue(request.param) / "index.html").read_text()


def test_the_policy_allows_the_one_style_and_the_one_script_by_their_hashes(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}';" in policy[1]
    assert policy[1].startswith("default-src 'none';")
    assert "unsafe" not in policy[1]


def test_hostile_texts_are_shown_and_inert(page):
    markup = Markup(page)
    for text in (SCRIPT, IMAGE, RIGHT_TO_LEFT, LONG):
        assert text in markup.text
    assert [tag for tag, _ in markup.elements if tag in ACTIVE] == ["style", "script"]
    assert [name for _, attributes in markup.elements for name in attributes if name.startswith("on")] == []
    assert [attributes for _, attributes in markup.elements if {"href", "src", "style"} & set(attributes)] == []


def test_a_javascript_url_is_text(hybrid):
    result, statement = documents(hybrid)
    row = next(row for row in result["records"] if row["url"])
    row["url"] = "javascript:alert(1)"
    markup = Markup(hybrid_page(decode_result(result), decode_statement(statement)))
    assert "javascript:alert(1)" in markup.text
    assert [attributes for _, attributes in markup.elements if "href" in attributes] == []


def test_tables_of_a_hybrid_page_show_the_released_numbers(hybrid):
    result, _ = documents(hybrid)
    queries, records = Markup((hybrid / "index.html").read_text()).tables[:2]
    trends = [row for row in result["trends"] if row["kind"] == "query"]
    assert [row[0] for row in queries[1:]] == [row["query"] for row in trends]
    assert [row[1] for row in queries[1:]] == [percent(row["probability"]) for row in trends]
    assert [row[3] for row in queries[1:]] == [percent(row["optin"]["probability"]) for row in trends]
    assert len(records) - 1 == len(result["records"]) - 1
    assert "true share" not in queries[0]


def test_tables_of_a_graph_page_show_the_released_numbers(graph):
    released = read_click_graph(graph)
    queries, clicks = Markup((graph / "index.html").read_text()).tables[:2]
    assert [(row[0], row[1]) for row in queries[1:]] == [
        (query, f"{released.searches.count[i]:,}") for i, query in enumerate(released.queries)
    ]
    assert len(clicks) - 1 == len(released.clicks)


@pytest.mark.parametrize(
    ("share", "words"),
    [(0, "0.00 %"), (1e-17, "0.00 %"), (-1e-17, "0.00 %"), (2e-7, "0.00002 %"), (0.00012, "0.012 %"), (0.5, "50.00 %")],
)
def test_a_share_has_digits_that_count(share: float, words: str):
    assert percent(share) == words


def test_the_statement_names_the_page_and_verify_accepts_it(graph, hybrid):
    for folder in (graph, hybrid):
        statement = json.loads((folder / "statement.json").read_text())
        assert (
            statement["files"]["index.html"]["sha256"]
            == hashlib.sha256((folder / "index.html").read_bytes()).hexdigest()
        )
    assert main(["release", "verify", str(graph)]) == 0


def test_the_page_of_a_folder_is_the_page_in_it(graph, hybrid, tmp_path, capsys):
    for folder in (graph, hybrid):
        assert page_of_folder(folder) == (folder / "index.html").read_text()
    assert main(["page", str(graph), "-o", str(tmp_path / "page.html"), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (tmp_path / "page.html").read_bytes() == (graph / "index.html").read_bytes()
    assert made["sha256"] == hashlib.sha256((tmp_path / "page.html").read_bytes()).hexdigest()
    assert main(["page", str(hybrid)]) == 0
    assert capsys.readouterr().out == (hybrid / "index.html").read_text()


def test_the_privacy_statement_is_in_plain_words(page):
    text = Markup(page).text
    assert "change the odds by a factor of 54.6 at most" in text
    assert "What is not promised" in text
    assert "How to cite this release" in text
    assert "@misc{searchblend-" in text


@pytest.mark.parametrize(("kind", "paper"), [("blender", 2017), ("blender round", 2017), (STATEMENT_KIND, 2009)])
def test_a_release_cites_its_own_paper(hybrid, kind, paper):
    """A round of the service has the pages of a hybrid release, whatever its kind is called."""
    _, statement = documents(hybrid)
    statement["release"]["kind"] = kind
    text = StatementWords(decode_statement(statement), "title", "0" * 64).paper
    assert [year for year in (2009, 2017) if text.endswith(f" {year}.")] == [paper]


def test_a_guarantee_that_does_not_hold_is_said_first(hybrid):
    result, statement = documents(hybrid)
    broken = copy.deepcopy(statement)
    broken["guarantee"]["holds"] = False
    broken["guarantee"]["conditions"][0]["holds"] = False
    text = Markup(hybrid_page(decode_result(result), decode_statement(broken))).text
    assert "The guarantee does NOT hold: bounded contribution" in text
    assert "Nothing is promised" in text
    assert "factor of 54.6" not in text


def test_an_evaluation_is_stamped(tmp_path):
    folder = hybrid_release(tmp_path, "--evaluate", "--seed", "1")
    markup = Markup((folder / "index.html").read_text())
    assert "NOT PRIVATE" in markup.text
    assert "true share" in markup.tables[0][0]


def test_a_long_table_is_cut_and_says_so(hybrid):
    result, statement = documents(hybrid)
    row = next(row for row in result["records"] if row["url"])
    result["records"] = [{**row, "url": f"http://site.example/{i}"} for i in range(MOST_ROWS + 5)]
    markup = Markup(hybrid_page(decode_result(result), decode_statement(statement)))
    assert len(markup.tables[1]) - 1 == MOST_ROWS
    assert f"The first {MOST_ROWS:,} of {MOST_ROWS + 5:,}; records.csv has all of them." in markup.text


def test_an_empty_table_of_clicks_is_left_out(graph):
    statement = json.loads((graph / "statement.json").read_text())
    released = read_click_graph(graph)
    counts = {
        query: (int(released.searches.count[i]), float(released.searches.low[i]), float(released.searches.high[i]))
        for i, query in enumerate(released.queries)
    }
    page = click_graph_page(ClickGraph.of(counts, {}, {}, noise=released.noise), decode_statement(statement))
    assert "<h2 id=clicks" not in page.replace('"', "")
    assert "Queries</h2>" in page


def test_a_page_without_a_folder_is_misuse(tmp_path, capsys):
    assert main(["run", "log.tsv", "--html"]) == 2
    assert main(["page", str(tmp_path), "--json"]) == 2
    assert "--output" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("statement.json", b"{", "expected a JSON document"),
        ("statement.json", b"[]", "expected a JSON object"),
        ("statement.json", b"{}", "expected a searchblend statement"),
        ("statement.json", b'{"format": "searchblend-statement"}', "as searchblend writes them"),
        ("result.json", b"{}", "SHA-256 differs"),
        ("result.json", None, "cannot be read"),
        ("statement.json", None, "is missing; expected the folder of a release"),
    ],
)
def test_a_folder_that_is_no_release_is_refused(hybrid, tmp_path, capsys, name, content, expected):
    for path in hybrid.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    assert main(["page", str(tmp_path), "-o", str(tmp_path / "page.html")]) == 1
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


def test_signs_that_turn_a_line_around_are_spelt_out():
    assert foreign("bank\u202egnp<b>") == "<bdi>bank[U+202E]gnp&lt;b&gt;</bdi>"


def test_a_file_in_the_way_stays(hybrid, tmp_path, capsys):
    target = tmp_path / "page.html"
    target.write_text("mine")
    assert main(["page", str(hybrid), "-o", str(target)]) == 1
    assert target.read_text() == "mine"
    assert main(["page", str(hybrid), "-o", str(target), "--force"]) == 0
    assert target.read_text() == (hybrid / "index.html").read_text()


def test_a_release_that_was_published_without_a_page_says_how_to_make_one(tmp_path, capsys):
    ledger = ["--ledger", str(tmp_path / "budget.db"), "--release-id", "first"]
    folder = hybrid_release(tmp_path, *ledger)
    assert (folder / "index.html").exists()
    again = [str(tmp_path / "log.tsv"), "--opt-in", "0.4", "--ledger", str(tmp_path / "budget.db")]
    assert main(["run", *again, "--release-id", "second", "-o", str(tmp_path / "a")]) == 0
    capsys.readouterr()
    assert main(["run", *again, "--release-id", "second", "-o", str(tmp_path / "b"), "--html"]) == 0
    assert "published without a page" in capsys.readouterr().err
    assert main(["page", str(tmp_path / "b"), "-o", str(tmp_path / "page.html")]) == 0


def test_words_of_ours_are_code_or_stressed_and_nothing_else():
    assert code("a *row* of `a*b*c` & 2 * 3 * 4, *not comparable*") == (
        "a <em>row</em> of <code>a*b*c</code> &amp; 2 * 3 * 4, <em>not comparable</em>"
    )
