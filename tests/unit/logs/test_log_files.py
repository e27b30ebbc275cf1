"""Which files a log is, and their bytes."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import random
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard

from searchblend.core.errors import InputError
from searchblend.logs.formats.files import (
    compression_of,
    expand,
    first_lines,
    open_text_bytes,
    other_than_text,
    text_name,
)
from searchblend.logs.read import read_log

_RANDOM = random.Random(1)
TEXT = b"".join(b"%d\tquery %d\n" % (i, _RANDOM.getrandbits(60)) for i in range(20_000))

SQUEEZED = {"gzip": "log.gz", "zstd": "log.zst"}


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
def test_compression_is_told_by_the_name(name, tmp_path: Path):
    halves = TEXT[: len(TEXT) // 2], TEXT[len(TEXT) // 2 :]
    zstd = zstandard.ZstdCompressor().compress
    path = tmp_path / ("log" if name == "plain" else "log.zst" if "zstd" in name else "log.GZ")
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
    path = tmp_path / SQUEEZED[kind]
    path.write_bytes(whole[: int(cut * len(whole))])
    with pytest.raises(InputError, match="cut off"):
        content(path)


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_a_damaged_file(kind, tmp_path: Path):
    whole = bytearray(
        gzip.compress(TEXT) if kind == "gzip" else zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)
    )
    whole[len(whole) // 2] ^= 0xFF
    (tmp_path / SQUEEZED[kind]).write_bytes(whole)
    with pytest.raises(InputError, match=r"damaged|cut off"):
        content(tmp_path / SQUEEZED[kind])


def test_a_wrong_checksum_is_noticed(tmp_path: Path):
    whole = bytearray(gzip.compress(TEXT))
    whole[-6] ^= 0xFF
    (tmp_path / "log.gz").write_bytes(whole)
    with pytest.raises(InputError, match="damaged"):
        content(tmp_path / "log.gz")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_what_expands_hugely_comes_in_small_pieces(kind, tmp_path: Path):
    huge = b"x" * 100_000_000
    path = tmp_path / SQUEEZED[kind]
    path.write_bytes(gzip.compress(huge, 9) if kind == "gzip" else zstandard.ZstdCompressor().compress(huge))
    with open_text_bytes(path) as (source, _):
        pieces = [len(piece) for piece in iter(lambda: source.read(1 << 16), b"")]
    assert sum(pieces) == len(huge)
    assert max(pieces) < 40_000_000


@pytest.mark.parametrize(("suffix", "pack"), [("bz2", bz2.compress), ("xz", lzma.compress)])
def test_bzip2_and_xz_are_read_member_by_member(suffix, pack, tmp_path: Path):
    path, whole = tmp_path / f"log.tsv.{suffix}", pack(TEXT)
    for packed in (whole, pack(TEXT[:5000]) + pack(TEXT[5000:]), whole + bytes(8)):
        path.write_bytes(packed)
        assert content(path, 100) == TEXT
    path.write_bytes(whole[:-20])
    with pytest.raises(InputError, match=r"the (bzip2|xz) file is cut off"):
        content(path)
    path.write_bytes(whole[:30] + bytes(30) + whole[60:])
    with pytest.raises(InputError, match=r"the (bzip2|xz) file is damaged"):
        content(path)


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return whole.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_the_one_file_of_a_zip_archive_is_read(method: int, tmp_path: Path):
    path = tmp_path / "export.ZIP"
    path.write_bytes(zipped({"folder/": b"", "folder/Log.JSONL": TEXT, "__MACOSX/folder/._Log.JSONL": b"x"}, method))
    assert expand(path) == [path]
    assert content(path, 100) == TEXT
    assert text_name(path) == "Log.JSONL"


ARCHIVES = {
    "no file": (zipped({"folder/": b""}), "expected one file in the zip archive, found 0"),
    "two files": (zipped({"a.tsv": TEXT, "b.tsv": TEXT}), "expected one file in the zip archive, found 2"),
    "bzip2 inside": (zipped({"a.tsv": TEXT}, zipfile.ZIP_BZIP2), "stored or deflated"),
    "cut off": (zipped({"a.tsv": TEXT})[:-30], "the zip file is damaged or cut off"),
    "a beginning": (zipped({"a.tsv": TEXT})[:100], "the zip file is damaged or cut off"),
    "empty": (b"", "the zip file is damaged or cut off"),
    "wrong checksum": (zipped({"a.tsv": TEXT}, zipfile.ZIP_STORED).replace(TEXT[:9], TEXT[1:10], 1), "damaged"),
    "encrypted": (
        zipped({"a.tsv": TEXT}).replace(b"PK\x01\x02\x14\x03\x14\0\0", b"PK\x01\x02\x14\x03\x14\0\1"),
        "encrypted",
    ),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_zip_archives_that_are_refused(name: str, tmp_path: Path):
    whole, problem = ARCHIVES[name]
    (tmp_path / "log.zip").write_bytes(whole)
    with pytest.raises(InputError, match=problem) as refused:
        content(tmp_path / "log.zip")
    assert str(refused.value).startswith(f"{tmp_path}/log.zip: ")


def test_a_log_in_a_zip_archive_is_read_as_the_file_in_it(tmp_path: Path):
    lines = b"".join(b'{"user": %d, "query": "a"}\n' % i for i in range(9)) + b'{"user": 9, "query": "\xff"}\n'
    (tmp_path / "log.jsonl").write_bytes(lines)
    (tmp_path / "export.zip").write_bytes(zipped({"log.jsonl": lines}))
    found = []
    for name in ("log.jsonl", "export.zip"):
        with read_log(tmp_path / name, urls=False, key=bytes(16)) as log:
            places = [place.line for kind in log.summary.malformed.values() for place in kind.first]
            found.append((log.summary.format, log.summary.users, places))
    assert found == [("jsonl", 9, [10])] * 2


def test_a_url_of_a_file_is_its_path(tmp_path: Path):
    for name in ("a b.tsv", "c.tsv"):
        (tmp_path / name).write_bytes(TEXT)
    assert expand(f"file://{tmp_path}/a%20b.tsv") == [tmp_path / "a b.tsv"]
    assert expand(f"file://localhost{tmp_path}/*.tsv") == [tmp_path / "a b.tsv", tmp_path / "c.tsv"]
    for name in ("file:///a%00b", "a\0b"):
        with pytest.raises(InputError, match=r"^(file:///)?a%00b: expected the name of a file, found a NUL byte in it"):
            expand(name)
    for elsewhere in ("file://server/share/log.tsv", "file://log.tsv"):
        with pytest.raises(InputError, match="expected file:///PATH"):
            expand(elsewhere)


def test_files_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(InputError, match="no such file"):
        first_lines(tmp_path / "none")


@pytest.mark.parametrize("suffix", ["gz", "zst", "bz2", "xz", "zip"])
def test_text_under_the_name_of_a_compression_is_refused(suffix, tmp_path: Path):
    (tmp_path / f"log.{suffix}").write_bytes(TEXT)
    with pytest.raises(InputError, match=r"damaged|cut off"):
        content(tmp_path / f"log.{suffix}")


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("log.tsv.lz4", "compressed with LZ4"),
        ("log.lzma", "compressed with LZMA"),
        ("log.7z", "a 7-Zip archive: unpack it first"),
        ("log.rar", "a RAR archive: unpack it first"),
        *((f"log.{name}", "a tar archive: unpack it first") for name in ("tar", "tar.gz", "TAR.XZ", "tsv.tgz")),
    ],
)
def test_other_compressions_and_archives_are_named(name, called, tmp_path: Path):
    (tmp_path / name).write_bytes(TEXT)
    for path in (tmp_path / name, tmp_path, tmp_path / "log.*"):
        with pytest.raises(InputError, match=called):
            expand(path)


@pytest.mark.parametrize(
    ("packed", "named"),
    [
        (gzip.compress, r"gzip: name it \.gz"),
        (zstandard.compress, r"zstd: name it \.zst"),
        (bz2.compress, r"bzip2: name it \.bz2"),
        (lzma.compress, r"xz: name it \.xz"),
        (lambda text: lzma.compress(text, lzma.FORMAT_ALONE), "compressed with LZMA"),
        (lambda _: b"PK\x03\x04...", r"zip archive: name it \.zip"),
        (lambda _: b"7z\xbc\xaf\x27\x1c...", "7-Zip"),
        (lambda _: b"Rar!\x1a\x07...", "RAR"),
        (lambda text: tarfile.TarInfo("log.tsv").tobuf() + text, "a tar archive: unpack"),
        (lambda text: text.decode().encode("utf-16"), "UTF-16"),
        (lambda text: text.decode().encode("utf-16-be"), "UTF-16"),
        (lambda text: text.decode().encode("utf-16-le"), "UTF-16"),
        (lambda text: text.decode().encode("utf-32"), "UTF-32"),
        (lambda text: b"\0\0\xfe\xff" + text.decode().encode("utf-32-be"), "UTF-32"),
        (lambda text: text.decode().encode("utf-32-be"), "UTF-32"),
        (lambda text: text.decode().encode("utf-32-le"), "UTF-32"),
    ],
)
def test_what_a_file_is_instead_of_text_is_named_where_a_header_should_be(packed, named, tmp_path: Path):
    (tmp_path / "log").write_bytes(packed(TEXT))
    with pytest.raises(InputError, match=named):
        read_log(tmp_path / "log")
    with pytest.raises(InputError, match=f"no line of the log can be used.*{named}"):
        read_log(tmp_path / "log", format="jsonl")


def test_no_line_of_a_person_makes_an_archive_of_a_log(tmp_path: Path):
    """The mark of a tar archive is at byte 257: there may be mustard."""
    start = b"user\tquery\turl\n1\t"
    line = (b"a " * 200)[: 257 - len(start) - 1] + b"mustard\thttp://a.example\n"
    (tmp_path / "log.tsv").write_bytes(start + line)
    assert (start + line)[256:264] == b"mustard\t"
    with read_log(tmp_path / "log.tsv") as log:
        assert log.summary.used == 1


@pytest.mark.parametrize("text", [TEXT[:1000], b"", b"\xef\xbb\xbfuser", "é".encode(), b"B", b"{}"])
def test_text_is_no_other_thing(text):
    assert other_than_text(text) is None


def test_a_pipe_is_refused_and_loses_no_byte(tmp_path: Path):
    pipe = tmp_path / "log.tsv"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDWR)
    try:
        os.write(end, b"user\tquery\n1\ta\n")
        for path in (pipe, tmp_path, tmp_path / "*.tsv"):
            with pytest.raises(InputError, match=r"log.tsv: is a pipe or a device.*write it to a file first"):
                read_log(path)
        assert os.read(end, 100) == b"user\tquery\n1\ta\n"
    finally:
        os.close(end)


@pytest.mark.thorough
def test_standard_input_is_read_from_a_file_and_refused_from_a_pipe(tmp_path: Path):
    (tmp_path / "log.tsv").write_text("user\tquery\n1\ta\n2\ta\n")
    command = [sys.executable, "-m", "searchblend.cli", "stats", "/dev/stdin", "--json"]
    with (tmp_path / "log.tsv").open("rb") as file:
        read = subprocess.run(command, stdin=file, capture_output=True, text=True, check=True)
    assert json.loads(read.stdout)["users"] == 2
    piped = subprocess.run(command, input="user\tquery\n1\ta\n", capture_output=True, text=True, check=False)
    assert piped.returncode == 1
    assert "/dev/stdin: is a pipe or a device" in piped.stderr
    assert "Traceback" not in piped.stderr
