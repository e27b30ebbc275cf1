"""A round from draft to publication over both databases and both methods, and the ways in which one ends early."""

from __future__ import annotations

import json

import pytest

from databases import DATABASES, fresh_database
from searchblend.accounting.totals import BudgetCap
from searchblend.core.documents import decode, encode
from searchblend.core.errors import InvalidParameter, UsageError
from searchblend.core.privacy import Budget
from searchblend.core.records import Record
from searchblend.device.device_errors import DeviceRefused
from searchblend.device.policy import POLICY
from searchblend.device.policy import _version as device_version
from searchblend.service.lifecycle import CANDIDATE
from searchblend.service.review import Position, Removal, Review
from searchblend.service.round_model import sealing_context
from searchblend.service.task_settings import TaskSettings
from searchblend.service.workers.publisher import Publisher
from searchblend.store.errors import BudgetExceeded, StoreError, WrongState
from searchblend.store.states import State
from searchblend.wire.consent import optin_consent
from searchblend.wire.head_list import decode_head_list
from searchblend.wire.manifest import DEVICE_VERSION
from searchblend.wire.sealed import fits_sealed
from searchblend.wire.signing import SigningKey, verify_manifest
from service_parts import SMALL, Service, crowd, people

pytestmark = pytest.mark.thorough


@pytest.fixture(params=DATABASES)
def service(request, tmp_path):
    made = Service.start(fresh_database(request.param, tmp_path), tmp_path)
    yield made
    made.store.close()


def pinned(service):
    return {key.key_id: key.public_point for key in service.signing_keys.all()}


def manifest(service, task):
    return verify_manifest(service.store.artifacts.manifest(task.task)[2], pinned(service)).document


@pytest.mark.parametrize("changes", [{}, {"method": "paper"}, {"has_urls": False}, {"records_per_client": 2}])
def test_a_whole_round(service, changes):
    urls = changes.get("has_urls", True)
    task = service.task(**changes)
    round_ = service.open(task)
    assert round_.state is State.OPTIN_OPEN
    assert manifest(service, task)["phase"] == "opt-in"
    assert service.contribute(round_, people(400, seed=1, urls=urls)) == "taken"
    service.lifecycle.close_optin(round_, actor="ann")
    assert manifest(service, task)["optin"]["public_key"] == round_.public_key.hex()
    service.work()
    round_ = service.current(task)
    assert round_.state is State.SHREDDED
    assert service.store.contributions.count(round_.key) == 0
    assert service.vault.held() == []
    service.lifecycle.review(round_, actor="rob")
    service.work()
    round_ = service.current(task)
    assert round_.state is State.CLIENT_OPEN
    client = manifest(service, task)["client"]
    content, _ = service.store.artifacts.get(client["artifact"])
    assert decode_head_list(json.loads(content)).head.digest == client["digest"]
    messages = service.messages(round_, people(1500, seed=2, urls=urls))
    assert {len(message) for message in messages} == {client["report_bytes"]}
    assert service.count(round_, messages) == service.count(round_, messages[:100]) == ["taken"]
    assert service.finish(task).state is State.PUBLISHED
    trends = [row for _, row in service.store.artifacts.trends(task.task)]
    shares = {row.query: row.probability for row in trends}
    assert shares["weather"] == pytest.approx(0.9 * 10 / 25, abs=0.08)
    assert all(row.low <= row.high and row.influence > 0 for row in trends)
    assert set(service.store.artifacts.of_round(round_.key)) == {
        "headlist.json",
        "local-search.sbpack",
        "records.csv",
        "result.json",
        "statement.json",
        "trends.csv",
    }
    statement = json.loads(
        service.store.artifacts.get(service.store.artifacts.of_round(round_.key)["statement.json"])[0]
    )
    assert statement["guarantee"]["holds"]
    book = service.store.ledger.check()
    assert [entry.split("/")[-1] for entry in book.entries] == ["opt-in", "clients"]
    assert set(book.published) == set(book.entries)
    assert service.store.reports.n_seen(round_.key) == 0
    assert service.current(task).reports == 1500
    assert manifest(service, task)["phase"] == "idle"
    service.store.audit.verify()


def test_a_round_with_too_few_opt_in_users_ends_and_costs_nothing(service):
    task = service.task()
    round_ = service.open(task)
    service.contribute(round_, people(49, seed=1))
    assert service.lifecycle.close_optin(round_, actor="ann").state is State.ABORTED
    service.work()
    assert service.store.contributions.count(round_.key) == 0
    assert service.vault.held() == []
    assert not service.store.ledger.book().entries


def test_a_round_whose_list_is_too_short_is_paid_for_and_ends(service):
    task = service.task()
    round_ = service.open(task)
    service.contribute(round_, [Record(f"rare {i}", "http://u.example") for i in range(60)])
    service.lifecycle.close_optin(round_, actor="ann")
    service.work()
    round_ = service.current(task)
    assert round_.state is State.ABORTED
    assert [entry.split("/")[-1] for entry in service.store.ledger.book().entries] == ["opt-in"]
    assert service.store.contributions.count(round_.key) == 0
    assert service.vault.held() == []


def test_a_round_with_too_few_clients_publishes_nothing(service):
    task = service.task()
    service.contribute(service.open(task), crowd(seed=1))
    round_ = service.head_list(task)
    service.count(round_, service.messages(round_, people(49, seed=2)))
    assert service.finish(task).state is State.ABORTED
    assert service.store.artifacts.trends(task.task) == []


def test_the_clock_moves_a_round_through_its_windows(service):
    task = service.task()
    service.contribute(service.open(task), crowd(seed=1))
    service.clock.time += 100
    service.work()
    assert service.current(task).state is State.SHREDDED
    service.lifecycle.review(service.current(task), actor="rob")
    service.work()
    round_ = service.current(task)
    service.count(round_, service.messages(round_, people(100, seed=2)))
    service.clock.time += 100
    service.work()
    assert service.current(task).state is State.CLIENT_GRACE
    late = service.messages(round_, people(2, seed=3))
    assert service.count(round_, late[:1]) == ["taken"]
    service.clock.time += 10
    assert service.count(round_, late[1:]) == ["closed"]
    service.work()
    assert service.current(task).state is State.PUBLISHED
    assert service.current(task).reports == 101


def test_raw_records_do_not_outlive_their_deadline(service):
    task = service.task()
    round_ = service.open(task)
    service.contribute(round_, people(60, seed=1))
    service.clock.time += 1000
    service.work()
    assert service.current(task).state is State.ABORTED
    assert service.store.contributions.count(round_.key) == 0
    assert service.vault.held() == []


def test_scheduled_rounds_follow_each_other_until_the_budget_is_gone(service):
    service.store.ledger.set_cap(BudgetCap(lifetime=Budget(8.0, 1e-2)))
    task = service.task(repeat_seconds=500)
    for n in (1, 2):
        if n == 1:
            service.open(task)
        assert service.current(task).number == n
        service.contribute(service.current(task), crowd(seed=n))
        service.head_list(task)
        round_ = service.current(task)
        service.count(round_, service.messages(round_, people(100, seed=2)))
        assert service.finish(task).state is State.PUBLISHED
        service.clock.time += 600
        service.work()
        service.work()
    assert len(service.store.rounds.rounds(task.task)) == 2
    assert sum(entry.spend.epsilon for entry in service.store.ledger.entries()) == 16.0  # two roles, each has one
    book = service.store.ledger.book()
    population = book.scopes()[0][0]
    assert sum(spend.epsilon for spend in book.spends(population, None)) == 8.0
    assert [spend.epsilon <= 4.0 for spend in book.public_spends.values()] == [True, True]  # of the clients, counted


def test_a_round_that_the_budget_cannot_pay_is_not_opened(service):
    service.store.ledger.set_cap(BudgetCap(window=Budget(3.9, 1e-2)))
    task = service.task()
    round_ = service.lifecycle.draft_round(task, actor="ann")
    with pytest.raises(BudgetExceeded):
        service.lifecycle.request_open(round_, actor="ann")
    assert service.store.jobs.waiting() == []


def test_a_cap_that_shrank_meanwhile_ends_the_round_before_anything_is_seen(service):
    task = service.task()
    round_ = service.open(task)
    service.contribute(round_, crowd(seed=1))
    service.store.ledger.set_cap(BudgetCap(lifetime=Budget(1.0, 1e-2)))
    service.lifecycle.close_optin(round_, actor="ann")
    service.work()
    assert service.current(task).state is State.ABORTED
    assert not service.store.ledger.book().entries
    assert service.store.artifacts.kept(round_.key, CANDIDATE) is None
    assert ending(service) == {"reason": "budget-exceeded", "records": 100, "refused": 0}


def ending(service):
    """What the audit log says about the last round that was ended."""
    details = [row.entry.detail for row in service.store.audit.rows()]
    last = [detail for detail in details if detail.get("to") == "ABORTED"][-1]
    return {name: last[name] for name in ("reason", "records", "refused") if name in last}


def test_a_budget_that_another_task_took_ends_the_round_before_its_list_is_public(service):
    """Both lists are drawn in one week; the next week's cap, lowered meanwhile, pays the clients of one of them."""
    service.store.ledger.set_cap(BudgetCap(window=Budget(8.0, 1e-2)))
    tasks = [service.task(name=name) for name in ("first", "second")]
    for task in tasks:
        service.contribute(service.open(task), crowd(seed=1))
    for task in tasks:
        service.lifecycle.close_optin(service.current(task), actor="ann")
        service.work()
    service.clock.time += 7 * 86_400
    service.store.ledger.set_cap(BudgetCap(window=Budget(4.0, 1e-2)))
    for task in tasks:
        service.lifecycle.review(service.current(task), actor="rob")
        service.work()
    assert [service.current(task).state for task in tasks] == [State.CLIENT_OPEN, State.ABORTED]
    assert ending(service) == {"reason": "budget-exceeded"}
    assert service.store.artifacts.of_round(service.current(tasks[1]).key) == {}
    assert len(service.store.ledger.book().entries) == 3
    assert service.store.jobs.waiting() == []


def openings(service):
    entries = [row.entry for row in service.store.audit.rows()]
    return [entry.detail for entry in entries if entry.action == "opening records"]


def test_every_opening_is_in_the_audit_log_with_its_numbers(service):
    task = service.task(min_optin=101)
    round_ = service.open(task)
    service.contribute(round_, crowd(seed=1))
    tag = sealing_context(round_).tag_of(service.code_of(round_.task, 800))
    service.store.contributions.add(round_.key, tag, b"\2\1" + b"junk" * 82, service.clock.now())
    service.lifecycle.close_optin(round_, actor="ann")
    service.work()
    assert ending(service) == {"reason": "too-few-usable-records", "records": 100, "refused": 1}
    assert openings(service) == [{"task": round_.task, "round": 1, "attempt": 1, "records": 101}]


def test_an_opening_that_fails_is_in_the_audit_log_at_every_attempt(service, monkeypatch):
    def fail(*arguments):
        raise ArithmeticError

    monkeypatch.setattr("searchblend.blender.method.BestMethod.list_head", fail)
    task = service.task()
    round_ = service.open(task)
    service.contribute(round_, people(60, seed=1))
    service.lifecycle.close_optin(round_, actor="ann")
    for _ in range(2):
        service.work()
        service.clock.time += 10
    assert [(note["attempt"], note["records"]) for note in openings(service)] == [(1, 60), (2, 60)]
    monkeypatch.undo()
    service.work()
    assert service.current(task).state is State.SHREDDED
    assert len(openings(service)) == 3


def test_only_one_round_at_a_time_and_none_of_a_killed_task(service):
    task = service.task()
    service.open(task)
    with pytest.raises(WrongState):
        service.lifecycle.draft_round(task, actor="ann")
    service.lifecycle.kill(task, actor="ann")
    service.work()
    assert service.current(task).state is State.ABORTED
    assert manifest(service, task)["killed"]
    with pytest.raises(WrongState):
        service.lifecycle.draft_round(service.store.rounds.task(task.task), actor="ann")


def test_a_lost_key_ends_the_round(service):
    task = service.task()
    round_ = service.open(task)
    service.contribute(round_, people(100, seed=1))
    service.vault.destroy(round_.task, round_.number)
    service.lifecycle.close_optin(round_, actor="ann")
    service.work()
    assert service.current(task).state is State.ABORTED


def test_records_that_cannot_be_opened_are_left_out_and_counted(service):
    task = service.task()
    round_ = service.open(task)
    service.contribute(round_, crowd(seed=1))
    tag = sealing_context(round_).tag_of(service.code_of(round_.task, 800))
    service.store.contributions.add(round_.key, tag, b"\2\1" + b"junk" * 82, service.clock.now())
    service.contribute(round_, [Record("without a url")], first=900)
    service.lifecycle.close_optin(round_, actor="ann")
    service.work()
    assert service.current(task).state is State.SHREDDED
    assert service.store.reports.refusals(round_.key) == {"malformed": 2}


class TestReview:
    @pytest.fixture
    def ready(self, service):
        task = service.task(max_head_queries=20)
        round_ = service.open(task)
        service.lifecycle.set_blocklist(["secret"], actor="rob")
        secrets = [("ticket 5550123", "http://m.example"), ("secret party", "http://p.example")]
        odd = [Record(*pair) for pair in secrets for _ in range(40)]
        odd += [Record("login", "http://l.example/n/5550199")] * 40 + [Record("login", "http://l.example")] * 40
        service.contribute(round_, crowd(seed=1) + odd)
        service.lifecycle.close_optin(round_, actor="ann")
        service.work()
        return service, task

    def test_filters_remove_what_no_reviewer_keeps(self, ready):
        service, task = ready
        figures, hits = service.lifecycle.candidate(service.current(task))
        found = {figures.head.queries[hit.query]: hit.reason for hit in hits}
        assert found == {"ticket 5550123": "long-number", "secret party": "blocklist", "login": "long-number"}
        service.lifecycle.review(service.current(task), actor="rob")
        service.work()
        client = manifest(service, task)["client"]
        head = decode_head_list(json.loads(service.store.artifacts.get(client["artifact"])[0])).head
        assert not {"ticket 5550123", "secret party"} & set(head.queries)
        assert head.urls("login") == ("http://l.example",)
        assert service.current(task).state is State.CLIENT_OPEN
        logged = str([row.body for row in service.store.audit.rows()])
        kept = [row[0] for row in service.store.database.execute("SELECT content FROM documents")]
        for text in ("5550123", "party", "5550199"):
            assert text not in logged
            assert not any(text.encode() in bytes(content) for content in kept)
        assert '"removed":{"blocklist":1,"long-number":2}' in logged.replace("\\", "")

    def test_a_hit_can_be_kept_and_anything_removed(self, ready):
        service, task = ready
        figures, hits = service.lifecycle.candidate(service.current(task))
        keep = [Position(hit.query, hit.url) for hit in hits if hit.url is not None]
        weather = figures.head.queries.index("weather")
        review = Review((Removal(weather, None, "other"),), tuple(keep))
        service.lifecycle.review(service.current(task), review, actor="rob")
        service.work()
        client = manifest(service, task)["client"]
        head = decode_head_list(json.loads(service.store.artifacts.get(client["artifact"])[0])).head
        assert "weather" not in head
        assert len(head.urls("login")) == 2

    def test_only_hits_are_counted_as_kept(self, ready):
        service, task = ready
        figures, hits = service.lifecycle.candidate(service.current(task))
        keep = [Position(hit.query, hit.url) for hit in hits if hit.url is not None]
        nonsense = [Position(figures.head.queries.index("weather")), Position(99), Position(-1, 7)]
        service.lifecycle.review(service.current(task), Review(keep=(*keep, *nonsense)), actor="rob")
        details = [row.entry.detail for row in service.store.audit.rows()]
        assert [detail["kept_hits"] for detail in details if "kept_hits" in detail] == [1]

    def test_the_reviewer_is_not_the_opener(self, ready):
        service, task = ready
        with pytest.raises(WrongState, match="must not be the person who opened the round"):
            service.lifecycle.review(service.current(task), actor="ann")

    @pytest.mark.parametrize(("opener", "reviewer"), [("os:ann", "ann"), ("ann", "os:ann"), ("os:ann", "os:ann")])
    def test_an_account_and_a_token_of_one_name_are_one_person(self, ready, opener, reviewer):
        service, task = ready
        service.store.database.execute("UPDATE rounds SET opened_by = ?", (opener,))
        with pytest.raises(WrongState, match="must not be the person who opened the round"):
            service.lifecycle.review(service.current(task), actor=reviewer)
        with pytest.raises(WrongState, match="must not be the person who opened the round"):
            service.lifecycle.reject(service.current(task), actor=reviewer, reason="other")

    def test_a_list_that_is_too_short_after_review_ends_the_round(self, ready):
        service, task = ready
        figures, _ = service.lifecycle.candidate(service.current(task))
        remove = tuple(Removal(i, None, "other") for i in range(len(figures.head) - 1))
        assert service.lifecycle.review(service.current(task), Review(remove), actor="rob").state is State.ABORTED
        assert len(service.store.ledger.entries()) == 1

    @pytest.mark.parametrize(
        "remove", [Removal(99, None, "other"), Removal(0, 99, "other"), Removal(0, None, "because")]
    )
    def test_wrong_positions_and_reasons_are_refused(self, ready, remove):
        service, task = ready
        with pytest.raises(InvalidParameter):
            service.lifecycle.review(service.current(task), Review((remove,)), actor="rob")
        assert service.current(task).state is State.SHREDDED


def test_manifests_are_signed_anew_only_when_something_changed(service):
    task = service.task()
    service.work()
    first = service.store.artifacts.manifest(task.task)
    assert first[0] == service.clock.now()
    service.work()
    assert service.store.artifacts.manifest(task.task) == first
    service.signing_keys.add()
    service.adopt_keys()
    service.work()
    sequence, _, message = service.store.artifacts.manifest(task.task)
    assert (sequence, len(json.loads(message)["signatures"])) == (first[0] + 1, 2)
    service.clock.time += 4 * 86_400
    service.work()
    assert service.store.artifacts.manifest(task.task)[0] == service.clock.now()


def test_there_are_no_more_signing_keys_than_a_manifest_carries_signatures(service):
    for _ in range(7):
        service.signing_keys.add()
    with pytest.raises(UsageError, match="8 signing keys"):
        service.signing_keys.add()
    task = service.task()
    service.work()
    assert manifest(service, task)["task"] == task.task


def test_a_ninth_key_stops_manifests_only_while_it_is_there(service):
    task = service.task()
    for _ in range(7):
        service.signing_keys.add()
    extra = SigningKey.new()
    path = service.folder / "signing" / f"{extra.key_id}.pem"
    path.write_bytes(extra.as_pem())
    path.chmod(0o600)
    service.work()
    assert service.store.artifacts.manifest(task.task) is None
    assert '"worker failed", "error": "MessageError"' in service.log.getvalue()
    with pytest.raises(UsageError, match="at most 8"):
        service.signing_keys.add_if_none()
    service.signing_keys.remove(extra.key_id)
    service.work()
    assert len(json.loads(service.store.artifacts.manifest(task.task)[2])["signatures"]) == 8


def test_a_manifest_that_no_device_can_read_is_signed_anew(service):
    task = service.task()
    service.work()
    sequence, expires, message = service.store.artifacts.manifest(task.task)
    document = json.loads(message)
    unreadable = json.dumps({**document, "signatures": 9 * document["signatures"]}).encode()
    service.store.artifacts.add_manifest(task.task, sequence + 1, expires, unreadable)
    service.work()
    assert manifest(service, task)["sequence"] == sequence + 2


def test_a_task_without_a_manifest_keeps_no_other_from_its_own(service):
    broken, other = service.task(name="broken"), service.task(name="other")
    service.store.database.execute("UPDATE tasks SET settings = ? WHERE task = ?", ('{"name":""}', broken.task))
    publisher = Publisher(service.store, service.clock, service.signing_keys, {})
    with pytest.raises(InvalidParameter):
        publisher.refresh_manifests()
    assert service.store.artifacts.manifest(broken.task) is None
    assert manifest(service, other)["task"] == other.task


def test_a_violated_conservation_law_is_never_estimated(service):
    task = service.task()
    service.contribute(service.open(task), crowd(seed=1))
    round_ = service.head_list(task)
    service.count(round_, service.messages(round_, people(100, seed=2)))
    service.store.database.execute("UPDATE counts SET n = n + 1")
    assert service.finish(task).state is State.CLOSED
    assert "job failed" in service.log.getvalue()


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0},
        {"epsilon": "4"},
        {"method": "worst"},
        {"min_optin": 1},
        {"optin_seconds": True},
        {"name": ""},
        {"unknown": 1},
        {"method": "paper", "records_per_optin": 2},
        {"silent_devices": "never"},
        {"has_urls": 1},
    ],
)
def test_wrong_settings_are_refused(changes):
    with pytest.raises(InvalidParameter):
        decode(TaskSettings, {"name": "searches", **changes})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, 20), ({"method": "paper"}, 1), ({"delta": 1e-14}, 1), ({"records_per_optin": 0}, 20)]
    + [({"records_per_optin": given}, given) for given in (1, 2, 100)],
)
def test_a_new_task_asks_for_as_many_records_as_devices_send_unless_it_says_otherwise(changes, expected):
    settings = decode(TaskSettings, {"name": "searches", **changes})
    assert settings.records_per_optin == settings.params.records_per_optin == expected
    assert settings.consent == optin_consent(expected)
    assert decode(TaskSettings, encode(settings)) == settings, "what is stored is the number itself"


def test_the_default_number_of_records_fits_into_a_message_and_into_the_devices_policy():
    n = TaskSettings("searches").records_per_optin
    assert n <= POLICY.most_records_per_round
    assert fits_sealed([Record(f"{i:02} ".ljust(90, "q"), f"http://{i:02}.example/".ljust(100, "u")) for i in range(n)])


FUTILE = [
    ({"population": "staff "}, "population"),
    ({"population": "a\nb"}, "population"),
    ({"optin_seconds": 30 * 86_400, "shred_seconds": 14 * 86_400}, "shred_seconds"),
    ({"optin_seconds": 1000, "shred_seconds": 1000}, "shred_seconds"),
    ({"min_device_version": "latest"}, "min_device_version"),
    ({"min_device_version": "1.2.3.4.5"}, "min_device_version"),
]


@pytest.mark.parametrize(("changes", "field"), FUTILE)
def test_settings_that_could_only_fail_later_make_no_task(service, changes, field):
    with pytest.raises(InvalidParameter) as refused:
        service.task(**changes)
    assert refused.value.field == field
    assert service.store.rounds.tasks() == []


@pytest.mark.parametrize(("changes", "field"), FUTILE)
def test_a_stored_task_with_such_settings_gets_no_further_round_and_holds_up_no_other(service, changes, field):
    settings = decode(TaskSettings, {**SMALL, "repeat_seconds": 1, **changes})
    old = service.store.rounds.add_task("ab" * 16, "old", encode(settings), actor="ann", now=1)
    round_ = service.store.rounds.add_round(old.task, encode(settings), "2026", actor="ann", now=1)
    service.lifecycle.abort(round_, actor="ann", reason="operator")
    with pytest.raises(InvalidParameter, match=field):
        service.lifecycle.draft_round(old, actor="ann")
    other = service.task(name="other")
    service.work()
    assert manifest(service, other)["task"] == other.task
    assert len(service.store.rounds.rounds(old.task)) == 1


@pytest.mark.parametrize("text", ["0", "0.1", "1.2.3.4", "1234567", "1.2.3.4.5", "latest", "1.", "-1", "١", ""])
def test_device_versions_are_written_as_devices_read_them(text):
    try:
        read = bool(device_version(text))
    except DeviceRefused:
        read = False
    assert bool(DEVICE_VERSION.fullmatch(text)) == read


def test_an_error_names_no_text(service):
    with pytest.raises(StoreError):
        service.lifecycle.candidate(service.open(service.task()))
