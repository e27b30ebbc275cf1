"""A short run of the fuzzer: every target on its seeds and some changes of them, the same ones each time."""

from __future__ import annotations

import random
from functools import cache

import pytest
from fuzz_mutations import mutated
from fuzz_rules import CANARY, Finding, check_message, documented_errors_only
from run_fuzz import all_seeds, all_targets

from searchblend.core.errors import InputError

TARGETS = all_targets()
SLOW = {"log": 8, "compressed_log": 4, "command": 8, "file_of_command": 8, "tables": 10, "arguments": 20}
"""How many changed inputs, for targets that take milliseconds each; the others get more."""


@cache
def seeds():
    """Made by the workers that fuzz, not by all that collect."""
    return all_seeds()


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_but_documented_errors(name):
    chance = random.Random(f"{name} smoke")
    for data in seeds()[name]:
        TARGETS[name](data)
    for _ in range(SLOW.get(name, 150)):
        TARGETS[name](mutated(seeds()[name], chance))


@pytest.mark.parametrize(
    "message", [f"log:1: {CANARY}", f"found {CANARY.upper()}", "a \x1b[2J", "a \ud800", "x" * 5000], ids=range(5)
)
def test_a_message_that_says_too_much_is_a_finding(message):
    with pytest.raises(Finding), documented_errors_only():
        raise InputError("log", message)


@pytest.mark.parametrize("error", [KeyError("x"), ValueError("x"), RecursionError("x"), AssertionError("x")])
def test_an_undocumented_error_is_a_finding(error):
    with pytest.raises(type(error)), documented_errors_only():
        raise error


def test_a_clear_message_is_none():
    check_message("log.tsv:3: query: expected a text")


def test_changes_change_and_are_the_same_for_the_same_seed():
    first = [mutated(seeds()["report"], random.Random(5)) for _ in range(2)]
    assert first[0] == first[1]
    chance = random.Random(5)
    assert len({mutated(seeds()["report"], chance) for _ in range(200)}) > 150
