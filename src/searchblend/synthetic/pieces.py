"""Chunks of a synthetic log: what to make, and the text of one chunk. Runs in worker processes."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from searchblend.core.errors import InvalidParameter
from searchblend.synthetic.aol import aol_chunk
from searchblend.synthetic.formats import aol_table, aol_text, yandex_table, yandex_text
from searchblend.synthetic.yandex import sessions_per_user, yandex_chunk

PROFILES: Final = ("aol", "yandex")
FORMATS: Final = ("aol", "yandex", "tsv", "parquet")
_MOST_USERS_PER_CHUNK: Final = 4_096
_FEWEST_CHUNKS: Final = 20
_GZIP_LEVEL: Final = 6


@dataclass(frozen=True)
class LogRequest:
    """What to make: of whom, how many users, written how."""

    profile: str
    n_users: int
    format: str
    seed: int = 1

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise InvalidParameter("profile", f"must be one of {', '.join(PROFILES)}")
        if self.format not in FORMATS:
            raise InvalidParameter("format", f"must be one of {', '.join(FORMATS)}")
        if self.format in PROFILES and self.format != self.profile:
            raise InvalidParameter("format", f"{self.format} needs the profile {self.format}; tsv and parquet fit both")
        if self.n_users < 1:
            raise InvalidParameter("users", "must be at least 1")
        if self.seed < 0:
            raise InvalidParameter("seed", "must not be negative")


@dataclass(frozen=True)
class Job:
    """One chunk of users; whoever does it needs nothing else."""

    request: LogRequest
    number: int
    first_user: int
    n_users: int
    first_session: int
    compress: bool


@dataclass(frozen=True)
class Piece:
    """The text of a chunk, compressed if asked for, and what it counts."""

    text: bytes | bytearray
    counts: dict[str, int]


def jobs_of(request: LogRequest, *, compress: bool) -> Iterator[Job]:
    """Chunks of a size that depends on the number of users alone; sessions are numbered through."""
    size = min(_MOST_USERS_PER_CHUNK, -(-request.n_users // _FEWEST_CHUNKS))
    first_session = 0
    for number, first_user in enumerate(range(0, request.n_users, size)):
        n_users = min(size, request.n_users - first_user)
        yield Job(request, number, first_user, n_users, first_session, compress)
        if request.format == "yandex":
            first_session += int(sessions_per_user(n_users, chunk_generator(request.seed, number)).sum())


def chunk_generator(seed: int, number: int) -> np.random.Generator:
    """The generator of a chunk: the same whoever asks for it."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(number,))))


def make_piece(job: Job) -> Piece:
    """The text of one chunk, and what it counts."""
    generator, request = chunk_generator(job.request.seed, job.number), job.request
    if request.profile == "aol":
        lines = aol_chunk(job.first_user, job.n_users, request.n_users, generator)
        text, counts = (aol_text(lines) if request.format == "aol" else aol_table(lines)), lines.counts
    else:
        sessions = yandex_chunk(job.first_user, job.n_users, generator)
        counts = sessions.counts
        text = yandex_text(sessions, job.first_session) if request.format == "yandex" else yandex_table(sessions)
    counts["lines"] = text.count(b"\n")
    return Piece(gzip_member(text) if job.compress else text, counts)


def gzip_member(content: bytes | bytearray) -> bytes:
    """Members of a gzip file may follow one another, so that pieces are compressed apart."""
    return gzip.compress(content, compresslevel=_GZIP_LEVEL, mtime=0)
