"""Declared attributes: how they are spelled, what a field has, and which declarations are refused."""

from __future__ import annotations

import pytest

from searchblend.core.attributes import (
    MOST_VALUES,
    OF_CLICKS,
    Attribute,
    cells_of,
    check_attributes,
    declared_attributes,
    parse_attributes,
)
from searchblend.core.errors import InvalidParameter


def test_attributes_are_typed_in_one_line():
    country, device, rank = parse_attributes("country=de|FR |at,device=phone|desktop,clicks.rank=1|2|3-10|11-")
    assert (country.name, country.values, country.labels) == (
        "country",
        ("de", "fr", "at"),
        ("de", "fr", "at", "other"),
    )
    assert (device.size, device.column, device.of) == (3, "device", "searches")
    assert (rank.name, rank.of, rank.values) == ("rank", OF_CLICKS, ("1", "2", "3-10", "11-"))
    assert cells_of([country, device]) == 12


@pytest.mark.parametrize(
    ("field", "number"),
    [
        ("1", 0),
        (" 1\t", 0),
        ("2", 2),
        ("3-10", 1),
        ("3", 1),
        ("007", 1),
        ("10", 1),
        ("11", 4),
        ("20", 3),
        ("999999999", 3),
        ("9999999999", 4),
        ("3.0", 4),
        ("-3", 4),
        ("", 4),
        (None, 4),
        ("one", 4),
        ("٣", 4),
    ],
)
def test_a_field_has_the_value_that_it_spells_or_the_first_range_with_its_number(field, number):
    assert Attribute("rank", ("1", "3-10", "2", "20-")).number_of(field) == number


def test_only_ascii_letters_have_no_case():
    attribute = Attribute("region", ("zürich", "bern"))
    assert [attribute.number_of(field) for field in ("Zürich", "ZÜRICH", "BERN", "\vbern ")] == [0, 2, 1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("country", r"attributes: expected NAME=VALUE\|VALUE"),
        ("searches.country=de", r"attributes: expected NAME=VALUE\|VALUE"),
        ("country=", "attributes.country: expected at least one value"),
        ("country=de||fr", "attributes.country: expected at least one value, and none that is empty"),
        ("country=de|De", "attributes.country: the value 'de' is declared twice"),
        ("country=de|Other", "attributes.country: 'other' is the value of all that is not declared"),
        ("country=de,country=fr", "attributes: two of them have the name 'country'"),
        ("Country=de", "attributes: expected a name of small letters"),
        ("query=de", "attributes.query: this name is taken"),
        ("count=1", "attributes.count: this name is taken"),
        ("rank=10-3", "attributes.rank: the range '10-3' ends before it begins"),
        ("country=d\x07e", "attributes.country: expected values of printable characters"),
        ("c=" + "|".join(map(str, range(MOST_VALUES + 1))), "attributes.c: expected at most 300 values, found 301"),
    ],
)
def test_a_wrong_declaration_is_refused_with_its_name(text, message):
    with pytest.raises(InvalidParameter, match=message):
        parse_attributes(text)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "attributes: expected at least one attribute"),
        ({"country": ["de"]}, "attributes.country: expected a table with values"),
        ({"country": {"of": "clicks"}}, "attributes.country: expected a table with values"),
        ({"country": {"values": "de"}}, "attributes.country: expected a list of values"),
        ({"country": {"values": []}}, "attributes.country: expected at least one value"),
        ({"country": {"values": [1]}}, "attributes.country: expected values that are strings"),
        ({"country": {"values": ["de"], "of": "people"}}, "attributes.country: expected of = searches or clicks"),
        ({"country": {"values": ["de"], "from": "de"}}, "attributes.country: expected a table with values"),
        ({"country": {"values": ["de"], "column": 3}}, "attributes.country: expected strings as of and column"),
        (
            {"a": {"values": ["x"], "column": "c"}, "b": {"values": ["x"], "column": "c"}},
            "attributes: two of them have the column 'c'",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_the_name_of_the_attribute(document, message):
    with pytest.raises(InvalidParameter, match=message):
        declared_attributes(document)


def test_a_file_may_name_columns_and_say_what_an_attribute_is_of():
    document = {"country": {"values": ["de"], "column": "Land"}, "rank": {"values": ["1-3"], "of": "clicks"}}
    country, rank = declared_attributes(document)
    assert (country.column, rank.column, rank.of) == ("Land", "rank", "clicks")


def test_there_are_not_more_attributes_than_can_be_read():
    with pytest.raises(InvalidParameter, match="expected at most 8, found 9"):
        check_attributes([Attribute(f"a{i}", ("x",)) for i in range(9)])
