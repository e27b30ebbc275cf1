"""Replays ``vectors/v1/normalize.json``, as the extension does in JavaScript."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchblend.core.normalization import normalize, normalize_url

PATH = Path(__file__).parent.parent.parent / "vectors" / "v1" / "normalize.json"
VECTORS = json.loads(PATH.read_text(encoding="ascii"))


def url_name(case):
    return f"{case['name']}{' (host)' if case['host_only'] else ''}"


def test_the_file_is_version_1_with_distinct_names():
    assert VECTORS["version"] == 1
    for names in ([case["name"] for case in VECTORS["queries"]], [url_name(case) for case in VECTORS["urls"]]):
        assert len(names) == len(set(names)) > 60


@pytest.mark.parametrize("case", VECTORS["queries"], ids=lambda case: case["name"])
def test_query(case):
    assert normalize(case["in"]) == case["out"]
    assert case["out"] is None or normalize(case["out"]) == case["out"]


@pytest.mark.parametrize("case", VECTORS["urls"], ids=url_name)
def test_url(case):
    assert normalize_url(case["in"], host_only=case["host_only"]) == case["out"]
    assert case["out"] is None or normalize_url(case["out"], host_only=case["host_only"]) == case["out"]
