r"""What a line of a web server's combined log says of a search: the patterns that SQL and Python share.

``%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i"``, as Apache and nginx write it; more fields may follow.

A successful GET whose address has the query parameter is a search. One that has not, and whose referrer has, is a click
on the requested address, but for images, styles, scripts and fonts, which a page of results loads by itself. All other
requests are of no search. So each line is judged by itself: clicks need not be matched with searches.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_to_bytes

from searchblend.core.errors import InvalidParameter

USER_FIELDS: Final = ("address", "remote_user")
"""Fields that may say whose a line is: the client's network address, and the name it signed in with."""
LINE_FIELDS: Final = ("address", "remote_user", "time", "request", "status", "referrer")
_QUOTED: Final = r'"((?:[^"\\]|\\.)*)"'
LINE: Final = (
    rf"([^ ]+) [^ ]+ ([^ ]+) \[([^\]]*)\] {_QUOTED} ([0-9]{{3}}) (?:[0-9]+|-) {_QUOTED} "
    r'"(?:[^"\\]|\\.)*"(?: .*)?'
)
NO_VALUE: Final = "-"
SUCCESS: Final = "[23].."
"""statuses of requests that were answered, 304 among them"""
REQUEST: Final = r"GET ([^ ]+)(?: HTTP/[0-9.]+)?"
PAGE_PART: Final = r"(?i)[^?#]*\.(?:css|m?js|map|png|jpe?g|gif|svg|webp|avif|ico|woff2?|ttf|otf|eot)(?:[?#].*)?"
TIME: Final = "%d/%b/%Y:%H:%M:%S %z"
_PARAMETER: Final = re.compile(r"(?P<path>/[!-~]*\?)?(?P<name>[A-Za-z0-9_.\[\]-]{1,64})")
_ESCAPE: Final = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|([\"\\]))")
_CACHED: Final = 1 << 17


def check_parameter(parameter: str) -> None:
    if not _PARAMETER.fullmatch(parameter):
        raise InvalidParameter("query-parameter", "expected a name such as q, or a path with one such as /search?q")


def parameter_pattern(parameter: str) -> str:
    """Of an address in which the parameter has a value; its first value is the group."""
    path, _, name = parameter.rpartition("?")
    where = rf"(?:[A-Za-z]+://[^/?#]*)?{re.escape(path)}" if path else r"[^?#]*"
    return rf"{where}\?(?:[^#]*?&)?{re.escape(name)}=([^&#]+).*"


@lru_cache(_CACHED)
def decoded_query(value: str) -> str:
    """The string that a parameter's value stands for; empty where it stands for none."""
    escaped = _ESCAPE.sub(lambda match: f"%{match[1]}" if match[1] else match[2], value.replace("+", " "))
    try:
        text = unquote_to_bytes(escaped).decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return "" if "\0" in text else text


class LineReader:
    """The rule in Python."""

    def __init__(self, user: str, parameter: str) -> None:
        self._user = user
        self._line, self._request = re.compile(LINE), re.compile(REQUEST)
        self._asked, self._page_part = re.compile(parameter_pattern(parameter)), re.compile(PAGE_PART)

    def read(self, line: str) -> dict[str, str] | None:
        """Role → string of a search, or of a click; nothing of a request that is neither; None: not such a line."""
        match = self._line.fullmatch(line)
        if match is None:
            return None
        fields = dict(zip(LINE_FIELDS, match.groups(), strict=True))
        request = self._request.fullmatch(fields["request"])
        if request is None or not re.fullmatch(SUCCESS, fields["status"]):
            return {}
        user = "" if fields[self._user] == NO_VALUE else fields[self._user]
        if here := self._asked.fullmatch(request[1]):
            return {"user": user, "query": decoded_query(here[1]), "url": ""}
        there = None if self._page_part.fullmatch(request[1]) else self._asked.fullmatch(fields["referrer"])
        return {"user": user, "query": decoded_query(there[1]), "url": request[1]} if there else {}
