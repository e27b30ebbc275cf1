"""One spelling for a query and for a URL, the same in logs, on devices and in lookup.

A query is counted, reported and found only if all write it alike, so each step here is a rule that Python
and JavaScript share exactly, whatever Unicode version they carry (``vectors/v1/normalize.json`` replays it):

- *Code points.* A string with one that Unicode 14.0 has not assigned (noncharacters included), or with a lone
  surrogate, is unusable: NFKC and lower case are certain only for the others.
- *Blanks* are the property White_Space, written out. ``str.split`` also splits at U+001C-001F, and JavaScript's
  ``\\s`` takes U+FEFF and leaves U+0085.
- *Lower case* is ``str.lower``, not ``casefold``: the result is shown to people (ß stays ß). Only Σ is ours, see
  ``fold``.

Unusable strings give None and nothing ever raises. Both functions are idempotent. There is no limit of length here,
and CPython's NFKC takes time quadratic in a run of combining marks: who reads untrusted text limits it before.
Standard library only: this runs on devices.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from searchblend.core.unicode14 import all_assigned

BLANKS: Final = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
GREEK: Final = "\u0300-\u03ff\u1f00-\u1fff"  # with the combining marks, which may stand after a letter
DEFAULT_PORT: Final = {"http": "80", "https": "443"}

_BLANK_RUN: Final = re.compile(f"[{BLANKS}]+")
_FINAL_SIGMA: Final = re.compile(f"(?<=[{GREEK}])Σ(?![{GREEK}])")
_SCHEME: Final = re.compile("([A-Za-z][A-Za-z0-9+.-]*)://")
_DELIMITER: Final = re.compile("[/?#]")
_HOST_AND_PORT: Final = re.compile(r"([^\[\]:@/?#\\ ]*|\[[0-9a-z.:%_-]+\])(?::([0-9]*))?")


def normalize(text: str) -> str | None:
    """The normal form of a query: folded, with single blanks; None if nothing usable is left."""
    if text.isascii() and text.isprintable():  # then U+0020 is the only blank, and folding is lower case
        return " ".join(text.lower().split()) or None
    if not all_assigned(text):
        return None
    folded = single_blanks(fold(text))
    return folded if folded and all_assigned(folded) else None


def normalize_url(url: str, *, host_only: bool = False) -> str | None:
    """The normal form of a URL, or of its host alone.

    Blanks are as in a query: none at the ends, one U+0020 for each run inside. Of ``scheme://authority...`` the
    scheme and the host are folded; user information, a default port, the fragment, and a path ``/`` with no query
    string go; path and query string stay as they are, percent signs included. A host that would hold a delimiter
    (``/ ? # @ : \\ [ ]`` or a blank) when folded is unusable, since the string could pass for another host's;
    so is a ``\\`` before the host, which browsers read as ``/``. ``xn--`` names stay. Strings without
    ``scheme://`` (a path, a page title) only have their blanks put right.

    ``host_only`` gives the host, with a port other than the scheme's default. Without ``scheme://`` it is taken
    from the part before the first ``/``, ``?`` or ``#``. A host must have a dot or be an address in brackets,
    with a scheme too: ``localhost`` could not be told from a page title when normalized once more.
    """
    if not all_assigned(url):
        return None
    text = single_blanks(url)
    match = _SCHEME.match(text)
    if match is None and not host_only:
        return text or None
    scheme = match[1].lower() if match else ""
    after_scheme = text[match.end() :] if match else text
    authority = _DELIMITER.split(after_scheme, maxsplit=1)[0]
    host = _host(authority, scheme)
    if host_only:
        return host if host and ("." in host or host.startswith("[")) else None
    if host is None:
        return None
    rest = after_scheme[len(authority) :].partition("#")[0].rstrip(" ")
    return f"{scheme}://{host}{'' if rest == '/' else rest}"


def fold(text: str) -> str:
    """NFKC, lower case, NFKC again, as lower-case letters may compose where capitals do not (H + U+0331).

    ``str.lower`` turns Σ into σ or ς by its neighbours' properties, and those change between Unicode versions
    (U+0295 and U+1171E did). So Σ goes first, by a fixed rule that writes Greek words alike: ς after a Greek letter
    or a combining mark and before none, else σ. What remains of lower case looks at single code points. No capital
    comes back from the second NFKC, so folding twice changes nothing.
    """
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text)
    if "Σ" in text:
        text = _FINAL_SIGMA.sub("ς", text).replace("Σ", "σ")
    return unicodedata.normalize("NFKC", text.lower())


def single_blanks(text: str) -> str:
    """Without blanks at the ends, and with one U+0020 for each run of blanks inside."""
    return _BLANK_RUN.sub(" ", text).strip(" ")


def _host(authority: str, scheme: str) -> str | None:
    """Host and port in normal form, without user information; None if it is not a host."""
    host_and_port = fold(authority.rpartition("@")[2].strip(" "))
    match = _HOST_AND_PORT.fullmatch(host_and_port)
    if match is None or "\\" in authority or not all_assigned(host_and_port):
        return None
    host, port = match[1], match[2]
    return host if not port or port == DEFAULT_PORT.get(scheme) else f"{host}:{port}"
