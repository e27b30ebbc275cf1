"""Anyone may read what is published, as often as they like; devices do not wait for them."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from searchblend.service.api.answers import MOST_PENDING, Refusal, SharedAnswers
from searchblend.service.api.writers import StoreThread
from searchblend.service.console import trends_page
from searchblend.service.services import Services
from searchblend.store.artifacts import Artifacts
from searchblend.store.service_store import open_store
from service_http import http_service
from service_parts import crowd, people


def publish(http, task):
    http.parts.contribute(http.parts.open(task), crowd(seed=1))
    round_ = http.parts.head_list(task)
    http.parts.count(round_, http.parts.messages(round_, people(100, seed=3)))
    return http.parts.finish(task)


@pytest.fixture
def http(tmp_path):
    with http_service(str(tmp_path / "service.db"), tmp_path) as service:
        yield service


@pytest.mark.parametrize(
    ("path", "owner", "read"),
    [("/trends/{}", trends_page, "read_trends"), ("/v1/tasks/{}/trends", Artifacts, "trends")],
)
def test_a_manifest_does_not_wait_for_readers_of_trends(http, monkeypatch, path, owner, read):
    task = http.parts.task()
    publish(http, task)
    reading, queued, go_on = threading.Event(), threading.Event(), threading.Event()
    call, original, threads = http.services.public.call, getattr(owner, read), []

    def notice(function):
        queued.set()
        return call(function)

    def note_thread(*arguments):
        threads.append(threading.current_thread().name.partition("_")[0])
        return original(*arguments)

    monkeypatch.setattr(http.services.public, "call", notice)
    monkeypatch.setattr(owner, read, note_thread)

    def long_page():
        reading.set()
        assert go_on.wait(240)

    with ThreadPoolExecutor(1) as others:
        http.services.public._executor.submit(long_page)
        assert reading.wait(240)
        page = others.submit(http.client.get, path.format(task.task))
        assert queued.wait(240), "the page must ask on the thread that is busy"
        assert http.client.get(f"/v1/tasks/{task.task}/manifest").status_code == 200
        assert not page.done()
        go_on.set()
        assert page.result(240).status_code == 200
    assert threads == ["public"]


def test_trends_are_made_once_until_a_round_is_published(http, monkeypatch):
    made = []
    for owner, name in ((trends_page, "read_trends"), (Artifacts, "trends")):
        original = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *a, o=original, n=name: made.append(n) or o(*a))
    task = http.parts.task()
    paths = [f"/trends/{task.task}", f"/v1/tasks/{task.task}/trends"]
    for n in (1, 2):
        publish(http, task)
        answers = [http.client.get(path) for path in paths * 3]
        assert {answer.status_code for answer in answers} == {200}
        assert sorted(made) == sorted(["read_trends", "trends"] * n)
        assert {row["round"] for row in answers[1].json()["trends"]} == set(range(1, n + 1))


def test_pages_that_were_not_asked_for_before_are_made_a_few_at_a_time():
    async def run():
        shared, go_on = SharedAnswers(), asyncio.Event()

        async def make():
            await go_on.wait()
            return b"page"

        waiting = [asyncio.create_task(shared.get(n, make)) for n in range(MOST_PENDING)]
        again = asyncio.create_task(shared.get(0, make))
        await asyncio.sleep(0)
        with pytest.raises(Refusal, match="overloaded"):
            await shared.get("one more", make)
        again.cancel()  # who leaves takes nothing from the others
        go_on.set()
        assert await asyncio.gather(*waiting) == [b"page"] * MOST_PENDING
        assert await shared.get("one more", make) == b"page"

    asyncio.run(run())


def test_answers_are_kept_within_bounds_and_failures_are_not():
    async def run():
        shared, made = SharedAnswers(most_bytes=100), []

        async def make(key):
            made.append(key)
            if key == "broken":
                raise Refusal("not-found")
            return bytes(40)

        for key in ("a", "b", "a", "c", "a", "b"):
            await shared.get(key, lambda key=key: make(key))
        assert made == ["a", "b", "c", "b"]
        for _ in range(2):
            with pytest.raises(Refusal):
                await shared.get("broken", lambda: make("broken"))
        assert made[-2:] == ["broken", "broken"]

    asyncio.run(run())


def test_a_thread_for_the_public_rests_between_its_calls(tmp_path, monkeypatch):
    now, slept = [0.0], []
    monkeypatch.setattr("searchblend.service.api.writers.time.monotonic", lambda: now[0])
    monkeypatch.setattr("searchblend.service.api.writers.time.sleep", slept.append)
    open_store(tmp_path / "service.db").close()

    def work(store):
        now[0] += 0.25

    thread = StoreThread(str(tmp_path / "service.db"), "public", rest=4.0)
    for _ in range(3):
        thread._run(work)
    now[0] += 10
    thread._run(work)
    assert slept == [1.0, 1.0]
    thread._store.close()


def test_public_pages_have_a_thread_that_rests_and_devices_one_that_does_not(tmp_path):
    services = Services(str(tmp_path / "service.db"))
    assert services.public is not services.reader
    assert services.public._rest >= 1
    assert services.reader._rest == services.writer._thread._rest == 0
