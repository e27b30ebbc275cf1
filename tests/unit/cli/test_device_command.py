"""``searchblend device`` without a service: misuse and failures are told in one line, with the right exit code."""

from __future__ import annotations

import json

import pytest

from searchblend.cli.main import main
from searchblend.wire.consent import task_consent

TASK = "ab" * 16
KEY = "04" + "5a" * 64


@pytest.fixture
def typed(tmp_path, capsys):
    """Type a command; its exit code, what it printed, and what it complained about."""

    def type_it(*words: str) -> tuple[int, str, str]:
        code = main(["device", *words, "--state", str(tmp_path / "state")])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return code, printed.out, printed.err

    return type_it


@pytest.fixture
def enrolled(typed):
    assert typed("enrol", "--server", "http://127.0.0.1:9", "--task", TASK, "--key", KEY)[0] == 0
    return typed


def test_no_device_here(typed):
    for action in ("status", "sync", "show", "erase", "leave", "export", "pause", "resume"):
        code, _, complaint = typed(action)
        assert (code, "no device here" in complaint) == (1, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--server", "http://lists.example", "--task", TASK, "--key", KEY), "https"),
        (("--server", "https://lists.example", "--task", "12", "--key", KEY), "task: expected 32"),
        (("https://lists.example/enrol/12",), "what follows its # is missing"),
        (("--server", "https://lists.example", "--task", TASK, "--key", "04"), "key: expected"),
        (
            ("--server", "https://lists.example", "--task", TASK, "--key", KEY, "--curator-key", "04"),
            "--curator-key: exp",
        ),
        (("--server", "https://lists.example", "--task", TASK, "--key", KEY, "--code", "\udcff"), "code: expected"),
        (("--server", "https://\udcff.example", "--task", TASK, "--key", KEY), "server: expected"),
    ],
)
def test_wrong_enrolments(typed, words, says):
    code, _, complaint = typed("enrol", *words)
    assert code == 2
    assert says in complaint


def test_consent_comes_first_and_is_explicit(enrolled):
    code, _, complaint = enrolled("record", "weather")
    assert (code, "no consent" in complaint) == (2, True)
    code, shown, _ = enrolled("consent", "local")
    assert "Nothing was changed" in shown
    assert json.loads(enrolled("status", "--json")[1])["mode"] == "off"
    assert enrolled("consent", "local", "--agree")[0] == 0
    assert json.loads(enrolled("status", "--json")[1])["mode"] == "local"
    assert "Kept" in enrolled("record", "weather", "--url", "https://weather.example/")[1]
    assert "Not kept: e-mail" in enrolled("record", "ann@example.org")[1]
    assert "no longer" not in enrolled("consent", "off")[1]
    assert enrolled("record", "weather")[0] == 2


def test_a_text_of_the_tasks_own(enrolled, tmp_path):
    (tmp_path / "text.txt").write_text("My words.\n")
    assert enrolled("consent", "local", "--agree", "--text", str(tmp_path / "text.txt"))[0] == 2
    code, _, complaint = enrolled("consent", "opt-in", "--agree", "--text", str(tmp_path / "missing.txt"))
    assert (code, "cannot be read" in complaint) == (1, True)
    assert enrolled("consent", "opt-in", "--agree", "--text", str(tmp_path / "text.txt"))[0] == 0
    exported = json.loads(enrolled("export")[1])
    assert exported["consents"][-1]["text"] == task_consent(20, "My words.")
    shown = json.loads(enrolled("consent", "opt-in", "--records", "5", "--json")[1])
    assert (shown["text"], shown["records"], shown["agreed"]) == (task_consent(5, ""), 5, False)
    assert "expected 1 to 20" in enrolled("consent", "opt-in", "--records", "21")[2]


def test_a_sync_that_fails_says_why_and_ends_with_one(enrolled):
    assert enrolled("sync")[0] == 0
    enrolled("consent", "local", "--agree")
    code, printed, complaint = enrolled("sync", "--json")
    assert (code, json.loads(printed)["status"]) == (1, "no-answer")
    assert "does not answer" in complaint
    assert "does not answer" in enrolled("status")[1]


def test_an_import_names_the_line(enrolled, tmp_path):
    enrolled("consent", "local", "--agree")
    path = tmp_path / "searches.jsonl"
    path.write_text('{"query": "weather"}\n{"query": 5}\n')
    code, _, complaint = enrolled("import", str(path))
    assert (code, "searches.jsonl:2: query" in complaint) == (1, True)
    path.write_text('{"query": "weather"}\n{"query": "ann@example.org"}\n')
    assert json.loads(enrolled("import", str(path), "--json")[1]) == {"kept": 1, "e-mail": 1}


def test_show_search_pause_erase_and_leave(enrolled):
    assert "Nothing was ever sent" in enrolled("show")[1]
    code, _, complaint = enrolled("search", "weather")
    assert (code, "no pack yet" in complaint) == (1, True)
    assert json.loads(enrolled("pause", "--json")[1]) == {"paused": True}
    assert json.loads(enrolled("resume", "--json")[1]) == {"paused": False}
    assert enrolled("erase")[0] == 0
    assert enrolled("leave")[0] == 0
    code, _, complaint = enrolled("sync")
    assert (code, "enrol first" in complaint) == (2, True)
