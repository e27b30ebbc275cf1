"""The log of the Yandex personalised search challenge: tab-separated, no header, all ids are integers.

    SessionID  M  Day  UserID
    SessionID  TimePassed  Q|T  SERPID  QueryID  term,term,...  url,domain  url,domain  ...
    SessionID  TimePassed  C  SERPID  URLID

A record is ⟨QueryID, clicked URLID⟩ of the session's user; a query has no text, only its number. A SERPID is unique
within its session only: a click belongs to the latest query line with its session and SERPID. The log of 2011
(``SessionID Time Q QueryID RegionID url...``) has no users and cannot be read.

Where searches are counted, every query line is one, clicked or not, in the order of day, session and TimePassed; its
clicks are in the order of their TimePassed. These times are no seconds, so no query is said to follow another.
"""

from __future__ import annotations

from typing import Final

from searchblend.logs.formats.layout import Sessions

YANDEX: Final = Sessions()
_ID: Final = r"(?:0|[1-9][0-9]*)"
"""An id has one spelling: a line with another one (``+5``, ``5.4``, ``005``) names no session of somebody else."""
SESSION: Final = rf"{_ID}\tM\t{_ID}\t{_ID}"
QUERY: Final = rf"{_ID}\t{_ID}\t[QT]\t{_ID}\t{_ID}\t[0-9,]*(?:\t[0-9]+,[0-9]+)*"
CLICK: Final = rf"{_ID}\t{_ID}\tC\t{_ID}\t{_ID}"
