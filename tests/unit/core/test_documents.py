"""Reading, writing and describing documents from one class: what fits, what is refused and with which words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchblend.core.documents import (
    Between,
    JsonObject,
    Matching,
    OneOf,
    Strict,
    absent,
    check,
    decode,
    encode,
    schema_of,
)
from searchblend.core.errors import InvalidParameter
from searchblend.wire.canonical import json_bytes


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Part:
    name: str
    share: float = 0.5


@dataclass(frozen=True)
class Whole:
    count: Annotated[int, Between(1, 9)]
    is_open: bool
    colour: Colour
    parts: tuple[Part, ...]
    more: Mapping[str, int]
    free: JsonObject
    code: Annotated[str, Matching("[a-f]{2}", "two letters a to f")] = "aa"
    kind: Annotated[str, OneOf(("x", "y"))] = "x"
    size: int | None = None
    note: str | None = absent()


GOOD = {
    "count": 3,
    "is_open": True,
    "colour": "red",
    "parts": [{"name": "a", "share": 1}],
    "more": {"n": 1},
    "free": {"x": [None]},
}


def test_what_is_read_is_typed_and_writes_the_same_again():
    whole = decode(Whole, {**GOOD, "unknown": "ignored"})
    assert whole == Whole(3, True, Colour.RED, (Part("a", 1),), {"n": 1}, {"x": [None]})
    assert encode(whole) == {**GOOD, "code": "aa", "kind": "x", "size": None}
    assert decode(Whole, encode(whole)) == whole
    assert type(whole.parts[0].share) is int, "nothing is converted"


def test_what_may_be_absent_is_left_out_or_written():
    assert "note" not in encode(decode(Whole, GOOD))
    assert encode(decode(Whole, {**GOOD, "note": "n"}))["note"] == "n"
    assert json_bytes(Part("ü")) == '{"name":"ü","share":0.5}'.encode()


@pytest.mark.parametrize(
    ("changes", "field", "expected"),
    [
        ({"count": "secret"}, "count", "expected a whole number"),
        ({"count": True}, "count", "expected a whole number"),
        ({"count": 0}, "count", "expected 1 to 9"),
        ({"is_open": 1}, "is_open", "expected true or false"),
        ({"colour": "secret"}, "colour", "expected one of red, blue"),
        ({"parts": {}}, "parts", "expected a list, each entry an object"),
        ({"parts": ["secret"]}, "parts[0]", "expected an object"),
        ({"parts": [{"name": "a"}, {"share": 1}]}, "parts[1].name", "expected a string"),
        ({"parts": [{"name": "a", "share": "secret"}]}, "parts[0].share", "expected a number"),
        ({"more": {"n": "secret"}}, "more[…]", "expected a whole number"),
        ({"free": "secret"}, "free", "expected an object"),
        ({"code": "secret"}, "code", "expected two letters a to f"),
        ({"kind": "secret"}, "kind", "expected one of x, y"),
        ({"size": "secret"}, "size", "expected a whole number"),
        ({"note": 5}, "note", "expected a string"),
    ],
)
def test_a_refusal_names_the_field_and_what_was_expected_and_no_value(changes, field, expected):
    with pytest.raises(InvalidParameter) as refusal:
        decode(Whole, {**GOOD, **changes})
    assert (refusal.value.field, refusal.value.expected) == (field, expected)
    assert "secret" not in str(refusal.value)
    with pytest.raises(jsonschema_rs.ValidationError):
        validator(Whole).validate({**GOOD, **changes})


def test_a_missing_field_and_something_else_than_an_object_are_refused():
    with pytest.raises(InvalidParameter, match=r"count: expected a whole number \(1 to 9\)"):
        decode(Whole, {name: value for name, value in GOOD.items() if name != "count"})
    with pytest.raises(InvalidParameter, match="whole: expected an object"):
        decode(Whole, [GOOD])


def test_a_strict_document_refuses_unknown_fields_and_shows_their_names_alone():
    @dataclass(frozen=True)
    class LongName(Strict):
        a: int = 0

    with pytest.raises(InvalidParameter, match=r"long name: unknown fields: b\\x1b, c") as refusal:
        decode(LongName, {"c": "secret", "b\x1b": 1})
    assert "secret" not in str(refusal.value)
    assert schema_of(LongName, definitions := {}) == {"$ref": "#/components/schemas/LongName"}
    assert definitions["LongName"]["additionalProperties"] is False


def test_an_object_made_by_hand_can_be_checked_too():
    check(decode(Whole, GOOD))
    with pytest.raises(InvalidParameter, match="share: expected a number"):
        check(Part("a", "b"))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 12)
    | st.floats(allow_nan=False)
    | st.sampled_from(["red", "x", "aa", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "share", "n"]), inner),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from([*GOOD, "code", "kind", "size", "note"]), JSON))
def test_the_schema_accepts_exactly_what_is_read(changes):
    document = {**GOOD, **changes}
    try:
        decode(Whole, document)
    except InvalidParameter:
        assert not validator(Whole).is_valid(document)
    else:
        assert validator(Whole).is_valid(document)


def validator(kind):
    definitions = {}
    schema = schema_of(kind, definitions)
    return jsonschema_rs.validator_for({**schema, "components": {"schemas": definitions}})
