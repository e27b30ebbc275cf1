"""All rows of a user, weighed and shared out: a database against a group in memory with its rows in digest order."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
import reference_rules as reference
from made_logs import LISTED, counts_of, read, some_lines
from reference_rules import Line, tsv

import searchblend as sb
from searchblend.blender.groups import InMemoryGroup, UserGroup, Weights
from searchblend.core.errors import InvalidParameter
from searchblend.core.randomness import Tape
from searchblend.core.records import HeadList

HEAD = HeadList([("google", ["http://a.example", "http://b.example"]), ("null", []), ("absent", ["x"])])
WEIGHTS = [Weights(100, 300), Weights(3, 77), Weights(1, 5)]


def in_digest_order(lines: list[Line]) -> InMemoryGroup:
    people = defaultdict(list)
    for line in sorted(lines, key=lambda line: reference.scores(line, 1)[0]):
        people[line[0]].append(reference.record(line))
    return InMemoryGroup.from_users(people.values(), randomness=zeros())


def zeros() -> Tape:
    """Words by which every user's rows begin with the first."""
    return Tape(bytes(1 << 16))


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> tuple[UserGroup, InMemoryGroup]:
    lines = some_lines(300)
    path = tmp_path_factory.mktemp("log") / "log.tsv"
    path.write_text(tsv(lines))
    with read(path, rows=True) as log:
        yield log.split(optin_fraction=1e-9)[1], in_digest_order(lines)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_weights_are_those_of_the_group_in_memory(pair, weights):
    database, memory = pair
    expected = counts_of(memory.weighted_queries(weights, randomness=zeros()))
    assert counts_of(database.weighted_queries(weights)) == expected
    expected = counts_of(memory.weighted_records(LISTED, weights, randomness=zeros()))
    assert counts_of(database.weighted_records(LISTED, weights)) == expected


@pytest.mark.parametrize("units", [1, 7, 52, 1000])
def test_own_shares_are_those_of_the_group_in_memory(pair, units):
    database, memory = pair
    one, other = database.own_shares(HEAD, units), memory.own_shares(HEAD, units, randomness=zeros())
    assert one.cells.tolist() == other.cells.tolist()
    assert one.squares == other.squares
    assert one.cells.sum() == units * memory.n_users


def test_an_empty_list_has_everything_in_the_rest(pair):
    database, memory = pair
    assert database.own_shares(HeadList([]), 9).cells.tolist() == [9 * memory.n_users]


def test_rows_must_have_been_kept(tmp_path: Path):
    (tmp_path / "log.tsv").write_text(tsv(some_lines(20)))
    with read(tmp_path / "log.tsv", rows=False) as log, pytest.raises(InvalidParameter, match="rows=True"):
        log.split(optin_fraction=0.5)[0].weighted_queries(WEIGHTS[0])


@pytest.mark.parametrize(("options", "expected"), [({}, 100), ({"rows": False}, 1)])
def test_a_run_counts_many_records_unless_the_log_was_read_without_rows(
    tmp_path: Path, options: dict[str, bool], expected: int
):
    lines = [f"{user}\t{query}\thttp://{query}.example" for user in range(200) for query in ("google", "maps")]
    (tmp_path / "log.tsv").write_text("\n".join(["user\tquery\turl", *lines]) + "\n")
    with sb.read_log(tmp_path / "log.tsv", threads=1, **options) as log:
        optin, clients = log.split(optin_fraction=0.5)
        assert [part.has_rows for part in (optin, *optin.split(0.5))] == 3 * [expected > 1]
        released = sb.run_blender(optin, clients, sb.BlenderParams(sb.Budget(4.0, 1e-5)))
    assert released.params.records_per_optin == expected
    assert set(released.head.queries) == {"google", "maps"}
