"""Tables from outside a log, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from searchblend.core.errors import InputError
from searchblend.core.records import Record
from searchblend.logs.duckdb.public_tables import read_public_records, read_synonyms


def written(tmp_path: Path, text: str, name: str = "table.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_strings_of_a_released_table_are_what_was_released(tmp_path):
    path = written(tmp_path, "query,url\n'=sum,'@shop\nit's,http://a.example\n")
    assert read_public_records(path) == [Record("=sum", "@shop"), Record("it's", "http://a.example")]


def test_pairs_come_in_normal_form_and_in_order(tmp_path):
    path = written(
        tmp_path, 'rank,query,url\n1,"Running  Shoes",HTTP://Shoes.example/\n2,weather,suggestion:Weather Radar\n'
    )
    assert read_public_records(path) == [
        Record("running shoes", "http://shoes.example"),
        Record("weather", "suggestion:weather radar"),
    ]


def test_tabs_and_parquet_are_fine_too(tmp_path):
    expected = [Record("a", "http://a.example")]
    assert read_public_records(written(tmp_path, "query\turl\na\thttp://a.example\n", "table.tsv")) == expected
    path = tmp_path / "table.parquet"
    duckdb.sql(f"COPY (SELECT 'a' AS query, 'http://a.example' AS url) TO '{path}'")
    assert read_public_records(path) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("query,url\na,http://a.example\nA ,http://a.example\n", r"table\.csv:3: the same pair as in line 2"),
        ("query,link\na,http://a.example\n", r"table\.csv:1: no column url; expected query and url"),
        ("", "no column query and url"),
        ("query,url\n", "no pair after the header"),
        ("query,url\na\n", r"table\.csv:2: expected 2 fields, found 1"),
        ("query,url\n ,http://a.example\n", r"table\.csv:2: query: expected a query"),
        ("query,url\na,http://[\n", r"table\.csv:2: url: expected a URL"),
        ("query,url\na,suggestion: \n", r"table\.csv:2: url: expected a query"),
        ('query,url\n"a,http://a.example\n', "RFC 4180"),
    ],
)
def test_what_is_wrong_is_said_with_its_line_and_without_the_text(tmp_path, text, problem):
    with pytest.raises(InputError, match=problem) as caught:
        read_public_records(written(tmp_path, text))
    assert "a.example" not in str(caught.value)


def test_files_that_are_no_tables(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_public_records(tmp_path / "missing.csv")
    with pytest.raises(InputError, match="expected a file ending in"):
        read_public_records(written(tmp_path, "x", "table.json"))
    with pytest.raises(InputError, match="Parquet"):
        read_public_records(written(tmp_path, "x", "table.parquet"))
    path = tmp_path / "numbers.parquet"
    duckdb.sql(f"COPY (SELECT 1 AS query, 'http://a.example' AS url) TO '{path}'")
    with pytest.raises(InputError, match="expected two strings"):
        read_public_records(path)
    (tmp_path / "latin.csv").write_bytes(b"query,url\n\xff,http://a.example\n")
    with pytest.raises(InputError, match="UTF-8"):
        read_public_records(tmp_path / "latin.csv")


def test_synonyms(tmp_path):
    assert read_synonyms(written(tmp_path, "query,meaning\nMom,mother\nmum,mother\n")) == {
        "mom": "mother",
        "mum": "mother",
    }
    with pytest.raises(InputError, match="has a meaning already"):
        read_synonyms(written(tmp_path, "query,meaning\na,b\nA,c\n"))
    with pytest.raises(InputError, match="another meaning itself"):
        read_synonyms(written(tmp_path, "query,meaning\na,b\nb,c\n"))
