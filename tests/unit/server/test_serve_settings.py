"""Flags before environment before file before defaults; mistakes are named."""

from __future__ import annotations

import pytest

from searchblend.errors import UsageError
from searchblend.server.serve_settings import ServeSettings, load_settings


def test_the_order_of_the_sources(tmp_path):
    file = tmp_path / "searchblend.toml"
    file.write_text('role = "collector"\nport = 1\nqueue = 7\n')
    found = load_settings(
        {"port": "3", "host": None, "other": 1}, file, {"SEARCHBLEND_PORT": "2", "SEARCHBLEND_QUEUE": "8", "PATH": "x"}
    )
    assert (found.role, found.port, found.queue, found.host) == ("collector", 3, 8, "127.0.0.1")


def test_defaults_are_one_file_in_one_folder():
    settings = ServeSettings()
    assert settings.where == "searchblend-data/service.db"
    assert (settings.vault_folder.name, settings.signing_folder.name) == ("keys", "signing")


@pytest.mark.parametrize("text", ["role = ", 'colour = "red"', "port = true", "poll_seconds = 0", 'role = "king"'])
def test_mistakes_in_a_file(tmp_path, text):
    file = tmp_path / "searchblend.toml"
    file.write_text(text)
    with pytest.raises(UsageError):
        load_settings({}, file, {})
