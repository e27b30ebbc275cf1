"""A manifest whose fields have the wrong type is refused, whatever else is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchblend.core.errors import MessageError
from searchblend.wire.canonical import canonical_json
from searchblend.wire.manifest import MANIFEST_MINOR, decode_payload

VECTORS = Path(__file__).parents[3] / "vectors" / "v1" / "manifest.json"


def manifest():
    return json.loads(VECTORS.read_text(encoding="utf-8"))["cases"][0]["manifest"]


@pytest.mark.parametrize("minor", ["1", None, [], {}])
def test_a_minor_version_that_is_no_number_adds_no_fields(minor):
    with pytest.raises(MessageError):
        decode_payload(canonical_json({**manifest(), "minor": minor, "later": 1}))


def test_a_later_minor_version_may_add_fields():
    document = {**manifest(), "minor": MANIFEST_MINOR + 1, "later": {"minor": "x"}}
    assert decode_payload(canonical_json(document)).document == document


def test_parts_may_have_a_field_of_that_name():
    document = manifest()
    document["client"]["minor"] = "x"
    assert decode_payload(canonical_json(document)).document == document


@pytest.mark.parametrize(("number", "fits"), [((1 << 32) - 1, True), (1 << 32, False), ((1 << 53) - 1, False)])
def test_a_round_has_four_bytes(number, fits):
    payload = canonical_json({**manifest(), "round": number})
    if fits:
        assert decode_payload(payload).round == number
    else:
        with pytest.raises(MessageError, match="round"):
            decode_payload(payload)
