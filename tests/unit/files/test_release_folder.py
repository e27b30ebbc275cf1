"""A release folder appears complete or not at all."""

from __future__ import annotations

import pytest

from searchblend.core.errors import OutputError
from searchblend.files.durable import release_folder


def write(path, **options):
    with release_folder(path, **options) as folder:
        folder.write("statement.json", b"{}")
        folder.write("data.csv", b"a\n")


def test_files_appear_together(tmp_path):
    write(tmp_path / "deep" / "out")
    assert (tmp_path / "deep" / "out" / "data.csv").read_bytes() == b"a\n"
    assert sorted(path.name for path in (tmp_path / "deep" / "out").iterdir()) == ["data.csv", "statement.json"]


def test_nothing_is_left_when_the_run_fails(tmp_path):
    with pytest.raises(RuntimeError), release_folder(tmp_path / "out") as folder:
        folder.write("data.csv", b"half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_an_earlier_release_stays_unless_replaced(tmp_path):
    write(tmp_path / "out")
    with pytest.raises(OutputError, match="earlier release"):
        write(tmp_path / "out")
    with pytest.raises(RuntimeError), release_folder(tmp_path / "out", replace=True) as folder:
        folder.write("data.csv", b"new")
        raise RuntimeError
    assert (tmp_path / "out" / "data.csv").read_text() == "a\n"
    with release_folder(tmp_path / "out", replace=True) as folder:
        folder.write("statement.json", b"new")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["statement.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_other_peoples_files_are_never_replaced(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("precious")
    with pytest.raises(OutputError, match="holds other files"):
        write(tmp_path / "out", replace=True)
    assert (tmp_path / "out" / "thesis.tex").read_text() == "precious"


@pytest.mark.parametrize("where", ["file", "file/below"])
def test_a_destination_that_cannot_be_a_folder_is_refused_before_the_run(tmp_path, where):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError), release_folder(tmp_path / where):
        raise AssertionError("the run must not start")
    assert (tmp_path / "file").read_text() == "x"
