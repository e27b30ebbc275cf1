"""What pages cost on a year of weekly rounds with five hundred queries: statements and bytes, whatever the history."""

from __future__ import annotations

import re

import pytest

from console_history import candidate_list, long_history
from console_person import Person
from searchblend.store.database_sqlite import SqliteStore
from service_http import http_service

pytestmark = pytest.mark.thorough

MOST_STATEMENTS = 16
"""of any page, the check of the session among them"""
MOST_BYTES = 300_000
"""of any page with everything that it loads, even if nothing is compressed"""


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """One service with a short history and one with a long one."""
    made = {}
    for name, rounds in (("short", 3), ("long", 52)):
        folder = tmp_path_factory.mktemp(name)
        service = http_service(str(folder / "service.db"), folder)
        http = service.__enter__()
        task = long_history(http.parts.store, http.parts.clock, rounds=rounds, queries=500, different=3)
        made[name] = (
            service,
            http,
            {"task": task.task, "list": candidate_list(http.parts.store, http.parts.clock).task},
        )
    yield {name: (http, tasks) for name, (_, http, tasks) in made.items()}
    for service, _, _ in made.values():
        service.__exit__(None, None, None)


PAGES = {
    "overview": ("operator", "/console"),
    "task": ("operator", "/console/tasks/{task}"),
    "round": ("viewer", "/console/tasks/{task}/rounds/3"),
    "later": ("viewer", "/console/tasks/{task}/rounds/3?from=400"),
    "live": ("viewer", "/console/tasks/{task}/rounds/3/live?version=11"),
    "trends": ("viewer", "/console/tasks/{task}/trends"),
    "public": ("viewer", "/trends/{task}"),
    "search": ("viewer", "/console/tasks/{task}/search?typed=query"),
    "budget": ("viewer", "/console/budget"),
    "refusals": ("viewer", "/console/refusals"),
    "queue": ("reviewer", "/console/review"),
    "review": ("reviewer", "/console/tasks/{list}/rounds/1/review"),
    "blocklist": ("reviewer", "/console/blocklist"),
    "new task": ("operator", "/console/new-task"),
    "planner": ("viewer", "/console/planner"),
    "users": ("operator", "/console/users"),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_takes_a_fixed_number_of_statements_and_few_bytes(sites, name, monkeypatch):
    role, path = PAGES[name]
    counted: list[str] = []
    execute = SqliteStore.execute

    def counting(self, statement, values=()):
        if not statement.startswith("PRAGMA"):  # a thread's first statement opens its connection
            counted.append(statement)
        return execute(self, statement, values)

    costs = {}
    for length, (http, tasks) in sites.items():
        person = Person(http, role)
        with monkeypatch.context() as patch:
            patch.setattr(SqliteStore, "execute", counting)
            counted.clear()
            answer = person.get(path.format(**tasks))
        assert answer.status_code == 200, answer.text[:500]
        costs[length] = len(counted)
    assert costs["long"] == costs["short"], "more rounds, more statements"
    assert costs["long"] <= MOST_STATEMENTS
    assert weight(person, answer) < MOST_BYTES


def weight(person, answer) -> int:
    """The page and the files that it names, uncompressed: what travels is less."""
    total = len(answer.content)
    assert int(answer.headers["content-length"]) <= total
    for path in set(re.findall(r'(?:src|href)="(/console/static/[^"]+)"', answer.text)):
        found = person.get(path)
        assert found.status_code == 200
        total += len(found.content)
    return total


def test_counting_counts(sites, monkeypatch):
    """A page that asked once for every round would be found out."""
    counts = {}
    for length, (http, tasks) in sites.items():
        store = http.parts.store
        seen: list[str] = []
        execute = SqliteStore.execute

        def counting(self, statement, values=(), seen=seen, execute=execute):
            seen.append(statement)
            return execute(self, statement, values)

        with monkeypatch.context() as patch:
            patch.setattr(SqliteStore, "execute", counting)
            for round_ in store.rounds.rounds(tasks["task"]):
                store.artifacts.of_round(round_.key)
        counts[length] = len(seen)
    assert counts["long"] > counts["short"] + 40
