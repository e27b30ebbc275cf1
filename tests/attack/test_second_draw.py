"""Second draw: an intruder at the database keeps the records from being shredded and has the list drawn again.

Each draw has noise of its own. Who sees many of the same records averages it away, and the ledger, which knows the
round by its name, charges for one.
"""

from __future__ import annotations

import json

from attack_service import COMMON, wait_for

HONEST = COMMON * 20
DRAWS = 4
FAR = 2**40


def test_a_round_is_drawn_once_whatever_the_database_says(service):
    task = service.task()
    manifest = service.open_round(task)
    service.contribute(manifest, HONEST, service.codes(task, len(HONEST)))
    key = service.round_key(task)
    hold_up_shredding(service, key)
    service.act(task, "close-opt-in")
    lists = [drawn(service, key)]
    for _ in range(DRAWS - 1):
        draw_again(service, key)
        lists.append(drawn(service, key))
    assert len({json.dumps(one["counts"]) for one in lists}) == 1, "every draw had noise of its own"


def test_a_second_draw_of_changed_records_shows_nothing_new(service):
    """Without one user's record: two lists with the same noise would differ by that record alone."""
    task = service.task()
    manifest = service.open_round(task)
    service.contribute(manifest, HONEST, service.codes(task, len(HONEST)))
    key = service.round_key(task)
    hold_up_shredding(service, key)
    service.act(task, "close-opt-in")
    first = drawn(service, key)
    tag = service.sql("SELECT tag FROM contributions WHERE round_key = ? LIMIT 1", key)[0][0]
    service.sql("DELETE FROM contributions WHERE round_key = ? AND tag = ?", key, tag)
    draw_again(service, key)
    assert drawn(service, key) == first


def test_a_second_draw_after_a_restart_shows_nothing_new(service):
    task = service.task()
    manifest = service.open_round(task)
    service.contribute(manifest, HONEST, service.codes(task, len(HONEST)))
    key = service.round_key(task)
    hold_up_shredding(service, key)
    service.act(task, "close-opt-in")
    first = drawn(service, key)
    service.stop()
    draw_again(service, key)
    service.start()
    assert drawn(service, key) == first


def test_a_round_that_is_shredded_is_never_drawn_again(service):
    task = service.task()
    service.play_optin(task, HONEST)
    key = service.round_key(task)
    draw_again(service, key)
    wait_for(lambda: service.round(task)["state"] == "ABORTED", "the end of a round without its key")


def test_an_ended_opening_makes_no_second_list(service):
    """Back to the draft: a new key opens no record that was sealed to the first."""
    task = service.task()
    manifest = service.open_round(task)
    service.contribute(manifest, HONEST, service.codes(task, len(HONEST)))
    key = service.round_key(task)
    hold_up_shredding(service, key)
    service.act(task, "close-opt-in")
    drawn(service, key)
    service.sql("UPDATE rounds SET state = 'DRAFT' WHERE round_key = ?", key)
    service.sql("DELETE FROM documents WHERE round_key = ? AND name = 'candidate'", key)
    add_job(service, key, "open")
    wait_for(lambda: service.round(task)["state"] == "OPTIN_OPEN", "the second opening")
    service.act(task, "close-opt-in")
    wait_for(lambda: service.round(task)["state"] == "ABORTED", "the end of a round without usable records")


def hold_up_shredding(service, key):
    """The job is there already, and in the hands of a worker that there is not."""
    service.sql(
        "INSERT INTO jobs (round_key, kind, due, lease_token, lease_until, attempts) VALUES (?, 'shred', 0, 'x', ?, 0)",
        key,
        FAR,
    )


def draw_again(service, key):
    service.sql("UPDATE rounds SET state = 'OPTIN_CLOSED' WHERE round_key = ?", key)
    service.sql("DELETE FROM documents WHERE round_key = ? AND name = 'candidate'", key)
    add_job(service, key, "head-list")


def add_job(service, key, kind):
    service.sql("INSERT INTO jobs (round_key, kind, due, lease_until, attempts) VALUES (?, ?, 0, 0, 0)", key, kind)


def drawn(service, key):
    """The candidate list, as whoever reads the database sees it."""
    statement = "SELECT content FROM documents WHERE round_key = ? AND name = 'candidate'"
    rows = wait_for(lambda: service.sql(statement, key), "a drawn list")
    return json.loads(bytes(rows[0][0]))
