"""Targets: logs of every format, plain and compressed. What is read, held back and counted must add up."""

from __future__ import annotations

import gzip
from pathlib import Path

import duckdb
import zstandard
from fuzz_rules import CANARY, demand, documented_errors_only
from fuzz_texts import folder, written

from searchblend.logs.formats.gate import Gate
from searchblend.logs.formats.layout import LineRules
from searchblend.logs.read import read_log

SUFFIXES = {
    "aol": "txt",
    "yandex": "tsv",
    "excite": "log",
    "tsv": "tsv",
    "csv": "csv",
    "jsonl": "jsonl",
    "parquet": "parquet",
}
FORMATS = (*SUFFIXES, "auto")


def log(data: bytes) -> None:
    """The first byte chooses the format, whether the columns are mapped, and host-only URLs."""
    choice, text = (data[0] if data else 0), data[1:]
    name = FORMATS[choice % len(FORMATS)]
    path = written(f"log.{SUFFIXES.get(name, 'tsv')}", text)
    _read(path, name, host_only=bool(choice & 64))


def compressed_log(data: bytes) -> None:
    """The bytes as a .gz and a .zst, and the same text within one; the header decides the format."""
    choice, text = (data[0] if data else 0), data[1:]
    packed = gzip.compress(text, mtime=0) if choice & 1 else zstandard.compress(text)
    _read(written(f"log.tsv.{'gz' if choice & 1 else 'zst'}", text if choice & 2 else packed), "auto", host_only=False)


def _read(path: Path, name: str, *, host_only: bool) -> None:
    with (
        documented_errors_only(),
        read_log(
            path, format=name, host_only=host_only, memory="256MB", threads=1, temp_directory=folder(), key=bytes(16)
        ) as found,
    ):
        summary = found.summary
        held_back = sum(kind.count for kind in summary.malformed.values())
        if summary.format != "yandex":  # there a session has lines without a record of their own
            demand(summary.lines == summary.used + summary.without_url + held_back, "lines do not add up")
        demand(0 < summary.users <= summary.used, "users do not add up")
        optin, clients = found.split(optin_fraction=0.5)
        demand(optin.n_users + clients.n_users == summary.users, "people are lost in the split")
    with documented_errors_only():
        read_log(
            path, format=name, strict=True, memory="256MB", threads=1, temp_directory=folder(), key=bytes(16)
        ).close()


def gate(data: bytes) -> None:
    """What passes the gate is whole lines of UTF-8, and every line passes or is held back."""
    for quotes in (False, True):
        watched = Gate(written("gate.txt", data), LineRules(header=quotes, quotes=quotes))
        with documented_errors_only():
            passed = b"".join(watched.blocks())
            passed.decode("utf-8")
            demand(b"\0" not in passed, "a zero byte passed")


def seeds() -> dict[str, list[bytes]]:
    urls = f"http://www.{CANARY}.example"
    texts = {
        "aol": f"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n1\t{CANARY} x\t2006-03-01 07:17:12\t1\t{urls}\n"
        "2\tweather\t2006-03-01 07:18:12\t\t\n",
        "yandex": "1\tM\t20\t5\n1\t0\tQ\t0\t33\t12,14\t5,6\t7,8\n1\t10\tC\t0\t5\n"
        f"2\tM\t21\t{CANARY}\n2\t0\tQ\t1\t34\t12\t5,6\t7,8\n2\t8\tC\t1\t7\n",
        "excite": f"{CANARY}01\t970916105432\t{CANARY} words\nB2\t970916105433\tother words\n",
        "tsv": f"user\tquery\turl\n{CANARY}1\t{CANARY}\t{urls}\nu2\tweather\thttp://b.example\nu3\tx\t\n",
        "csv": f'user,query,url\n{CANARY}1,"{CANARY}, ""said""",{urls}\nu2,weather,http://b.example\n',
        "jsonl": f'{{"user":"{CANARY}","query":"{CANARY} q","url":"{urls}"}}\n{{"user":2,"query":"w","url":null}}\n',
    }
    found = [bytes([FORMATS.index(name)]) + text.encode() for name, text in texts.items()]
    found += [bytes([FORMATS.index("auto")]) + text.encode() for text in texts.values()]
    found.append(bytes([FORMATS.index("parquet")]) + _parquet(urls))
    return {
        "log": found,
        "compressed_log": [bytes([n]) + texts["tsv"].encode() for n in range(2)]
        + [
            b"\x03" + gzip.compress(texts["tsv"].encode(), mtime=0),
            b"\x02" + zstandard.compress(texts["aol"].encode()),
        ],
        "gate": [text.encode() for text in texts.values()],
    }


def _parquet(urls: str) -> bytes:
    path = folder() / "seed.parquet"
    duckdb.sql(f"COPY (SELECT 'u' || range AS user, '{CANARY}' AS query, '{urls}' AS url FROM range(3)) TO '{path}'")
    return path.read_bytes()


TARGETS = {job.__name__: job for job in (log, compressed_log, gate)}
