"""``sslmode=verify-full``: a PostgreSQL server with TLS of its own, and any other that claims to be it."""

from __future__ import annotations

import datetime
import ipaddress
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from searchblend.cli.main import main
from searchblend.store.errors import StoreUnavailable
from searchblend.store.service_store import open_database


def _name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(folder, name, certificate, key):
    (folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / f"{name}.key").write_bytes(private)
    (folder / f"{name}.key").chmod(0o600)


def _certificate(subject, key, issuer, issuer_key, extension):
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(extension, critical=True)
        .sign(issuer_key, hashes.SHA256())
    )


def make_certificates(folder: Path) -> None:
    """An authority, a server it vouches for by address, and an authority that was not asked."""
    authority, server, stranger = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    is_authority = x509.BasicConstraints(ca=True, path_length=None)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    _pem(folder, "ca", _certificate("ca", authority, "ca", authority, is_authority), authority)
    _pem(folder, "stranger", _certificate("ca", stranger, "ca", stranger, is_authority), stranger)
    _pem(folder, "server", _certificate("db", server, "ca", authority, address), server)


def programs() -> Path | None:
    """Where PostgreSQL programs are that know TLS; those of wheels do not."""
    for folder in [
        *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True),
        Path(shutil.which("initdb") or "x").parent,
    ]:
        config = shutil.which("pg_config", path=str(folder)) or shutil.which("pg_config")
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists() and config:
            built = subprocess.run([config, "--configure"], capture_output=True, text=True, check=False).stdout
            if "with-openssl" in built or "with-ssl" in built:
                return folder
    return None


@pytest.fixture(scope="module")
def server():
    """Port and certificates of a server that takes TLS alone; it runs as another user if we are root.

    Its folder is not pytest's: every run of pytest shuts that one to others when it begins, perhaps meanwhile.
    """
    binaries = programs()
    if binaries is None:
        pytest.skip("needs PostgreSQL's programs, built with TLS")
    folder = Path(tempfile.mkdtemp(prefix="sb-tls-"))
    make_certificates(folder)
    as_user = {}
    if os.geteuid() == 0:
        account = next((name for name in ("postgres", "pgserver", "nobody") if _exists(name)), "nobody")
        as_user = {"user": account, "group": pwd.getpwnam(account).pw_gid, "extra_groups": []}
        for path in (folder, folder / "server.key", folder / "server.crt"):
            shutil.chown(path, account)
    data = folder / "data"
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/", **as_user}
    subprocess.run([binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-N"], **quiet)
    (data / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 trust\n")
    port = _start(binaries, folder, quiet)
    try:
        yield port, folder
    finally:
        subprocess.run([binaries / "pg_ctl", "-D", data, "-m", "immediate", "stop"], **{**quiet, "check": False})
        shutil.rmtree(folder, ignore_errors=True)


def _start(binaries, folder, quiet) -> int:
    """On a port that is free; another process may take it meanwhile."""
    options = f"-c ssl=on -c ssl_cert_file={folder}/server.crt -c ssl_key_file={folder}/server.key "
    options += f"-c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    for _ in range(5):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [binaries / "pg_ctl", "-D", folder / "data", "-w", "-o", f"{options} -c port={port}", "start"]
        if subprocess.run([*command, "-l", folder / "log"], **{**quiet, "check": False}).returncode == 0:
            return port
    raise AssertionError((folder / "log").read_text()[-2000:])


def _exists(account):
    try:
        return bool(pwd.getpwnam(account))
    except KeyError:
        return False


def url(server, *, host="127.0.0.1", mode="verify-full", authority="ca"):
    port, folder = server
    return f"postgresql://postgres@{host}:{port}/postgres?sslmode={mode}&sslrootcert={folder}/{authority}.crt"


@pytest.mark.thorough
def test_the_server_that_the_authority_vouches_for_is_used(server, tmp_path, capsys):
    database = open_database(url(server))
    assert database.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") == [(True,)]
    database.close()
    place = ["--data-dir", str(tmp_path), "--database", url(server)]
    assert main(["database", "migrate", *place]) == 0
    assert main(["task", "create", "searches", "--set", "uncapped=true", *place]) == 0
    assert "searches" in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrong",
    [{"authority": "stranger"}, {"host": "localhost"}, {"mode": "disable"}],
    ids=["another authority", "another name", "no TLS"],
)
def test_whoever_only_claims_to_be_it_is_refused(server, wrong):
    with pytest.raises(StoreUnavailable, match="OperationalError"):
        open_database(url(server, **wrong))
