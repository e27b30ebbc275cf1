"""PostgreSQL's driver, without a server."""

from __future__ import annotations

import psycopg
import pytest

from searchblend.store import database_postgres
from searchblend.store.errors import StoreUnavailable


@pytest.mark.parametrize(("statement_seconds", "expected"), [(0.5, 2), (15.0, 15), (60.0, 60), (300.0, 60)])
def test_a_slow_server_is_waited_for_as_long_as_the_setting_says(monkeypatch, statement_seconds, expected):
    asked = []

    def connect(url: str, **options: object) -> None:
        asked.append(options["connect_timeout"])
        raise psycopg.OperationalError("the server takes no connection yet")

    monkeypatch.setattr(database_postgres._Connection, "connect", connect)
    with pytest.raises(StoreUnavailable):
        database_postgres.PostgresStore("postgresql://127.0.0.1/none", statement_seconds)
    assert asked == [expected]
