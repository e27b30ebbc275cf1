"""One random record of each user, from the table of lines. The rules are those of ``engine``."""

# ruff: noqa: S608  every string in the SQL is a literal of ours, a name of ours, or quoted

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.logs.duckdb.normal_forms import normal_table, query_form, url_form
from searchblend.logs.duckdb.session import DuckDBSession, quoted
from searchblend.logs.engine import Drawing

_AT_ONCE: Final = 1 << 25
"""How many hashes are sorted at a time: 128 MB."""
_SHORT: Final = "(digest & 4294967295)::UINTEGER"
DIGEST_DIGITS: Final = "lpad(lower(to_hex(digest)), 32, '0')"


def make_draws(session: DuckDBSession, drawing: Drawing) -> None:
    """Makes the table ``drawn`` (person, draw, pick, query, url), with the records in normal form.

    ``draw`` numbers the draws with replacement, ``pick`` those without; the first of both is one row. Until the end a
    line is but its number in the table of lines: strings are fetched for the chosen ones only.
    """
    _find_repeated(session)
    chosen = [
        f"SELECT {draw} AS draw, {pick} AS pick, line FROM ({_smallest_score(draw)})"
        for draw, pick in [(1, "1"), *((draw, "NULL") for draw in range(2, drawing.draws + 1))]
    ]
    if drawing.picks > 1:
        some = f"SELECT user, arg_min(line, score, {drawing.picks}) AS line FROM ({_all_scores()}) GROUP BY user"
        numbered = f"SELECT NULL, generate_subscripts(line, 1) AS pick, unnest(line) FROM ({some})"
        chosen.append(f"SELECT * FROM ({numbered}) WHERE pick > 1")
    session.execute(
        f"""
        CREATE TEMP TABLE raw_drawn AS
        SELECT {person(drawing.key)} AS person, draw, pick, query, url
        FROM ({" UNION ALL ".join(chosen)}) AS chosen JOIN lines ON lines.rowid = chosen.line
        """
    )
    session.execute("DROP TABLE repeated")
    forms = [query_form(), url_form(host_only=drawing.host_only)]
    normal_table(session, "drawn", "raw_drawn", ["person", "draw", "pick"], forms)
    session.execute("DROP TABLE raw_drawn")


def find_opted_in(session: DuckDBSession, key: str) -> None:
    """Makes the table ``opted_in`` of the people whose every usable line says so."""
    session.execute(
        f"""
        CREATE TEMP TABLE opted_in AS
        SELECT {person(key)} AS person FROM lines WHERE problem = 0 GROUP BY user HAVING bool_and(optin)
        """
    )


def person(key: str) -> str:
    return f"md5({quoted(key)} || chr(31) || 'person' || chr(31) || user)"


def _find_repeated(session: DuckDBSession) -> None:
    """Makes the table ``repeated`` (user, digest, n, line) of the lines that a user has more than once.

    Most lines occur once, and grouping them all would cost as much as reading the log. So short hashes are sorted
    first, and only lines whose hash occurs twice are grouped.
    """
    n = int(session.value("SELECT count(*) FROM lines WHERE problem = 0"))
    parts = 2 << (n // _AT_ONCE).bit_length()  # a power of two: dividing 128-bit numbers is slow
    with ThreadPoolExecutor(2) as pool:  # one part is sorted while the next one is fetched
        sorting = [
            pool.submit(
                _occurring_twice,
                session.column(
                    f"SELECT {_SHORT} FROM lines WHERE problem = 0 AND digest & {parts - 1} = {part}", np.uint32
                ),
            )
            for part in range(parts)
        ]
        suspects = [part.result() for part in sorting]
    with session.numbers("suspects", np.concatenate([*suspects, np.empty(0, np.uint32)])):
        session.execute(
            f"""
            CREATE TEMP TABLE repeated AS
            SELECT user, digest, count(*) AS n, min(rowid) AS line
            FROM lines SEMI JOIN suspects ON {_SHORT} = value
            WHERE problem = 0 GROUP BY user, digest HAVING n > 1
            """
        )


def _occurring_twice(values: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The distinct values that occur more than once."""
    values.sort()
    return np.unique(values[1:][values[1:] == values[:-1]])


def _smallest_score(draw: int) -> str:
    """SELECT of each user's line with the smallest score in a draw: of its first repetition, or of any other.

    Of signed numbers DuckDB finds the smallest a third faster, hence the shift.
    """
    label = "" if draw == 1 else f" || '/{draw}'"
    first = "digest" if draw == 1 else f"md5_number({DIGEST_DIGITS} || ':1'{label})"
    others = f"list_min([md5_number({DIGEST_DIGITS} || ':' || i{label}) FOR i IN range(2, n + 1)])"
    return f"""
        SELECT user, arg_min(line, score) AS line FROM (
            SELECT user, arg_min(rowid, ({first} >> 1)::HUGEINT) AS line, min({first}) AS score
            FROM lines WHERE problem = 0 GROUP BY user
            UNION ALL SELECT user, line, {others} FROM repeated
        ) GROUP BY user
    """


def _all_scores() -> str:
    """SELECT of all scores of each line in the first draw."""
    score = f"md5_number({DIGEST_DIGITS} || ':' || i)"
    return f"""
        SELECT user, rowid AS line, digest AS score FROM lines ANTI JOIN repeated USING (user, digest) WHERE problem = 0
        UNION ALL SELECT user, line,
            unnest([CASE WHEN i = 1 THEN digest ELSE {score} END FOR i IN range(1, n + 1)])
        FROM repeated
    """
