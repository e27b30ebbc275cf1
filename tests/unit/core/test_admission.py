"""Which searches a device keeps: never what looks like somebody's own, never what is of a private network."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchblend.core.admission import admit
from searchblend.core.normalization import normalize

PAGE = "https://weather.example/today"


@pytest.mark.parametrize(
    ("query", "url", "kept"),
    [
        ("Weather  Today", PAGE, ("weather today", PAGE)),
        ("weather", None, ("weather", None)),
        ("ＷＥＡＴＨＥＲ", "HTTPS://Weather.Example/", ("weather", "https://weather.example")),
        ("maps", "https://maps.example/a?session=1#part", None),
        ("maps", "https://maps.example/a?q=something#part", ("maps", "https://maps.example/a")),
        ("2 + 2", "http://sums.example:80/x", ("2 + 2", "http://sums.example/x")),
        ("call 12345", PAGE, ("call 12345", PAGE)),
    ],
)
def test_what_is_kept(query, url, kept):
    found = admit(query, url)
    assert (found.kept and (found.query, found.url)) == (kept or False)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("mail to ann.lee@example.org", "e-mail"),
        ("ａｎｎ@ｅｘａｍｐｌｅ．ｏｒｇ", "e-mail"),
        ("+44 20 7946 0018", "phone"),
        ("4111 1111 1111 1111", "card-number"),
        ("order 123456789012", "id-number"),
        ("１２３４５６７８９０１２", "id-number"),
        ("ssh 10.1.2.3", "ip-address"),
        ("http://wiki/page", "private-address"),
        ("http://wiki.corp/page", "private-address"),
        ("https://x.example/?password=a", "credentials-in-url"),
        ("", "unusable-query"),
        (" \t ", "unusable-query"),
        ("a\ud800b", "unusable-query"),
        ("a\0b", "control-character"),
        ("a\x1b[2Jb", "control-character"),
        ("a\x85b\x9bc", "control-character"),
        ("weather \u202etxt", "control-character"),
        ("\u2066weather\u2069", "control-character"),
        ("\u061cweather", "control-character"),
        ("x" * 501, "too-long"),
    ],
)
def test_queries_that_are_forgotten(query, reason):
    assert admit(query).reason == reason


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://ann:secret@bank.example/", "credentials-in-url"),
        ("https://ann@bank.example/", "e-mail"),
        ("https://ann@bank/", "private-address"),
        ("https://bank.example/;jsessionid=1", "credentials-in-url"),
        ("http://localhost/x", "private-address"),
        ("http://printer/x", "private-address"),
        ("http://printer.local/x", "private-address"),
        ("http://wiki.internal./x", "private-address"),
        ("http://192.168.0.1/x", "ip-address"),
        ("http://2130706433/x", "id-number"),
        ("http://127.1/x", "private-address"),
        ("http://0x7f.1/x", "private-address"),
        ("http://[fe80::1]/x", "private-address"),
        ("https://wiki.example:8443/x", "private-address"),
        ("https://shop.example/order/123456789012", "id-number"),
        ("https://mail.example/to/ann@example.org", "e-mail"),
        ("file:///etc/passwd", "not-a-web-address"),
        ("about:blank", "not-a-web-address"),
        ("javascript:alert(1)", "not-a-web-address"),
        ("weather page", "not-a-web-address"),
        ("https://a.example\\@b.example/", "private-address"),
        ("https://x.example/\0", "control-character"),
        ("https://x.example/\u202egpj.exe", "control-character"),
        ("https://x.example/" + "a" * 2000, "too-long"),
    ],
)
def test_urls_that_are_forgotten(url, reason):
    assert admit("weather", url).reason == reason


def test_nothing_of_the_search_is_shown():
    assert "weather" not in repr(admit("weather", PAGE))


def test_a_run_of_combining_marks_takes_no_time():
    """NFKC is quadratic in it, so length is limited before."""
    begun = time.process_time()
    assert admit("a" + "\u0315\u0300" * 200_000).reason == "too-long"
    assert time.process_time() - begun < 0.5


@given(st.text(max_size=80), st.one_of(st.none(), st.text(max_size=80)))
def test_what_is_kept_is_in_normal_form(query, url):
    found = admit(query, url)
    if found.kept:
        assert normalize(found.query) == found.query
        again = admit(found.query, found.url)
        assert (again.query, again.url) == (found.query, found.url)
