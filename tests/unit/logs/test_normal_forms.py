"""The SQL shortcuts never say anything that the Python rule does not say."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_logs import counts_of, read

from searchblend.core.normalization import normalize, normalize_url
from searchblend.core.records import Record
from searchblend.core.unicode14 import all_assigned
from searchblend.logs.duckdb import normal_forms
from searchblend.logs.duckdb.normal_forms import COMMON, ODD_BYTES
from searchblend.logs.formats import judge
from searchblend.logs.formats.judge import MAX_LENGTH

SOME = settings(max_examples=150, deadline=None)
TEXTS = st.text(
    st.one_of(
        st.sampled_from(list("aZ09 .-:/?#@[]\\%\t\v\f\r\x1c\x01\x7f\xa0\u3000ÀßΣı\u0301\U0001fae0\u0378")),
        st.characters(exclude_categories=["Cs"], exclude_characters="\0\n"),
    ),
    max_size=20,
)
URLS = st.builds(
    lambda *parts: "".join(parts),
    st.sampled_from(["http://", "https://", "HTTP://", "ftp://", "", "http:/", "http://u@", "x:http://"]),
    st.one_of(TEXTS, st.sampled_from(["a.b", "a.b:80", "a.b:81", "A.b", "[::1]", "a", "a b.c", "a.b.", "-_.x"])),
    st.sampled_from(["", "/", "?", "#", "/x", "/x/", "/a b", "?q", "/#f", "//", ":", "/x:y"]),
    TEXTS,
)


@pytest.fixture(scope="module")
def sql():
    connection = duckdb.connect()

    def evaluate(expression: str, text: str) -> object:
        found = connection.execute(f"SELECT {expression} FROM (SELECT ?::VARCHAR AS x)", [text]).fetchone()
        assert found is not None
        return found[0]

    yield evaluate
    connection.close()


def files_with(text: str) -> list[dict[str, bool]]:
    """What may be known of a file that holds a text: the truth, or less."""
    is_ascii, is_tame = text.isascii(), "\r" not in text and not any(chr(byte) in text for byte in ODD_BYTES)
    known = [(a, t) for a in (False, True) for t in (False, True) if a <= is_ascii and t <= is_tame]
    return [{"ascii_only": a, "no_odd_bytes": t} for a, t in known]


@SOME
@given(text=TEXTS)
def test_queries(sql, text):
    form = normalize(text)
    for known in files_with(text):
        if sql(" AND ".join(normal_forms.surely_usable_query("x", ascii_only=known["ascii_only"])), text):
            assert form is not None
    if not sql(normal_forms.query_needs_python("x"), text):
        assert (sql(normal_forms.normal_ascii_query("x"), text) or None) == form


@pytest.mark.thorough
@SOME
@given(url=URLS)
@pytest.mark.parametrize("host_only", [False, True])
def test_urls(sql, url, host_only):
    form = normalize_url(url, host_only=host_only)
    for known in files_with(url):
        if sql(" AND ".join(normal_forms.surely_usable_url("x", **known, host_only=host_only)), url):
            assert form is not None
    if not sql(normal_forms.url_form("x", host_only=host_only).needs_python, url):
        assert sql(normal_forms.url_form("x", host_only=host_only).shortcut, url) == form


def test_texts_of_common_letters_are_usable():
    for first, last in COMMON:
        for letter in map(chr, range(first, last + 1)):
            assert all_assigned(letter)
            form = normalize(letter)
            assert form
            assert all_assigned(form)


@pytest.mark.parametrize("query", ["weather", "são paulo", "東京 天気", "погода в москве", "Ünïcode 2"])
def test_common_queries_are_surely_usable(sql, query):
    assert sql(" AND ".join(normal_forms.surely_usable_query("x", ascii_only=False)), query)


@pytest.mark.parametrize(
    "url", ["http://www.example.com", "https://example.org/a?b=c", "/path", "Article_title", "http://a.example/x/"]
)
def test_common_urls_do_not_need_python(sql, url):
    assert not sql(normal_forms.url_form("x", host_only=False).needs_python, url)
    for known in files_with(url):
        assert sql(" AND ".join(normal_forms.surely_usable_url("x", **known, host_only=False)), url)


def test_very_long_texts_are_unusable(tmp_path: Path):
    """Not for their length alone: NFKC of a run of combining marks takes time quadratic in it."""
    marks = "a" + "\u0301\u0316" * 200_000
    path = tmp_path / "log.tsv"
    path.write_text(
        f"user\tquery\turl\n1\t{marks}\tu\n1\tq\t{marks}\n1\t{'q' * MAX_LENGTH}\tu\n1\t{'q' * (MAX_LENGTH + 1)}\tu\n"
    )
    with read(path) as log:
        assert {reason: kind.count for reason, kind in log.summary.malformed.items()} == {
            "unusable_query": 2,
            "unusable_url": 1,
        }


def test_each_distinct_string_that_needs_python_goes_through_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    seen: list[str] = []

    def form(text: str) -> str | None:
        seen.append(text)
        return normalize(text)

    monkeypatch.setattr(normal_forms, "normalize", form)
    monkeypatch.setattr(judge, "normalize", form)
    judge.query_is_usable.cache_clear()
    path = tmp_path / "log.tsv"
    path.write_text("user\tquery\n" + "".join(f"{user}\tᾈ {user % 2}\n{user}\tplain\n" for user in range(500)))
    with read(path) as log:
        found = counts_of(log.split(optin_fraction=1e-9)[1].tally())
    assert set(found) == {Record("ᾀ 0"), Record("ᾀ 1"), Record("plain")}
    assert sorted(set(seen)) == ["ᾈ 0", "ᾈ 1"]
    assert len(seen) <= 4  # once for being usable, once for the drawn ones


def test_host_only(tmp_path: Path):
    path = tmp_path / "log.tsv"
    path.write_text(
        "user\tquery\turl\n1\tq\thttp://A.example/x\n2\tq\thttps://u@a.example:443/y\n3\tq\tlocalhost/x\n4\tq\ta.example\n"
    )
    with read(path, host_only=True) as log:
        assert counts_of(log.split(optin_fraction=1e-9)[1].tally()) == {Record("q", "a.example"): 3}
        assert [str(place.line) for place in log.summary.malformed["unusable_url"].first] == ["4"]
