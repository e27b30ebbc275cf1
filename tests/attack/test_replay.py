"""Replay: whoever sees a sealed record resends it, or writes copies of it into the database. It must count once."""

from __future__ import annotations

import secrets

import pytest

from attack_service import COMMON, queries, wait_for
from searchblend.core.records import Record
from searchblend.wire.sealed import SealingContext

VICTIM = Record("the one search of this victim", "http://victim.example/a")
HONEST = COMMON * 20
COPIES = 40
"""enough to be listed with certainty, were they counted"""
OVERWRITTEN = 10
"""so many records can go without ending the round for want of people"""


@pytest.fixture
def stage(service):
    """An open round: honest users have contributed, the victim's record is known to the attacker."""
    task = service.task()
    codes = service.codes(task, len(HONEST) + 1 + COPIES)
    manifest = service.open_round(task)
    service.contribute(manifest, HONEST, codes[: len(HONEST)])
    victim = codes[len(HONEST)]
    sealed = service.seal(manifest, [VICTIM], victim)
    assert service.send_sealed(manifest, sealed, victim).status_code == 200
    return Stage(service, task, manifest, sealed, victim, codes[len(HONEST) + 1 :])


class Stage:
    def __init__(self, service, task, manifest, sealed, victim, codes):
        self.service, self.task, self.manifest = service, task, manifest
        self.sealed, self.victim, self.codes = sealed, victim, codes
        self.key = service.round_key(task)

    def insert(self, tag, sealed):
        self.service.sql("INSERT INTO contributions (round_key, tag, sealed) VALUES (?, ?, ?)", self.key, tag, sealed)

    def counts_once(self, with_victim=True):
        candidate, drawn = self.service.draw(self.task)
        assert drawn["records"] == len(HONEST) + with_victim
        assert VICTIM.query not in queries(candidate)


def test_a_copied_record_under_other_codes_counts_once(stage):
    for code in stage.codes:
        stage.service.send_sealed(stage.manifest, stage.sealed, code)
    stage.counts_once()


def test_a_copied_record_with_a_changed_byte_never_counts(stage):
    for n, code in enumerate(stage.codes):
        changed = bytearray(stage.sealed)
        changed[(n * 9) % len(changed)] ^= 0x80 if n % 2 else 1
        stage.service.send_sealed(stage.manifest, bytes(changed), code)
    stage.counts_once()


def test_a_copied_record_whose_encapsulation_is_written_in_another_way_never_counts(stage):
    """X25519 ignores the highest bit: the same point, other bytes."""
    for at, code in zip(range(0, 66, 33), stage.codes, strict=False):
        changed = bytearray(stage.sealed)
        changed[33 + at] ^= 0x80
        changed[65] ^= 0x80
        stage.service.send_sealed(stage.manifest, bytes(changed), code)
        stage.insert(secrets.token_bytes(16), bytes(changed))
    stage.counts_once()


def test_copies_written_into_the_database_under_new_tags_count_once(stage):
    for _ in range(COPIES):
        stage.insert(secrets.token_bytes(16), stage.sealed)
    stage.counts_once()


def test_copies_under_the_tags_of_enrolled_users_never_count(stage):
    """Whoever reads the enrolments computes a real tag for every code, also for those that have sent nothing."""
    context = SealingContext(
        bytes.fromhex(stage.task), stage.manifest["round"], bytes.fromhex(stage.manifest["optin"]["consent"])
    )
    for code in stage.codes:
        stage.insert(context.tag_of(code), stage.sealed)
    stage.counts_once()


def test_copies_written_over_other_users_records_never_count(stage):
    rows = stage.service.sql("SELECT tag, sealed FROM contributions WHERE round_key = ?", stage.key)
    others = [bytes(tag) for tag, sealed in rows if bytes(sealed) != stage.sealed][:OVERWRITTEN]
    for tag in others:
        stage.service.sql(
            "UPDATE contributions SET sealed = ? WHERE round_key = ? AND tag = ?", stage.sealed, stage.key, tag
        )
    candidate, drawn = stage.service.draw(stage.task)
    assert drawn["records"] == len(HONEST) + 1 - OVERWRITTEN
    assert VICTIM.query not in queries(candidate)


def test_copies_that_are_no_bytes_never_count(stage):
    """SQLite keeps a string in a column of bytes, under another key than the same bytes."""
    if stage.service.where.startswith("postgresql"):
        return
    tag = next(
        bytes(tag)
        for tag, sealed in stage.service.sql("SELECT tag, sealed FROM contributions WHERE round_key = ?", stage.key)
        if bytes(sealed) == stage.sealed
    )
    for text in (tag.decode("latin-1"), tag.hex(), "", "text"):
        stage.insert(text, stage.sealed)
    stage.insert(tag + b"\0", stage.sealed.decode("latin-1"))
    stage.insert(tag[:-1], stage.sealed)
    stage.counts_once()


def test_swapped_tags_never_count(stage):
    """Two users' records under each other's tags: neither was sealed for the other."""
    rows = stage.service.sql("SELECT tag, sealed FROM contributions WHERE round_key = ?", stage.key)
    (one, first), (other, second) = ((bytes(tag), bytes(sealed)) for tag, sealed in rows[:2])
    for tag, sealed in ((one, second), (other, first)):
        stage.service.sql("UPDATE contributions SET sealed = ? WHERE round_key = ? AND tag = ?", sealed, stage.key, tag)
    _, drawn = stage.service.draw(stage.task)
    assert drawn["records"] == len(HONEST) + 1 - 2


def test_copies_after_the_window_has_closed_never_count(stage):
    """Between the closing and the draw there is a moment; the intruder has it for as long as he likes."""
    service = stage.service
    service.stop()
    for _ in range(COPIES):
        stage.insert(secrets.token_bytes(16), stage.sealed)
    service.start()
    stage.counts_once()


@pytest.mark.parametrize("way", ["same code", "other code", "database"])
def test_a_withdrawn_record_does_not_return(stage, way):
    service = stage.service
    assert service.send_sealed(stage.manifest, b"", stage.victim, method="DELETE").status_code == 204
    if way == "database":
        stage.insert(secrets.token_bytes(16), stage.sealed)
    else:
        service.send_sealed(stage.manifest, stage.sealed, stage.victim if way == "same code" else stage.codes[0])
    stage.counts_once(with_victim=False)


@pytest.mark.parametrize("way", ["over the row", "in a new row"])
def test_a_withdrawn_record_written_back_under_its_own_tag_never_counts(stage, way):
    """The intruder kept the bytes, and is slower than the curator's next pass."""
    service = stage.service
    assert service.send_sealed(stage.manifest, b"", stage.victim, method="DELETE").status_code == 204
    wait_for(lambda: list(service.folder.rglob("*.withdrawn")), "the curator's note of the withdrawal")
    ((tag,),) = service.sql("SELECT tag FROM contributions WHERE round_key = ? AND withdrawn = 1", stage.key)
    if way == "in a new row":
        service.sql("DELETE FROM contributions WHERE round_key = ? AND tag = ?", stage.key, bytes(tag))
        stage.insert(bytes(tag), stage.sealed)
    else:
        statement = "UPDATE contributions SET sealed = ?, withdrawn = 0 WHERE round_key = ? AND tag = ?"
        service.sql(statement, stage.sealed, stage.key, bytes(tag))
    code, output = service.doctor()
    assert code == 1
    assert "were undone in the database" in output
    candidate, drawn = service.draw(stage.task)
    assert (drawn["records"], drawn["withdrawn"]) == (len(HONEST), 1)
    assert VICTIM.query not in queries(candidate)
    assert not list(service.folder.rglob("*.withdrawn")), "destroyed with the key"


def test_a_record_of_an_earlier_round_never_counts_in_the_next(stage):
    service = stage.service
    service.act(stage.task, "abort")
    manifest = service.open_round(stage.task)
    codes = service.codes(stage.task, len(HONEST))
    service.contribute(manifest, HONEST, codes)
    for code in (stage.victim, *stage.codes):
        service.send_sealed(manifest, stage.sealed, code)
    stage.key = service.round_key(stage.task)
    tags = service.sql("SELECT tag FROM contributions WHERE round_key = ?", stage.key)
    stage.insert(bytes(tags[0][0])[::-1], stage.sealed)
    stage.counts_once(with_victim=False)


def test_a_record_of_one_task_never_counts_in_another(stage):
    service = stage.service
    other = service.task()
    manifest = service.open_round(other)
    service.contribute(manifest, HONEST, service.codes(other, len(HONEST)))
    for code in service.codes(other, COPIES):
        service.send_sealed(manifest, stage.sealed, code)
    candidate, drawn = service.draw(other)
    assert drawn["records"] == len(HONEST)
    assert VICTIM.query not in queries(candidate)


def test_the_same_code_twice_counts_once(stage):
    """Two honest sealings by one code, and the second tag by the database's hand."""
    again = stage.service.seal(stage.manifest, [VICTIM], stage.victim)
    assert again != stage.sealed
    assert stage.service.send_sealed(stage.manifest, again, stage.victim).status_code == 409
    stage.insert(secrets.token_bytes(16), again)
    stage.counts_once()
