"""Tables written by hand: what they may look like, and which line is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchblend.core.errors import InputError
from searchblend.wire.click_graph_inputs import read_categories, read_seeds, read_stop_list


def written(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("header", ["", "class,url\n", "class, url or domain\n", "\ufeff"])
def test_seeds_by_class(tmp_path: Path, header: str):
    path = written(tmp_path, header + 'shoes, a.example\n\nsky,http://b.example/\nshoes,"http://c.example/?x=1,2"\n')
    assert read_seeds(path) == {"shoes": ["a.example", "http://c.example/?x=1,2"], "sky": ["http://b.example/"]}


def test_strings_cut_out_of_a_released_table_are_what_was_released(tmp_path: Path):
    assert read_seeds(written(tmp_path, "'=shoes,'@shop\n")) == {"=shoes": ["@shop"]}
    assert read_categories(written(tmp_path, "\"'-1;'=2\",it's\n")) == {"-1;=2": "it's"}


def test_categories_and_stop_lists(tmp_path: Path):
    assert read_categories(written(tmp_path, "term,category\nspiders,animals\nspiders,animals\n")) == {
        "spiders": "animals"
    }
    assert read_stop_list(written(tmp_path, " a film \n\r\nanother\r\n")) == ["a film", "another"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("shoes,a.example\nsky\n", r"table\.csv:2: expected class,url or domain"),
        ("shoes,a,b\n", r"table\.csv:1: expected class,url or domain"),
        (",a.example\n", r"table\.csv:1: expected class,url or domain"),
        ("", "holds nothing; expected lines of class,url or domain"),
        ('shoes,"a.example\n', r"table\.csv:1: expected comma-separated values"),
        (b"\xff\xfe", "expected UTF-8 text"),
    ],
)
def test_wrong_seeds_are_named_by_line(tmp_path: Path, content: str | bytes, problem: str):
    with pytest.raises(InputError, match=problem):
        read_seeds(written(tmp_path, content))


def test_a_term_with_two_categories_is_named(tmp_path: Path):
    with pytest.raises(InputError, match=r"table\.csv:3: expected one category for each term"):
        read_categories(written(tmp_path, "a,x\nb,x\na,y\n"))


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_stop_list(tmp_path / "nowhere")
