"""UBI 1.3: searches in one table, clicks in the other, joined within each user."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from made_logs import counts_of, read

import searchblend as sb
from searchblend.core.errors import InputError, InvalidColumns, InvalidParameter, UsageError
from searchblend.core.records import Record
from searchblend.logs.read import SearchLog

QUERIES = [
    ("ann", "q1", "Laptop ", "2026-11-18T10:00:00.000Z"),
    ("ann", "q2", "laptop bag", "2026-11-18T10:05:00.250+01:00"),
    ("bob", "q3", "laptop", "2026-11-18T10:10:00.000Z"),
    ("bob", "q3", "laptops", "2026-11-18T10:11:00.000Z"),
    ("cyd", "q4", "tea", "2026-11-18T11:00:00.000Z"),
    ("dee", "q5", " ", "2026-11-18T11:00:00.000Z"),
    ("", "q6", "nobody's", "2026-11-18T11:00:00.000Z"),
]
EVENTS = [
    ("ann", "q1", "impression", "B07-1", 1),
    ("ann", "q1", "click", "B07-1", 1),
    ("bob", "q3", "click", "B07-2", 2),
    ("cyd", "q1", "click", "B07-3", 1),  # another user's search
    ("cyd", "", "click", "B07-3", 1),
    ("ann", "q1", "add_to_cart", "B07-1", 1),
    ("dee", "q5", "click", "B07-4", 1),
]
CLICKS = {Record("laptop", "B07-1"): 1, Record("laptops", "B07-2"): 1}
MALFORMED = {"click_without_query": 2, "unusable_query": 1, "missing_user": 1}


def query_document(user: str, id: str, query: str, time: str) -> dict[str, Any]:
    """With the members of the published mapping."""
    return {
        "timestamp": time,
        "query_id": id,
        "query": json.dumps({"match": {"title": query}}),
        "query_response_id": f"r-{id}",
        "query_response_hit_ids": ["B07-1", "B07-2"],
        "user_query": query,
        "query_attributes": {},
        "client_id": user,
        "application": "shop",
    }


def event_document(user: str, id: str, action: str, item: str, place: int) -> dict[str, Any]:
    position = {"ordinal": place, "x": 0, "y": 0}
    found = {"object_id": item, "object_id_field": "isbn", "name": "an item"}
    attributes = {"position": position, "object": found}
    return {
        "application": "shop",
        "action_name": action,
        "client_id": user,
        "query_id": id,
        "timestamp": "2026-11-18T12:00:00.000Z",
        "event_attributes": attributes,
    }


def documents() -> dict[str, list[dict[str, Any]]]:
    return {
        "ubi_queries": [query_document(*row) for row in QUERIES],
        "ubi_events": [event_document(*row) for row in EVENTS],
    }


def write(folder: Path, form: str) -> Path:
    """An export: documents alone, as a search engine lists them, or in Parquet with members of several kinds."""
    for label, table in documents().items():
        lines = [{"_index": label, "_source": one} if form == "hits" else one for one in table]
        plain = folder / f"{label}-000001.ndjson"
        plain.write_text("".join(json.dumps(line) + "\n" for line in lines))
        if form in ("json", "hits"):
            continue
        json_text = "* REPLACE (event_attributes::JSON::VARCHAR AS event_attributes)"
        times = "* REPLACE (timestamp::TIMESTAMP AS timestamp)"
        columns = times if label == "ubi_queries" else json_text if form == "texts" else "*"
        options = "(FORMAT parquet)"
        duckdb.sql(f"COPY (SELECT {columns} FROM read_json('{plain}')) TO '{folder}/{label}.parquet' {options}")
        plain.unlink()
    return folder


def malformed(log: SearchLog) -> dict[str, int]:
    return {reason: kind.count for reason, kind in log.summary.malformed.items()}


@pytest.mark.parametrize("form", ["json", "hits", "structs", "texts"])
def test_a_click_belongs_to_the_search_that_it_names(form: str, tmp_path: Path):
    with read(write(tmp_path, form)) as log:
        assert counts_of(log.split(optin_fraction=1e-9)[1].tally()) == CLICKS
        assert malformed(log) == MALFORMED
        summary = log.summary
        assert (summary.format, summary.lines, summary.users, summary.used) == ("ubi", 14, 2, 2)
        assert summary.without_url == 2  # searches without a click, of ann and of cyd
        assert (log.decided["format"], log.decided["urls"]) == ("ubi", True)


@pytest.mark.parametrize("form", ["json", "structs"])
def test_searches_without_a_click_are_searches(form: str, tmp_path: Path):
    """In the order of their times, whatever zone they are written in."""
    with read(write(tmp_path, form), draws=0, keep_lines=True) as log:
        assert log.summary.users == 3
        rows = log._engine._session.rows("SELECT query, moment FROM lines WHERE user = 'ann' ORDER BY moment")
        assert [query.strip() for query, _ in rows] == ["laptop bag", "Laptop"]
        assert rows[1][1] - rows[0][1] == 3600 - 300.25
    with read(tmp_path, urls=False) as log:  # of the one table alone
        assert (log.has_urls, log.summary.lines, log.summary.used, log.summary.users) == (False, 7, 5, 3)


def test_tables_may_be_folders_and_members_may_have_other_names(tmp_path: Path):
    for label, table in documents().items():
        (tmp_path / label).mkdir()
        for event in table:
            event["user"] = {"id": event.pop("client_id")}
        (tmp_path / label / "part-0.json").write_text("".join(json.dumps(line) + "\n" for line in table))
    files = [tmp_path / "ubi_queries", tmp_path / "ubi_events"]
    with read(files, columns={"user": "user.id", "url": "event_attributes.object.name"}) as log:
        records = counts_of(log.split(optin_fraction=1e-9)[1].tally())
        assert records == {Record("laptop", "an item"): 1, Record("laptops", "an item"): 1}


def test_rows_without_a_user_are_each_by_itself(tmp_path: Path):
    """A search and a click of nobody are no pair, and neither are those of a user that have no id."""
    searches = [("", "q1"), ("", "q1"), (" ", "q2"), ("ann", ""), ("ann", "q1")]
    clicks = [("", "q1"), (" ", "q2"), ("ann", ""), ("ann", "q1")]
    tables = {
        "ubi_queries": [query_document(user, id, "tea", "") for user, id in searches],
        "ubi_events": [event_document(user, id, "click", "B07-1", 1) for user, id in clicks],
    }
    for label, table in tables.items():
        (tmp_path / f"{label}.ndjson").write_text("".join(json.dumps(row) + "\n" for row in table))
    with read(tmp_path) as log:
        assert malformed(log) == {"missing_user": 5, "click_without_query": 1}
        assert (log.summary.used, log.summary.without_url) == (1, 1)


def test_a_broken_line_is_named_and_held_back_alone(tmp_path: Path):
    write(tmp_path, "json")
    path = tmp_path / "ubi_events-000001.ndjson"
    lines = ["{", "[1]", '{"client_id": {"id": 1}}', path.read_text().rstrip("\n"), "\x00"]
    path.write_text("\n".join(lines) + "\n")
    with read(tmp_path) as log:
        assert counts_of(log.split(optin_fraction=1e-9)[1].tally()) == CLICKS
        assert malformed(log) == {**MALFORMED, "bad_line": 3, "nul_byte": 1}
        assert [place.line for place in log.summary.malformed["bad_line"].first] == [1, 2, 3]


@pytest.mark.parametrize("form", ["json", "structs"])
def test_the_table_of_searches_is_one_of_users_and_values(form: str, tmp_path: Path):
    table = next(write(tmp_path, form).glob("ubi_queries*"))
    selected = sb.select_values(table, sb.Budget(epsilon=4.0, delta=1e-9), user="client_id", value="user_query")
    assert selected.counts == {}  # of so few people


def test_what_is_no_pair_of_tables_is_refused_by_name(tmp_path: Path):
    write(tmp_path, "json")
    queries, events = tmp_path / "ubi_queries-000001.ndjson", tmp_path / "ubi_events-000001.ndjson"
    with pytest.raises(InputError, match="the log has no file of ubi_events"):
        read(queries)
    with pytest.raises(InputError, match="the log has no file of ubi_queries"):
        read(events)
    with pytest.raises(InputError, match="the log has no file of ubi_queries"):
        read(events, urls=False)
    (tmp_path / "log.ndjson").write_text("{}\n")
    with pytest.raises(InputError, match=r"log\.ndjson: expected ubi_queries or ubi_events in the file's name"):
        read(tmp_path, format="ubi")
    with pytest.raises(InputError, match=r"log\.ndjson: is in format jsonl, other files of this log in ubi"):
        read([queries, events, tmp_path / "log.ndjson"])
    with pytest.raises(InvalidColumns, match="members for user, query, url, time and rank"):
        read([queries, events], optin_column="consent")
    with pytest.raises(UsageError, match="UBI is read only with --engine duckdb"):
        read([queries, events], engine="spark")
    with read(queries, format="jsonl", columns={"user": "client_id", "query": "user_query"}, urls=False) as log:
        assert log.summary.format == "jsonl"  # an option decides, not the name


def test_a_schema_that_changes_between_files(tmp_path: Path):
    write(tmp_path, "structs")
    old = tmp_path / "ubi_events-old.parquet"
    duckdb.sql(f"COPY (SELECT * EXCLUDE (query_id) FROM '{tmp_path}/ubi_events.parquet') TO '{old}'")
    with pytest.raises(InvalidColumns, match=r"ubi_events-old\.parquet: no column 'query_id', which ubi_events has"):
        read(tmp_path)
    duckdb.sql(
        f"COPY (SELECT * REPLACE ({{'object': {{'name': 'x'}}}} AS event_attributes) "
        f"FROM '{tmp_path}/ubi_events.parquet') TO '{old}'"
    )
    with pytest.raises(InputError, match=r"has no 'event_attributes\.object\.object_id'"):
        read(tmp_path)
    old.write_bytes((tmp_path / "ubi_events.parquet").read_bytes()[:-20])
    with pytest.raises(InputError, match=r"ubi_events-old\.parquet: the Parquet file cannot be read"):
        read(tmp_path)
    old.unlink()
    with pytest.raises(InvalidParameter, match="only of text"):
        read(tmp_path, encoding="latin-1")
    (tmp_path / "ubi_events-new.ndjson").write_text(json.dumps(event_document(*EVENTS[1])) + "\n")
    with pytest.raises(InputError, match="some files of this log are Parquet and some are JSON lines"):
        read(tmp_path)
