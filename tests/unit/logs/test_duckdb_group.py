"""A group in DuckDB behaves like one in memory."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import reference_rules as reference
from made_logs import counts_of, read, some_lines
from reference_rules import tsv

from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.paper.create_head_list import noisy_selection
from searchblend.blender.pipeline import run_blender
from searchblend.core.errors import InvalidParameter, RunError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import Tape
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.threshold import Threshold
from searchblend.synthetic.seeded import SeededRandomness


@pytest.fixture(scope="module")
def lines():
    return some_lines(600, seed=2)


@pytest.fixture(scope="module")
def log(lines, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.tsv"
    path.write_text(tsv(lines))
    with read(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def group(log):
    return log.split(optin_fraction=1e-9)[1]


def in_memory(group) -> InMemoryGroup:
    """The same people in memory, their records numbered in the order in which the tally ranks them."""
    users = []
    tally = group.tally()
    for count, size in sorted(tally.sizes().items()):
        for record in tally.pick(count, np.arange(size)):
            users += [[record]] * count
    return InMemoryGroup.from_users(users)


@pytest.mark.parametrize("seed", range(5))
def test_noise_on_the_same_tape_selects_the_same_records(group, seed):
    threshold = Threshold(7.0, 8, DiscreteLaplace(Fraction(1, 2)))
    tape = SeededRandomness(seed).take(8 * 10_000)
    there = noisy_selection(group, threshold, randomness=Tape(tape))
    here = noisy_selection(in_memory(group), threshold, randomness=Tape(tape))
    assert set(there) == set(here)
    assert there


def test_cells_are_counted_as_in_memory(group):
    head = HeadList({"google": ["http://a.example", "http://zzz.example"], "null": ["http://b.example"]})
    assert group.cell_counts(head).tolist() == in_memory(group).cell_counts(head).tolist()
    assert group.cell_counts(HeadList({})).tolist() == [group.n_users]


def test_picking_some_ranks_gives_the_records_at_them(group):
    tally = group.tally()
    count, size = max(tally.sizes().items(), key=lambda item: item[1])
    everything = tally.pick(count, np.arange(size))
    assert len(set(everything)) == size
    some = np.array([size - 1, 0])
    assert tally.pick(count, some) == [everything[rank] for rank in some]
    assert group.tally().pick(count, np.arange(size)) == everything


def test_the_common_records_come_in_the_order_of_picking(group):
    tally = group.tally()
    assert tally.at_least(2) == {n: tally.pick(n, np.arange(size)) for n, size in tally.sizes().items() if n >= 2}
    assert tally.at_least(10**9) == {}


def test_two_records_that_share_a_place_are_told_apart(group, monkeypatch):
    tally = group.tally()
    tally._database.execute(f"UPDATE {tally._table} SET place = 1")
    for count, size in tally.sizes().items():
        assert len(set(tally.pick(count, np.arange(size)))) == size


@pytest.mark.parametrize("fraction", [0.5, 0.95, 0.001])
def test_split_holds_the_promised_share_and_everybody_once(group, fraction):
    first, second = group.split(fraction)
    assert first.n_users == round(fraction * group.n_users)
    assert first.n_users + second.n_users == group.n_users
    assert counts_of(first.tally()) + counts_of(second.tally()) == counts_of(group.tally())
    assert first.has_urls


def test_split_is_decided_by_the_randomness(group):
    parts = [group.split(0.5, randomness=Tape(bytes([seed] * 16)))[0] for seed in (1, 1, 2)]
    tallies = [counts_of(part.tally()) for part in parts]
    assert tallies[0] == tallies[1] != tallies[2]


def test_split_refuses_what_is_no_share(group):
    with pytest.raises(InvalidParameter):
        group.split(1.0)


def test_a_whole_run_on_a_log(group, log):
    optin, clients = log.split(optin_fraction=0.5)
    params = BlenderParams(budget=Budget(epsilon=4.0, delta=1e-2), head_fraction=0.5)
    release = run_blender(optin, clients, params, method="paper", randomness=SeededRandomness(3))
    assert "google" in release.head


def test_nothing_of_the_people_shows(group, lines):
    assert repr(group) == f"SqlGroup({group.n_users} users)"


def test_opt_in_by_column_takes_every_line(tmp_path: Path):
    path = tmp_path / "log.tsv"
    path.write_text("user\tquery\tok\n1\ta\tyes\n1\tb\tTRUE\n2\ta\t1\n2\ta\tno\n3\tc\t\n4\td\tmaybe\n4\td\t on \n")
    with read(path, optin_column="ok") as log:
        optin, clients = log.split()
        assert optin.n_users == 2  # 1, and 4, whose line with "maybe" is malformed
        assert counts_of(optin.tally())[Record("d")] == 1
        assert clients.n_users == 2
        assert log.summary.malformed["bad_optin"].count == 1
        with pytest.raises(InvalidParameter):
            log.split(optin_fraction=0.5)


def test_a_closed_log_answers_nothing_more(tmp_path: Path, lines):
    path = tmp_path / "log.tsv"
    path.write_text(tsv(lines[:50]))
    with read(path) as log:
        group = log.split(optin_fraction=0.5)[1]
    with pytest.raises(RunError, match="closed"):
        group.tally()


def test_reference_draws_are_uniform_over_lines(lines):
    """The reference itself: over many keys a repeated line is drawn as often as it is there."""
    of_one = [line for line in lines if line[0] == lines[0][0]]
    found = Counter()
    for key in range(400):
        reference.KEY, old = key.to_bytes(16, "big"), reference.KEY
        try:
            found[reference.picks(of_one)[of_one[0][0]][0]] += 1
        finally:
            reference.KEY = old
    most = Counter(map(reference.record, of_one)).most_common(1)[0]
    assert abs(found[most[0]] / 400 - most[1] / len(of_one)) < 0.13
