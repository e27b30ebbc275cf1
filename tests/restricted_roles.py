"""A PostgreSQL database in which every role of the service logs in as a user of its own, with its grants alone."""

from __future__ import annotations

import contextlib
import io
import re
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit, urlunsplit

import psycopg

from databases import fresh_database, postgres_server
from searchblend.service.serve import make_worker, prepare_folders
from searchblend.service.services import Services
from searchblend.service.settings import ServeSettings
from searchblend.service.telemetry import Logbook
from searchblend.service.workers.curator_process import make_curator
from searchblend.service.workers.signing_keys import make_curator_key
from searchblend.store.database import Rows
from searchblend.store.database_postgres import PostgresStore
from searchblend.store.schema import GRANTS, grant_statements
from searchblend.store.service_store import open_store
from service_parts import ManualClock, Service


class RestrictedRoles:
    """Stores, workers and recorded statements by role; ``owner`` may do everything."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock, self.log = folder, ManualClock(), io.StringIO()
        self.owner = fresh_database("postgresql", folder)
        path = re.search(r"search_path%3D(\w+)", self.owner)
        assert path, "a test's database is one schema"
        self.schema = path[1]
        self.users = {role: f"{self.schema}_{role}" for role in GRANTS}
        self.statements: dict[str, dict[str, Sequence[Any]]] = {role: {} for role in GRANTS}
        self.urls: dict[str, str] = {}
        with psycopg.connect(postgres_server(), autocommit=True) as connection:
            for role, user in self.users.items():
                password = secrets.token_hex(8)
                connection.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{password}'")
                for statement in grant_statements(role, user, self.schema):
                    connection.execute(statement)
                parts = urlsplit(self.owner)
                host = parts.netloc.rpartition("@")[2]
                self.urls[role] = urlunsplit(parts._replace(netloc=f"{user}:{password}@{host}"))

    def drop(self) -> None:
        with psycopg.connect(postgres_server(), autocommit=True) as connection:
            for user in self.users.values():
                connection.execute(f"DROP OWNED BY {user}")
                connection.execute(f"DROP ROLE {user}")

    def url(self, role: str) -> str:
        return self.owner if role == "owner" else self.urls[role]

    def settings(self, role: str) -> ServeSettings:
        curator = make_curator_key(self.folder / "keys").public_point.hex() if role == "publisher" else ""
        return ServeSettings(role=role, data_dir=str(self.folder), database=self.urls[role], curator_key=curator)

    @contextlib.contextmanager
    def parts(self, role: str) -> Iterator[Service]:
        """The service's parts over a connection of this role."""
        with open_store(self.url(role)) as store:
            yield Service(store, self.clock, self.folder, self.log)

    def work(self, *roles: str) -> None:
        """What the role's worker does now, keys and all; the curator's in this process, where statements are seen."""
        for role in roles:
            settings = self.settings(role)
            prepare_folders(settings)
            with open_store(self.urls[role]) as store:
                services = Services(self.urls[role], clock=self.clock, logbook=Logbook(self.log))
                worker = make_worker(settings, store, self.clock, services)
                if role == "curator":
                    curator = make_curator(settings, store, self.clock, anonymous_intake=False)
                    worker._runners = [curator]
                worker.run_once()

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Keep one example of every statement, by role."""
        by_url = {url: role for role, url in self.urls.items()}
        execute, execute_many, pages = PostgresStore.execute, PostgresStore.execute_many, PostgresStore.pages

        def record(store: PostgresStore, statement: str, example: Sequence[Any]) -> None:
            role = by_url.get(store._url)
            if role and statement.lstrip().startswith(("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")):
                self.statements[role].setdefault(statement, example)

        def recorded_execute(store: PostgresStore, statement: str, values: Sequence[Any] = ()) -> Rows:
            record(store, statement, values)
            return execute(store, statement, values)

        def recorded_execute_many(store: PostgresStore, statement: str, rows: Sequence[Sequence[Any]]) -> None:
            if rows:
                record(store, statement, rows[0])
            execute_many(store, statement, rows)

        def recorded_pages(store: PostgresStore, statement: str, rows: int) -> Iterator[Rows]:
            record(store, statement, ())
            return pages(store, statement, rows)

        with (
            mock.patch.object(PostgresStore, "execute", recorded_execute),
            mock.patch.object(PostgresStore, "execute_many", recorded_execute_many),
            mock.patch.object(PostgresStore, "pages", recorded_pages),
        ):
            yield
