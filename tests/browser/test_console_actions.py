"""Every action of the console by clicks in real Chromium, on both databases; devices speak HTTP in between."""

from __future__ import annotations

import json

import pytest

from console_browser import chromium, visiting
from console_site import BAD_URL, NUMBER, SCRIPT, SETTINGS, console_site, searchers
from databases import DATABASES, fresh_database
from searchblend.service.demo import DemoConnections
from searchblend.service.round_model import sealing_context
from searchblend.store.states import State
from searchblend.wire.sealed import seal_records
from service_http import REPORT, SEALED


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture(scope="module", params=DATABASES)
def site(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    with console_site(fresh_database(request.param, folder), folder) as started:
        yield started


def made_task(site, name: str):
    return site.parts.task(**SETTINGS, name=name, population=name)


def at_review(site, name: str):
    task = made_task(site, name)
    site.parts.contribute(site.parts.open(task), searchers(400, seed=3, odd=True))
    site.parts.lifecycle.close_optin(site.parts.current(task), actor="ann")
    site.parts.work()
    return task


def contribute(site, task, codes: list[str]) -> None:
    """As the programs of opt-in users do: sealed, with a code each, over HTTP."""
    transport = DemoConnections(site.address)
    round_ = site.parts.current(task)
    path = f"/v1/tasks/{round_.task}/rounds/{round_.number}/contributions"
    for record, code in zip(searchers(len(codes), seed=21), codes, strict=True):
        context = sealing_context(round_)
        sealed = seal_records([record], context, context.tag_of(code), round_.public_key)
        status, _ = transport.send("POST", path, sealed, media_type=SEALED["content-type"], credential=code)
        assert status == 200
    transport.close()


def report(site, task, n: int, seed: int) -> None:
    transport = DemoConnections(site.address)
    round_ = site.parts.current(task)
    path = f"/v1/tasks/{round_.task}/rounds/{round_.number}/reports"
    for message in site.parts.messages(round_, searchers(n, seed=seed)):
        assert transport.send("POST", path, message, media_type=REPORT["content-type"])[0] == 200
    transport.close()


@pytest.mark.parametrize("site", ["postgresql"], indirect=True)
def test_a_whole_round_by_clicks(browser, site):
    """On SQLite the tutorial's test clicks through a round, against the server that people start."""
    with visiting(browser, site.address) as operator, visiting(browser, site.address) as reviewer:
        operator.sign_in(site.tokens["operator"])
        reviewer.sign_in(site.tokens["reviewer"])
        page = operator.page
        operator.click("New task", "link")
        page.get_by_label("Name", exact=True).fill("By clicks")
        numbers = (("Opt-in users", "50"), ("Reporting devices", "50"), ("Queries in the list", "1"))
        for label, value in (*numbers, ("δ for each group", "1e-4")):
            page.get_by_label(label, exact=True).fill(value)
        page.get_by_label("Without a cap").check()
        operator.click("Make the task")
        page.get_by_text("The task is made.").wait_for()
        task = site.parts.store.rounds.task("By clicks")

        page.get_by_label("How many").fill("250")
        operator.click("Make codes")
        codes = page.get_by_label("Codes, one per line").input_value().split()
        assert len(set(codes)) == 250

        operator.click("Draft a round")
        page.get_by_text("The round is drafted.").wait_for()
        operator.click("Open the opt-in window")
        page.get_by_text("waiting for the curator").first.wait_for()
        site.parts.work()
        page.get_by_role("button", name="Close the opt-in window").wait_for()  # by itself: the page looks again
        contribute(site, task, codes)
        page.locator("[data-figure=optin]", has_text="250").wait_for()
        operator.click("Close the opt-in window")
        page.get_by_text("250 of 250 expected records so far.").wait_for()
        operator.click("Yes, close the opt-in window")
        page.get_by_text("Drawing the head list").first.wait_for()
        site.parts.work()
        page.get_by_text("This is for a reviewer.").wait_for()

        reviewer.click("Review", "link")
        reviewer.click("Review the list", "link")
        reviewer.page.get_by_label("mail remove").first.check()
        reviewer.click("Approve the rest")
        reviewer.page.get_by_text("choose why the ticked entries are removed").wait_for()
        reviewer.page.get_by_label("mail remove").first.check()
        reviewer.page.get_by_label("Reason for removing the ticked entries").select_option("other")
        reviewer.click("Approve the rest")
        reviewer.click("Yes, approve the list")
        reviewer.page.get_by_text("The list is approved.").wait_for()
        site.parts.work()

        page.get_by_role("button", name="Close the client window").wait_for()
        report(site, task, 200, seed=22)
        page.locator("[data-figure=reports]", has_text="200").wait_for()  # counters move without a reload
        junk = DemoConnections(site.address)
        path = f"/v1/tasks/{task.task}/rounds/1/reports"
        assert junk.send("POST", path, b"junk", media_type=REPORT["content-type"])[0] == 400
        junk.close()
        page.locator("#live").get_by_text("malformed").wait_for()
        operator.click("Close the client window")
        operator.click("Yes, close the client window")
        operator.click("Take no more reports")
        operator.click("Yes, take no more reports")
        page.get_by_text("No more reports are taken.").wait_for()
        site.parts.work()
        page.get_by_role("heading", name="Head list").wait_for()
        assert page.locator(".list .query").first.inner_text() == "weather"
        assert page.locator(".list").get_by_text("mail", exact=True).count() == 0
        with page.expect_download() as download:
            operator.click("trends.csv", "link")
        assert download.value.path().read_text().startswith("query,kind,probability")
        operator.click("Draft the next round")
        page.get_by_text("The round is drafted.").wait_for()
        assert operator.complaints() == []
        assert [error for error in reviewer.errors if "400" not in error] == []
    rounds = site.parts.store.rounds.rounds(task.task)
    assert [(round_.number, round_.state) for round_ in rounds] == [(1, State.PUBLISHED), (2, State.DRAFT)]
    actors = {row.entry.actor for row in site.parts.store.audit.rows()}
    assert {"operator 1", "reviewer 2"} <= actors


def test_hits_are_removed_unless_kept(browser, site):
    task = at_review(site, "hits")
    with visiting(browser, site.address) as reviewer:
        reviewer.sign_in(site.tokens["reviewer"])
        page = reviewer.go(f"/console/tasks/{task.task}/rounds/1/review")
        assert page.locator(".hit").count() == 3
        assert page.get_by_text("a long number").first.is_visible()
        page.get_by_label(BAD_URL).check()
        reviewer.click("Approve the rest")
        reviewer.click("Yes, approve the list")
        page.get_by_text("The list is approved.").wait_for()
        site.parts.work()
        listed = site.parts.store.artifacts.of_round(site.parts.current(task).key)["headlist.json"]
        text = site.parts.store.artifacts.get(listed)[0].decode()
        assert json.dumps(BAD_URL) in text
        assert SCRIPT.split()[0] in text
        assert NUMBER not in text


def test_reject_abort_stop_and_blocklist(browser, site):
    rejected, ended, stopped = at_review(site, "rejected"), made_task(site, "ended"), made_task(site, "stopped")
    site.parts.open(ended)
    site.parts.open(stopped)
    with visiting(browser, site.address) as reviewer, visiting(browser, site.address) as operator:
        reviewer.sign_in(site.tokens["reviewer"])
        page = reviewer.go(f"/console/tasks/{rejected.task}/rounds/1/review")
        page.get_by_text("Reject the whole list").click()
        page.get_by_label("Why", exact=True).select_option("other")
        reviewer.click("Reject the list")
        reviewer.click("Yes, reject the list")
        page.get_by_text("The reviewer rejected the list.").first.wait_for()
        page = reviewer.go("/console/blocklist")
        page.get_by_label("One word or phrase per line").fill("football\nbank")
        reviewer.click("Save")
        page.get_by_text("The blocklist is saved.").wait_for()

        operator.sign_in(site.tokens["operator"])
        for task, opening, button, yes, says in (
            (
                ended,
                "End the round without a result",
                "End the round",
                "Yes, end the round without a result",
                "The operator ended it.",
            ),
            (
                stopped,
                "Stop the task for good",
                "Stop the task",
                "Yes, stop the task for good",
                "The task is stopped for good.",
            ),
        ):
            place = "/rounds/1" if task is ended else ""
            page = operator.go(f"/console/tasks/{task.task}{place}")
            page.get_by_text(opening).click()
            operator.click(button)
            operator.click(yes)
            page.get_by_text(says).first.wait_for()
        assert operator.complaints() == reviewer.complaints() == []
        operator.click("Sign out")
        page.get_by_label("Admin token").wait_for()
        operator.go("/console/budget")
        assert "/console/sign-in" in page.url
    states = [site.parts.current(task).state for task in (rejected, ended, stopped)]
    assert states == [State.ABORTED] * 3
    assert site.parts.lifecycle.blocklist() == ["football", "bank"]
    site.parts.lifecycle.set_blocklist([], actor="test")


def test_a_session_that_ends_while_a_page_is_open_leads_to_the_door(browser, site):
    task = made_task(site, "open page")
    site.parts.open(task)
    with visiting(browser, site.address) as viewer:
        viewer.sign_in(site.tokens["viewer"])
        page = viewer.go(f"/console/tasks/{task.task}/rounds/1")
        site.parts.store.database.execute("DELETE FROM sessions")
        page.get_by_label("Admin token").wait_for()
