"""How the lines of a log are laid out: what an engine must know to find a user, a query and a URL in them.

One small class for each kind of file, made in ``sources``; an engine turns it into a scan. ``ColumnMap`` is what the
caller states about columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from searchblend.core.errors import InvalidColumns, listed
from searchblend.logs.formats.remote import LogFile, partition_values

FORMATS: Final = (
    *("auto", "aol", "yandex", "excite", "tsv", "csv", "jsonl", "parquet", "combined", "ubi"),
    *("orc", "avro", "arrow", "delta", "iceberg"),
)
"""those of the second line come as tables (``logs/tables``)"""
UTF_8: Final = "utf-8"
UTF_16: Final = "utf-16"
UTF_16_LE: Final = "utf-16-le"
UTF_16_BE: Final = "utf-16-be"
ENCODINGS: Final = (UTF_8, UTF_16, UTF_16_LE, UTF_16_BE, "latin-1", "cp1252")
"""Files in ``utf-16`` begin with a byte-order mark; the next two say by their names which byte comes first."""
MAX_LINE: Final = 1 << 20
"""How long a line may be, in bytes of UTF-8."""
ROLES: Final = ("user", "query", "url", "time", "rank", "suggestion", "count", "optin")
"""What a column can be to us. A user and a query are needed; without ``url`` it is a log of queries alone.

``suggestion`` is a query that was suggested and clicked: to a click graph, a line with one and no URL is a click on
it. To everything else it is a line without URL. ``count`` is how many searches a line stands for, where a row is the
unit of the promise.
"""
NAMEABLE: Final = ROLES[:-1]
NO_HEADER: Final = "a log without one needs --columns user=#1,query=#2, or --format jsonl, combined, yandex or excite"
_REQUIRED: Final = ("user", "query")
_OF_ROWS: Final = ("query", "url", "count")
"""what a column can be where every row is a unit of its own"""
PERSON: Final = "person"
ROW: Final = "row"
"""stands for the user in every line of such a table, too"""
UNITS: Final = (PERSON, ROW)
"""whom a promise can be to"""
_NUMBER: Final = re.compile(r"#[1-9][0-9]{0,2}")
MOST_FIELDS: Final = 64
"""of a line without a header, if no later one is asked for"""
_COUNTS: Final = frozenset(
    {"count", "counts", "hits", "frequency", "nb_hits", "nb_visits", "nb_actions", "searches", "impressions", "visits"}
)
"""names of columns of counts"""
_CLICKSTREAM: Final = "clickstream"
"""in the names of Wikipedia's tables of how often who read one article went on to another; they have no header"""
_NO_USERS: Final = (
    "a table of counts without users (Matomo's, Wikipedia's clickstream) is not a log, since there is no one to whom "
    "anything could be promised; if a column names the user or visitor, say which with --columns user=NAME, else "
    "export the searches with such ids; --unit row promises to each counted search, and not to a person"
)


@dataclass(frozen=True)
class LineRules:
    """What the bytes of a line may be, and what is done to them before it is split into fields."""

    header: bool = False
    """Whether the first line is a header. Only there may a byte-order mark begin a file; else it may begin any line."""
    quotes: bool = False
    """Whether fields may be quoted as in RFC 4180."""
    quoted_line_feeds: bool = False
    """Whether a quoted field may go on in the next line: then a line is no longer read by itself."""
    separator: bytes = b"\t"
    n_fields: int = 1
    """How many fields a line may have. More are too many, and very many are not even counted."""
    encoding: str = UTF_8
    """Of the file. A separator and all that is checked here are in UTF-8, to which lines are brought first."""


@dataclass(frozen=True)
class Delimited:
    """A line of fields with a separator between them."""

    format: str
    delimiter: str
    n_fields: int
    positions: Mapping[str, int]
    """role → position of its field, from 0"""
    header: bool = True
    quotes: bool = False
    """Whether fields may be quoted as in RFC 4180. In tab-separated logs a quote is a letter like any other."""
    may_end_after: int | None = None
    """A line with just this many fields is fine too: the others are empty."""
    least_fields: int | None = None
    """How many fields a line must have at least, where it may have any number up to ``n_fields``."""
    no_query: str | None = None
    """A string that stands for a query that was taken out."""
    quoted_line_feeds: bool = False
    encoding: str = UTF_8
    in_folders: Mapping[str, str] = field(default_factory=dict)
    """role → its value in every line, where the names of the files' folders hold it"""

    @property
    def rules(self) -> LineRules:
        separator = self.delimiter.encode()
        return LineRules(self.header, self.quotes, self.quoted_line_feeds, separator, self.n_fields, self.encoding)

    @property
    def has_urls(self) -> bool:
        return "url" in self.positions or "url" in self.in_folders

    @property
    def has_suggestions(self) -> bool:
        return "suggestion" in self.positions or "suggestion" in self.in_folders


@dataclass(frozen=True)
class JsonLines:
    """A line is one JSON object."""

    keys: Mapping[str, str]
    """role → name of its member"""
    format: str = "jsonl"
    encoding: str = UTF_8
    in_folders: Mapping[str, str] = field(default_factory=dict)

    @property
    def rules(self) -> LineRules:
        """To the database a line is one field, and this byte, which no JSON has as it is, would end it."""
        return LineRules(separator=b"\x1f", encoding=self.encoding)

    @property
    def has_urls(self) -> bool:
        return "url" in self.keys or "url" in self.in_folders

    @property
    def has_suggestions(self) -> bool:
        return "suggestion" in self.keys or "suggestion" in self.in_folders


@dataclass(frozen=True)
class Columns:
    """A Parquet file, or a table in memory."""

    columns: Mapping[str, str]
    """role → name of its column"""
    format: str = "parquet"
    types: Mapping[str, str] = field(default_factory=dict)
    """role → kind of its column, in DuckDB's words: files with other ones are scanned apart"""
    table: str | None = None
    """its name in the database, if it is not a file"""
    in_folders: Mapping[str, str] = field(default_factory=dict)
    snapshot: str | None = None
    """which version of it was read, if it has versions"""

    @property
    def has_urls(self) -> bool:
        return "url" in self.columns or "url" in self.in_folders

    @property
    def has_suggestions(self) -> bool:
        return "suggestion" in self.columns or "suggestion" in self.in_folders


@dataclass(frozen=True)
class Sessions:
    r"""The log of the Yandex personalised search challenge: tab-separated, no header, all ids are integers.

    - ``SessionID  M  Day  UserID`` begins a session.
    - ``SessionID  TimePassed  Q|T  SERPID  QueryID  term,term,...  url,domain  url,domain  ...`` is a query.
    - ``SessionID  TimePassed  C  SERPID  URLID`` is a click.

    A record is ⟨QueryID, clicked URLID⟩ of the session's user; a query has no text, only its number. A SERPID is unique
    within its session only: a click belongs to the latest query line with its session and SERPID. The log of 2011
    (``SessionID Time Q QueryID RegionID url...``) has no users and cannot be read.

    Where searches are counted, every query line is one, clicked or not, in the order of day, session and TimePassed;
    its clicks are in the order of their TimePassed. These times are not seconds, so no query follows another.
    """

    format: str = "yandex"
    encoding: str = UTF_8
    n_fields: ClassVar[int] = 64
    """a query line has six fields and one for each result: normally ten, here up to 58"""
    in_folders: ClassVar[Mapping[str, str]] = {}
    has_urls: bool = True
    has_suggestions: bool = False

    @property
    def rules(self) -> LineRules:
        return LineRules(n_fields=self.n_fields, encoding=self.encoding)


@dataclass(frozen=True)
class ServerLog:
    """The combined log of Apache and nginx (``server_log``)."""

    user: str
    """the field that says whose a line is"""
    query_parameter: str
    format: str = "combined"
    encoding: str = UTF_8
    in_folders: Mapping[str, str] = field(default_factory=dict)
    has_urls: bool = True
    has_suggestions: ClassVar[bool] = False

    @property
    def rules(self) -> LineRules:
        """As of JSON: no printable character ends a field here."""
        return LineRules(separator=b"\x1f", encoding=self.encoding)


UBI_CLICK: Final = "click"
"""the action that is one; all others are left out"""
UBI_OPTIONAL: Final = ("time", "rank")
_UBI_MEMBERS: Final = {
    "ubi_queries": {"user": "client_id", "id": "query_id", "query": "user_query", "time": "timestamp"},
    "ubi_events": {
        "user": "client_id",
        "id": "query_id",
        "action": "action_name",
        "url": "event_attributes.object.object_id",
        "rank": "event_attributes.position.ordinal",
    },
}


@dataclass(frozen=True)
class UbiTable:
    """One of the two tables of UBI 1.3 (User Behavior Insights), exported as JSON lines or Parquet.

    ``ubi_queries`` has a row for each search, ``ubi_events`` one for each action. A record is ⟨user_query, object of a
    click⟩, where the click names the search by its id, of the same user: an id of another person's search is none.
    """

    label: str
    """its name: ubi_queries or ubi_events"""
    members: Mapping[str, str]
    """role, or ``id`` or ``action`` → the path of its member, with points"""
    kinds: Mapping[str, str] | None = None
    """name → kind of the columns of Parquet; None: JSON lines"""
    encoding: str = UTF_8
    format: str = "ubi"
    has_urls: bool = True
    has_suggestions: ClassVar[bool] = False
    in_folders: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def of(cls, label: str, columns: ColumnMap, kinds: Mapping[str, str] | None) -> UbiTable:
        members = {role: columns.named.get(role, path) for role, path in _UBI_MEMBERS[label].items()}
        return cls(label, members, kinds, has_urls=columns.urls)

    @staticmethod
    def label_of(path: LogFile) -> str | None:
        """Which table a file is one of, by its name or that of its folder."""
        names = (part.lower().replace("-", "_") for part in reversed(str(path).split("/")[-2:]))
        return next((label for name in names for label in _UBI_MEMBERS if label in name), None)

    @property
    def is_queries(self) -> bool:
        return self.label == "ubi_queries"

    @property
    def rules(self) -> LineRules:
        return LineRules(separator=b"\x1f", encoding=self.encoding)


TextLayout = Delimited | JsonLines | Sessions | ServerLog | UbiTable
"""layouts of text; UBI may be in Parquet, too"""
Layout = TextLayout | Columns
Source = tuple[Layout, list[LogFile]]
"""files with one layout"""


@dataclass(frozen=True)
class ColumnMap:
    """role → the name of its column in the files; what is not named here is called like its role.

    There are no suggestions unless their column is named: many logs list under this name what was merely shown.
    """

    named: Mapping[str, str] = field(default_factory=dict)
    optin: str | None = None
    urls: bool = True
    """whether a column of URLs is read; without, a log is one of queries alone"""
    values: bool = False
    """whether it is a table of users and values, not a log: a value is where a query would be, and there is no more"""
    in_folders: Mapping[str, str] = field(default_factory=dict)
    """role → its value in a file, where the names of its folders hold it; then no column of the file has the role"""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """name of an attribute, which is a role too → its column; each must be there"""
    timed: bool = False
    """whether the column of times must be there"""

    @classmethod
    def of_rows(cls, named: Mapping[str, str], *, urls: bool = True, values: bool = False) -> ColumnMap:
        """Of a table without users, each of whose rows is a unit of its own, or as many as it counts."""
        return cls(named, urls=urls, values=values, in_folders={"user": ROW})

    @property
    def rows(self) -> bool:
        """Whether every row is a unit of its own."""
        return self.in_folders.get("user") == ROW

    def __post_init__(self) -> None:
        unknown = sorted(set(self.named) - set(NAMEABLE))
        if unknown:
            raise InvalidColumns(f"columns: expected names among {', '.join(NAMEABLE)}, found {', '.join(unknown)}")
        twice = sorted(role for role, name in self.named.items() if list(self.named.values()).count(name) > 1)
        if twice:
            raise InvalidColumns(f"columns: {' and '.join(map(self._word, twice))} are given the same column")
        if self.rows and (others := sorted(set(self.named) - set(_OF_ROWS))):
            raise InvalidColumns(f"columns: where a row is the unit no column is {' or '.join(others)}")
        if "count" in self.named and not self.rows:
            raise InvalidColumns("columns: a count is read only where a row is the unit (--unit row)")
        if "url" in self.named and not self.urls:
            raise InvalidColumns("columns: a column of URLs is named, and URLs are not to be read")

    def __bool__(self) -> bool:
        return bool(self.named)

    def of(self, path: LogFile) -> ColumnMap:
        """The same for one file: of the columns that an option names, the names of its folders may hold some."""
        values = partition_values(path)
        asked = self._asked
        held = {role: values[name.casefold()] for role, name in asked.items() if name.casefold() in values}
        held |= self.in_folders
        if held.keys() >= set(_REQUIRED):
            both = " and ".join(map(self._word, _REQUIRED))
            raise InvalidColumns(
                f"{path}: columns: {both} are both in the names of folders; a line must say one of them"
            )
        named = {role: name for role, name in self.named.items() if role not in held}
        return replace(self, named=named, optin=None if "optin" in held else self.optin, in_folders=held)

    @property
    def _asked(self) -> dict[str, str]:
        """role → its column, of all that options name."""
        return {**self.named, **({} if self.optin is None else {"optin": self.optin}), **self.attributes}

    @property
    def numbers(self) -> dict[str, int]:
        """role → position of its column, from 0, where columns are given as ``#1``, ``#2``, …: in files without a
        header. Empty where they have names."""
        given = self._asked
        numbers = {role: int(column[1:]) - 1 for role, column in given.items() if _NUMBER.fullmatch(column)}
        if numbers and len(numbers) < len(given):
            raise InvalidColumns("columns: expected either all by name or all by number (#1, #2, …)")
        if numbers and not numbers.keys() | self.in_folders.keys() >= set(_REQUIRED):
            needed = " and ".join(self._word(role) for role in _REQUIRED)
            raise InvalidColumns(f"columns: without a header {needed} need a number each (#1, #2, …)")
        return numbers

    def wanted(self) -> dict[str, str]:
        """role → name of its column, whether a file has it or not."""
        if self.values:
            both = {"user": self.named.get("user", "user"), "query": self.named.get("query", "value")}
            both |= {"count": self.named.get("count", "count")} if self.rows else {}
            return {role: name for role, name in both.items() if role not in self.in_folders}
        roles = _OF_ROWS if self.rows else [role for role in NAMEABLE if role != "count"]
        wanted = {role: self.named.get(role, role) for role in roles if role != "suggestion" or role in self.named}
        if not self.urls:
            del wanted["url"]
        if self.optin is not None:
            wanted["optin"] = self.optin
        wanted |= self.attributes
        return {role: name for role, name in wanted.items() if role not in self.in_folders}

    def _word(self, role: str) -> str:
        return "value" if self.values and role == "query" else role

    def _matched(self, path: LogFile, names: Sequence[str], wanted: Mapping[str, str]) -> dict[str, str]:
        """role → its column among these, in any case; a column that was given a role has no other by its name."""
        column_of: dict[str, str | None] = {}
        for role, asked in wanted.items():
            alike = [asked] if asked in names else [name for name in names if name.casefold() == asked.casefold()]
            if len(alike) > 1 and (role in self.named or role in _REQUIRED):
                raise InvalidColumns(
                    f"{path}: '{asked}' may be any of {listed(alike)}; name one of them with --columns"
                )
            column_of[role] = alike[0] if len(alike) == 1 else None
        given = [column_of[role] for role in self.named if column_of.get(role) is not None]
        if len(set(given)) < len(given):
            raise InvalidColumns(f"{path}: columns: two of {', '.join(self.named)} are given the same column")
        free = [role for role in column_of if role in self._asked or column_of[role] not in given]
        columns = {role: name for role in free if (name := column_of[role]) is not None}
        both = next((role for role in self.attributes if list(columns.values()).count(columns.get(role, "")) > 1), None)
        if both is not None:
            raise InvalidColumns(f"{path}: columns: the attribute {both} and something else are given the same column")
        return columns

    @property
    def _example(self) -> str:
        if self.rows:
            return f"{'value' if self.values else 'query'}=NAME,count=NAME"
        return "user=NAME,value=NAME" if self.values else "user=NAME,query=NAME,url=NAME"

    def find(self, path: LogFile, names: Sequence[str]) -> dict[str, str]:
        """role → name, for all roles that a file with these columns has. User, query and all that was named must be
        among them."""
        wanted = self.wanted()
        needed = {*_REQUIRED, *self._asked, *(["time"] if self.timed else [])} - self.in_folders.keys()
        present = self._matched(path, names, wanted)
        missing_roles = [role for role in (*ROLES, *self.attributes) if role in needed and role not in present]
        missing = [wanted[role] for role in missing_roles]
        if self.rows and any(name.casefold() == "user" for name in names):
            raise InvalidColumns(f"{path}: has a column of users: a row is the unit only of a table without them")
        if missing:
            if "user" in missing_roles and _are_counts(path, names):
                raise InvalidColumns(f"{path}: no column '{wanted['user']}': {_NO_USERS}")
            if all(role in self.attributes for role in missing_roles):
                there = f"'{missing[0]}' for an attribute: there are {listed(names)}"
                raise InvalidColumns(f"{path}: no column {there}; a file of --attributes can name another, as column")
            raise InvalidColumns(_no_such_column(path, missing, names, wanted.values(), self._example))
        return present


def _are_counts(path: LogFile, names: Iterable[str]) -> bool:
    return _CLICKSTREAM in path.name.lower() or not _COUNTS.isdisjoint(map(str.casefold, names))


def _no_such_column(
    path: LogFile, missing: Sequence[str], names: Sequence[str], expected: Iterable[str], example: str
) -> str:
    """Names the columns there are only if one of them was expected: else the line may not be a header at all."""
    absent = " and ".join(f"'{name}'" for name in missing)
    if {name.casefold() for name in expected}.isdisjoint(name.casefold() for name in names):
        first_line = f"the {len(names)} fields of its first line (is it a header? {NO_HEADER})"
        present = f"none of the expected names is among {first_line}"
    else:
        present = f"there are {listed(names)}"
    return f"{path}: no column {absent}: {present}; name them with --columns {example}"
