"""Replays ``vectors/v1/suspects.json``, as the extension does in JavaScript."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from searchblend.core.admission import admit
from searchblend.core.suspects import Suspects, Suspicion

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "v1" / "suspects.json").read_text(encoding="ascii"))


@pytest.mark.parametrize("case", VECTORS["texts"], ids=lambda case: case["name"])
def test_text(case):
    assert [suspicion.value for suspicion in Suspects().in_text(case["in"])] == case["out"]


@pytest.mark.parametrize("case", VECTORS["searches"], ids=lambda case: case["name"])
def test_search(case):
    assert asdict(admit(case["query"], case["url"])) == case["out"]


def test_every_suspicion_and_reason_occurs():
    assert VECTORS["version"] == 1
    said = {suspicion for case in VECTORS["texts"] for suspicion in case["out"]}
    assert said == {suspicion.value for suspicion in Suspicion if suspicion is not Suspicion.LISTED}
    reasons = {case["out"]["reason"] for case in VECTORS["searches"]}
    assert reasons > {None, "too-long", "unusable-query", "control-character", "private-address", "not-a-web-address"}
