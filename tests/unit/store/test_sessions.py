"""Sessions and figures of many rounds, on both databases."""

from __future__ import annotations

import pytest

from databases import DATABASES, fresh_database
from searchblend.store.artifacts import TrendRow
from searchblend.store.service_store import open_store
from searchblend.store.states import NEXT, State

TASK = "ab" * 16


@pytest.fixture(params=DATABASES)
def store(request, tmp_path):
    with open_store(fresh_database(request.param, tmp_path)) as opened:
        yield opened


def trend(place: int, query: str | None, share: float = 0.1) -> TrendRow:
    return TrendRow(place, query, share, 0.0, 0.2, 1e-4, 0.1, 0.1, 0.5, 1e-3)


def published(store, number_of_queries: int):
    """A published round of the task with so many listed queries."""
    round_ = store.rounds.add_round(TASK, {}, "w1", actor="ann", now=5)
    while round_.state is not State.PUBLISHED:
        shape = {"shape": {"made": "up"}} if round_.state is State.SHREDDED else {}
        round_ = store.rounds.advance(round_, NEXT[round_.state], actor="ann", now=6, **shape)
    rows = [*(trend(i, f"query {i}") for i in range(number_of_queries)), trend(number_of_queries, None)]
    store.artifacts.add_trends(round_.key, rows)
    return round_


def test_a_session_is_a_hash_beside_the_hash_of_its_token(store):
    token = store.tokens.add_admin("ann", "operator", actor="t", now=1)
    assert store.sessions.open("sba_wrong", now=10, seconds=100) is None
    secret, admin = store.sessions.open(token, now=10, seconds=100)
    assert (admin.name, admin.role) == ("ann", "operator")
    assert store.sessions.admin(secret, 109) == admin
    assert store.sessions.admin(secret, 110) is None
    assert store.sessions.admin("other", 20) is None
    kept = str(store.database.execute("SELECT * FROM sessions"))
    assert secret not in kept
    assert token not in kept
    other, _ = store.sessions.open(token, now=50, seconds=100)
    assert other != secret
    store.sessions.close(secret)
    assert store.sessions.admin(secret, 60) is None
    assert store.sessions.admin(other, 60) == admin
    store.sessions.open(token, now=1000, seconds=100)
    assert len(store.database.execute("SELECT * FROM sessions")) == 1, "what is out of date goes"
    store.tokens.revoke_admin("ann", actor="t", now=1001)
    assert store.sessions.open(token, now=1002, seconds=100) is None
    actions = [row.entry.action for row in store.audit.rows()]
    assert actions.count("signed in") == 3


def test_a_token_and_its_sessions_end_when_it_expires(store):
    token = store.tokens.add_admin("ann", "operator", actor="t", now=0, expires=1000)
    secret, admin = store.sessions.open(token, now=900, seconds=500)
    assert store.tokens.admin(token, 999) == store.sessions.admin(secret, 999) == admin
    assert store.tokens.admin(token, 1000) is store.sessions.admin(secret, 1000) is None
    assert store.sessions.open(token, now=1000, seconds=500) is None


def test_the_last_use_is_known_to_some_minutes(store):
    token = store.tokens.add_admin("ann", "operator", actor="t", now=0)
    used = []
    for now in (10, 20, 309, 310, 5000):
        store.tokens.admin(token, now)
        used.append(store.tokens.admins()[0].used)
    assert used == [10, 10, 10, 310, 5000]


def test_figures_of_all_rounds_come_at_once(store):
    store.rounds.add_task(TASK, "searches", {}, actor="ann", now=1)
    store.rounds.add_task("cd" * 16, "others", {}, actor="ann", now=1)
    first, second = published(store, 3), published(store, 2)
    store.reports.refuse({(first.key, "malformed"): 2, (second.key, "malformed"): 1, (second.key, "killed"): 4})
    for task, sequence, expires in ((TASK, 1, 10), (TASK, 2, 30), ("cd" * 16, 1, 20)):
        store.artifacts.add_manifest(task, sequence, expires, b"signed")
    store.artifacts.attach(first.key, {"a.json": store.artifacts.put(b"12345", "application/json")})
    assert store.reports.refusals_by_round() == {first.key: {"malformed": 2}, second.key: {"killed": 4, "malformed": 1}}
    assert store.artifacts.manifest_ends() == {TASK: 30, "cd" * 16: 20}
    assert store.reports.counted_by_round() == {first.key: (0, 0), second.key: (0, 0)}
    assert store.contributions.count_by_round() == {}
    (sha256, size) = store.artifacts.files(TASK)[first.key]["a.json"]
    assert (store.artifacts.get(sha256)[0], size) == (b"12345", 5)
    assert store.artifacts.files("cd" * 16) == {}
    assert [row.query for row in store.artifacts.lists([first.key])[first.key]] == [
        "query 0",
        "query 1",
        "query 2",
        None,
    ]
    assert store.artifacts.lists([]) == {}
    lines = store.artifacts.lines(TASK, ["query 2", "query 0", "never"])
    assert {key: {row.query for row in rows} for key, rows in lines.items()} == {
        first.key: {"query 0", "query 2"},
        second.key: {"query 0"},
    }
    assert store.artifacts.lines(TASK, []) == store.artifacts.lines("cd" * 16, ["query 0"]) == {}
    history = store.audit.of_task(TASK)
    assert [entry.action for entry in history[:2]] == ["task created", "round drafted"]
    assert all(entry.detail["task"] == TASK for entry in history)
