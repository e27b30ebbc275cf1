"""Which files a log is, and their bytes."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
import zstandard

from searchblend.errors import InputError
from searchblend.logs.files import compression_of, expand, first_lines, open_text_bytes

TEXT = b"".join(b"%d\tquery %d\n" % (i, random.Random(i).getrandbits(60)) for i in range(20_000))


def content(path: Path, size: int = 1 << 16) -> bytes:
    with open_text_bytes(path) as (source, _):
        return b"".join(iter(lambda: source.read(size), b""))


def test_globs_and_directories_in_order_and_each_file_once(tmp_path: Path):
    for name in ("b.tsv", "a.tsv", ".hidden", "_SUCCESS", "c[1].tsv"):
        (tmp_path / name).write_text("x")
    names = [path.name for path in expand([tmp_path, str(tmp_path / "*.tsv"), tmp_path / "a.tsv"])]
    assert names == ["a.tsv", "b.tsv", "c[1].tsv"]
    assert expand(tmp_path / "c[1].tsv") == [tmp_path / "c[1].tsv"]


@pytest.mark.parametrize("path", ["none/*.tsv", "empty", []])
def test_nothing_found(path, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError):
        expand(path if path == [] else tmp_path / path)


@pytest.mark.parametrize("name", ["plain", "gzip", "gzip of two", "zstd", "zstd of two", "padded"])
def test_compression_is_told_by_the_bytes(name, tmp_path: Path):
    halves = TEXT[: len(TEXT) // 2], TEXT[len(TEXT) // 2 :]
    zstd = zstandard.ZstdCompressor().compress
    path = tmp_path / "log"
    path.write_bytes(
        {
            "plain": TEXT,
            "gzip": gzip.compress(TEXT),
            "gzip of two": gzip.compress(halves[0]) + gzip.compress(halves[1]),
            "zstd": zstd(TEXT),
            "zstd of two": zstd(halves[0]) + zstd(halves[1]),
            "padded": gzip.compress(TEXT) + bytes(1000),
        }[name]
    )
    assert compression_of(path) == (None if name == "plain" else "zstd" if "zstd" in name else "gzip")
    assert content(path) == TEXT
    assert content(path, 100) == TEXT
    assert first_lines(path, 1000)[:1000] == TEXT[:1000]


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
@pytest.mark.parametrize("cut", [0.1, 0.5, 0.999])
def test_a_file_that_is_cut_off(kind, cut, tmp_path: Path):
    whole = gzip.compress(TEXT) if kind == "gzip" else zstandard.ZstdCompressor().compress(TEXT)
    (tmp_path / "log").write_bytes(whole[: int(cut * len(whole))])
    with pytest.raises(InputError, match="cut off"):
        content(tmp_path / "log")


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_a_damaged_file(kind, tmp_path: Path):
    whole = bytearray(
        gzip.compress(TEXT) if kind == "gzip" else zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)
    )
    whole[len(whole) // 2] ^= 0xFF
    (tmp_path / "log").write_bytes(whole)
    with pytest.raises(InputError, match=r"damaged|cut off"):
        content(tmp_path / "log")


def test_a_wrong_checksum_is_noticed(tmp_path: Path):
    whole = bytearray(gzip.compress(TEXT))
    whole[-6] ^= 0xFF
    (tmp_path / "log").write_bytes(whole)
    with pytest.raises(InputError, match="damaged"):
        content(tmp_path / "log")


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_what_expands_hugely_comes_in_small_pieces(kind, tmp_path: Path):
    huge = b"x" * 100_000_000
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(huge, 9) if kind == "gzip" else zstandard.ZstdCompressor().compress(huge))
    with open_text_bytes(path) as (source, _):
        pieces = [len(piece) for piece in iter(lambda: source.read(1 << 16), b"")]
    assert sum(pieces) == len(huge)
    assert max(pieces) < 40_000_000


def test_files_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(InputError, match="no such file"):
        first_lines(tmp_path / "none")
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match="empty"):
        first_lines(tmp_path / "empty")
