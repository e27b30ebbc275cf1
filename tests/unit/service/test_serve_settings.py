"""Flags before environment before file before defaults; mistakes are named."""

from __future__ import annotations

import pytest

from searchblend.core.errors import InvalidParameter, UsageError
from searchblend.service.process import VARIABLE
from searchblend.service.settings import ServeSettings, load_settings


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
    with pytest.raises(UsageError, match=r"searchblend\.toml: "):
        load_settings({}, file, {})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("port = 8470.9", "port: expected a whole number"),
        ('queue = "100"', "queue: expected a whole number"),
        ("host = 5", "host: expected a string"),
        ('data_dir = ["a", "b"]', "data_dir: expected a string"),
        ("[data_dir]\na = 1", "data_dir: expected a string"),
        ('poll_seconds = "1"', "poll_seconds: expected a number"),
        ("poll_seconds = nan", "poll_seconds: expected more than 0"),
        ("host = 1979-05-27", "host: expected a string"),
        ("port = 70000", "port: expected 0 to 65535"),
    ],
)
def test_a_file_has_values_of_the_right_kind_and_an_error_names_it(tmp_path, text, says):
    file = tmp_path / "searchblend.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        load_settings({}, file, {})
    assert str(refused.value).startswith(f"{file}: {says}")


def test_a_whole_number_is_a_number_and_a_flag_is_not_blamed_on_the_file(tmp_path):
    file = tmp_path / "searchblend.toml"
    file.write_text("poll_seconds = 2\nport = 1\n")
    assert load_settings({}, file, {}).poll_seconds == 2
    with pytest.raises(UsageError) as refused:
        load_settings({"port": "70000"}, file, {})
    assert str(refused.value) == "port: expected 0 to 65535"
    with pytest.raises(UsageError) as refused:
        load_settings({}, file, {"SEARCHBLEND_QUEUE": "1.5"})
    assert str(refused.value) == "queue: expected a whole number"


@pytest.mark.parametrize(
    ("misspelt", "nearest"),
    [
        ("SEARCHBLEND_DATA_DRI", "SEARCHBLEND_DATA_DIR"),
        ("SEARCHBLEND_REPORT_PER_SECOND", "SEARCHBLEND_REPORTS_PER_SECOND"),
        ("SEARCHBLEND_DATABASE_URL", "SEARCHBLEND_DATABASE"),
        ("SearchBlend_Role", "SEARCHBLEND_ROLE"),
        ("SEARCHBLEND_", "SEARCHBLEND_"),
    ],
)
def test_a_misspelt_variable_is_refused_with_the_nearest_one(misspelt, nearest):
    with pytest.raises(UsageError) as refused:
        load_settings({}, None, {misspelt: "secret value"})
    assert str(refused.value).startswith(f"{misspelt}: no such variable; the nearest is {nearest}")
    assert "secret" not in str(refused.value)


def test_an_imprint_is_one_short_line():
    assert load_settings({"publisher": "Office"}, None, {"SEARCHBLEND_LICENCE": "CC BY 4.0"}).licence == "CC BY 4.0"
    for value in ("two\nlines", "x" * 201):
        with pytest.raises(InvalidParameter, match="contact: expected one line"):
            load_settings({"contact": value}, None, {})


def test_variables_of_tests_are_no_settings():
    assert load_settings({}, None, {VARIABLE: "x", "SEARCHBLEND_TEST_POSTGRES": "y"}) == ServeSettings()
