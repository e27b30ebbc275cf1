"""Files appear complete or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchblend.core.errors import OutputError
from searchblend.files.durable import whole_files


def test_files_appear_together(tmp_path: Path):
    targets = [tmp_path / "new" / "a", tmp_path / "new" / "b"]
    with whole_files(targets) as partial:
        for number, path in enumerate(partial):
            path.write_text(str(number))
        assert not any(target.exists() for target in targets)
    assert [target.read_text() for target in targets] == ["0", "1"]
    assert sorted(tmp_path.glob("new/*")) == targets


def test_a_failure_leaves_nothing_and_keeps_what_was_there(tmp_path: Path):
    target = tmp_path / "a"
    target.write_text("earlier")
    with pytest.raises(RuntimeError), whole_files([target], replace=True) as (partial,):
        partial.write_text("half")
        raise RuntimeError
    assert target.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [target]


def test_what_is_in_the_way_is_refused_first(tmp_path: Path):
    (tmp_path / "a").write_text("earlier")
    with pytest.raises(OutputError, match="exists; choose another name or pass --force"), whole_files([tmp_path / "a"]):
        pytest.fail("must not begin")
    with pytest.raises(OutputError, match="is a directory"), whole_files([tmp_path], replace=True):
        pytest.fail("must not begin")
    with pytest.raises(OutputError, match="cannot be written"), whole_files([tmp_path / "a" / "b"]):
        pytest.fail("must not begin")
