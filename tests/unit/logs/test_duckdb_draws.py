"""One random record per user: the rows that the rules choose, whatever the files, threads and memory."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pytest
import reference_rules as reference
from made_logs import counts_of, read, some_lines
from reference_rules import tsv
from scipy import stats

from searchblend.blender.groups import Weights
from searchblend.core.errors import InvalidParameter
from searchblend.core.records import HeadList, Record
from searchblend.logs.read import read_log


@pytest.fixture(scope="module")
def lines():
    return some_lines(400)


@pytest.fixture(scope="module")
def log(lines, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.tsv"
    path.write_text(tsv(lines))
    with read(path, draws=3) as opened:
        yield opened


def everybody(log):
    """One group that holds all users but for none: the larger part of a split."""
    return log.split(optin_fraction=1e-9)[1]


def test_the_drawn_records_are_those_of_the_rules(log, lines):
    drawn = reference.picks(lines)
    group = everybody(log)
    assert group.n_users == len(drawn) == log.summary.users
    assert counts_of(group.tally()) == reference.tally(found[0] for found in drawn.values())


def test_counts_are_those_of_a_brute_force_count(log, lines):
    expected = reference.tally(found[0] for found in reference.picks(lines).values())
    tally = everybody(log).tally()
    assert tally.sizes() == reference.sizes(expected)
    queries = sorted({str(record.query) for record in expected})[:4]
    assert tally.of_queries(queries) == {record: n for record, n in expected.items() if record.query in queries}
    capped = Counter()
    for record, n in expected.items():
        if record.query not in queries[:2]:
            capped[Record(record.query)] += min(n, 3)
    assert counts_of(tally.by_query(3, queries[:2])) == capped


def test_opt_in_by_fraction_is_the_keyed_hash(log, lines):
    drawn = reference.picks(lines)
    optin, clients = log.split(optin_fraction=0.3)
    chosen = {user for user in drawn if reference.is_opted_in(user, 0.3)}
    assert 0.2 < len(chosen) / len(drawn) < 0.4
    assert counts_of(optin.tally()) == reference.tally(drawn[user][0] for user in chosen)
    assert counts_of(clients.tally()) == reference.tally(drawn[user][0] for user in drawn.keys() - chosen)


@pytest.mark.parametrize("draws", [1, 2, 3])
def test_further_draws_are_with_replacement_and_fall_into_cells(log, lines, draws):
    head = HeadList({"google": ["http://a.example", "http://b.example"], "nan": [], "東京 天気": ["/only/a/path"]})
    expected = np.zeros(head.n_cells, dtype=np.int64)
    for draw in range(1, draws + 1):
        for found in reference.picks(lines, draw).values():
            expected[head.cell_of(found[0])] += 1
    assert everybody(log).cell_counts(head, draws).tolist() == expected.tolist()


def test_more_than_was_drawn_cannot_be_had(log):
    with pytest.raises(InvalidParameter, match="draws=3"):
        everybody(log).cell_counts(HeadList({}), 4)


def test_neither_order_nor_files_nor_threads_nor_memory_matter(lines, tmp_path: Path):
    expected = reference.tally(found[0] for found in reference.picks(lines).values())
    (tmp_path / "a.tsv").write_text(tsv(lines[::-1][:300]))
    header, *rows = tsv(lines[::-1][300:]).splitlines()
    swapped = ["\t".join([*row.split("\t")[::-1], "more"]) for row in [header, *rows]]
    (tmp_path / "b.tsv").write_text("\r\n".join(swapped))
    for options in ({"threads": 1, "memory": "100MB"}, {"threads": 2}, {"threads": 3, "memory": None}):
        with read_log(tmp_path, key=reference.KEY, **options) as log:
            assert counts_of(everybody(log).tally()) == expected


def test_a_log_of_queries_alone(tmp_path: Path):
    lines = some_lines(100, urls=False)
    path = tmp_path / "log.tsv"
    path.write_text("user\tquery\ttime\n" + "".join(f"{u}\t{q}\t{t}\n" for u, t, q, _, _ in lines))
    with read(path) as log:
        assert not log.has_urls
        drawn = reference.picks(lines)
        assert counts_of(everybody(log).tally()) == reference.tally(found[0] for found in drawn.values())


def test_each_row_of_a_user_has_the_same_chance(tmp_path: Path):
    """One record three times, another once: 3 to 1, over many users."""
    path = tmp_path / "log.tsv"
    path.write_text("user\tquery\n" + "".join(f"{user}\toften\n" * 3 + f"{user}\tonce\n" for user in range(4000)))
    with read_log(path) as log:
        often = counts_of(everybody(log).tally())[Record("often")]
    assert stats.binomtest(often, 4000, 0.75).pvalue > 1e-6


def test_a_fresh_key_draws_anew(tmp_path: Path):
    path = tmp_path / "log.tsv"
    path.write_text(tsv(some_lines(200)))
    found = []
    for _ in range(2):
        with read_log(path) as log:
            found.append(counts_of(everybody(log).tally()))
    assert found[0] != found[1]


def test_a_user_with_very_many_equal_lines(tmp_path: Path):
    path = tmp_path / "log.tsv"
    path.write_text("user\tquery\turl\n" + "7\tq\thttp://a.example\n" * 279_430 + "8\tother\thttp://b.example\n")
    with read(path) as log:
        assert log.summary.users == 2
        assert log.summary.used == 279_431
        assert sum(counts_of(everybody(log).tally()).values()) == 2


def test_two_files_with_the_same_users_are_one_log(tmp_path: Path):
    lines = some_lines(50)
    for name in ("a.tsv", "b.tsv"):
        (tmp_path / name).write_text(tsv(lines))
    drawn = reference.picks([*lines, *lines])
    with read(tmp_path) as log:
        assert log.summary.users == len(drawn)
        assert counts_of(everybody(log).tally()) == reference.tally(found[0] for found in drawn.values())


def test_nobody_changes_what_another_contributes_whatever_their_texts(tmp_path: Path):
    """With a separator in an id, lines of two people can look alike when their fields are joined."""

    def counted(last_query: str) -> Counter[Record]:
        rows = [
            ("A", "1", "cats", "http://www.a.com/", "5\x1f6"),
            ("A", "2", "dogs", "http://www.a.com/", "1"),
            *[("A\x1f1", "cats", last_query, "5", "6")] * 2,
        ]
        path = tmp_path / "log.parquet"
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE l (user VARCHAR, time VARCHAR, query VARCHAR, url VARCHAR, rank VARCHAR)")
            connection.executemany("INSERT INTO l VALUES (?, ?, ?, ?, ?)", rows)
            connection.table("l").write_parquet(str(path))
        with read(path, rows=True) as opened:
            return counts_of(everybody(opened).weighted_queries(Weights(2, 60)))

    one, other = counted("http://www.a.com/"), counted("other")
    moved = {record: abs(one[record] - other[record]) for record in one | other}
    assert sum(moved.values()) <= 120
    assert {str(record.query) for record, n in moved.items() if n} == {"http://www.a.com/", "other"}


def test_a_folder_with_an_equals_sign_is_no_column(tmp_path: Path):
    path, folder = tmp_path / "log.parquet", tmp_path / "user=alice"
    folder.mkdir()
    with duckdb.connect() as connection:
        connection.sql("SELECT 'u' || i AS user, 'q' AS query FROM range(20) AS t(i)").write_parquet(str(path))
    with read(path, temp_directory=folder) as opened:
        assert opened.summary.users == 20
