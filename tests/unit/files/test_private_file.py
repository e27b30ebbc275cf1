"""Key files that others could read or replace are refused, with the command that ends this."""

from __future__ import annotations

import os

import pytest

from searchblend.cli.main import main
from searchblend.core.errors import InputError
from searchblend.files.durable import read_private
from searchblend.service.workers.signing_keys import SigningKeys
from searchblend.service.workers.vault import Vault

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
