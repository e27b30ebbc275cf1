"""Encrypted signing keys, their rotation and their loss; and what takes two operators: ending, stopping, restoring."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

from console_person import Person
from searchblend.cli.main import main
from searchblend.core.errors import InputError, InvalidParameter, MessageError, UsageError
from searchblend.service.clock import SystemClock
from searchblend.service.lifecycle import ASKED_SECONDS
from searchblend.service.settings import ServeSettings
from searchblend.service.workers.curator_process import CuratorProcess
from searchblend.service.workers.publisher import Publisher
from searchblend.service.workers.signing_keys import (
    SigningKeys,
    adopt_keys,
    curator_points,
    make_curator_key,
    passphrase_of,
    protect_keys,
)
from searchblend.store.backup import write_backup
from searchblend.store.errors import WrongState
from searchblend.store.service_store import open_store
from searchblend.store.states import State
from searchblend.wire.signing import verify_manifest
from service_http import http_service
from service_parts import ManualClock, Service

PHRASE = b"correct horse battery staple"


def written(path, content=PHRASE + b"\n"):
    path.write_bytes(content)
    path.chmod(0o600)
    return f"file:{path}"


@pytest.fixture
def phrase(tmp_path):
    return written(tmp_path / "phrase")


@pytest.fixture
def service(tmp_path):
    parts = Service.start(str(tmp_path / "service.db"), tmp_path)
    yield parts
    parts.store.close()


def settings_of(folder, passphrase):
    return ServeSettings(data_dir=str(folder), key_passphrase=passphrase)


def files(folder):
    return {path.name: path.read_bytes() for path in [*folder.glob("signing/*.pem"), *folder.glob("keys/*.pem")]}


def test_keys_of_a_passphrase_are_worth_nothing_without_it(tmp_path, phrase):
    settings = settings_of(tmp_path, phrase)
    made, curator = SigningKeys.of(settings).add(), make_curator_key(settings.vault_folder, phrase)
    assert all(b"BEGIN ENCRYPTED PRIVATE KEY" in content for content in files(tmp_path).values())
    assert [key.key_id for key in SigningKeys.of(settings).all()] == [made.key_id]
    assert curator_points(settings) == {curator.key_id: curator.public_point}
    with pytest.raises(InputError, match="is encrypted; expected its passphrase"):
        SigningKeys(settings.signing_folder).all()
    wrong = written(tmp_path / "wrong", b"another")
    with pytest.raises(InputError, match="expected a PEM private key of this passphrase"):
        SigningKeys(settings.signing_folder, wrong).all()
    with pytest.raises(InputError, match="is encrypted"):
        curator_points(settings_of(tmp_path, ""))
    assert PHRASE.decode() not in repr(settings) + repr(made)


def test_a_key_in_the_clear_among_encrypted_ones_is_refused(tmp_path, phrase):
    """Who may write into the folder and does not know the passphrase adds no key of their own."""
    SigningKeys.of(settings_of(tmp_path, "")).add()
    with pytest.raises(InputError, match="is not encrypted"):
        SigningKeys.of(settings_of(tmp_path, phrase)).all()


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
def test_another_program_reads_the_encrypted_key(tmp_path, phrase):
    key = SigningKeys.of(settings_of(tmp_path, phrase)).add()
    (path,) = (tmp_path / "signing").glob("*.pem")
    command = ["openssl", "pkey", "-in", str(path), "-passin", phrase, "-noout", "-text_pub"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert key.public_point.hex() in "".join(shown.split()).replace(":", "")


def test_a_passphrase_comes_by_file_variable_or_descriptor(tmp_path, phrase, monkeypatch):
    monkeypatch.setenv("KEY_PHRASE", PHRASE.decode())
    reading, writing = os.pipe()
    os.write(writing, PHRASE + b"\r\n")
    os.close(writing)
    for source in (phrase, "env:KEY_PHRASE", f"fd:{reading}", f"fd:{reading}"):  # also when it is asked again
        assert passphrase_of(source) == PHRASE
    assert passphrase_of("") is None
    (tmp_path / "open").write_bytes(PHRASE)
    (tmp_path / "open").chmod(0o644)
    with pytest.raises(InputError, match="other users may use"):
        passphrase_of(f"file:{tmp_path / 'open'}")
    with pytest.raises(UsageError, match="cannot be read"):
        passphrase_of(f"file:{tmp_path / 'none'}")
    for bad in (PHRASE.decode(), "env:NOT_SET", "fd:x", "file:", written(tmp_path / "empty", b"\n")):
        with pytest.raises(InvalidParameter) as raised:
            passphrase_of(bad)
        assert PHRASE.decode() not in str(raised.value)


def test_keys_are_protected_anew_and_an_interruption_is_made_good(tmp_path, phrase, capsys):
    clear = settings_of(tmp_path, "")
    ids = {SigningKeys.of(clear).add().key_id, SigningKeys.of(clear).add().key_id}
    ids.add(make_curator_key(clear.vault_folder).key_id)
    in_the_clear = files(tmp_path)
    assert set(protect_keys(clear, phrase)) == ids
    encrypted = files(tmp_path)
    assert encrypted.keys() == in_the_clear.keys()
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.glob("*/*.pem"))
    name = next(name for name in encrypted if name != "curator.pem")
    (tmp_path / "signing" / name).write_bytes(in_the_clear[name])  # as if it had ended before this one
    assert set(protect_keys(clear, phrase)) == ids
    other = written(tmp_path / "other", b"another phrase")
    arguments = ["--data-dir", str(tmp_path), "--key-passphrase", phrase, "--json"]
    assert main(["keys", "protect", "--new-passphrase", other, *arguments]) == 0
    assert set(json.loads(capsys.readouterr().out)["protected"]) == ids
    with pytest.raises(InputError):
        SigningKeys.of(settings_of(tmp_path, phrase)).all()
    assert set(protect_keys(settings_of(tmp_path, other), "")) == ids
    assert {key.key_id for key in SigningKeys.of(clear).all()} < ids


@pytest.mark.thorough
def test_the_curators_own_process_gets_a_passphrase_that_came_by_a_descriptor(tmp_path):
    reading, writing = os.pipe()
    os.write(writing, PHRASE)
    os.close(writing)
    settings = settings_of(tmp_path, f"fd:{reading}")
    make_curator_key(settings.vault_folder, settings.key_passphrase)
    service = Service.start(str(tmp_path / "service.db"), tmp_path, SystemClock())
    elsewhere = CuratorProcess(settings, service.clock, list, anonymous_intake=False)
    task = service.task()
    service.lifecycle.request_open(service.lifecycle.draft_round(task, actor="ann"), actor="ann")
    elsewhere.run(service.store.jobs.lease(elsewhere.kinds, service.clock.now(), 300))
    assert service.current(task).state is State.OPTIN_OPEN
    service.store.close()


def test_a_signing_key_is_replaced_while_devices_go_on(service, phrase, tmp_path):
    """Devices that pinned the old key, those that joined in between, and those that joined at the end."""
    settings = settings_of(tmp_path, phrase)
    protect_keys(settings_of(tmp_path, ""), phrase)
    keys, task = SigningKeys.of(settings), service.task()
    publisher = Publisher(service.store, service.clock, keys, curator_points(settings))

    def signed():
        service.clock.time += 4 * 86_400
        publisher.refresh_manifests()
        return service.store.artifacts.manifest(task.task)[2]

    def pins():
        return {key.key_id: key.public_point for key in keys.all()}

    early = pins()
    verify_manifest(signed(), early)
    new = keys.add()
    adopt_keys(service.store, pins(), actor="ann", now=service.clock.now())
    between = pins()
    for pinned in (early, between, {new.key_id: new.public_point}):
        verify_manifest(signed(), pinned)
    keys.remove(next(iter(early)))
    adopt_keys(service.store, pins(), actor="ann", now=service.clock.now())
    message = signed()
    verify_manifest(message, between)
    verify_manifest(message, pins())
    with pytest.raises(MessageError, match="no valid signature"):
        verify_manifest(message, early)


def test_after_a_loss_the_spare_key_goes_on(service, tmp_path):
    """The folder is gone; the key that was kept off line, and that enrolments named, is put into a new one."""
    spare_folder = tmp_path / "spare"
    spare = SigningKeys(spare_folder).add()
    task = service.task()
    service.publisher.refresh_manifests()
    pinned_by_devices = {key.key_id: key.public_point for key in [*service.signing_keys.all(), spare]}
    shutil.rmtree(tmp_path / "signing")
    shutil.copytree(spare_folder, tmp_path / "signing")
    service.clock.time += 4 * 86_400
    with pytest.raises(Exception, match="not those on record"):
        service.publisher.refresh_manifests()
    service.adopt_keys()
    service.publisher.refresh_manifests()
    verify_manifest(service.store.artifacts.manifest(task.task)[2], pinned_by_devices)


def two_operators(service):
    for name in ("ann", "olga"):
        service.store.tokens.add_admin(name, "operator", actor="t", now=service.clock.now())


def actions(service):
    return [(row.entry.actor, row.entry.action) for row in service.store.audit.rows()]


def test_ending_a_round_takes_two_operators(service):
    two_operators(service)
    task = service.task()
    round_ = service.open(task)
    lifecycle = service.lifecycle
    assert lifecycle.ask_abort(round_, actor="ann").state is State.OPTIN_OPEN
    assert lifecycle.asked_by(round_.key, "abort") == "ann"
    for same in ("ann", "os:ann", "sso:ann"):
        assert lifecycle.ask_abort(round_, actor=same).state is State.OPTIN_OPEN
    assert lifecycle.ask_abort(round_, actor="olga").state is State.ABORTED
    assert [actor for actor, action in actions(service) if action == "abort asked for"] == ["ann"]
    assert actions(service)[-1][0] == "olga"
    with pytest.raises(WrongState, match="has ended already"):
        lifecycle.ask_abort(service.current(task), actor="ann")


def test_a_wish_holds_for_a_day(service):
    two_operators(service)
    round_ = service.open(service.task(optin_seconds=7 * 86_400, shred_seconds=8 * 86_400))
    service.lifecycle.ask_abort(round_, actor="ann")
    service.clock.time += ASKED_SECONDS
    assert service.lifecycle.ask_abort(round_, actor="olga").state is State.OPTIN_OPEN
    assert service.lifecycle.ask_abort(round_, actor="ann").state is State.ABORTED


def test_stopping_a_task_takes_two_operators(service):
    two_operators(service)
    task, other = service.task(), service.task(name="other")
    assert not service.lifecycle.ask_kill(task, actor="ann").killed
    assert not service.lifecycle.ask_kill(other, actor="olga").killed
    assert service.lifecycle.ask_kill(task, actor="olga").killed
    assert service.lifecycle.ask_kill(other, actor="ann").killed


def test_where_only_one_could_one_is_enough(service):
    two_operators(service)
    service.store.tokens.revoke_admin("olga", actor="t", now=1)
    assert service.lifecycle.ask_abort(service.open(service.task()), actor="ann").state is State.ABORTED


def test_the_deadline_and_the_workers_ask_no_one(service):
    two_operators(service)
    task = service.task()
    service.open(task)
    service.clock.time += 100
    service.work()
    assert service.current(task).state is State.ABORTED  # too few took part


def test_console_and_api_say_that_a_second_operator_is_wanted(tmp_path):
    with http_service(str(tmp_path / "service.db"), tmp_path) as http:
        store, now = http.parts.store, http.parts.clock.now()
        http.tokens["second"] = store.tokens.add_admin("olga", "operator", actor="t", now=now)
        task = http.parts.task()
        http.parts.open(task)
        first, second = Person(http, "operator"), Person(http, "second")
        at = f"/console/tasks/{task.task}/rounds/1"
        assert "a second one must ask" in first.post(f"{at}/abort").text
        asked = first.confirm(f"{at}/abort").headers["location"]
        assert "when a second operator asks for the same" in first.get(asked).text
        assert http.admin("POST", f"/tasks/{task.task}/rounds/1/abort", "operator").json()["state"] == "OPTIN_OPEN"
        assert "operator has asked for this" in second.post(f"{at}/abort").text
        ended = second.confirm(f"{at}/abort").headers["location"]
        assert "The round has ended without a result." in second.get(ended).text
        assert http.parts.current(task).state is State.ABORTED


def test_a_restore_takes_two_operators_where_the_backup_knows_several(service, tmp_path, capsys):
    tokens = [
        service.store.tokens.add_admin(name, role, actor="t", now=SystemClock().now())
        for name, role in (("ann", "operator"), ("olga", "operator"), ("rob", "reviewer"))
    ]
    service.task()
    backup = tmp_path / "backup.db"
    write_backup(service.store.database, backup)
    for name, token in zip(("ann", "olga", "rob"), tokens, strict=True):
        written(tmp_path / name, token.encode())
    command = ["backup", "restore", str(backup), "--data-dir", str(tmp_path / "new")]
    for given in ([], ["ann"], ["ann", "ann"], ["ann", "rob"]):
        options = [part for name in given for part in ("--token-file", str(tmp_path / name))]
        assert main([*command, *options]) == 1
        assert "expected those of two of them" in capsys.readouterr().err
    with open_store(tmp_path / "new" / "service.db") as store:
        assert store.rounds.tasks() == []
    options = [part for name in ("ann", "olga") for part in ("--token-file", str(tmp_path / name))]
    assert main([*command, *options]) == 0
    with open_store(tmp_path / "new" / "service.db") as store:
        assert store.audit.rows()[-1].entry.detail["people"] == ["ann", "olga"]


def test_a_restore_of_one_operators_service_asks_no_more(service, tmp_path):
    service.store.tokens.add_admin("ann", "operator", actor="t", now=SystemClock().now())
    backup = tmp_path / "backup.db"
    write_backup(service.store.database, backup)
    assert main(["backup", "restore", str(backup), "--data-dir", str(tmp_path / "new")]) == 0
    assert isinstance(service.clock, ManualClock)
