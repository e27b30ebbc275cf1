"""Who is cut when there are too many connections, too many bytes, or too little progress."""

from __future__ import annotations

import pytest

from searchblend.service.http import connections
from searchblend.service.http.connections import HALF_SENT, IDLE, NOT_READING, Connections


class Peer:
    def __init__(self):
        self.held_bytes, self.answer, self.is_open = 0, b"", True

    def abort(self):
        self.is_open = False


class Table(Connections):
    def __init__(self, most=10):
        self.time, self.reasons = 0.0, []
        super().__init__(most, 30.0, self.reasons.append, lambda: self.time)

    def new(self):
        peer = Peer()
        self.add(peer)
        return peer


def test_the_longest_silent_connection_makes_room_for_a_new_one():
    table = Table(most=3)
    first, second, third = (table.new() for _ in range(3))
    table.wait(first, HALF_SENT)
    fourth = table.new()
    assert [peer.is_open for peer in (first, second, third, fourth)] == [True, False, True, True]
    assert (len(table), table.reasons) == (3, ["crowded"])


def test_a_request_that_is_being_answered_is_never_cut_for_a_new_connection():
    table = Table(most=2)
    busy = [table.new(), table.new()]
    for peer in busy:
        table.work(peer)
    assert not table.new().is_open
    assert all(peer.is_open for peer in busy)


def test_a_peer_has_its_time_for_each_step_and_no_more():
    table = Table()
    silent, sending, reading = (table.new() for _ in range(3))
    table.time = 20
    table.wait(sending, HALF_SENT)
    table.work(reading)
    table.time = 30
    table.sweep()
    assert (silent.is_open, sending.is_open, reading.is_open) == (False, True, True)
    table.time = 49
    table.wait(reading, NOT_READING)
    table.time = 50
    table.sweep()
    assert (sending.is_open, reading.is_open) == (False, True)
    table.time = 79
    table.sweep()
    assert not reading.is_open
    assert table.reasons == ["silent", "half-sent", "not-reading"]


def test_bytes_of_half_sent_requests_are_bounded_over_all_connections(monkeypatch):
    monkeypatch.setattr(connections, "MOST_HELD_BYTES", 100)
    table = Table()
    peers = [table.new() for _ in range(3)]
    for peer in peers:
        table.wait(peer, HALF_SENT)
        table.hold(peer, 40)
    assert [peer.is_open for peer in peers] == [False, True, True]
    table.release(peers[1])
    table.hold(peers[2], 60)
    assert peers[2].is_open
    table.hold(peers[2], 1)
    assert not peers[2].is_open


def test_one_answer_to_many_readers_is_held_once(monkeypatch):
    monkeypatch.setattr(connections, "MOST_HELD_BYTES", 100)
    table, shared = Table(), bytes(60)
    readers = [table.new() for _ in range(5)]
    for peer in readers:
        table.hold_answer(peer, shared)
        table.wait(peer, NOT_READING)
    assert all(peer.is_open for peer in readers)
    table.hold_answer(other := table.new(), bytes(70))
    assert other.is_open
    assert not any(peer.is_open for peer in readers)


@pytest.mark.parametrize("reason", [HALF_SENT, IDLE])
def test_at_the_end_only_readers_of_an_answer_may_go_on(reason):
    table = Table()
    waiting, reading, working = (table.new() for _ in range(3))
    table.wait(waiting, reason)
    table.wait(reading, NOT_READING)
    table.work(working)
    table.close_waiting()
    assert (waiting.is_open, reading.is_open, working.is_open) == (False, True, True)
    table.close_all()
    assert not reading.is_open
    assert not len(table)
