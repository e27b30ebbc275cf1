"""Real public sets, where ``REAL_LOGS`` names a folder with them: read as their publishers count them, or refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from made_logs import read

from searchblend.core.errors import InputError, InvalidColumns

FOLDER = os.environ.get("REAL_LOGS")
pytestmark = pytest.mark.skipif(FOLDER is None, reason="NOT TESTED: no real logs; REAL_LOGS=FOLDER names some")


def real(name: str) -> Path:
    path = Path(str(FOLDER)) / name
    if not path.exists():
        pytest.skip(f"NOT TESTED: {name} is not in the folder of REAL_LOGS")
    return path


@pytest.mark.parametrize(
    ("name", "lines", "users", "queries"),
    [
        ("msweb_data.tsv.gz", 98_654, 32_711, 284),
        ("msweb_test.tsv.gz", 15_191, 5_000, 235),
        ("wikispeedia_unfinished_anon.tsv.gz", 91_513, 9_244, 3_998),
        ("sf_opendata_k5_users.tsv.gz", 48_768, 48_768, 1_714),
    ],
)
def test_a_real_log_has_the_sizes_that_are_published(name: str, lines: int, users: int, queries: int):
    with read(real(name), keep_lines=True) as log:
        statistics = log.statistics()
        assert (statistics.lines, statistics.users, statistics.queries) == (lines, users, queries)
        assert log.summary.malformed == {}


def test_tables_of_counts_are_refused_with_the_reason():
    with pytest.raises(InvalidColumns, match="a table of counts without users"):
        read(real("enwiki_clickstream_2025-03_sample.tsv.gz"))
    with pytest.raises(InputError, match=r"one JSON document: .* counts terms has no users"):
        read(real("berlin_searchterms.json.gz"))
