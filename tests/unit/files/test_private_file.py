"""Key files that others could read or replace are refused, with the command that ends this."""

from __future__ import annotations

import os

import pytest

from searchblend.cli.main import main
from searchblend.core.errors import InputError
from searchblend.files.durable import read_private, write_secret
from searchblend.service.checkup import check_up
from searchblend.service.clock import SystemClock
from searchblend.service.settings import ServeSettings
from searchblend.service.workers.signing_keys import SigningKeys
from searchblend.service.workers.vault import Vault
from searchblend.store.service_store import open_store

TASK = "0" * 32


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o604, 0o601, 0o666])
def test_a_key_file_that_others_may_use_is_refused_with_the_command_to_run(tmp_path, mode):
    path = tmp_path / "a.pem"
    path.write_bytes(b"secret")
    path.chmod(mode)
    with pytest.raises(InputError, match="run `chmod 600 ") as refused:
        read_private(path)
    assert "secret" not in str(refused.value)
    path.chmod(0o600)
    assert read_private(path) == b"secret"
    path.chmod(0o400)
    assert read_private(path) == b"secret"


@pytest.mark.parametrize(("owner", "mode", "says"), [(1234, 0o600, "chown"), (0, 0o644, "chmod 640"), (0, 0o640, "")])
def test_a_key_file_is_ours_or_roots_for_a_group(tmp_path, monkeypatch, owner, mode, says):
    """As another user would see it: giving a file away needs root, asking as somebody else does not."""
    path = tmp_path / "a.pem"
    path.write_bytes(b"secret")
    path.chmod(mode)
    found = os.stat_result((path.stat().st_mode, 0, 0, 1, owner, 0, 6, 0, 0, 0))
    monkeypatch.setattr(os, "fstat", lambda descriptor: found)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    if not says:
        assert read_private(path) == b"secret"
        return
    with pytest.raises(InputError, match=says):
        read_private(path)


def test_loose_signing_keys_round_keys_and_tls_keys_are_refused(tmp_path, capsys):
    signing = tmp_path / "signing"
    SigningKeys(signing).add()
    (path,) = signing.iterdir()
    path.chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        SigningKeys(signing).all()
    assert main(["serve", "--data-dir", str(tmp_path), "--port", "0"]) == 1
    assert f"chmod 600 {path}" in capsys.readouterr().err
    path.chmod(0o600)

    vault = Vault(tmp_path / "keys")
    public = vault.create(TASK, 1, destroy_by=2**40)
    next((tmp_path / "keys").glob("*.key")).chmod(0o660)
    with pytest.raises(InputError, match="chmod 600"):
        vault.private_key(TASK, 1, public)

    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    for made in (certificate, key):
        made.write_bytes(b"-")
        made.chmod(0o644)
    tls = ["--tls-certificate", str(certificate), "--tls-key", str(key)]
    assert main(["serve", "--data-dir", str(tmp_path), "--port", "0", *tls]) == 1
    assert f"chmod 600 {key}" in capsys.readouterr().err


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o755, 0o750, 0o711])
def test_a_folder_of_keys_that_others_may_use_is_refused_with_the_command_to_run(tmp_path, capsys, mode):
    for folder, open_folder in (("keys", Vault), ("signing", lambda folder: SigningKeys(folder).all())):
        path = tmp_path / folder
        SigningKeys(path).add()
        path.chmod(mode)
        with pytest.raises(InputError, match=f"chmod 700 {path}"):
            open_folder(path)
        assert main(["serve", "--data-dir", str(tmp_path), "--port", "0"]) == 1
        assert f"chmod 700 {path}" in capsys.readouterr().err.replace("\n", " ")
        path.chmod(0o700)
        open_folder(path)


def test_an_empty_folder_of_keys_is_closed_to_others_before_the_first_is_made(tmp_path):
    for name, make in (("keys", Vault), ("signing", lambda folder: SigningKeys(folder).add_if_none())):
        (tmp_path / name).mkdir(mode=0o755)
        assert SigningKeys(tmp_path / name).all() == []
        make(tmp_path / name)
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("mode", "is_read"), [(0o755, True), (0o777, False), (0o770, False), (0o1777, True)])
def test_a_key_file_in_a_folder_where_others_may_replace_it_is_refused(tmp_path, mode, is_read):
    path = tmp_path / "tls" / "key.pem"
    path.parent.mkdir()
    write_secret(path, b"secret")
    path.parent.chmod(mode)
    if is_read:
        assert read_private(path) == b"secret"
        return
    with pytest.raises(InputError, match=f"chmod go-w {path.parent}"):
        read_private(path)


def test_the_database_is_made_for_its_owner_and_doctor_reports_what_others_may_use(tmp_path, capsys):
    settings = ServeSettings(data_dir=str(tmp_path / "service"))
    settings.folder.mkdir(0o755)
    SigningKeys(settings.signing_folder).add()
    Vault(settings.vault_folder).create(TASK, 1, destroy_by=2**40)
    with open_store(settings.where) as store:
        assert {path.stat().st_mode & 0o777 for path in settings.folder.glob("service.db*")} == {0o600}
        assert loose_checks(store, settings) == {}
        (settings.folder / "service.db").chmod(0o666)
        assert f"chmod 600 {settings.where}" in loose_checks(store, settings)["database file"]
        (settings.folder / "service.db").chmod(0o600)
        for folder in (settings.folder, settings.vault_folder, settings.signing_folder):
            folder.chmod(0o777)
        loose = loose_checks(store, settings)
    assert set(loose) == {"database file", "round keys", "signing keys"}
    assert f"chmod go-w {settings.folder}" in loose["database file"]
    assert main(["doctor", "--data-dir", str(settings.folder)]) == 1
    printed = capsys.readouterr().out
    assert f"chmod 700 {settings.vault_folder}" in printed
    assert "ok    schema: version " in printed
    assert "FAULT database file: " in printed or "FAULT round keys: " in printed


def loose_checks(store, settings):
    return {one.check: one.detail for one in check_up(store, SystemClock(), settings) if "chmod" in one.detail}
