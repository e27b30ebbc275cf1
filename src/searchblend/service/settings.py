"""How a server process is set up: flags before environment before file before defaults."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from searchblend.core.documents import JsonObject
from searchblend.core.errors import InvalidParameter, UsageError, listed
from searchblend.service.clock import DAY
from searchblend.service.process import VARIABLE
from searchblend.wire.addresses import check_server

ROLES: Final = ("all", "collector", "intake", "gateway", "curator", "publisher", "admin")
PREFIX: Final = "SEARCHBLEND_"
_OF_TESTS: Final = (VARIABLE, "SEARCHBLEND_TEST_")
"""how variables begin that are neither settings nor mistakes"""
LARGEST_PORT: Final = 65_535
HEALTH_OFFSET: Final = 1_000
"""by so much the port of health is above the public one, unless it is named"""
_LONGEST_IMPRINT: Final = 200
_KINDS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "int": ((int,), "expected a whole number"),
    "float": ((int, float), "expected a number"),
    "str": ((str,), "expected a string"),
}
"""what a TOML file may hold for each kind of setting: TOML has kinds of its own, so nothing is converted"""


def check_bounds(settings: object, *bounds: tuple[str, float, float]) -> None:
    """Refuse settings of which one is outside of its bounds: name, smallest, largest."""
    for field, least, most in bounds:
        if not least <= getattr(settings, field) <= most:
            raise InvalidParameter(field, f"expected {least} to {most}")


def check_tls_pair(certificate: str, key: str) -> None:
    if bool(certificate) != bool(key):
        raise InvalidParameter("tls_certificate", "expected tls_key as well")


@dataclass(frozen=True)
class ServeSettings:
    """One process. Every field can be a flag (``--data-dir``), a variable (``SEARCHBLEND_DATA_DIR``) or a TOML key."""

    role: str = "all"
    data_dir: str = "searchblend-data"
    """the SQLite file, signing keys and round keys are here, unless other settings name another place"""
    database: str = ""
    """postgresql://…, or empty for service.db in the data directory"""
    database_seconds: float = 15.0
    """how long a request waits for the database before it is answered with 503"""
    key_dir: str = ""
    """the rounds' private keys; only the curator needs it (``keys`` in the data directory)"""
    signing_dir: str = ""
    """the manifests' signing keys; only the publisher needs it (``signing`` in the data directory)"""
    key_passphrase: str = ""
    """where the passphrase of signing keys and of the curator's key is: file:PATH (mode 600), env:NAME or fd:NUMBER"""
    gateway_dir: str = ""
    """the gateway's private keys, for requests that come through a relay (``gateway`` in the data directory)"""
    gateway_key_days: int = 30
    """how long a gateway's key is preferred; it is accepted for a week more"""
    curator_key: str = ""
    """the curator's public key (several with commas), for a publisher without the curator's key folder"""
    spare_key: str = ""
    """public signing keys (several with commas) that enrolments name too: one that is kept off line"""
    public_address: str = ""
    """where devices reach the service, https://…, for enrolments; empty: the address it listens at, on this machine"""
    relay: str = ""
    """the relay that devices ask instead, https://…, for enrolments; another company should run it"""
    host: str = "127.0.0.1"
    port: int = 8470
    health_host: str = "127.0.0.1"
    """where /healthz, /readyz and /metrics are answered; not for the public"""
    health_port: int = 0
    """0: 1000 more than port, or any that is free if port is 0"""
    tls_certificate: str = ""
    tls_key: str = ""
    reports_per_second: int = 0
    """0: no limit"""
    connections: int = 4_000
    """open at once; beyond it the one that has been silent for longest is cut"""
    peer_seconds: float = 30.0
    """how long a peer may take to send a request, to send the next one, to read 64 KiB of an answer"""
    stop_seconds: float = 30.0
    """how long the process may take to end after SIGTERM, whatever the database does"""
    queue: int = 20_000
    """reports that may wait for a commit before senders are turned away"""
    manifest_seconds: int = 60
    """how long caches may keep a manifest"""
    poll_seconds: float = 1.0
    """how often workers look for work"""
    console_address: str = ""
    """where people reach the console, https://…: issuers send them back there"""
    oidc_issuer: str = ""
    """https://…, the issuer at which people may sign in to the console; needs the extra oidc"""
    oidc_client: str = ""
    """the id under which the issuer knows the console"""
    oidc_secret_file: str = ""
    """a file of mode 600 with the client's secret; empty: a public client"""
    oidc_roles: str = ""
    """which value of the claim gives which role: ``search-ops=operator, search-review=reviewer``; the first wins"""
    oidc_claim: str = "groups"
    """the claim of the identity token that says what a person may do"""
    oidc_name: str = "preferred_username"
    """the claim that names a person in the audit log"""
    oidc_scope: str = "openid profile"
    """what the issuer is asked for"""
    alert_webhook: str = ""
    """https://…, where alerts are posted as JSON (roles all and admin)"""
    alert_secret_file: str = ""
    """a file of mode 600 with a secret: posts then carry an HMAC-SHA-256 of their body"""
    alert_mail: str = ""
    """who gets alerts by e-mail (several with commas)"""
    alert_mail_from: str = "searchblend@localhost"
    """the sender of these e-mails"""
    smtp_server: str = ""
    """HOST:PORT of the mail server; TLS is required, but for one on this machine (port 465: TLS from the start)"""
    smtp_user: str = ""
    """the account at the mail server, where it wants one"""
    smtp_password_file: str = ""
    """a file of mode 600 with its password"""
    publisher: str = ""
    """who answers for what is published, for the public pages of roles publisher and admin"""
    contact: str = ""
    """how to reach them: an e-mail address, a web address or a line of text"""
    licence: str = ""
    """under which terms results may be used: a name, for example CC BY 4.0, or a web address"""

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InvalidParameter("role", f"expected one of {', '.join(ROLES)}")
        check_bounds(
            self,
            ("port", 0, LARGEST_PORT),
            ("health_port", 0, LARGEST_PORT),
            ("connections", 16, 10**6),
            ("gateway_key_days", 2, 366),
            ("reports_per_second", 0, 10**9),
            ("queue", 1, 10**7),
            ("manifest_seconds", 0, DAY),
        )
        for field in ("database_seconds", "peer_seconds", "stop_seconds", "poll_seconds"):
            if not 0 < getattr(self, field) <= 3600:
                raise InvalidParameter(field, "expected more than 0 and at most 3600")
        for field in ("publisher", "contact", "licence"):
            value = getattr(self, field)
            if len(value) > _LONGEST_IMPRINT or not value.isprintable():
                raise InvalidParameter(field, f"expected one line of at most {_LONGEST_IMPRINT} printable characters")
        if self.relay:
            check_server("relay", self.relay)
        if self.port + HEALTH_OFFSET > LARGEST_PORT and not self.health_port:
            raise InvalidParameter("health_port", f"expected for a port above {LARGEST_PORT - HEALTH_OFFSET}")
        if self.oidc_issuer and not self.plays("admin"):
            raise InvalidParameter("oidc_issuer", "expected with role all or admin: no other has a console")
        if (self.alert_webhook or self.alert_mail) and not self.plays("admin"):
            raise InvalidParameter("role", "expected all or admin: no other sends alerts")
        check_tls_pair(self.tls_certificate, self.tls_key)
        if self.database and not self.database.startswith(("postgresql://", "postgres://")):
            raise InvalidParameter("database", "expected postgresql://…; a SQLite file lives in the data directory")

    def plays(self, role: str) -> bool:
        """Whether this process does what the role does."""
        return self.role in ("all", role)

    @property
    def folder(self) -> Path:
        return Path(self.data_dir)

    @property
    def health_listens(self) -> int:
        """The port for health; 0 for any that is free."""
        return self.health_port or (self.port and self.port + HEALTH_OFFSET)

    @property
    def where(self) -> str:
        """What ``open_store`` takes."""
        return self.database or str(self.folder / "service.db")

    @property
    def vault_folder(self) -> Path:
        return Path(self.key_dir) if self.key_dir else self.folder / "keys"

    @property
    def gateway_folder(self) -> Path:
        return Path(self.gateway_dir) if self.gateway_dir else self.folder / "gateway"

    @property
    def signing_folder(self) -> Path:
        return Path(self.signing_dir) if self.signing_dir else self.folder / "signing"


_TYPES: Final = {field.name: str(field.type) for field in fields(ServeSettings)}


def load_settings(
    flags: JsonObject, file: Path | None = None, environment: Mapping[str, str] | None = None
) -> ServeSettings:
    """The settings of all sources; ``flags`` that are None were not given."""
    in_file = _from_file(file) if file is not None else {}
    given: dict[str, str | float | None] = {}
    for name, value in (os.environ if environment is None else environment).items():
        if name.upper().startswith(PREFIX) and not name.startswith(_OF_TESTS):
            given[_field_of(name)] = value
    given |= {name: value for name, value in flags.items() if value is not None and name in _TYPES}
    values = {**in_file, **{name: _typed(name, value) for name, value in given.items()}}
    try:
        return ServeSettings(**values)
    except InvalidParameter as error:
        if error.field in in_file and error.field not in given:
            raise UsageError(f"{file}: {error}") from error
        raise


def _field_of(name: str) -> str:
    """The setting that a variable is about. A misspelt one is refused, or the default would be used in silence."""
    variables = {f"{PREFIX}{field.upper()}": field for field in _TYPES}
    if name not in variables:
        nearest = get_close_matches(name.upper(), variables, n=1, cutoff=0)
        raise UsageError(f"{listed([name])}: no such variable; the nearest is {nearest[0]}")
    return variables[name]


def _from_file(path: Path) -> JsonObject:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not TOML: {error}") from error
    except RecursionError as error:
        raise UsageError(f"{path}: not TOML: nested too deeply") from error
    unknown = set(document) - set(_TYPES)
    if unknown:
        raise UsageError(f"{path}: unknown settings: {listed(sorted(unknown))}")
    for name, value in document.items():
        allowed, expected = _KINDS[_TYPES[name]]
        if not isinstance(value, allowed) or isinstance(value, bool):
            raise UsageError(f"{path}: {name}: {expected}")
    return document


def _typed(name: str, value: Any) -> Any:
    """What a flag or a variable says, which is always a string, as the setting's own type."""
    convert = {"int": int, "float": float}.get(_TYPES[name], str)
    try:
        if isinstance(value, bool):
            raise ValueError
        return convert(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter(name, _KINDS[_TYPES[name]][1]) from None
