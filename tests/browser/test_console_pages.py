"""Every page of the console in real Chromium: quiet, accessible, fitting, and looked at; the same on PostgreSQL."""

from __future__ import annotations

import contextlib
import re

import pytest
from starlette.testclient import TestClient

from console_browser import LOOKS, chromium, photograph, visiting, wear
from console_person import Person
from console_site import SCRIPT, console_site
from databases import fresh_database
from lighthouse import low_scores
from searchblend.cli.commands.serve import forecast
from searchblend.service.api.app import build_app

PAGES = {
    "sign-in": (None, "/console/sign-in"),
    "overview": ("operator", "/console"),
    "new-task": ("operator", "/console/new-task"),
    "task": ("operator", "/console/tasks/{lively}"),
    "adjust": ("operator", "/console/tasks/{lively}/adjust"),
    "round-published": ("operator", "/console/tasks/{lively}/rounds/3"),
    "round-running": ("operator", "/console/tasks/{running}/rounds/1"),
    "round-ended": ("operator", "/console/tasks/{aborted}/rounds/1"),
    "question": ("operator", "/console/tasks/{running}/rounds/1"),
    "review-queue": ("reviewer", "/console/review"),
    "review": ("reviewer", "/console/tasks/{review}/rounds/1/review"),
    "blocklist": ("reviewer", "/console/blocklist"),
    "trends": ("viewer", "/console/tasks/{lively}/trends"),
    "trends-choice": ("viewer", "/console/trends"),
    "trends-empty": ("viewer", "/console/tasks/{review}/trends"),
    "public-trends": (None, "/trends/{lively}"),
    "public-embed": (None, "/trends/{lively}/embed"),
    "public-enrol": (None, "/enrol/{lively}"),
    "local-search": ("viewer", "/console/tasks/{lively}/search?typed=weathr"),
    "budget": ("operator", "/console/budget"),
    "planner": ("viewer", "/console/planner?users=20000&show=1"),
    "audit": ("auditor", "/console/audit"),
    "users": ("auditor", "/console/users"),
    "refusals": ("viewer", "/console/refusals"),
    "not-found": ("viewer", "/console/tasks/none"),
    "forbidden": ("viewer", "/console/new-task"),
}
PRESSED = {"question": "Close the client window"}
"""pages that a button of another leads to"""
REFUSED = {"not-found": "404", "forbidden": "403"}
BY_ROLE = {role: [name for name, (whose, _) in PAGES.items() if whose == role] for role, _ in PAGES.values()}


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@contextlib.contextmanager
def seeded(kind: str, folder):
    with console_site(fresh_database(kind, folder), folder, planner=forecast) as started:
        started.tasks = {name: task.task for name, task in started.seed().items()}
        yield started


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with seeded("sqlite", tmp_path_factory.mktemp("sqlite")) as started:
        yield started


def test_every_page(browser, site):
    assert complaints(browser, site) == {}
    assert "page failed" not in site.parts.log.getvalue()


def complaints(browser, site) -> dict[str, list[str]]:
    """What is wrong with each page in each look, opened by a user who may."""
    found = {}
    with visiting(browser, site.address) as visitor:
        for role, names in BY_ROLE.items():
            visitor.context.clear_cookies()
            if role:
                visitor.sign_in(site.tokens[role])
            for name in names:
                wear(visitor.page, next(iter(LOOKS)))
                page = visitor.go(PAGES[name][1].format(**site.tasks))
                if name in PRESSED:
                    visitor.click(PRESSED[name])
                    page.get_by_role("heading", name=f"{PRESSED[name]}?").wait_for()
                for look in LOOKS:
                    wear(page, look)
                    photograph(page, f"console/{name}-{look}")
                    wrong = visitor.complaints(look)
                    if name in REFUSED:  # the browser itself remarks on the status
                        wrong = [text for text in wrong if f"status of {REFUSED[name]}" not in text]
                    if wrong:
                        found[f"{name}, {look}"] = wrong
                    visitor.errors.clear()
                    visitor.requests.clear()
    return found


def test_every_page_on_postgresql(site, tmp_path):
    """The same statuses and headings as on SQLite: what a browser makes of a page does not depend on its database."""
    with seeded("postgresql", tmp_path) as other:
        assert headings(other) == headings(site)
        assert "page failed" not in other.parts.log.getvalue()


@pytest.mark.slow
def test_lighthouse_scores_every_page(browser, site, tmp_path):
    found = {}
    with visiting(browser, site.address) as visitor:
        for role, names in BY_ROLE.items():
            visitor.context.clear_cookies()
            if role:
                visitor.sign_in(site.tokens[role])
            cookies = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in visitor.context.cookies())
            for name in names:
                if name in PRESSED or name in REFUSED:  # it opens addresses, and wants them to be there
                    continue
                url = site.address + PAGES[name][1].format(**site.tasks)
                if low := low_scores(url, tmp_path, {"Cookie": cookies} if cookies else None):
                    found[name] = low
    assert found == {}


def headings(site) -> dict[str, tuple[int, list[str]]]:
    """Of every page, in any order: lists go by identifiers, which are random."""
    found = {}
    with contextlib.closing(TestClient(build_app(site.services, planner=forecast))) as site.client:
        for role, names in BY_ROLE.items():
            person = Person(site, role or "viewer")
            for name in names:
                place = PAGES[name][1].format(**site.tasks)
                if role is None:
                    person.cookies = {}
                answer = person.post(f"{place}/close-clients") if name in PRESSED else person.get(place)
                texts = re.findall(r"<h[12]\b[^>]*>(.*?)</h", answer.text, re.DOTALL)
                found[name] = (answer.status_code, sorted(re.sub(r"<[^>]*>|\s+", " ", text).strip() for text in texts))
    assert {name: str(status) for name, (status, _) in found.items() if status != 200} == REFUSED
    assert all(texts for _, texts in found.values())
    return found


def test_hostile_text_is_shown_and_does_nothing(browser, site):
    with visiting(browser, site.address) as visitor:
        visitor.sign_in(site.tokens["reviewer"])
        for path in ("/console/tasks/{review}/rounds/1/review", "/console/tasks/{lively}/rounds/3"):
            page = visitor.go(path.format(**site.tasks))
            assert page.get_by_text(SCRIPT, exact=True).first.is_visible()
            for summary in page.locator(".list summary").all():
                summary.click()
            assert page.locator("a[href^='javascript' i]").count() == 0
            assert page.evaluate("window.hacked") is None
        page = visitor.go(f"/trends/{site.tasks['lively']}?q={SCRIPT}")
        assert page.locator(".u-legend").get_by_text(SCRIPT).first.is_visible()
        page.locator(".u-legend .u-value", has_text="%").first.wait_for()  # of the latest round, without a pointer
        assert page.evaluate("window.hacked") is None


def test_pages_read_without_javascript(browser, site):
    with visiting(browser, site.address, java_script_enabled=False) as visitor:
        visitor.sign_in(site.tokens["viewer"])
        page = visitor.go(f"/console/tasks/{site.tasks['lively']}/trends")
        assert page.locator("svg.drawing path.line").count() >= 3
        assert page.locator("svg.drawing path.band").count() >= 3
        page.get_by_text("The same as a table").click()
        page.get_by_role("row", name="3").get_by_text("%").first.wait_for()
        page = visitor.go(f"/console/tasks/{site.tasks['running']}/rounds/1")
        assert page.locator("[data-figure=reports]").inner_text() == "300"
        page = visitor.go("/console/budget")
        assert page.locator("svg.drawing").first.is_visible()
        page = visitor.go("/console/planner")
        assert page.get_by_label("People in all").is_visible()


def test_charts_answer_to_the_pointer_and_draw_bands(browser, site):
    with visiting(browser, site.address) as visitor:
        visitor.sign_in(site.tokens["viewer"])
        page = visitor.go(f"/console/tasks/{site.tasks['lively']}/trends")
        over = page.locator(".u-over")
        box = over.bounding_box()
        page.mouse.move(box["x"] + box["width"] - 5, box["y"] + 40)
        legend = page.locator(".u-legend .u-series").first
        legend.get_by_text("3", exact=True).wait_for()
        assert not page.locator("svg.drawing").is_visible()
        page.get_by_placeholder("Add a query").fill("video")
        page.get_by_role("button", name="Show").click()
        page.locator(".u-legend").get_by_text("video").first.wait_for()
        page.get_by_label("From round").select_option("1")
        page.get_by_role("button", name="Compare").click()
        page.get_by_text("From round 1 to round 3").wait_for()
        rising = page.locator(".card", has=page.get_by_role("heading", name="Rising"))
        assert rising.get_by_text("news").is_visible()


def test_local_search_and_planner_answer(browser, site):
    with visiting(browser, site.address) as visitor:
        visitor.sign_in(site.tokens["viewer"])
        page = visitor.go(f"/console/tasks/{site.tasks['lively']}/search")
        page.get_by_label("Try it").fill("Wether")
        page.keyboard.press("Enter")
        page.get_by_text("with typing errors").first.wait_for()
        assert page.locator(".answers .query").first.inner_text() == "weather"
        assert page.locator(".answers .url").first.inner_text().startswith("https://weather.example/")
        page = visitor.go("/console/planner")
        page.get_by_label("People in all").fill("10000")
        assert page.locator("output[for=s-users]").inner_text() == "10,000"
        page.get_by_role("button", name="Forecast").click()
        page.get_by_role("heading", name="Forecast at ε = 4").wait_for()
        assert page.locator("[data-chart]").count() == 3


def test_the_keyboard_is_enough(browser, site):
    with visiting(browser, site.address) as visitor:
        page = visitor.go("/console/sign-in")
        assert page.evaluate("document.activeElement.id") == "token"
        page.keyboard.insert_text(site.tokens["operator"])
        page.keyboard.press("Enter")
        page.wait_for_url("**/console")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "New task"
        page.keyboard.press("Enter")
        page.wait_for_url("**/console/new-task")
        reached = set()
        for _ in range(40):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.name || document.activeElement.textContent"))
        assert {"name", "epsilon", "min_optin", "Times", "Make the task"} <= reached


def test_a_list_is_sifted_ticked_and_walked_by_keys(browser, site):
    with visiting(browser, site.address) as visitor:
        visitor.sign_in(site.tokens["reviewer"])
        page = visitor.go(f"/console/tasks/{site.tasks['review']}/rounds/1/review")
        find, counts, focused = (
            page.get_by_label("Find in the list"),
            page.get_by_role("status"),
            "document.activeElement",
        )
        find.fill("weather")
        assert page.locator(".candidates > li:visible").count() == 1
        find.press("x")
        assert "0 ticked" in counts.inner_text(), "a letter in the field is a letter"
        find.fill("weather")
        visitor.click("Tick all shown")
        assert "3 of" in counts.inner_text()
        assert "3 ticked for removal" in counts.inner_text()
        find.press("ArrowDown")
        first = page.evaluate(f"{focused}.value")
        page.keyboard.press("j")
        assert page.evaluate(f"{focused}.value") == f"{first}.0"
        page.keyboard.press("x")
        assert "2 ticked" in counts.inner_text()
        page.keyboard.press("ArrowUp")
        assert page.evaluate(f"{focused}.value") == first
        page.get_by_label("Show", exact=True).select_option("hits")
        find.fill("")
        visitor.click("Untick all shown")
        assert "2 ticked" in counts.inner_text(), "what is not shown stays as it is"
        assert page.locator(".candidate:visible:not(.context)").count() == page.locator(".hit").count()


def test_the_appearance_is_kept_and_times_are_the_readers(browser, site):
    ground = "getComputedStyle(document.body).backgroundColor"
    with visiting(browser, site.address, timezone_id="Asia/Tokyo") as visitor:
        visitor.sign_in(site.tokens["viewer"])
        page = visitor.go(f"/console/tasks/{site.tasks['lively']}?done=task")
        when = page.locator("time").first
        assert when.get_attribute("title").endswith(" UTC")
        assert when.inner_text().endswith(" GMT+9")
        assert "done" not in page.url
        axis = visitor.go("/console").locator("svg.timeline [data-time]")
        names = axis.evaluate_all("(ticks) => ticks.map((tick) => tick.firstChild.data)")
        titles = axis.locator("title").all_text_contents()
        assert len(set(names)) == len(names) == len(titles) == 5
        assert [name for name in names if not re.search(r"20\d\d$|GMT\+9$|^\d\d:\d\d", name)] == []
        assert all(title.endswith("Z") for title in titles)
        page.go_back()
        light = page.evaluate(ground)
        page.get_by_label("Appearance").select_option("dark")
        dark = page.evaluate(ground)
        assert light != dark
        page.reload()
        assert page.evaluate(ground) == dark
        assert page.get_by_text("The task is made.").count() == 0
        page.get_by_label("Appearance").select_option("auto")
        page.emulate_media(color_scheme="dark")
        assert page.evaluate(ground) == dark
        page.emulate_media(color_scheme="light")
        assert page.evaluate(ground) == light


def test_reduced_motion_is_kept(browser, site):
    with visiting(browser, site.address, reduced_motion="reduce") as visitor:
        visitor.sign_in(site.tokens["viewer"])
        page = visitor.go(f"/console/tasks/{site.tasks['running']}/rounds/1")
        assert page.locator(".pulse").evaluate("element => getComputedStyle(element).animationName") == "none"


def test_other_sites_can_neither_frame_nor_post(browser, site):
    """A page of another site, opened by somebody who is signed in."""
    with visiting(browser, site.address) as visitor:
        visitor.sign_in(site.tokens["operator"])
        elsewhere = site.address.replace("127.0.0.1", "localhost")
        page = visitor.page
        page.goto(f"{elsewhere}/healthz")
        page.set_content(
            f'<iframe src="{site.address}/console"></iframe>'
            f'<form method="post" action="{site.address}/console/tasks/{site.tasks["lively"]}/kill">'
            '<input name="sure" value="yes"><button>Win a prize</button></form>'
        )
        page.wait_for_load_state("networkidle")
        assert all("Overview" not in (frame.content() if frame != page.main_frame else "") for frame in page.frames)
        page.get_by_role("button", name="Win a prize").click()
        page.wait_for_load_state()
        assert not site.parts.store.rounds.task(site.tasks["lively"]).killed
