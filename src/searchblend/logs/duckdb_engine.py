"""Reading a log with DuckDB: one pass over the text yields one random record per user and every count."""

# ruff: noqa: S608  every text in the SQL is a literal of ours, a table name of ours, or quoted

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from searchblend.errors import RunError
from searchblend.logs import normal_forms
from searchblend.logs.duckdb_group import DuckDBGroup
from searchblend.logs.duckdb_session import DuckDBSession, quoted
from searchblend.logs.duckdb_sql import (
    PROBLEMS,
    REJECTED_TABLE,
    content_digest,
    fields_of,
    optin_of,
    problem_of,
    roles_of,
    score,
    smallest_scores,
)
from searchblend.logs.feed import Feed, Feeder
from searchblend.logs.gate import OnBytes, Passed
from searchblend.logs.layout import Layout, Source
from searchblend.logs.summary import TOO_MANY_FIELDS


@dataclass(frozen=True)
class Reading:
    """What the pass counted: lines by problem ("" is none), and what the gate saw of each file."""

    by_problem: Counter[str]
    users: int
    passed: list[Passed]


@dataclass(frozen=True)
class Drawing:
    """Which records are drawn: ``draws`` of each user with replacement and ``picks`` without, by a key."""

    key: str
    draws: int = 1
    picks: int = 1
    host_only: bool = False


class DuckDBEngine:
    """Draws records and keeps them in the table ``drawn`` (person, optin, draw, pick, query, url).

    ``person`` is a keyed hash of the user. ``draw`` numbers the draws with replacement, ``pick`` those without; the
    first of both is one row.
    """

    def __init__(self, session: DuckDBSession, drawing: Drawing) -> None:
        self._session, self._drawing = session, drawing
        self.has_urls = False
        session.add_function("query_is_usable", normal_forms.query_is_usable)
        session.add_function("url_is_usable", normal_forms.url_is_usable)
        session.add_function("host_is_usable", normal_forms.host_is_usable)

    def read(self, sources: Sequence[Source], on_bytes: OnBytes, on_fraction: Callable[[float], None]) -> Reading:
        """The one pass over the text."""
        self.has_urls = sources[0][0].has_urls
        feeder = Feeder(self._session.directory, on_bytes)
        feeds = [feeder.feed(paths, quotes=layout.quotes) for layout, paths in sources]
        lines = "\nUNION ALL\n".join(
            self._lines(layout, feed) for (layout, _), feed in zip(sources, feeds, strict=True)
        )
        with feeder.running(self._session.interrupt), self._session.watched(on_fraction):
            self._session.execute(f"CREATE TEMP TABLE users AS {self._one_row_per_user(lines)}")
        reading = self._counted(feeds, headers=sum(len(paths) for layout, paths in sources if layout.header))
        self._keep_drawn()
        return reading

    def _lines(self, layout: Layout, feed: Feed) -> str:
        """The lines of some files; of a line with a problem only the problem, so that they fall into one group."""
        roles = roles_of(layout)
        parts = {
            "person": roles["user"],
            "query": roles["query"],
            "url": roles.get("url", "NULL::VARCHAR"),
            "optin": optin_of(roles),
            "digest": content_digest(roles, self._drawing.key),
        }
        columns = ",\n".join(f"CASE WHEN problem = 0 THEN {sql} END AS {name}" for name, sql in parts.items())
        return f"""
            SELECT problem, {columns}
            FROM (SELECT *, {problem_of(layout, host_only=self._drawing.host_only)} AS problem
                  FROM ({fields_of(layout, feed.names, gated=feed.gated)}))
        """

    def _one_row_per_user(self, lines: str) -> str:
        """First the distinct lines with how often each occurs, then of each user those with the smallest hashes.

        Equal lines of a user have equal digests, so that counting them first is what gives each of them its chance.
        """
        contents = f"SELECT problem, person, query, url, optin, digest, count(*) AS n FROM ({lines}) GROUP BY ALL"
        chosen = [f"arg_min({{query: query, url: url}}, {score(d)}) AS draw_{d}" for d in self._draws]
        n_lines = "sum(n)"
        if self._drawing.picks > 1:
            contents = f"""
                SELECT *, unnest(scores) AS pick_score, generate_subscripts(scores, 1) AS copy
                FROM (SELECT *, {smallest_scores(self._drawing.picks)} AS scores FROM ({contents}))
            """
            chosen.append(f"arg_min({{query: query, url: url}}, pick_score, {self._drawing.picks}) AS picks")
            n_lines = "sum(n) FILTER (copy = 1)"
        return f"""
            SELECT problem, person, {n_lines} AS lines, bool_and(optin) AS optin, {", ".join(chosen)}
            FROM ({contents}) GROUP BY problem, person
        """

    @property
    def _draws(self) -> range:
        return range(1, self._drawing.draws + 1)

    def _counted(self, feeds: Sequence[Feed], headers: int) -> Reading:
        """The counts, after checking that no line got lost between the gate and the database."""
        rows = self._session.rows("SELECT problem, sum(lines), count(*) FROM users GROUP BY problem")
        by_problem = Counter({PROBLEMS[code]: int(lines) for code, lines, _ in rows})
        by_problem[TOO_MANY_FIELDS] = int(
            self._session.value(f"SELECT count(DISTINCT (scan_id, file_id, line)) FROM {REJECTED_TABLE}")
        )
        passed = [one for feed in feeds for one in feed.passed]
        expected = sum(one.lines for one in passed) - headers
        if by_problem.total() != expected:
            raise RunError(f"{expected} lines were read and {by_problem.total()} were counted: please report this")
        return Reading(+by_problem, next((users for code, _, users in rows if code == 0), 0), passed)

    def _keep_drawn(self) -> None:
        """The drawn records in normal form. Hard texts go through Python, each distinct one once."""
        person = f"md5({quoted(self._drawing.key)} || chr(31) || 'person' || chr(31) || person) AS person"
        chosen = [
            f"SELECT {person}, optin, {d} AS draw, {1 if d == 1 else 'NULL'} AS pick, unnest(draw_{d}) FROM users"
            for d in self._draws
        ]
        if self._drawing.picks > 1:
            picked = "SELECT person, optin, generate_subscripts(picks, 1) AS pick, unnest(picks) AS picked FROM users"
            chosen.append(f"SELECT {person}, optin, NULL, pick, unnest(picked) FROM ({picked}) WHERE pick > 1")
        self._session.execute("DELETE FROM users WHERE problem <> 0")
        self._session.execute(f"CREATE TEMP TABLE raw_drawn AS {' UNION ALL '.join(chosen)}")
        self._session.execute("DROP TABLE users")
        self._make_forms("query", f"NOT ({normal_forms.ascii_only('query')})", normal_forms.query_form)
        url_form = normal_forms.host_form if self._drawing.host_only else normal_forms.url_form
        self._make_forms("url", f"NOT {normal_forms.plain_url('url')}", url_form)
        simple_url = normal_forms.host_of_plain_url("url") if self._drawing.host_only else "url"
        self._session.execute(
            f"""
            CREATE TEMP TABLE drawn AS
            SELECT person, optin, draw, pick,
                coalesce(query_forms.form, {normal_forms.normal_ascii("query")}) AS query,
                coalesce(url_forms.form, {simple_url}) AS url
            FROM raw_drawn
            LEFT JOIN query_forms ON query = query_forms.text
            LEFT JOIN url_forms ON url = url_forms.text
            """
        )
        for table in ("raw_drawn", "query_forms", "url_forms"):
            self._session.execute(f"DROP TABLE {table}")

    def _make_forms(self, column: str, hard: str, rule: Callable[[str], str | None]) -> None:
        """The table of the hard texts of a column with their normal forms."""
        texts = [text for (text,) in self._session.rows(f"SELECT DISTINCT {column} FROM raw_drawn WHERE {hard}")]
        self._session.execute(
            f"CREATE TEMP TABLE {column}_forms AS SELECT unnest(?::VARCHAR[]) AS text, unnest(?::VARCHAR[]) AS form",
            [texts, [rule(text) for text in texts]],
        )

    def group(self, condition: str) -> DuckDBGroup:
        """The people of ``drawn`` for whom an SQL condition holds."""
        table = self._session.new_name("people")
        self._session.execute(
            f"CREATE TEMP TABLE {table} AS SELECT person, draw, pick, query, url FROM drawn WHERE {condition}"
        )
        return DuckDBGroup(
            self._session, table, has_urls=self.has_urls, draws=self._drawing.draws, picks=self._drawing.picks
        )
