"""Targets: texts, tables and settings that people hand us in files."""

from __future__ import annotations

import contextlib
import json
import tempfile
from functools import cache
from pathlib import Path

from fuzz_rules import CANARY, demand, documented_errors_only

from searchblend.core.documents import decode
from searchblend.core.normalization import normalize, normalize_url, single_blanks
from searchblend.logs.duckdb.public_tables import read_public_records, read_synonyms
from searchblend.service.settings import load_settings
from searchblend.service.task_settings import TaskSettings
from searchblend.wire.click_graph_inputs import read_categories, read_seeds, read_stop_list


@cache
def folder() -> Path:
    """One folder for the whole run; removed when the interpreter ends."""
    held = tempfile.TemporaryDirectory(prefix="searchblend-fuzz-")
    HELD.append(held)
    return Path(held.name)


HELD: list[tempfile.TemporaryDirectory[str]] = []


def written(name: str, data: bytes) -> Path:
    path = folder() / name
    path.write_bytes(data)
    return path


def normal_query(data: bytes) -> None:
    """A normal form is a fixed point: printable, without outer blanks, and made of one line."""
    text = data.decode("utf-8", "surrogatepass" if len(data) % 2 else "replace") if _decodes(data) else ""
    found = normalize(text)
    if found is not None:
        demand(normalize(found) == found, "a normal form that is not one")
        demand(single_blanks(found) == found, "blanks in a normal form")
        found.encode("utf-8")


def normal_url(data: bytes) -> None:
    text = data.decode("utf-8", "surrogatepass" if len(data) % 2 else "replace") if _decodes(data) else ""
    for host_only in (False, True):
        found = normalize_url(text, host_only=host_only)
        if found is not None:
            demand(normalize_url(found, host_only=host_only) == found, "a normal URL that is not one")
            demand(single_blanks(found) == found, "blanks in a normal URL")
            found.encode("utf-8")


def _decodes(data: bytes) -> bool:
    with contextlib.suppress(UnicodeDecodeError):
        data.decode("utf-8", "surrogatepass" if len(data) % 2 else "replace")
        return True
    return False


def tables(data: bytes) -> None:
    """Public tables, synonyms, seeds, categories and stop lists."""
    suffix = "parquet" if data.startswith(b"PAR1") else ("csv", "tsv")[len(data) % 2]
    path = written(f"table.{suffix}", data)
    for read in (read_public_records, read_synonyms):
        with documented_errors_only():
            read(path)
    for read_small in (read_seeds, read_categories, read_stop_list):
        with documented_errors_only():
            read_small(path)


def serve_settings(data: bytes) -> None:
    with documented_errors_only():
        load_settings({}, written("serve.toml", data), environment={})


def task_settings(data: bytes) -> None:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    with documented_errors_only():
        decode(TaskSettings, document)


def seeds() -> dict[str, list[bytes]]:
    return {
        "normal_query": [b"Weather  Berlin", "Ünïcode İ ß ﬁ".encode(), "東京 天気".encode(), b"-", b" \t x"],
        "normal_url": [
            b"HTTP://User@WWW.Example.COM:80/a/../b?q=1#f",
            b"https://[2001:db8::1]:443/x",
            "http://bücher.example/ä".encode(),
            b"/only/a/path",
            b"example.com",
        ],
        "tables": [
            f"query,url\n{CANARY},http://a.example\nq,http://{CANARY}.example\n".encode(),
            f"query,meaning\n{CANARY},b\n".encode(),
            f"class,url\na,http://{CANARY}.example\n".encode(),
            b"PAR1" + bytes(20) + b"PAR1",
            f'"a ""quoted"" {CANARY}","line\nbreak"\n'.encode(),
        ],
        "serve_settings": [b'host = "127.0.0.1"\nport = 8471\nrole = "all"\n', b"workers = 1\n[a]\nb = 1\n"],
        "task_settings": [
            b'{"name":"searches","epsilon":4.0,"delta":1e-5}',
            b'{"name":"a","method":"paper","max_head_queries":50,"market":"en-GB","client_seconds":10,"optin_seconds":5}',
        ],
    }


TARGETS = {job.__name__: job for job in (normal_query, normal_url, tables, serve_settings, task_settings)}
