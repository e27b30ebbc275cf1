"""Every format: told from its name or header, read with its quirks."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import duckdb
import pytest
import reference_rules as reference
import zstandard
from made_logs import counts_of, read, some_lines
from reference_rules import tsv

from searchblend.core.errors import InputError, InvalidColumns, InvalidParameter
from searchblend.core.records import Record
from searchblend.logs.formats.layout import MAX_LINE

AOL = (
    "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
    "1\tgoogle\t2006-03-01 00:00:01\t1\thttp://www.google.com\n"
    "1\tgoogle\t2006-03-01 00:00:01\t\t\n"
    "2\tnull\t2006-03-01 00:00:02\n"
    "2\tnull\t2006-03-01 00:00:03\t0\thttp://null.example\n"
    "3\t-\t2006-03-01 00:00:04\t1\thttp://a.example\n"
    "3\t \t2006-03-01 00:00:05\t1\thttp://a.example\n"
    '4\t"quoted\t2006-03-01 00:00:06\t2\thttp://b.example\n'
    "5\tfour\t2006-03-01 00:00:06\t2\n"
)
YANDEX = (
    "0\tM\t1\t77\n0\t0\tQ\t0\t100\t5,6\t1,2\t3,4\n0\t5\tC\t0\t1\n0\t6\tC\t0\t1\n0\t9\tQ\t1\t101\t7\t8,9\n"
    "1\tM\t2\t78\n1\t0\tT\t0\t100\t5,6\t1,2\n1\t3\tC\t5\t1\n2\t0\tQ\t0\t9\t1\t1,1\n2\t1\tC\t0\t1\n3\tX\t1\n"
)
EXCITE = (
    "BED75271605EBD0C\t970916001949\tyahoo chat\nBED75271605EBD0C\t970916001954\t\n824F413FA37520BF\t970916003523\n"
)


def everybody(log):
    return counts_of(log.split(optin_fraction=1e-9)[1].tally())


def malformed(log) -> dict[str, list[int]]:
    for kind in log.summary.malformed.values():
        assert kind.count == len(kind.first)
    return {reason: [place.line for place in kind.first] for reason, kind in log.summary.malformed.items()}


def test_aol(tmp_path: Path):
    (tmp_path / "user-ct-test-collection-01.txt").write_text(AOL)
    (tmp_path / "user-ct-test-collection-02.txt.gz").write_bytes(gzip.compress(AOL.replace("\n1\t", "\n9\t").encode()))
    with read(tmp_path) as log:
        assert log.summary.format == "aol"
        assert (log.summary.lines, log.summary.used, log.summary.without_url) == (16, 6, 4)
        assert {reason: kind.count for reason, kind in log.summary.malformed.items()} == {
            "unusable_query": 4,
            "too_few_fields": 2,
        }
        assert [str(place)[-19:] for place in log.summary.malformed["too_few_fields"].first] == [
            "collection-01.txt:9",
            "lection-02.txt.gz:9",
        ]
        assert everybody(log) == {
            Record("google", "http://www.google.com"): 2,
            Record("null", "http://null.example"): 1,
            Record('"quoted', "http://b.example"): 1,
        }


def test_aol_with_a_column_map_has_the_same_rules(tmp_path: Path):
    (tmp_path / "log").write_text(AOL)
    with read(tmp_path / "log", columns={"user": "AnonID", "query": "Query", "url": "ClickURL"}) as log:
        assert malformed(log) == {"unusable_query": [6, 7], "too_few_fields": [9]}
    with read(tmp_path / "log", columns={"user": "AnonID", "query": "Query"}) as log:
        assert not log.has_urls
        assert log.summary.without_url == 0


def test_yandex(tmp_path: Path):
    (tmp_path / "train.gz").write_bytes(gzip.compress(YANDEX.encode()))
    with read(tmp_path / "train.gz", format="yandex") as log:
        assert log.summary.format == "yandex"
        assert (log.summary.lines, log.summary.used, log.summary.without_url) == (11, 2, 2)
        assert malformed(log) == {"click_without_query": [8], "missing_user": [10], "bad_line": [11]}
        assert everybody(log) == {Record("100", "1"): 1}


def test_yandex_joins_the_latest_query_with_the_page(tmp_path: Path):
    (tmp_path / "log").write_text("5\tM\t1\t7\n5\t0\tQ\t0\t1\t2\t3,4\n5\t4\tQ\t0\t2\t2\t3,4\n5\t5\tC\t0\t3\n")
    with read(tmp_path / "log", format="yandex") as log:
        assert everybody(log) == {Record("2", "3"): 1}
        assert log.summary.without_url == 0


@pytest.mark.parametrize("almost", ["+5", " 5", "5 ", "5.4", "50e-1", "0x5", "0_5", "005", "-0"])
@pytest.mark.parametrize("rest", ["M\t1\t777", "9\tQ\t0\t666\t1\t1,1", "9\tC\t0\t666"])
def test_yandex_an_id_with_another_spelling_is_nobodys_session(almost: str, rest: str, tmp_path: Path):
    """A cast takes all of these for 5: one line could rename somebody else's session or change its query."""
    session = "5\tM\t1\t7\n5\t0\tQ\t0\t1\t2\t3,4\n5\t5\tC\t0\t3\n"
    (tmp_path / "log").write_text(f"{session}{almost}\t{rest}\n")
    with read(tmp_path / "log", format="yandex") as log:
        assert malformed(log) == {"bad_line": [4]}
        assert everybody(log) == {Record("1", "3"): 1}
        assert log.summary.users == 1


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl"])
def test_one_line_with_very_many_fields_is_malformed_alone(suffix: str, tmp_path: Path):
    separator = {"tsv": "\t", "csv": ",", "jsonl": "\x1f"}[suffix]
    url = "http://x.example"
    line = f'{{"user": "1", "query": "a", "url": "{url}"}}' if suffix == "jsonl" else separator.join(["1", "a", url])
    header = [] if suffix == "jsonl" else [separator.join(["user", "query", "url"])]
    (tmp_path / f"log.{suffix}").write_text("\n".join([*header, line, separator * 500_000, line]) + "\n")
    with read(tmp_path / f"log.{suffix}") as log:
        assert malformed(log) == {"too_many_fields": [len(header) + 2]}
        assert everybody(log) == {Record("a", url): 1}


def test_one_persons_date_beyond_all_timestamps_is_a_line_without_a_time(tmp_path: Path):
    path = tmp_path / "log.parquet"
    rows = "(1, 'a', DATE '2024-01-01'), (2, 'b', DATE '5000000-01-01'), (3, 'c', DATE 'infinity')"
    duckdb.sql(f"COPY (SELECT * FROM (VALUES {rows}) t(user, query, time)) TO '{path}'")
    with read(path) as log, read(path, draws=0) as searches:
        assert set(everybody(log)) == {Record("a"), Record("b"), Record("c")}
        assert searches.summary.used == 3


def test_excite(tmp_path: Path):
    (tmp_path / "log").write_text(EXCITE)
    with read(tmp_path / "log", format="excite") as log:
        assert log.summary.format == "excite"
        assert not log.has_urls
        assert malformed(log) == {"unusable_query": [2, 3]}
        assert everybody(log) == {Record("yahoo chat"): 1}


@pytest.mark.parametrize("name", ["log.tsv", "log.tsv.gz", "log.tsv.zst", "log.csv", "log.jsonl", "log.parquet"])
def test_all_generic_formats_draw_the_same_records(name, tmp_path: Path):
    lines = some_lines(80, seed=5)
    path = tmp_path / name
    names = ("user", "time", "query", "url", "rank")
    if name == "log.parquet":
        (tmp_path / "plain.tsv").write_text(tsv(lines))
        duckdb.sql(
            f"COPY (SELECT * REPLACE (rank::INT AS rank) FROM read_csv('{tmp_path}/plain.tsv', delim='\t', quote='', "
            f"all_varchar=true)) TO '{path}'"
        )
    elif name == "log.csv":
        rows = [names, *lines]
        path.write_text("".join(",".join('"' + f.replace('"', '""') + '"' for f in row) + "\r\n" for row in rows))
    elif name == "log.jsonl":
        path.write_text("".join(json.dumps(dict(zip(names, line, strict=True))) + "\n" for line in lines))
    else:
        text = tsv(lines).encode()
        squeeze = {"gz": gzip.compress, "zst": zstandard.ZstdCompressor().compress}.get(name.rpartition(".")[2], bytes)
        path.write_bytes(squeeze(text))
    drawn = reference.picks(lines)
    with read(path) as log:
        assert log.summary.format == name.split(".")[1]
        assert log.summary.users == len(drawn)
        assert log.summary.malformed == {}
        assert everybody(log) == reference.tally(found[0] for found in drawn.values())


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("User\tQUERY\tUrl", {}),
        ("who\tQuery\tURL", {"user": "WHO"}),
        ("url\tuser\tURL", {"user": "Url", "query": "user"}),
    ],
)
def test_names_of_columns_are_known_in_any_case(header, columns, tmp_path: Path):
    (tmp_path / "log.tsv").write_text(f"{header}\nu\tq\thttp://a.example\n")
    if header.startswith("url"):
        with pytest.raises(InvalidColumns, match="'Url' may be any of url, URL; name one"):
            read(tmp_path / "log.tsv", columns=columns)
        return
    with read(tmp_path / "log.tsv", columns=columns) as log:
        assert log.has_urls
        assert everybody(log) == {Record("q", "http://a.example"): 1}


def test_a_column_that_was_given_a_role_has_no_other_by_its_name(tmp_path: Path):
    (tmp_path / "log.tsv").write_text("user\tURL\nu\tq\n")
    with read(tmp_path / "log.tsv", columns={"query": "url"}) as log:
        assert not log.has_urls
    with pytest.raises(InvalidColumns, match="same column"):
        read(tmp_path / "log.tsv", columns={"user": "url", "query": "URL"})
    (tmp_path / "log.tsv").write_text("user\tquery\tTime\tTIME\nu\tq\t1\t2\n")
    with read(tmp_path / "log.tsv") as log:
        assert log.summary.users == 1


@pytest.mark.parametrize("header", ["term,count", "Label;nb_visits;nb_hits", "query|hits|url", "secret\tx\tlink\t23"])
def test_a_table_of_counts_is_refused_with_the_reason(header, tmp_path: Path):
    """Wikipedia's has no header, and is known by its name."""
    path = tmp_path / ("clickstream-enwiki-2025-03.tsv" if "link" in header else "log.csv")
    path.write_text(f"{header}\nsecret,5,3\n")
    with pytest.raises(InvalidColumns, match=r"no column 'user': a table of counts.*--columns user=NAME") as refused:
        read(path)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("text", ['{\n  "terms": {\n    "secret": {"visits": 27}\n  }\n}\n', '[{"secret": 1}]'])
def test_one_json_document_is_refused_by_name(text, tmp_path: Path):
    (tmp_path / "terms.json.gz").write_bytes(gzip.compress(text.encode()))
    with pytest.raises(
        InputError, match=r"the first file is one JSON document: .* counts terms has no users"
    ) as refused:
        read(tmp_path / "terms.json.gz")
    assert "secret" not in str(refused.value)


def test_jsonl(tmp_path: Path):
    rows = [
        '{"uid": 1, "q": "a", "u": "http://x.example"}',
        '{"uid": "2", "q": "nan", "u": null}',
        '{"uid": 3, "q": {"text": "b"}, "u": "http://x.example"}',
        '{"uid": 4, "q": "c", "u": "http://x.example"',
        "[1]",
        '{"q": "d", "u": "http://x.example"}',
        '{"uid": 5, "q": "tab\\tand\\u0000nul", "u": "http://x.example"}',
        '{"uid": 6, "q": "\\u00e9", "u": "http://x.example", "more": [1]}',
    ]
    (tmp_path / "log").write_text("\n".join(rows))
    with read(tmp_path / "log", format="jsonl", columns={"user": "uid", "query": "q", "url": "u"}) as log:
        assert log.summary.format == "jsonl"
        assert log.summary.without_url == 1
        found = malformed(log)
        assert found["bad_line"] == [3, 4, 5]
        assert found["missing_user"] == [6]
        assert everybody(log)[Record("é", "http://x.example")] == 1


def test_parquet_with_other_types(tmp_path: Path):
    path = tmp_path / "log.parquet"
    duckdb.sql(
        f"""COPY (SELECT * FROM (VALUES
            (1, 'A', 'http://x.example', TIMESTAMP '2024-01-01 00:00:00', true),
            (2, NULL, 'http://x.example', NULL, true),
            (NULL, 'b', 'http://x.example', NULL, false),
            (3, 'c', NULL, NULL, false)) t(user, query, url, time, ok)) TO '{path}'"""
    )
    with read(path, optin_column="ok") as log:
        assert log.summary.without_url == 1
        assert malformed(log) == {"unusable_query": [2], "missing_user": [3]}
        assert log.split()[0].n_users == 1
    duckdb.sql(f"COPY (SELECT 1 AS user, [1] AS query) TO '{path}'")
    with pytest.raises(InvalidColumns, match="query"):
        read(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="Parquet"):
        read(path)


def test_quotes_are_letters_in_tsv_and_quotes_in_csv(tmp_path: Path):
    (tmp_path / "log.tsv").write_text('user\tquery\n1\t"a\n2\tb"\n')
    with read(tmp_path / "log.tsv") as log:
        assert set(everybody(log)) == {Record('"a'), Record('b"')}
    (tmp_path / "log.csv").write_text('user,query\n1,"a, ""b"""\n2,plain\n')
    with read(tmp_path / "log.csv") as log:
        assert set(everybody(log)) == {Record('a, "b"'), Record("plain")}


@pytest.mark.parametrize("mark", [";", "|"])
def test_what_stands_between_fields_is_read_from_the_header(mark: str, tmp_path: Path):
    text = 'User;"QUERY";url\n1;"a; b";x.example\n2;c,d;x.example\n'.replace(";", mark)
    (tmp_path / "log.csv").write_text(text)
    with read(tmp_path / "log.csv") as log:
        assert {record.query for record in everybody(log)} == {f"a{mark} b", "c,d"}
        assert (log.decided["format"], log.decided["delimiter"]) == ("csv", mark)


def test_quoted_tsv_is_csv_with_tabs(tmp_path: Path):
    (tmp_path / "log.tsv").write_text('user\tquery\n1\t"a\tb ""c"""\n2\t"open\n3\tplain\n')
    with read(tmp_path / "log.tsv", format="csv", delimiter="\t") as log:
        assert {record.query for record in everybody(log)} == {'a b "c"', "plain"}
        assert malformed(log) == {"bad_quotes": [3]}


def test_another_character_between_fields(tmp_path: Path):
    (tmp_path / "log.csv").write_text('user;query;url\n1;"a; ""b""";x.example\n2;c,d;x.example\n3;e;"x.example\n')
    with read(tmp_path / "log.csv", delimiter=";") as log:
        assert {record.query for record in everybody(log)} == {'a; "b"', "c,d"}
        assert malformed(log) == {"bad_quotes": [4]}
    (tmp_path / "log.txt").write_text('user|query\n1|"a\n')
    with read(tmp_path / "log.txt", delimiter="|", format="tsv") as log:
        assert set(everybody(log)) == {Record('"a')}


@pytest.mark.parametrize(("name", "mark"), [("log.tsv", "\t"), ("log.csv", ","), ("log.csv.gz", ";")])
def test_columns_by_number_where_there_is_no_header(name: str, mark: str, tmp_path: Path):
    """The first line is a person's like any other, even if it looks like a header."""
    rows = ["2006,user,query,more", "2006,ann,weather", "2006,bob", "2006,cyd,news,and,more"]
    text = "".join(f"{row}\n" for row in rows).replace(",", mark)
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    options = {"delimiter": ";"} if mark == ";" else {}
    with read(tmp_path / name, columns={"user": "#2", "query": "#3"}, **options) as log:
        assert {record.query for record in everybody(log)} == {"query", "weather", "news"}
        assert malformed(log) == {"too_few_fields": [3]}


def test_a_quoted_mark_begins_no_line_of_a_file_without_a_header(tmp_path: Path):
    """The database takes a mark from the beginning of what it reads: whose line comes first decided about it."""
    lines = ['"\ufeffann",weather', '"\ufeffbob",weather']
    for order in (lines, lines[::-1]):
        (tmp_path / "log.csv").write_text("\n".join(order), encoding="utf-8")
        with read(tmp_path / "log.csv", columns={"user": "#1", "query": "#2"}, keep_lines=True) as log:
            assert {row[0] for row in log._engine._session.rows("SELECT user FROM lines")} == {"ann", "bob"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"delimiter": ";;"}, "one punctuation character"),
        ({"delimiter": '"'}, "not a quote"),
        ({"delimiter": "é"}, "one punctuation character"),
        ({"delimiter": ";", "format": "jsonl"}, "only of tsv and csv"),
        ({"columns": {"user": "#1", "query": "query"}}, "either all by name or all by number"),
        ({"columns": {"user": "#1"}}, "without a header user and query need a number each"),
        ({"columns": {"user": "#1", "query": "#2"}, "format": "aol"}, "say --format tsv or csv"),
    ],
)
def test_what_is_said_of_columns_and_delimiters_wrongly(options, problem: str, tmp_path: Path):
    (tmp_path / "log.csv").write_text("user;query\n1;a\n")
    with pytest.raises((InvalidColumns, InvalidParameter), match=problem):
        read(tmp_path / "log.csv", **options)


@pytest.mark.parametrize("format_name", ["aol", "yandex", "excite", "jsonl"])
def test_a_format_that_is_said_and_is_not(format_name, tmp_path: Path):
    (tmp_path / "log").write_text("user\tquery\n1\ta\n")
    with pytest.raises(InputError):
        read(tmp_path / "log", format=format_name)


def test_files_of_one_log_must_fit_together(tmp_path: Path):
    (tmp_path / "a").write_text("user\tquery\turl\n1\ta\tb\n")
    (tmp_path / "b").write_text("user\tquery\n1\ta\n")
    with pytest.raises(InputError, match="URLs"):
        read(tmp_path)
    (tmp_path / "b").write_text(AOL)
    with pytest.raises(InputError, match="format aol"):
        read(tmp_path)


def test_misuse(tmp_path: Path):
    (tmp_path / "log").write_text("user\tquery\n1\ta\n")
    with pytest.raises(InvalidParameter, match="format"):
        read(tmp_path / "log", format="xml")
    with pytest.raises(InvalidColumns, match="person"):
        read(tmp_path / "log", columns={"person": "user"})
    with pytest.raises(InvalidColumns, match="same column"):
        read(tmp_path / "log", columns={"user": "query", "query": "query"})
    with pytest.raises(InvalidParameter, match="draws"):
        read(tmp_path / "log", draws=-1)
    (tmp_path / "excite").write_text(EXCITE)
    with pytest.raises(InvalidColumns, match="excite"):
        read(tmp_path / "excite", format="excite", columns={"user": "a"})
    with pytest.raises(InvalidColumns, match="URLs are not to be read"):
        read(tmp_path / "log", columns={"url": "u"}, urls=False)


def test_names_that_a_database_would_take_for_patterns_or_sql(tmp_path: Path):
    path = tmp_path / "lo'g [1]*?.tsv"
    path.write_text('it\'s\tthe "query"\n1\ta\n')
    with read(path, columns={"user": "it's", "query": 'the "query"'}) as log:
        assert log.summary.users == 1
    parquet = tmp_path / "p'q[0].parquet"
    connection = duckdb.connect()
    connection.execute("""CREATE TABLE t AS SELECT 1 AS "u'""s", 'a' AS "select" """)
    connection.execute("COPY t TO '" + str(parquet).replace("'", "''") + "' (FORMAT parquet)")
    connection.close()
    with read(parquet, columns={"user": "u'\"s", "query": "select"}) as log:
        assert log.summary.users == 1


def test_a_parquet_file_that_is_damaged_inside(tmp_path: Path):
    path = tmp_path / "log.parquet"
    duckdb.sql(f"COPY (SELECT i AS user, md5(i::VARCHAR) AS query FROM range(20000) t(i)) TO '{path}'")
    content = bytearray(path.read_bytes())
    content[1000:3000] = bytes(2000)
    path.write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        read(path)


def test_parquet_files_with_different_types_are_one_log(tmp_path: Path):
    duckdb.sql(f"COPY (SELECT 1 AS user, 'a' AS query, TIMESTAMP '2024-01-01' AS time) TO '{tmp_path}/a.parquet'")
    duckdb.sql(f"COPY (SELECT '2' AS user, 'a' AS query, 'noon' AS time) TO '{tmp_path}/b.parquet'")
    with read(tmp_path) as log:
        assert everybody(log) == {Record("a"): 2}


NOBODYS = {
    "excite": b"0123456789ABCDEF\t970916001949\tsomething\n",
    "yandex": b"1\tM\t2\t3\n1\t0\tQ\t0\t7\t1\t1,1\n1\t1\tC\t0\t1\n",
    "jsonl": b'{"user": "a", "query": "something", "url": "http://a.example"}\n',
}
FIRST_LINES = [
    "\u200c",
    "{",
    "AnonID\tQuery\tQueryTime\tItemRank\tClickURL",
    "user,query,url",
    "PAR1",
    '{"user": "x", "query": "q"}',
    "PK\x03\x04",
    "BZh91AY",
    "",
    "x" * 70_000,
]


@pytest.mark.parametrize("format_name", NOBODYS)
@pytest.mark.parametrize("first", [*(line.encode() for line in FIRST_LINES), b"\x1f\x8b\x08", b"\xff\xfe", b"\0"])
def test_the_first_line_of_a_person_decides_nothing_about_a_file(format_name, first, tmp_path: Path):
    rest = NOBODYS[format_name]
    path = tmp_path / "log"
    path.write_bytes(first + b"\n" + rest)
    with read(path, format=format_name) as log:
        assert log.summary.format == format_name
        assert sum(everybody(log).values()) == log.summary.users >= 1
        assert any("something" in str(record.query) or record.query == "7" for record in everybody(log))


@pytest.mark.parametrize("name", ["log.jsonl", "log.ndjson", "LOG.JSON", "log.jsonl.gz"])
def test_json_lines_are_known_by_their_name(name, tmp_path: Path):
    text = b'broken\n{"user": 1, "query": "a", "url": "http://a.example"}\n'
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    with read(tmp_path / name) as log:
        assert (log.summary.format, log.summary.used) == ("jsonl", 1)


def test_which_members_json_lines_have_is_not_read_from_people(tmp_path: Path):
    """One person with a URL, and everybody else without: the log is of the kind that was asked for."""
    path = tmp_path / "log.jsonl"
    others = "".join(f'{{"user": {i}, "query": "weather"}}\n' for i in range(50))
    for mine in ("", '{"user": "x", "query": "q", "url": "http://a.example"}\n', '{"user": "x", "query": "q"}\n'):
        path.write_text(mine + others)
        with read(path, urls=False) as log:
            assert not log.has_urls
            assert everybody(log)[Record("weather")] == 50
        if "url" in mine:
            with read(path) as log:
                assert log.has_urls
                assert log.summary.without_url == 50
        else:
            with pytest.raises(InputError, match="--no-urls"):
                read(path)


def test_urls_are_left_out_of_every_format_with_columns(tmp_path: Path):
    (tmp_path / "log.tsv").write_text("user\tquery\turl\n1\ta\thttp://a.example\n2\ta\t\n")
    (tmp_path / "aol.txt").write_text(AOL)
    for path, users in ((tmp_path / "log.tsv", 2), (tmp_path / "aol.txt", 3)):
        with read(path, urls=False) as log:
            assert (log.has_urls, log.summary.users, log.summary.without_url) == (False, users, 0)
            assert log.decided == {
                "format": log.summary.format,
                "urls": False,
                "host_only": False,
                "quoted_line_feeds": False,
                "encoding": "utf-8",
            }


def test_an_open_quote_does_not_swallow_other_people(tmp_path: Path):
    """One record of CSV is one line, unless line feeds inside quotes were asked for."""
    others = [f"p{i},weather,http://w.example" for i in range(300)]
    lines = ['alice,"unfinished phrase,http://x.example', *others, 'bob,big screen 27",http://b.example']
    (tmp_path / "log.csv").write_text("\n".join(["user,query,url", *lines]))
    with read(tmp_path / "log.csv") as log:
        assert malformed(log) == {"bad_quotes": [2, 303]}
        assert everybody(log) == {Record("weather", "http://w.example"): 300}
    text = 'user,query,url\n1,"two\nlines",http://a.example\n'
    (tmp_path / "log.csv").write_text(text)
    with read(tmp_path / "log.csv", quoted_line_feeds=True) as log:
        assert log.decided["quoted_line_feeds"]
        assert everybody(log) == {Record("two lines", "http://a.example"): 1}


@pytest.mark.parametrize("format", ["tsv", "jsonl", "parquet", "yandex", "excite"])
def test_line_feeds_in_quotes_mean_nothing_without_quotes(format: str, tmp_path: Path):
    path = tmp_path / f"log.{format}"
    path.write_text("user\tquery\n1\ttea\n")
    if format == "parquet":
        duckdb.sql(f"COPY (SELECT 1 AS user, 'tea' AS query) TO '{path}'")
    with pytest.raises(InvalidParameter, match=f"quoted-line-feeds: only of CSV: .* is in format {format}"):
        read(path, quoted_line_feeds=True, format="auto" if format in ("tsv", "parquet") else format)


@pytest.mark.parametrize("theirs", ["x,plain", 'x,"quoted"', "x,a\rc", "x,a\0b", "x,\x1f", 'x,"open'])
def test_a_separator_in_a_field_is_a_blank_whatever_others_wrote(theirs, tmp_path: Path):
    (tmp_path / "log.csv").write_text(f"user,query\n1,a\x1fb\n{theirs}\n", newline="")
    with read(tmp_path / "log.csv") as log:
        assert everybody(log)[Record("a b")] == 1


@pytest.mark.parametrize("blanks", [b"\n" * (2**20 + 1), b"\n" * 2**16])
def test_blank_lines_do_not_swallow_the_next_person(blanks, tmp_path: Path):
    """One text with a million line feeds: the database would add them to the length of the line that follows."""
    longest = MAX_LINE - len("3\ta\thttp://b.example\t")
    texts = [b"user\tquery\turl\tremark\n1\ta\thttp://a.example\t\n", blanks, b"2\ta\thttp://b.example\t\n", blanks]
    texts += [b"3\ta\thttp://b.example\t", b"x" * longest, b"\n"]
    (tmp_path / "log.tsv").write_bytes(b"".join(texts))
    with read(tmp_path / "log.tsv") as log:
        assert (log.summary.users, log.summary.malformed) == (3, {})


def test_a_header_with_bad_quotes_is_refused(tmp_path: Path):
    (tmp_path / "log.csv").write_text('user,query,"time\n1,a,"\n')
    with pytest.raises(InputError, match="quotes around whole names only"):
        read(tmp_path / "log.csv")


def test_a_byte_order_mark_belongs_to_no_line(tmp_path: Path):
    """In front of a header, or of any line of a file without one: whoever comes first has no part in it."""
    line = '\ufeff{"user": "a", "query": "q", "url": "http://a.example"}\n'
    (tmp_path / "log.jsonl").write_text(line + line)
    with read(tmp_path / "log.jsonl") as log:
        assert (log.summary.users, log.summary.used) == (1, 2)
    (tmp_path / "log.tsv").write_text("\ufeffuser\tquery\n\ufeffa\tq\na\tq\n")
    with read(tmp_path / "log.tsv") as log:
        assert (log.summary.users, log.summary.used) == (2, 2)


def test_an_empty_file_without_header_holds_no_lines(tmp_path: Path):
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "b.jsonl").write_text('{"user": "a", "query": "q", "url": "http://a.example"}\n')
    with read(tmp_path) as log:
        assert log.summary.users == 1
    with pytest.raises(InputError, match="holds no line"):
        read(tmp_path / "a.jsonl")
