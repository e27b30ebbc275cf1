from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchblend.core.suspects import EXPLAINED, Suspects, Suspicion, is_luhn


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4111 1111 1111 1111", Suspicion.CARD),
        ("pay with 4111-1111-1111-1111 now", Suspicion.CARD),
        ("378282246310005", Suspicion.CARD),
        ("mail jane.doe+x@mail.example.org", Suspicion.EMAIL),
        ("jane (at) mail.example", Suspicion.EMAIL),
        ("+49 (0)30 901820", Suspicion.PHONE),
        ("+14155550132", Suspicion.PHONE),
        ("call 415-555-0132", Suspicion.PHONE),
        ("(415) 555 0132", Suspicion.PHONE),
        ("078-05-1120", Suspicion.ID),
        ("de89 3704 0044 0532 0130 00", Suspicion.ID),
        ("987654321", Suspicion.ID),
        ("router 192.168.0.1 login", Suspicion.IP),
        ("https://jane:secret@intranet.example/", Suspicion.CREDENTIALS),
        ("https://shop.example/cart?sessionid=81aa", Suspicion.CREDENTIALS),
        ("https://a.example/x;jsessionid=12", Suspicion.CREDENTIALS),
    ],
)
def test_what_looks_like_somebodys_own(text, expected):
    assert expected in Suspects().in_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "weather",
        "world war 2 1939-1945",
        "top 100 songs of 2006",
        "windows 3.1.1",
        "area code 415",
        "zip 94110-1234",
        "https://www.google.com/search?q=4",
        "iso 9001 2015",
        "5 million 12345678 rows",
        "@ home",
        "python 3.11.4",
        "dı12 3456 abcd efgh",  # a letter that ignoring case takes for an i, and that is no digit of base 36
    ],
)
def test_what_does_not(text):
    assert Suspects().in_text(text) == []


def test_one_wrong_digit_is_no_card():
    assert Suspicion.CARD not in Suspects().in_text("4111 1111 1111 1112")
    assert Suspicion.CARD not in Suspects().in_text("0000 0000 0000 0000")


def test_terms_of_a_list_are_whole_words_in_any_case():
    suspects = Suspects(["Red  Herring", "ass"])
    assert suspects.in_text("a red herring") == [Suspicion.LISTED]
    assert suspects.in_text("class") == []


def test_every_suspicion_is_explained():
    assert set(EXPLAINED) == set(Suspicion)


@given(st.integers(min_value=1, max_value=10**18))
def test_exactly_one_check_digit_is_right(number):
    assert sum(is_luhn(f"{number}{digit}") for digit in range(10)) == 1


@given(st.text(max_size=200))
def test_any_text_can_be_looked_at(text):
    assert set(Suspects(["x"]).in_text(text)) <= set(Suspicion)
