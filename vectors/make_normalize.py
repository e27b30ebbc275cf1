"""Writes ``v1/normalize.json``: queries and URLs with their normal forms, which Python and JavaScript both replay.

Every expected form below was written by hand; the script refuses to write a file that the code does not meet.
"""

from __future__ import annotations

import json
from pathlib import Path

from searchblend.core.normalization import normalize, normalize_url

TARGET = Path(__file__).parent / "v1" / "normalize.json"
ABOUT = (
    "normalize(in) must be out for each query, normalize_url(in, host_only) for each URL; null: unusable. "
    "Lone surrogates are written as \\ud800. The rules are in searchblend/core/normalization.py."
)

QUERIES: list[tuple[str, str, str | None]] = [
    # plain texts and blanks
    ("ascii", "weather", "weather"),
    ("capitals", "Weather NEW York", "weather new york"),
    ("blanks at the ends and inside", "  new   york ", "new york"),
    ("tab and line ends", "\tnew\r\n\u000byork\u000c", "new york"),
    ("empty", "", None),
    ("blanks only", " \t\u3000", None),
    ("hyphen is a text", "-", "-"),
    ("asterisk is a text", "*", "*"),
    ("star is a text, not the wildcard", "⋆", "⋆"),
    ("full-width asterisk", "＊", "*"),
    ("control characters are no blanks", "a\u001cb\u001fc\u0000", "a\u001cb\u001fc\u0000"),
    ("control character beside blanks", " \u001c ", "\u001c"),
    ("delete is no blank", "a\u007f b", "a\u007f b"),
    ("no-break space", "new\u00a0\u00a0york", "new york"),
    ("next line U+0085", "new\u0085york\u0085", "new york"),
    ("ogham space mark", "\u1680new\u1680york", "new york"),
    (
        "en quad to hair space",
        "a\u2000\u2001b\u2002\u2003\u2004c\u2005\u2006d\u2007\u2008e\u2009\u200af",
        "a b c d e f",
    ),
    ("line and paragraph separator", "a\u2028b\u2029c", "a b c"),
    ("narrow and mathematical space", "a\u202fb\u205fc", "a b c"),
    ("ideographic space", "東京\u3000天気", "東京 天気"),
    ("byte order mark is no blank", "\ufeffweather", "\ufeffweather"),
    ("byte order mark alone", "\ufeff", "\ufeff"),
    ("zero width space is no blank", "a\u200bb", "a\u200bb"),
    ("mongolian vowel separator is no blank", "a\u180eb", "a\u180eb"),
    ("diaeresis becomes a blank and a mark", "x¨", "x \u0308"),
    ("leading diaeresis loses its blank", "¨x", "\u0308x"),
    # NFKC
    ("full-width letters", "Ｗｅａｔｈｅｒ　２４", "weather 24"),
    ("half-width katakana", "ｶﾞｽ", "ガス"),
    ("ligature", "oﬃce", "office"),
    ("superscript and fraction", "m² ½", "m2 1\u20442"),
    ("roman numeral", "Louis ⅩⅣ", "louis xiv"),
    ("mathematical letters beyond U+FFFF", "𝒜𝐁𝟙", "ab1"),
    ("Kelvin, Angstrom and Ohm signs", "\u212a \u212b \u2126", "k å ω"),
    ("telephone sign", "℡", "tel"),
    ("composed", "caf\u00e9", "caf\u00e9"),
    ("decomposed", "Cafe\u0301", "caf\u00e9"),
    ("marks in either order: dot above first", "Q\u0307\u0323", "q\u0323\u0307"),
    ("marks in either order: dot below first", "Q\u0323\u0307", "q\u0323\u0307"),
    ("composes in lower case only", "H\u0331", "\u1e96"),
    ("composes in lower case only, J with caron", "J\u030c", "\u01f0"),
    ("excluded from composition", "\u0958", "\u0915\u093c"),
    ("Hangul jamo", "\u1112\u1161\u11ab\u1100\u116e\u11a8", "한국"),
    ("Hangul compatibility jamo", "\u3131", "\u1100"),
    ("Arabic presentation form", "\ufefb", "\u0644\u0627"),
    ("Arabic ligature of a phrase", "\ufdfa", "صلى الله عليه وسلم"),
    # lower case
    ("dotted capital I", "İstanbul", "i\u0307stanbul"),
    ("dotless i", "Kırmızı", "kırmızı"),
    ("sharp s stays", "Straße", "straße"),
    ("capital sharp s", "STRAẞE", "straße"),
    ("title-case digraph", "ǅ", "dž"),
    ("Cherokee", "Ꭰ", "ꭰ"),
    ("Georgian capital", "Თ", "თ"),
    ("Deseret beyond U+FFFF", "𐐀", "𐐨"),
    ("Cyrillic", "ПОГОДА в Москве", "погода в москве"),
    ("final sigma", "ΣΟΦΟΣ", "σοφος"),
    ("final sigma before a blank", "ΟΔΟΣ ΣΟΦΟΣ", "οδος σοφος"),
    ("final sigma before a full stop and a letter", "ΟΔΟΣ.GR", "οδος.gr"),
    ("final sigma after an accent", "ΤΟΎΣ", "τούς"),
    ("final sigma after a mark that does not compose", "Θ\u0323Σ", "θ\u0323ς"),
    ("sigma alone", "Σ", "σ"),
    ("sigma after a full stop", "Α.Σ.", "α.σ."),
    ("sigma after a Latin letter", "aΣ", "aσ"),
    ("sigma before U+0295, cased in Unicode 14 only", "ΑΣ\u0295", "ας\u0295"),
    ("sigma between U+1171E, a mark in Unicode 14 only", "Α\U0001171eΣ\U0001171eα", "α\U0001171eσ\U0001171eα"),
    ("lunate sigma", "ΟΔΟϹ", "οδος"),
    ("small sigmas stay as they were typed", "οδοσ ς", "οδοσ ς"),
    # joiners, emoji, direction
    ("emoji", "😀 Emoji", "😀 emoji"),
    ("family joined by ZWJ", "👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
    ("variation selector", "❤\ufe0f", "❤\ufe0f"),
    ("emoji of Unicode 14", "\U0001fae0", "\U0001fae0"),
    ("Persian with ZWNJ", "می\u200cخواهم", "می\u200cخواهم"),
    ("right to left with mark", "\u200fשלום עולם", "\u200fשלום עולם"),
    ("Devanagari", "दिल्ली  मौसम", "दिल्ली मौसम"),
    ("soft hyphen stays", "co\u00adop", "co\u00adop"),
    ("private use", "\ue000 \U00100000", "\ue000 \U00100000"),
    # unusable
    ("lone high surrogate", "a\ud800b", None),
    ("lone low surrogate", "\udc00", None),
    ("high surrogate at the end", "weather \udbff", None),
    ("noncharacter U+FFFF", "a\uffff", None),
    ("noncharacter U+FDD0", "\ufdd0", None),
    ("noncharacter U+10FFFF", "\U0010ffff", None),
    ("unassigned U+0378", "weather \u0378", None),
    ("last unassigned before U+E000", "\ud7fc", None),
    ("Unicode 15: emoji", "\U0001fae8", None),
    ("Unicode 15: Kannada sign", "\u0cf3", None),
    ("Unicode 15: Cyrillic modifier, which has NFKC", "\U0001e030", None),
    ("Unicode 15: CJK extension H", "\U00031350", None),
    ("Unicode 15.1: ideographic description", "\u2ffc", None),
    ("Unicode 16: Latin capital, which has a lower case", "\ua7cb", None),
    ("Unicode 16: Garay capital", "\U00010d50", None),
    # long
    ("long, ASCII", "Ab  " * 500, "ab " * 499 + "ab"),
    ("long, full-width", "Ａ\u3000" * 500, "a " * 499 + "a"),
    ("long, unassigned at the end", "é" * 500 + "\u0378", None),
]

URLS: list[tuple[str, str, str | None, str | None]] = [
    # name, URL, normal form, host alone
    ("plain", "http://www.example.com/a/b?c=d", "http://www.example.com/a/b?c=d", "www.example.com"),
    ("scheme and host in capitals", "HTTP://Example.COM/Path?Q=A", "http://example.com/Path?Q=A", "example.com"),
    ("path of a slash", "http://example.com/", "http://example.com", "example.com"),
    ("no path", "http://example.com", "http://example.com", "example.com"),
    ("slash with a query string", "http://example.com/?q=1", "http://example.com/?q=1", "example.com"),
    ("slash with an empty query string", "http://example.com/?", "http://example.com/?", "example.com"),
    ("query string without a path", "http://example.com?q=A", "http://example.com?q=A", "example.com"),
    ("two slashes", "http://example.com//", "http://example.com//", "example.com"),
    ("slash at the end of a path", "http://example.com/a/", "http://example.com/a/", "example.com"),
    ("fragment", "http://example.com/a#top", "http://example.com/a", "example.com"),
    ("fragment with question mark", "http://example.com/a#b?c=d/e#f", "http://example.com/a", "example.com"),
    ("fragment after a slash", "http://example.com/#top", "http://example.com", "example.com"),
    ("fragment after the host", "http://example.com#top", "http://example.com", "example.com"),
    ("blank before the fragment", "http://example.com/ #top", "http://example.com", "example.com"),
    ("blank between host and fragment", "http://example.com #top", "http://example.com", "example.com"),
    ("user information", "http://user:pass@example.com/a", "http://example.com/a", "example.com"),
    ("user information with at sign", "http://u@v:p@example.com/a", "http://example.com/a", "example.com"),
    ("user information with slash ends the host", "http://example.com/a@b", "http://example.com/a@b", "example.com"),
    ("user information and blanks", "http://user name@ example.com /a", "http://example.com/a", "example.com"),
    ("user information and no host", "http://user@/a", "http:///a", None),
    ("default port of http", "http://example.com:80/a", "http://example.com/a", "example.com"),
    ("default port of https", "https://example.com:443/", "https://example.com", "example.com"),
    ("port of https under http", "http://example.com:443/a", "http://example.com:443/a", "example.com:443"),
    ("port of http under ftp", "ftp://example.com:80/a", "ftp://example.com:80/a", "example.com:80"),
    ("other port", "http://Example.com:8080/", "http://example.com:8080", "example.com:8080"),
    ("empty port", "http://example.com:/a", "http://example.com/a", "example.com"),
    ("port that is no number", "http://example.com:http/a", None, None),
    ("IPv4", "http://192.0.2.1/a", "http://192.0.2.1/a", "192.0.2.1"),
    ("IPv6", "http://[2001:DB8::1]/a", "http://[2001:db8::1]/a", "[2001:db8::1]"),
    ("IPv6 with ports", "https://u@[::1]:443/", "https://[::1]", "[::1]"),
    ("IPv6 with another port", "http://[::1]:8080/a", "http://[::1]:8080/a", "[::1]:8080"),
    ("bracket left open", "http://[::1/a", None, None),
    ("host without a dot", "http://localhost/a", "http://localhost/a", None),
    ("no host", "file:///A/b", "file:///A/b", None),
    ("scheme only", "HTTP://", "http://", None),
    ("scheme with signs", "Git+SSH://Example.com/R", "git+ssh://example.com/R", "example.com"),
    ("IDN", "http://BÜCHER.example/Ü", "http://bücher.example/Ü", "bücher.example"),
    ("IDN, full-width", "http://Bu\u0308cher．ｅｘａｍｐｌｅ/", "http://bücher.example", "bücher.example"),
    ("IDN, Greek", "http://ΟΔΟΣ.example/", "http://οδος.example", "οδος.example"),
    ("punycode stays", "http://XN--bcher-kva.example/", "http://xn--bcher-kva.example", "xn--bcher-kva.example"),
    ("path is not NFKC", "http://example.com/ﬁ/\u212a/e\u0301", "http://example.com/ﬁ/\u212a/e\u0301", "example.com"),
    ("percent signs stay", "http://example.com/%7Ea%2f%zz", "http://example.com/%7Ea%2f%zz", "example.com"),
    ("host that folds into a slash", "http://good.example\uff0fevil.example/", None, None),
    ("host that folds into an at sign", "http://good.example\uff20evil.example/", None, None),
    ("host that folds into a/c", "http://\u2100.example/", None, None),
    ("host that folds into a blank", "http://a\u00a8.example/", None, None),
    ("backslash in the host", "http://good.example\\evil.example/", None, None),
    ("backslash before the at sign", "http://evil.example\\@good.example/", None, None),
    ("backslash in the path", "http://example.com/a\\b", "http://example.com/a\\b", "example.com"),
    ("blanks around", " \thttp://example.com/a\u3000\n", "http://example.com/a", "example.com"),
    ("blanks in the path", "http://example.com/a \t b\u00a0c", "http://example.com/a b c", "example.com"),
    ("blank in the host", "http://exam ple.com/a", None, None),
    ("no scheme: path", "/data", "/data", None),
    ("no scheme: title", " Australian_Open ", "Australian_Open", None),
    ("no scheme: host and path", "WWW.Example.com/X#y", "WWW.Example.com/X#y", "www.example.com"),
    ("no scheme: host and port", "example.com:80", "example.com:80", "example.com:80"),
    ("no scheme: host and query string", "example.com?q=a/b.c", "example.com?q=a/b.c", "example.com"),
    ("no scheme: two slashes", "//example.com/a", "//example.com/a", None),
    ("no scheme: a digit before", "1http://example.com/", "1http://example.com/", None),
    ("no scheme: one slash", "http:/example.com", "http:/example.com", None),
    ("no scheme: hyphen", "-", "-", None),
    ("no scheme: star", "⋆", "⋆", None),
    ("empty", "", None, None),
    ("blanks only", "\u2003 ", None, None),
    ("lone surrogate in the path", "http://example.com/\ud800", None, None),
    ("lone surrogate in the fragment", "http://example.com/#\udfff", None, None),
    ("unassigned in user information", "http://\u0378@example.com/", None, None),
    ("noncharacter without scheme", "/data\ufffe", None, None),
    ("Unicode 15 in the path", "http://example.com/\U0001fae8", None, None),
]


def document() -> dict[str, object]:
    for name, text, expected in QUERIES:
        assert normalize(text) == expected, f"query {name}: {normalize(text)!a}"
    for name, url, whole, host in URLS:
        assert normalize_url(url) == whole, f"URL {name}: {normalize_url(url)!a}"
        assert normalize_url(url, host_only=True) == host, f"host {name}: {normalize_url(url, host_only=True)!a}"
    return {
        "version": 1,
        "about": ABOUT,
        "queries": [{"name": name, "in": text, "out": expected} for name, text, expected in QUERIES],
        "urls": [
            {"name": name, "in": url, "host_only": host_only, "out": expected}
            for name, url, whole, host in URLS
            for host_only, expected in ((False, whole), (True, host))
        ],
    }


def in_lines(value: dict[str, object]) -> str:
    """JSON in ASCII with one line for each case, so that a change shows as one line."""
    fields = []
    for key, content in value.items():
        text = json.dumps(content)
        if isinstance(content, list):
            text = "[\n  " + ",\n  ".join(json.dumps(case) for case in content) + "\n ]"
        fields.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(fields) + "\n}\n"


if __name__ == "__main__":
    TARGET.write_text(in_lines(document()), encoding="ascii")
