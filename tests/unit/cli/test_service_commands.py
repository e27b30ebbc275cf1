"""The commands that look after a service: what they print, refuse and leave behind."""

from __future__ import annotations

import json
import os
import pwd
import sqlite3
import time
from argparse import Namespace

import pytest

from databases import DATABASES, fresh_database, fresh_schema, postgres_server
from searchblend.cli.commands.serve import _prepare
from searchblend.cli.main import main
from searchblend.cli.service_options import print_document
from searchblend.service.clock import SystemClock
from searchblend.service.restore import restore
from searchblend.service.settings import ServeSettings
from searchblend.store.schema import SCHEMA_VERSION
from searchblend.store.service_store import is_service_database, open_store
from service_parts import Service, people


@pytest.fixture
def run(tmp_path, capsys):
    def run(*arguments, data=True):
        place = ["--data-dir", str(tmp_path / "data"), "--json"] if data else []
        code = main([*arguments, *place])
        captured = capsys.readouterr()
        return code, json.loads(captured.out) if captured.out.startswith("{") else captured.out, captured.err

    return run


def test_a_task_is_made_shown_capped_and_killed(run):
    code, _, err = run("task", "create", "searches")
    assert (code, "no cap is on record" in err, "task cap" in err, "uncapped=true" in err) == (2, True, True, True)
    assert run("task", "create", "free", "--set", "uncapped=true")[1]["settings"]["uncapped"] is True
    assert run("task", "kill", "free")[0] == 0
    assert run("task", "cap", "--lifetime", "10,1e-3")[1]["cap"]["lifetime"]["epsilon"] == 10
    code, made, _ = run("task", "create", "searches", "--set", "epsilon=2", "--set", "market=en-GB")
    assert (code, made["settings"]["epsilon"], made["settings"]["market"]) == (0, 2, "en-GB")
    assert {task["name"] for task in run("task", "list")[1]["tasks"]} == {"free", "searches"}
    assert run("task", "show", "searches")[1]["task"] == made["task"]
    assert run("task", "adjust", "searches", "min_optin=700", "grace_seconds=60")[1]["settings"]["min_optin"] == 700
    assert {task["settings"]["min_optin"] for task in run("task", "list")[1]["tasks"]} == {500, 700}
    assert run("task", "show", "searches")[1]["settings"]["grace_seconds"] == 60
    assert "epsilon: cannot change: people who joined agreed to it" in run("task", "adjust", "searches", "epsilon=1")[2]
    assert len(run("task", "enrol", "searches", "3")[1]["codes"]) == 3
    assert run("task", "kill", "searches")[1]["killed"] is True
    code, _, err = run("round", "draft", "searches")
    assert (code, "stopped" in err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("task", "create", "x", "--set", "epsilon=-1"), "epsilon"),
        (("task", "create", "x", "--set", "colour=red"), "unknown fields"),
        (("task", "create", "x", "--set", "colour"), "NAME=VALUE"),
        (("task", "create", "x", "--settings", "none.json"), "cannot be read"),
        (("task", "cap"), "--per-window"),
        (("serve", "--role", "king"), "role"),
        (("serve", "--port", "70000"), "port"),
        (("serve", "--port", "many"), "port"),
        (("serve", "--database", "mysql://x"), "database"),
        (("serve", "--tls-key", "x.pem"), "tls"),
        (("serve", "--once"), "--demo"),
        (("serve", "--config", "none.toml"), "cannot be read"),
    ],
)
def test_misuse_is_exit_code_2(run, arguments, says):
    code, out, err = run(*arguments, data=False) if arguments[0] == "serve" else run(*arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


def test_what_is_not_there_is_exit_code_1(run):
    for arguments in (("task", "list"), ("round", "show", "x", "1"), ("doctor",), ("audit-log", "verify")):
        code, _, err = run(*arguments)
        assert (code, "no such database" in err) == (1, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("task", "create", "x"),
        ("task", "cap", "--lifetime", "10,1e-3"),
        ("keys", "add"),
        ("keys", "token", "ann", "operator"),
    ],
)
def test_a_place_where_nothing_can_be_made_is_named(capsys, arguments):
    assert main([*arguments, "--data-dir", "/dev/null/x"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("searchblend: error: /dev/null/x")
    assert "cannot be made: Not a directory" in err


def test_a_signing_key_that_cannot_be_read_is_named(run, tmp_path):
    assert run("keys", "add")[0] == 0
    unreadable = tmp_path / "data" / "signing" / "0.pem"
    unreadable.mkdir()
    code, _, err = run("keys", "add")
    assert (code, f"{unreadable}: cannot be read: Is a directory" in err) == (1, True)
    unreadable.rmdir()
    unreadable.write_text("junk")
    unreadable.chmod(0o600)
    code, _, err = run("keys", "add")
    assert (code, f"{unreadable}: signing key: expected" in err) == (1, True)


def test_a_ninth_signing_key_is_refused(run):
    assert [run("keys", "add")[0] for _ in range(9)] == [0] * 8 + [2]


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(28, "No space left on device", "some/file"), "some/file: No space left on device"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_an_error_of_the_system_is_a_sentence(run, monkeypatch, error, says):
    def fail(options):
        raise error

    monkeypatch.setattr("searchblend.cli.commands.doctor.run", fail)
    code, printed, errors = run("doctor")
    assert (code, printed, json.loads(errors)) == (1, "", {"error": says, "exit_code": 1})


def test_keys_and_tokens(run):
    first = run("keys", "add")[1]["key_id"]
    assert run("keys", "remove", first)[0] == 2
    second = run("keys", "add")[1]["key_id"]
    assert run("keys", "remove", first)[1] == {"removed": first}
    curator = run("keys", "curator")[1]
    assert run("keys", "curator")[1] == curator
    token = run("keys", "token", "ann", "operator")[1]["token"]
    listed = run("keys", "list")[1]
    assert [key["key_id"] for key in listed["signing_keys"]] == [second]
    assert listed["curator_keys"] == [curator]
    [ann] = listed["admin_tokens"]
    assert (ann["name"], ann["role"], ann["revoked"], ann["used"]) == ("ann", "operator", False, None)
    assert 364 * 86_400 < ann["expires"] - time.time() <= 365 * 86_400
    assert token not in json.dumps(listed)
    assert run("keys", "revoke", "ann")[0] == 0
    assert run("keys", "revoke", "ann")[0] == 2


@pytest.fixture
def filled(tmp_path):
    """A service in the middle of a round, with a signing key."""
    folder = tmp_path / "data"
    folder.mkdir()
    service = Service.start(fresh_database("sqlite", folder), folder, SystemClock())
    task = service.task(client_seconds=100_000)
    service.contribute(service.open(task), people(300, seed=1))
    yield service, task
    service.store.close()


@pytest.fixture
def token_file(run, tmp_path):
    """Files with tokens of their own, by name and role."""

    def make(name, role):
        path = tmp_path / f"{name}.token"
        path.write_text(run("keys", "token", name, role)[1]["token"] + "\n")
        path.chmod(0o600)
        return str(path)

    return make


def test_a_round_is_driven_by_commands(run, filled, token_file):
    service, task = filled
    at = ("searches", "1")
    rob, ann = token_file("rob", "reviewer"), token_file("ann", "reviewer")
    assert run("round", "show", *at)[1]["opt_in_records"] == 300
    assert run("round", "close-opt-in", *at)[1]["state"] == "OPTIN_CLOSED"
    service.work()
    queries = run("round", "candidate", *at, "--token-file", rob)[1]["queries"]
    assert queries[0][:2] == [0, "weather"]
    code, _, err = run("round", "review", *at, "--token-file", ann)
    assert (code, "must not be the person who opened the round" in err) == (1, True)
    assert run("round", "review", *at, "--token-file", rob, "--remove", "x:other")[0] == 2
    assert run("round", "review", *at, "--token-file", rob, "--remove", "1:other")[1]["state"] == "REVIEWED"
    service.work()
    found = service.current(task)
    service.count(found, service.messages(found, people(100, seed=2)))
    assert run("round", "close-clients", *at)[1]["state"] == "CLIENT_GRACE"
    assert run("round", "end-grace", *at)[1]["state"] == "CLOSED"
    service.work()
    shown = run("round", "show", *at)[1]
    assert (shown["state"], shown["reports_counted"], shown["conservation"]["holds"]) == ("PUBLISHED", 100, True)
    code, out, _ = run("doctor")
    assert code == 0, out
    assert all(check["fine"] for check in out["checks"])


def test_the_doctor_finds_faults(run, filled):
    service, task = filled
    service.head_list(task)
    found = service.current(task)
    service.count(found, service.messages(found, people(10, seed=2)))
    service.store.database.execute("UPDATE counts SET n = n + 1")
    service.vault.create(found.task, found.number, destroy_by=2**40)
    code, out, err = run("doctor")
    faults = {check["check"].split()[0] for check in out["checks"] if not check["fine"]}
    assert (code, faults) == (1, {"conservation", "round"})
    assert "checks failed" in err


def test_the_audit_log_is_verified(run, filled, tmp_path):
    head = run("audit-log", "verify")[1]["head"]
    assert run("audit-log", "verify", "--head", head)[0] == 0
    assert run("audit-log", "verify", "--head", "0" * 64)[0] == 1
    assert run("audit-log", "show")[1]["rows"][0]["action"] == "task created"
    raw = sqlite3.connect(tmp_path / "data" / "service.db")
    raw.execute("DROP TRIGGER audit_no_update")
    raw.execute("UPDATE audit SET body = replace(body, 'ann', 'eve') WHERE position = 2")
    raw.commit()
    raw.close()
    code, _, err = run("audit-log", "verify")
    assert (code, "row 2" in err) == (1, True)


def test_backup_and_restore_end_what_held_raw_data(run, filled, tmp_path, capsys):
    backup = tmp_path / "backup.db"
    assert run("backup", "write", str(backup))[0] == 0
    assert run("backup", "write", str(backup))[0] == 1
    code = main(["backup", "restore", str(backup), "--data-dir", str(tmp_path / "new"), "--json"])
    out = json.loads(capsys.readouterr().out)
    assert (code, out["rounds_ended"]) == (0, 1)
    assert main(["backup", "restore", str(backup), "--data-dir", str(tmp_path / "new")]) == 1
    assert main(["backup", "restore", str(tmp_path / "none"), "--data-dir", str(tmp_path / "newer")]) == 2
    capsys.readouterr()
    assert main(["round", "show", "searches", "1", "--data-dir", str(tmp_path / "new")]) == 0
    assert "state: ABORTED" in capsys.readouterr().out
    assert main(["round", "draft", "searches", "--data-dir", str(tmp_path / "new"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["round"] == 1002, "numbers that devices may have seen are not reused"


def test_a_restore_leaves_the_backup_as_it_is(run, filled, tmp_path):
    folder = tmp_path / "backups"
    folder.mkdir()
    backup = folder / "monday #1?.db"
    assert run("backup", "write", str(backup))[0] == 0
    before = backup.read_bytes()
    opened = []
    real = sqlite3.connect
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *a, **k: (opened.append(str(a[0])), real(*a, **k))[1])
        assert main(["backup", "restore", str(backup), "--data-dir", str(tmp_path / "new")]) == 0
    assert backup.read_bytes() == before
    assert list(folder.iterdir()) == [backup]
    assert [place.partition("?")[2] for place in opened if "monday" in place] == ["mode=ro&immutable=1"]


def test_a_restore_of_a_file_that_is_no_backup_is_refused(tmp_path, capsys):
    for name, content in (("junk.db", b"junk" * 500), ("empty.db", b"")):
        (tmp_path / name).write_bytes(content)
        assert main(["backup", "restore", str(tmp_path / name), "--data-dir", str(tmp_path / "new")]) == 1
        assert name in capsys.readouterr().err
    assert (tmp_path / "empty.db").read_bytes() == b""


def test_a_database_in_use_is_restored_with_what_is_still_in_its_log(run, filled, tmp_path, capsys):
    service, _ = filled
    service.task(name="latest")
    live = tmp_path / "data" / "service.db"
    assert live.with_name("service.db-wal").stat().st_size
    assert main(["backup", "restore", str(live), "--data-dir", str(tmp_path / "new")]) == 0
    assert main(["task", "show", "latest", "--data-dir", str(tmp_path / "new")]) == 0


@pytest.mark.parametrize("kind", DATABASES)
def test_a_restore_that_is_interrupted_leaves_nothing_and_can_be_repeated(run, filled, tmp_path, kind):
    backup, where = tmp_path / "backup.db", fresh_database(kind, tmp_path)
    assert run("backup", "write", str(backup))[0] == 0
    with open_store(where) as store:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store.rounds, "skip_numbers", interrupted)
            with pytest.raises(KeyboardInterrupt):
                restore(store, SystemClock(), backup, actor="ann")
        assert (store.rounds.tasks(), store.audit.rows()) == ([], [])
        rows, ended = restore(store, SystemClock(), backup, actor="ann")
        assert (rows > 0, ended) == (True, 1)
        assert store.audit.rows()[-1].entry.action == "restored from a backup"


def interrupted(n):
    raise KeyboardInterrupt


def test_the_service_ledger_is_shown(run, filled):
    service, task = filled
    service.head_list(task)
    run("task", "cap", "--lifetime", "20,1e-3")
    code, out, _ = run("task", "ledger")
    assert code == 0
    assert [entry["release_id"].split("/")[-1] for entry in out["debits"]] == ["opt-in", "clients"]
    lifetime = out["totals"][-1]
    assert (lifetime["epsilon"], lifetime["cap"]["epsilon"]) == (4.0, 20.0)  # one role a person and round


def test_the_ledger_command_opens_the_service_database(run, filled, tmp_path, capsys):
    service, task = filled
    service.head_list(task)
    database = next(path for path in tmp_path.rglob("*") if is_service_database(path))
    for action in ("show", "check", "export"):
        assert main(["ledger", action, str(database), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["head"]
    assert main(["ledger", "cap", str(database), "--lifetime", "20,1e-3"]) == 0
    assert "cap on record" in capsys.readouterr().out
    assert run("task", "ledger")[1]["totals"][-1]["cap"]["epsilon"] == 20.0
    other = tmp_path / "own.ledger"
    assert main(["ledger", "cap", str(other), "--lifetime", "20,1e-3"]) == 0
    assert not is_service_database(other)


@pytest.mark.database_server
def test_no_process_changes_tables_but_the_command_that_does(tmp_path, capsys):
    """A server and the commands beside it say what to run; afterwards they work."""
    place = ["--data-dir", str(tmp_path), "--database", fresh_schema(postgres_server())]
    for command in (["serve", "--port", "0"], ["task", "create", "searches"], ["keys", "token", "ann", "operator"]):
        assert main([*command, *place]) == 1
        assert "run `searchblend database migrate`" in capsys.readouterr().err.lower()
    assert main(["database", "migrate", *place, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"version": SCHEMA_VERSION, "before": 0}
    assert main(["database", "migrate", *place, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"version": SCHEMA_VERSION, "before": SCHEMA_VERSION}
    assert main(["task", "create", "searches", "--set", "uncapped=true", *place]) == 0


def audited(run, *names):
    rows = run("audit-log", "show")[1]["rows"]
    return [tuple(row[name] for name in names) for row in rows]


def test_nobody_acts_under_a_name_they_cannot_prove(run, filled, token_file, monkeypatch):
    """No option or variable names the actor: an account of this machine, or a token that is known."""
    service, _ = filled
    at = ("searches", "1")
    for name in ("USER", "LOGNAME", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "rob")
    with pytest.raises(SystemExit):
        run("round", "close-opt-in", *at, "--as", "rob")
    assert run("round", "close-opt-in", *at)[0] == 0
    me = f"os:{pwd.getpwuid(os.getuid()).pw_name}"
    assert ("round moved", me) in audited(run, "action", "actor")
    service.work()
    for action in ("candidate", "review"):
        code, _, err = run("round", action, *at)
        assert (code, "expected --token-file with a reviewer's token" in err) == (2, True)
        code, _, err = run("round", action, *at, "--token-file", token_file(f"op-{action}", "operator"))
        assert (code, "expected the token of role reviewer" in err) == (2, True)
    for name in (me, "os:rob", "curator", "clock"):
        assert run("keys", "token", name, "reviewer")[0] == 2
    rob = token_file("rob", "reviewer")
    assert run("round", "candidate", *at, "--token-file", rob)[0] == 0
    assert run("round", "review", *at, "--token-file", rob)[1]["state"] == "REVIEWED"
    assert ("candidate list seen", "rob") in audited(run, "action", "actor")
    assert ("round moved", "rob") in audited(run, "action", "actor")


def test_who_opened_a_round_on_the_command_line_cannot_review_it_with_the_same_token(run, filled, token_file):
    service, task = filled
    service.lifecycle.abort(service.current(task), actor="t", reason="operator")
    ann = token_file("ann", "operator")
    assert run("round", "draft", "searches", "--token-file", ann)[0] == 0
    assert run("round", "open", "searches", "2", "--token-file", ann)[0] == 0
    service.work()
    assert service.current(task).opened_by == "ann"
    code, _, err = run("round", "review", "searches", "2", "--token-file", ann)
    assert (code, "role reviewer" in err) == (2, True)


def test_wrong_tokens_backups_and_caps_are_in_the_audit_log(run, filled, tmp_path):
    wrong = tmp_path / "wrong.token"
    wrong.write_text("sba_canary")
    wrong.chmod(0o600)
    code, _, err = run("round", "close-opt-in", "searches", "1", "--token-file", str(wrong))
    assert (code, "canary" in err) == (2, False)
    assert run("backup", "write", str(tmp_path / "b.db"))[0] == 0
    assert run("task", "cap", "--lifetime", "10,1e-3")[0] == 0
    me = f"os:{pwd.getpwuid(os.getuid()).pw_name}"
    rows = audited(run, "actor", "action", "detail")
    assert ("unknown", "sign-in failed", {"failures": {"command line": 1}}) in rows
    assert (me, "backup asked for", {}) in rows
    assert [(actor, detail["lifetime"]["epsilon"]) for actor, action, detail in rows if action == "cap set"] == [
        (me, 10)
    ]
    with open_store(tmp_path / "b.db") as copy:
        assert '"backup asked for"' in copy.audit.rows()[-1].body


def test_grants_are_printed_as_sql_and_names_are_checked(capsys):
    assert main(["database", "grants", "collector", "--user", "sb_collector", "--schema", "s"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == 'REVOKE ALL ON ALL TABLES IN SCHEMA "s" FROM "sb_collector";'
    assert 'GRANT SELECT ON "s".rounds TO "sb_collector";' in lines
    for wrong in (
        ["king", "--user", "x"],
        ["collector", "--user", 'x"; DROP'],
        ["collector", "--user", "x", "--schema", ""],
    ):
        assert main(["database", "grants", *wrong]) == 2
        assert capsys.readouterr().out == ""


@pytest.mark.parametrize("action", [["accounts"], ["end", "ann"], ["keys"], ["rotate", "--at-once"]])
def test_an_issuer_that_is_not_there_is_not_made_by_a_question(tmp_path, capsys, action):
    folder = tmp_path / "mistyped"
    assert main(["issuer", *action, "--data-dir", str(folder)]) == 2
    assert f"--data-dir: {folder}: no such folder" in capsys.readouterr().err
    assert not folder.exists()


def test_people_read_dates_and_settings_in_lines(capsys):
    row = {"name": "ann", "expires": 1_826_663_226, "used": None, "settings": {"epsilon": 4.0}}
    print_document({"tokens": [row], "when": 0}, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "tokens:",
        "  name ann, expires 2027-11-19 22:27:06 UTC, used –",
        "    settings:",
        "      epsilon: 4.0",
        "when: 1970-01-01 00:00:00 UTC",
    ]
    print_document(row, as_json=True)
    assert json.loads(capsys.readouterr().out) == row


def test_a_second_demo_on_one_database_has_accounts_of_its_own(tmp_path):
    settings = ServeSettings(data_dir=str(tmp_path / "demo"))
    options = Namespace(users=10, by_hand=True, method="best")
    staff = [_prepare(settings, options)[1] for _ in range(2)]
    with open_store(settings.where) as store:
        found = [store.tokens.admin(token, SystemClock().now()) for token in (staff[0].operator, staff[1].operator)]
    assert [admin.role for admin in found] == ["operator"] * 2
    assert found[0].name == "operator"
    assert found[1].name.startswith("operator of demo ")
