"""Searches and clicks of a log in DuckDB, with each user's activity limited. The rules are those of ``activity``.

Texts are long and there are many, so whatever is grouped, joined and ordered is a number: the keyed MD5 of a text. The
texts of what was chosen are fetched at the end, by the number of a line that has them.
"""

# ruff: noqa: S608  every text in the SQL is a literal of ours, a name of ours, or quoted

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

from searchblend.clickgraph.release.click_log import SESSION_GAP, SUGGESTION, Cap
from searchblend.core.records import Record
from searchblend.logs.activity import DATE, MICROSECONDS_FROM, MILLISECONDS_FROM, NUMBER, ActivityRules
from searchblend.logs.duckdb.normal_forms import query_form, suggestion_form, url_form
from searchblend.logs.duckdb.session import DuckDBSession, quoted
from searchblend.logs.formats.judge import PROBLEMS, WITHOUT_URL
from searchblend.logs.relational import SqlTally, record_of
from searchblend.mechanisms.gaussian_account import weight

_BY_TIME: Final = "moment NULLS LAST, unparsed_time NULLS LAST, q"
_IN_ORDER: Final = f"{_BY_TIME}, rank NULLS LAST, u NULLS LAST"
_USABLE: Final = f"problem IN (0, {PROBLEMS.index(WITHOUT_URL)})"
_UNTIMED: Final = "moment IS NULL AND unparsed_time IS NULL"
_OWN: Final = f"CASE WHEN {_UNTIMED} THEN line END"
"""A line without a time is a search of its own: its number tells it from others."""

_Kind = Literal["searches", "clicks", "pairs"]


def moment_of(time: str) -> str:
    """SQL: the time in seconds, or NULL."""
    number = f"try_cast({time} AS DOUBLE)"
    moment = f"try_cast({time} AS TIMESTAMP)"
    return f"""
        CASE WHEN strlen({time}) = 19 AND {moment}::VARCHAR = {time} THEN epoch({moment})  -- sooner than a pattern
            WHEN regexp_full_match({time}, '{DATE}') THEN epoch({moment})
            WHEN regexp_full_match({time}, '{NUMBER}') THEN
                CASE WHEN {number} >= {MICROSECONDS_FROM:.0f} THEN {number} / 1000000
                    WHEN {number} >= {MILLISECONDS_FROM:.0f} THEN {number} / 1000
                    ELSE {number} END
        END
    """


def rank_of(text: str) -> str:
    """SQL: the rank as a number, or NULL."""
    return f"CASE WHEN regexp_full_match({text}, '{NUMBER}') THEN try_cast({text} AS DOUBLE) END"


@dataclass(frozen=True)
class LogStrings:
    """What is known of the strings of a log."""

    key: str = field(repr=False)
    host_only: bool
    ascii_only: bool
    """whether all files are: then no query needs Python"""
    no_odd_bytes: bool
    """whether no field of any file has one of ``ODD_BYTES``"""
    suggestions: bool = False
    """whether ``lines`` has a column of them"""


class DuckDBActivity:
    """A ``ClickLog`` over the table ``lines`` (problem, user, query, url, moment, unparsed_time, rank)."""

    def __init__(self, session: DuckDBSession, strings: LogStrings, rules: ActivityRules) -> None:
        self._session, self._strings, self._rules = session, strings, rules

    def searches(self, cap: Cap) -> ActivityTally:
        counted = f"SELECT q, NULL::HUGEINT AS u, count(*) AS n, min(line) AS line FROM ({self._kept(cap)}) GROUP BY q"
        return self._tally("searches", counted)

    def weighted_searches(self, first: int, units: int, without: Sequence[str]) -> ActivityTally:
        weights = [weight(units, queries) for queries in range(1, first + 1)]
        with self._wanted([(query, None) for query in without]) as excluded:
            others = f"SELECT * FROM {self._distinct_searches} ANTI JOIN {excluded} USING (q)"
            mine = f"SELECT *, count(*) OVER (PARTITION BY user) AS s FROM ({_first(others, first, self._by_time)})"
            return self._tally(
                "searches",
                f"""
                SELECT q, NULL::HUGEINT AS u, sum({weights}[s])::BIGINT AS n, min(line) AS line FROM ({mine})
                GROUP BY q HAVING n > 0
                """,
            )

    def searches_of(self, queries: Sequence[str], cap: Cap) -> Mapping[str, int]:
        with self._wanted([(query, None) for query in queries]) as wanted:
            mine = self._kept(cap, f"SEMI JOIN {wanted} USING (q)")
            found = self._session.rows(
                f"SELECT number, n FROM (SELECT q, count(*) AS n FROM ({mine}) GROUP BY q) JOIN {wanted} USING (q)"
            )
        counts = dict.fromkeys(queries, 0)
        return counts | {queries[number]: n for number, n in found}

    def clicks(self, queries: Sequence[str], cap: Cap, *, within: Cap) -> ActivityTally:
        with self._wanted([(query, None) for query in queries]) as wanted:
            clicks = self._clicks_within(within, f"q IN (SELECT q FROM {wanted})")
            counted = (
                f"SELECT q, u, count(*) AS n, min(line) AS line FROM ({_limited_clicks(clicks, cap)}) GROUP BY q, u"
            )
            return self._tally("clicks", counted)

    def clicks_of(
        self, records: Sequence[Record], cap: Cap, *, within: Cap, restrict_first: bool = True
    ) -> Mapping[Record, int]:
        with self._wanted([(str(query), str(url)) for query, url in records]) as wanted:
            queries = f"q IN (SELECT q FROM {wanted})" if restrict_first else "true"
            clicks = self._clicks_within(within, queries)
            if restrict_first:
                clicks = f"SELECT * FROM ({clicks}) SEMI JOIN {wanted} USING (q, u)"
            counted = f"SELECT q, u, count(*) AS n FROM ({_limited_clicks(clicks, cap)}) GROUP BY q, u"
            found = self._session.rows(f"SELECT number, n FROM ({counted}) JOIN {wanted} USING (q, u)")
        counts = dict.fromkeys(records, 0)
        return counts | {records[number]: n for number, n in found}

    def reformulations(self, queries: Sequence[str], cap: Cap) -> ActivityTally:
        after = f"OVER (PARTITION BY user ORDER BY {_IN_ORDER}, line)"
        pairs = f"""
            SELECT user, q, lead(q) {after} AS u, moment, unparsed_time, NULL::DOUBLE AS rank, line,
                lead(line) {after} AS next, lead(moment) {after} AS next_moment
            FROM {self._all_searches}
        """
        with self._wanted([(query, None) for query in queries]) as wanted:
            both = f"""
                SELECT * FROM ({pairs}) WHERE q <> u AND next_moment - moment <= {SESSION_GAP}
                AND q IN (SELECT q FROM {wanted}) AND u IN (SELECT q FROM {wanted})
            """
            return self._tally(
                "pairs",
                f"""
                SELECT q, u, count(*) AS n, min(line) AS line, arg_min(next, line) AS next
                FROM ({_limited_clicks(both, cap)}) GROUP BY q, u
                """,
            )

    def _kept(self, cap: Cap, of: str = "") -> str:
        """SELECT of the searches that a cap keeps, perhaps after a join that leaves out others."""
        if cap.distinct:
            return _first(f"SELECT * FROM {self._distinct_searches} {of}", cap.first, self._by_time)
        return _first(f"SELECT * FROM {self._all_searches} {of}", cap.first, f"{_IN_ORDER}, line")

    def _clicks_within(self, within: Cap, condition: str) -> str:
        """SELECT of the clicks on some queries, of the searches that ``within`` keeps."""
        kept, clicks = self._kept(within), f"SELECT * FROM {self._clicks} WHERE {condition}"
        if within.distinct:
            return f"SELECT * FROM ({clicks}) SEMI JOIN ({kept}) USING (user, q)"
        search = ("user", "q", "moment", "unparsed_time", "own")
        same = " AND ".join(f"clicks.{name} IS NOT DISTINCT FROM kept.{name}" for name in search)
        return f"""
            SELECT * FROM (SELECT *, {_OWN} AS own FROM ({clicks})) AS clicks
            SEMI JOIN (SELECT *, {_OWN} AS own FROM ({kept})) AS kept ON {same}
        """

    @cached_property
    def _has_unparsed(self) -> bool:
        """Whether any time is no moment: hardly ever, and then there is less to order by."""
        return bool(self._session.value("SELECT count(unparsed_time) FROM lines"))

    @property
    def _by_time(self) -> str:
        return _BY_TIME if self._has_unparsed else "moment NULLS LAST, q"

    @cached_property
    def _distinct_searches(self) -> str:
        """The table of each user's queries, each at its first time."""
        unparsed = "NULL::VARCHAR"
        if self._has_unparsed:
            unparsed = "CASE WHEN min(moment) IS NULL THEN min(unparsed_time) END"
        return self._made(
            "distinct_searches",
            f"""
            SELECT user, q, min(moment) AS moment, {unparsed} AS unparsed_time,
                min(line) AS line
            FROM ({self._lines("moment", "unparsed_time")}) GROUP BY user, q
            """,
        )

    @cached_property
    def _all_searches(self) -> str:
        """The table of each user's searches: those with the same query and time are one.

        Searches without a time have a rank and a URL, by which they are ordered.
        """
        rank, u, join = "NULL::DOUBLE", "NULL::HUGEINT", ""
        if self._session.value(f"SELECT count(*) FROM lines WHERE {_UNTIMED}"):
            target, join = self._target
            rank, u = (f"CASE WHEN {_UNTIMED} THEN {value} END" for value in (rank_of("rank"), self._id(target)))
        lines = self._lines("moment", "unparsed_time", f"{rank} AS rank", f"{u} AS u", join=join)
        return self._made(
            "all_searches",
            f"""
            SELECT user, q, moment, unparsed_time, min(rank) AS rank, min(u) AS u, min(line) AS line
            FROM (SELECT *, {_OWN} AS own FROM ({lines})) GROUP BY user, q, moment, unparsed_time, own
            """,
        )

    @cached_property
    def _clicks(self) -> str:
        """The table of all clicks."""
        target, join = self._target
        lines = self._lines(
            "moment", "unparsed_time", f"{rank_of('rank')} AS rank", f"{self._id(target)} AS u", join=join, clicks=True
        )
        return self._made("all_clicks", f"SELECT * FROM ({lines}) WHERE u IS NOT NULL")

    @cached_property
    def _target(self) -> tuple[str, str]:
        """SQL of what was clicked (NULL if nothing was): a URL or a suggestion; and of the joins that this needs."""
        url, joins, _ = url_form(host_only=self._strings.host_only).joined(self._session, self._usable("url"))
        url = f"nullif({url}, '')"
        if not self._strings.suggestions:
            return url, joins
        form, join, _ = suggestion_form().joined(self._session, self._usable("suggestion"))
        joins += join
        if self._rules.synonyms:
            joins += f" LEFT JOIN {self._synonyms} AS suggested ON {form} = suggested.string"
            form = f"coalesce(suggested.meant, {form})"
        return f"coalesce({url}, '{SUGGESTION}' || {form})", joins

    @cached_property
    def _query(self) -> tuple[str, str]:
        """SQL of a line's query as it is counted, and of the joins that this needs."""
        query, joins = query_form(no_odd_bytes=self._strings.no_odd_bytes), ""
        form = query.shortcut
        if not self._strings.ascii_only:
            form, joins, _ = query.joined(self._session, self._usable("query"))
        if self._rules.synonyms:
            joins += f" LEFT JOIN {self._synonyms} AS synonyms ON {form} = synonyms.string"
            form = f"coalesce(synonyms.meant, {form})"
        return form, joins

    @staticmethod
    def _usable(column: str) -> str:
        return f"SELECT {column} FROM lines WHERE {_USABLE}"

    @cached_property
    def _synonyms(self) -> str:
        """The table of the synonyms (string, meant)."""
        pairs, name = self._rules.synonyms, self._session.new_name("synonyms")
        self._session.execute(
            f"CREATE TEMP TABLE {name} AS SELECT unnest(?::VARCHAR[]) AS string, unnest(?::VARCHAR[]) AS meant",
            [list(pairs), list(pairs.values())],
        )
        return name

    def _lines(self, *columns: str, join: str = "", clicks: bool = False) -> str:
        """SELECT of the usable lines, or of the clicks alone: user, q, the line's number, and more columns."""
        form, joins = self._query
        clicked = "problem = 0 AND url IS NOT NULL"
        if self._strings.suggestions:
            clicked = f"{_USABLE} AND (url <> '' OR suggestion IS NOT NULL)"
        window = [
            f"moment {sign} {bound!r}"
            for sign, bound in ((">=", self._rules.first_moment), ("<", self._rules.last_moment))
            if bound is not None
        ]
        return f"""
            SELECT user, {self._id(form)} AS q, lines.rowid AS line, {", ".join(columns)}
            FROM lines {joins} {join}
            WHERE {" AND ".join([clicked if clicks else _USABLE, *window])}
        """

    def _id(self, text: str) -> str:
        """SQL: the keyed MD5 of a text, as a number."""
        return f"md5_number({quoted(self._strings.key)} || {text})"

    def _made(self, kind: str, select: str) -> str:
        return self._session.make(kind, select)

    def _tally(self, kind: _Kind, counted: str) -> ActivityTally:
        return ActivityTally(self, self._session, self._strings.key, kind, counted)

    def _wanted(self, texts: Sequence[tuple[str, str | None]]) -> _Wanted:
        return _Wanted(self._session, self._strings.key, texts)

    def strings_of(self, lines: str, *, urls: bool) -> str:
        """SELECT (line, query, url) of the lines that are named, as they are counted."""
        form, joins = self._query
        url = "NULL::VARCHAR"
        if urls:
            url, join = self._target
            joins += join
        return f"""
            SELECT lines.rowid AS line, {form} AS query, {url} AS url FROM lines {joins} WHERE lines.rowid IN ({lines})
        """


class ActivityTally(SqlTally):
    """Counts by the numbers of strings: a table (q, u, n, line, next, place), whose strings are those of its lines."""

    def __init__(self, activity: DuckDBActivity, session: DuckDBSession, key: str, kind: _Kind, counted: str) -> None:
        """
        Args:
            activity: has the strings of lines
            session: the database
            key: of the numbers
            kind: what is counted
            counted: SQL that selects q, u, n, line, and next where pairs are counted
        """
        super().__init__(session, counted, "q, u")
        self._activity, self._session, self._key, self._kind = activity, session, key, kind

    def of_queries(self, queries: Sequence[str]) -> dict[Record, int]:
        with _Wanted(self._session, self._key, [(query, None) for query in queries]) as wanted:
            rows = self._chosen(f"q IN (SELECT q FROM {wanted})")
            return {record_of(query, url): int(n) for n, _, query, url in self._session.rows(rows)}

    def _chosen(self, condition: str) -> str:
        rows = self._session.new_name("chosen")
        named = f"SELECT * FROM {self._table} WHERE {condition}"
        strings = self._activity.strings_of(f"SELECT line FROM {rows}", urls=self._kind == "clicks")
        if self._kind != "pairs":
            return f"""
                WITH {rows} AS MATERIALIZED ({named})
                SELECT n, place, query, url FROM {rows} JOIN ({strings}) USING (line)
            """
        following = self._activity.strings_of(f"SELECT next FROM {rows}", urls=False)
        return f"""
            WITH {rows} AS MATERIALIZED ({named})
            SELECT n, place, strings.query AS query, following.query AS url FROM {rows}
            JOIN ({strings}) AS strings USING (line) JOIN ({following}) AS following ON following.line = next
        """


class _Wanted:
    """A temporary table (number, q, u) of texts in their order."""

    def __init__(self, session: DuckDBSession, key: str, texts: Sequence[tuple[str, str | None]]) -> None:
        self._session, self._name = session, session.new_name("wanted")
        id_of = f"md5_number({quoted(key)} || %s)"
        session.execute(
            f"""
            CREATE TEMP TABLE {self._name} AS SELECT number, {id_of % "query"} AS q, {id_of % "url"} AS u FROM (
                SELECT unnest(?::INTEGER[]) AS number, unnest(?::VARCHAR[]) AS query, unnest(?::VARCHAR[]) AS url
            )
            """,
            [list(range(len(texts))), [query for query, _ in texts], [url for _, url in texts]],
        )

    def __enter__(self) -> str:
        return self._name

    def __exit__(self, *exception: object) -> None:
        self._session.execute(f"DROP TABLE {self._name}")


def _first(events: str, first: int, order: str) -> str:
    """SELECT of the first events of each user."""
    return f"SELECT * FROM ({events}) QUALIFY row_number() OVER (PARTITION BY user ORDER BY {order}) <= {first}"


def _limited_clicks(clicks: str, cap: Cap) -> str:
    """SELECT of the clicks (or pairs) that a cap keeps; distinct ones first, each at its first time."""
    if cap.distinct:
        again = f"row_number() OVER (PARTITION BY user, q, u ORDER BY {_IN_ORDER}, line)"
        clicks = f"SELECT * FROM ({clicks}) QUALIFY {again} = 1"
    return _first(clicks, cap.first, f"{_IN_ORDER}, line")
