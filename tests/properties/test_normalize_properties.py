"""What holds of ``normalize`` and ``normalize_url`` for every text."""

from __future__ import annotations

import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from searchblend.core.normalization import fold, normalize, normalize_url, single_blanks
from searchblend.core.unicode14 import all_assigned

# Texts of any code points, surrogates included, mixed with those that the rules are about.
TRICKY = st.sampled_from(
    [*"\t\n\x1c\x85\xa0\u1680\u2028\ufeff\u200d ΣσςΑİẞ\u0295¨\u0301\u0323\u0307\u0331HJ\u1112\u1161\u11a8\u0378\uffff"]
)
TEXTS = st.text(st.one_of(st.characters(), st.characters(codec="utf-8"), TRICKY))
ASSIGNED = TEXTS.map(lambda text: "".join(filter(all_assigned, text)))
PARTS = st.sampled_from(
    [*"/?#@:.[] \t\\", "http://", "HTTPS://", "://", ":80", ":443", "www.Example.com", "[::1]", "／", "＠", "Ü", "%2F"]
)
URLS = st.lists(st.one_of(PARTS, PARTS, TEXTS)).map("".join)
ABSOLUTE = st.builds("{}://{}".format, st.sampled_from(["http", "HTTPS", "ftp"]), URLS)
ANY_URL = st.one_of(URLS, ABSOLUTE)


@given(TEXTS)
@example("ΑΣ\u0295")
@example("H\u0331")
def test_normalize_is_idempotent(text):
    once = normalize(text)
    assert once is None or normalize(once) == once


@given(TEXTS)
def test_unusable_exactly_when_a_code_point_is_or_nothing_is_left(text):
    assert (normalize(text) is None) == (not all_assigned(text) or not single_blanks(fold(text)))


@given(TEXTS)
def test_output_has_single_blanks_and_is_in_nfkc_and_lower_case(text):
    once = normalize(text)
    if once is not None:
        assert once == once.strip(" ") != ""
        assert "  " not in once
        assert single_blanks(once) == once
        assert unicodedata.is_normalized("NFKC", once)
        assert once.lower() == once
        assert once.encode("utf-8")


@given(st.text(st.characters(max_codepoint=0x7F)))
def test_ascii_gives_what_the_general_rules_give(text):
    general = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())
    assert normalize(text) == (single_blanks(general) or None)


@given(ASSIGNED, ASSIGNED)
def test_blanks_between_words_do_not_matter(first, second):
    assert normalize(f"{first} {second}") == normalize(f"\u3000{first}\t\u00a0{second}\u0085")


@given(ASSIGNED)
def test_equivalent_spellings_have_one_normal_form(text):
    assert normalize(unicodedata.normalize("NFKD", text)) == normalize(text)


@given(ANY_URL, st.booleans())
@example("http://localhost/", True)
@example("http://a.example/ #", False)
def test_normalize_url_is_idempotent(url, host_only):
    once = normalize_url(url, host_only=host_only)
    assert once is None or normalize_url(once, host_only=host_only) == once


@given(ANY_URL)
def test_a_url_has_single_blanks_and_only_usable_code_points(url):
    once = normalize_url(url)
    if once is not None:
        assert single_blanks(once) == once != ""
        assert all_assigned(once)


@given(ABSOLUTE)
def test_the_host_alone_stands_in_the_whole(url):
    whole, host = normalize_url(url), normalize_url(url, host_only=True)
    if whole is None:
        assert host is None
    elif host is not None:
        rest = whole.partition("://")[2].removeprefix(host)
        assert whole == f"{whole.partition('://')[0]}://{host}{rest}"
        assert rest == "" or rest[0] in "/?"
        assert normalize_url(whole, host_only=True) == host


@given(ANY_URL)
def test_a_host_has_no_delimiter_and_is_folded(url):
    host = normalize_url(url, host_only=True)
    if host is not None:
        assert not set(host) & set("/?#@\\ ")
        assert fold(host) == host
        assert "." in host or host.startswith("[")


@given(ABSOLUTE, ASSIGNED)
def test_a_fragment_does_not_matter(url, fragment):
    assert normalize_url(f"{url}#{fragment}") == normalize_url(f"{url}#")


@given(ASSIGNED.map(lambda text: text.translate(dict.fromkeys(map(ord, "#")))))
def test_path_and_query_string_stay(text):
    path = f"x{single_blanks(text)}"
    assert normalize_url(f"http://A.example/{path}") == f"http://a.example/{path}"
