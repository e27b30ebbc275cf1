"""Values that many users of a plain table share: who is counted, what is published, and what is refused."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

import duckdb
import numpy as np
import pytest
from scipy import stats

from searchblend import Budget, InputError, InvalidColumns, InvalidParameter, Neighbors, select_values
from searchblend.logs.duckdb.session import DuckDBSession
from searchblend.logs.formats.files import expand
from searchblend.releases.select_values import Selection, run_selection, value_tally
from searchblend.synthetic.seeded import SeededRandomness

BUDGET = Budget(4.0, 1e-5)


def write(path, rows, types="user VARCHAR, value VARCHAR"):
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE rows ({types})")
        columns = [list(column) for column in zip(*rows, strict=True)]
        connection.execute("INSERT INTO rows SELECT unnest($1), unnest($2)", columns)
        connection.table("rows").write_parquet(str(path))
    return path


def drawn(path, key, most=1):
    with closing(DuckDBSession(None, None, None)) as session:
        tally = value_tally(session, expand(path), "user", "value", key, most)
        return Counter({record.query: n for n, records in tally.at_least(1).items() for record in records})


def test_common_values_are_named_with_counts_near_the_truth(tmp_path):
    rows = [(f"u{i}", "common") for i in range(300)] + [(f"v{i}", "less") for i in range(100)] + [("w", "rare")]
    found = select_values(write(tmp_path / "rows.parquet", rows), Budget(4.0, 1e-9))
    assert list(found.counts) == ["common", "less"]
    assert abs(found.counts["common"] - 300) < 30
    assert abs(found.counts["less"] - 100) < 30
    assert all(isinstance(n, int) and n >= found.threshold for n in found.counts.values())


def test_the_promise_is_stated_and_does_not_hold_with_a_predictable_generator(tmp_path):
    path = write(tmp_path / "rows.parquet", [("u", "a")])
    found = select_values(path, BUDGET).guarantee
    assert (found.epsilon, found.delta, found.neighbors, found.holds) == (4.0, 1e-5, Neighbors.REPLACE_ONE, True)
    assert not select_values(path, BUDGET, randomness=SeededRandomness(1)).guarantee.holds


def test_a_user_counts_once_whatever_they_did(tmp_path):
    rows = [("one", f"v{i}") for i in range(50) for _ in range(20)]
    assert drawn(write(tmp_path / "rows.parquet", rows), "key").total() == 1


def test_up_to_a_stated_number_of_different_values_of_a_user_count(tmp_path):
    rows = [("one", f"v{i % 5}") for i in range(50)] + [("two", "v0"), ("two", "v0")]
    path = write(tmp_path / "rows.parquet", rows)
    assert drawn(path, "key", 3).total() == 3 + 1
    assert drawn(path, "key", 100) == {"v0": 2, "v1": 1, "v2": 1, "v3": 1, "v4": 1}


def test_each_set_of_a_users_values_is_as_likely(tmp_path):
    rows = [(f"u{i}", value) for i in range(3000) for value in ["a", "a", "a", "b", "c"]]
    counts = drawn(write(tmp_path / "rows.parquet", rows), "key", 2)
    assert counts.total() == 6000
    assert stats.chisquare([3000 - counts[value] for value in "abc"]).pvalue > 1e-6  # whom each user left out


def test_one_user_moves_as_many_counts_as_stated_and_nothing_else(tmp_path):
    """All rows of one user are replaced: the same key draws for all others as before."""
    others = [(f"u{i}", f"v{(i * j) % 11}") for i in range(40) for j in range(1, 8)]
    before, after, without = (
        drawn(write(tmp_path / f"{name}.parquet", others + [("x", value) for value in held]), "key", 3)
        for name, held in (("before", [f"v{i}" for i in range(9)]), ("after", ["w", "v1", "v1", "z"]), ("without", []))
    )
    for other, most in ((before, 3), (after, 3)):
        moved = {value: other[value] - without[value] for value in {*other, *without} if other[value] != without[value]}
        assert len(moved) <= most
        assert set(moved.values()) <= {1}


def test_users_are_counted_once_however_many_of_their_values_count(tmp_path):
    path = write(tmp_path / "rows.parquet", [(f"u{i}", f"v{j}") for i in range(300) for j in range(4)])
    with pytest.raises(InvalidParameter, match=r"not below 1/users = 0\.0033"):
        run_selection(Selection.of(path, Budget(4.0, 0.01), values_per_user=4))
    released = run_selection(Selection.of(path, Budget(4.0, 0.003), values_per_user=4)).released
    assert set(released.columns()["value"]) == {"v0", "v1", "v2", "v3"}


def test_under_adding_and_removing_no_refusal_depends_on_how_many_users_there_are(tmp_path):
    path = write(tmp_path / "rows.parquet", [(f"u{i}", "a") for i in range(300)])
    selection = Selection.of(path, Budget(4.0, 0.01), neighbors=Neighbors.ADD_REMOVE_ONE)
    assert run_selection(selection).released.columns()["value"] == ["a"]


def test_the_relation_is_stated_and_decides_the_threshold(tmp_path):
    path = write(tmp_path / "rows.parquet", [(f"u{i}", "a") for i in range(300)])
    for relation, threshold in ((Neighbors.REPLACE_ONE, 7), (Neighbors.ADD_REMOVE_ONE, 4)):
        found = select_values(path, BUDGET, neighbors=relation)
        assert (found.guarantee.neighbors, found.threshold, found.guarantee.holds) == (relation, threshold, True)


@pytest.mark.parametrize("stream", [False, True])
def test_tables_in_memory_give_several_values_of_each_user(stream):
    columns = {"user": np.array([f"u{i}" for i in range(300)] * 2), "value": np.array(["a"] * 300 + ["b"] * 300)}
    given = duckdb.sql("SELECT * FROM columns").to_arrow_reader() if stream else columns
    assert set(select_values(given, Budget(4.0, 1e-9), values_per_user=2).counts) == {"a", "b"}


def test_each_different_value_of_a_user_is_as_likely_and_users_choose_alone(tmp_path):
    rows = [(f"u{i}", value) for i in range(3000) for value in ["a", "a", "a", "b", "c"]]
    counts = drawn(write(tmp_path / "rows.parquet", rows), "key")
    assert stats.chisquare([counts[value] for value in "abc"]).pvalue > 1e-6
    assert stats.chisquare([3000, 0, 0], [1000] * 3).pvalue < 1e-6  # what a draw by value alone would give


def test_another_key_draws_anew_and_the_same_key_the_same(tmp_path):
    path = write(tmp_path / "rows.parquet", [(f"u{i}", value) for i in range(200) for value in "ab"])
    assert drawn(path, "one") == drawn(path, "one")
    assert len({drawn(path, f"key {i}")["a"] for i in range(10)}) > 1


@pytest.mark.thorough
def test_published_counts_have_the_noise_of_the_design(tmp_path):
    """Thousands of values with the same count in one table: the law of N + Y given N + Y ≥ T."""
    budget, n, values = Budget(2.0, 0.01), 4, 12_000
    rows = [(f"u{value}-{i}", f"v{value}") for value in range(values) for i in range(n)]
    found = select_values(write(tmp_path / "rows.parquet", rows), budget)
    a, cut = found.design.noise.decay, found.threshold + 6
    seen = Counter(min(count, cut) for count in found.counts.values())
    observed = [*(seen[count] for count in range(found.threshold, cut + 1)), values - len(found.counts)]

    def p_value(decay):
        law = [(1 - decay) / (1 + decay) * decay ** (count - n) for count in range(found.threshold, cut)]
        law.append(decay ** (cut - n) / (1 + decay))
        return stats.chisquare(observed, np.array([*law, 1 - sum(law)]) * values).pvalue

    assert p_value(a) > 1e-6
    assert p_value(a**1.2) < 1e-6  # its noncentrality is 222, where 41 would be the limit


def test_texts_are_published_as_they_are_and_numbers_as_texts(tmp_path):
    rows = [(i, 7) for i in range(200)]
    path = write(tmp_path / "rows.parquet", rows, "who BIGINT, product INTEGER")
    assert list(select_values(path, BUDGET, user="who", value="product").counts) == ["7"]
    odd = write(tmp_path / "odd.parquet", [(f"u{i}", " Two  Words'\n") for i in range(200)])
    assert list(select_values(odd, BUDGET).counts) == [" Two  Words'\n"]


def test_rows_without_a_user_or_a_value_are_left_out(tmp_path):
    rows = [(None, "a")] * 300 + [(f"u{i}", None) for i in range(300)]
    assert drawn(write(tmp_path / "rows.parquet", rows), "key").total() == 0
    assert select_values(tmp_path / "rows.parquet", BUDGET).counts == {}


def test_several_files_are_one_table_whatever_the_order_of_their_columns(tmp_path):
    write(tmp_path / "one[1].parquet", [(f"u{i}", "a") for i in range(100)])
    write(tmp_path / "two.parquet", [("a", f"v{i}") for i in range(100)], "value VARCHAR, user VARCHAR")
    assert drawn(tmp_path, "key") == {"a": 200}


@pytest.mark.parametrize(
    ("types", "options", "said"),
    [
        ("user VARCHAR, value VARCHAR", {"value": "query"}, r"no column 'query': there are user, value"),
        ("user VARCHAR, value DOUBLE", {}, r"column 'value' has type DOUBLE; expected strings or whole numbers"),
    ],
)
def test_wrong_columns_are_named(tmp_path, types, options, said):
    path = write(tmp_path / "rows.parquet", [("1", "1")], types)
    with pytest.raises(InvalidColumns, match=said):
        select_values(path, BUDGET, **options)


def test_what_is_no_parquet_file_is_refused(tmp_path):
    (tmp_path / "rows.parquet").write_text("user,value\nu,secret\n")
    with pytest.raises(InputError, match="the Parquet file cannot be read") as refused:
        select_values(tmp_path / "rows.parquet", BUDGET, format="parquet")
    assert "secret" not in str(refused.value)
    with pytest.raises(InputError, match="no such file"):
        select_values(tmp_path / "none.parquet", BUDGET)


def test_a_damaged_file_is_named_and_files_of_other_types_are_one_table(tmp_path):
    path = write(tmp_path / "one.parquet", [(str(i), "a") for i in range(2000)])
    write(tmp_path / "two.parquet", [(10_000 + i, 7) for i in range(300)], "user INTEGER, value BIGINT")
    assert drawn(tmp_path, "key") == {"a": 2000, "7": 300}
    content = path.read_bytes()
    path.write_bytes(content[:40] + bytes(200) + content[240:])
    with pytest.raises(InputError, match=r"one.parquet: this Parquet file, or another of the table, is damaged"):
        select_values(path, BUDGET)


def test_a_folder_with_an_equals_sign_is_no_column(tmp_path):
    path = write(tmp_path / "rows.parquet", [(f"u{i}", "a") for i in range(200)])
    (folder := tmp_path / "user=alice" / "value=b").mkdir(parents=True)
    assert list(select_values(path, BUDGET, temp_directory=folder).counts) == ["a"]


def test_a_budget_that_protects_nobody_is_refused(tmp_path):
    with pytest.raises(InvalidParameter, match="epsilon"):
        select_values(write(tmp_path / "rows.parquet", [("u", "a")]), Budget(1000.0, 1e-5))


def test_a_budget_that_no_threshold_fits_is_refused(tmp_path):
    with pytest.raises(InvalidParameter, match="delta"):
        select_values(write(tmp_path / "rows.parquet", [("u", "a")]), Budget(4.0, 1e-30))
