"""README, then docs/tutorial/first-round.md, by clicks on the server it starts; it names all that is clicked."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from console_browser import chromium, visiting
from newcomer import commands, newcomer
from snippets import blocks

TUTORIAL = (Path(__file__).parents[2] / "docs/tutorial/first-round.md").read_text()
SETTINGS = re.findall(r"^- \*\*(.+?)\*\*: `(.+?)`", TUTORIAL, re.MULTILINE)


@pytest.fixture
def started(tmp_path_factory, tmp_path):
    """README's install lines, then the commands of the tutorial in an empty folder; the last one with fewer people."""
    somebody = newcomer(tmp_path_factory, tmp_path)
    *before, command = commands(blocks("docs/tutorial/first-round.md"))
    for words in before:
        somebody.type(words)
    assert command[:2] == ["searchblend", "serve"]
    process = subprocess.Popen(
        [str(somebody.programs / command[0]), *command[1:], "--users", "6000"],
        cwd=tmp_path,
        env=somebody.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        found = {}
        for line in process.stdout:
            for name, pattern in (
                ("address", r"console: (http://\S+)/console"),
                ("operator", r"sign in as an operator: (sba_\S+)"),
                ("reviewer", r"sign in as a reviewer: +(sba_\S+)"),
            ):
                if match := re.search(pattern, line):
                    found[name] = match[1]
            if len(found) == 3:
                break
        assert len(found) == 3
        yield found
    finally:
        process.send_signal(signal.SIGINT)
        process.stdout.close()
        assert process.wait(240) == 0


class Reader:
    """A user who has read only the tutorial."""

    def __init__(self, visitor) -> None:
        self.visitor, self.page = visitor, visitor.page

    def sign_in(self, token: str) -> None:
        self.visitor.go("/console")
        self.page.get_by_label("Admin token").fill(token)
        self.press("Sign in")

    def press(self, words: str) -> None:
        assert f"**{words}**" in re.sub(r"\s+", " ", TUTORIAL), f"the tutorial does not say {words}"
        name = {"name": words, "exact": True}
        self.page.get_by_role("button", **name).or_(self.page.get_by_role("link", **name)).first.click()


def test_a_newcomer_gets_from_the_readme_through_the_first_round(started):
    optin, clients = 1500, 4500
    with (
        chromium() as browser,
        visiting(browser, started["address"]) as one,
        visiting(browser, started["address"]) as two,
    ):
        operator, reviewer = Reader(one), Reader(two)
        page = operator.page
        operator.sign_in(started["operator"])
        page.get_by_text("No task yet.").wait_for()
        operator.press("New task")
        assert [name for name, _ in SETTINGS] == ["Name", "Opt-in users", "Reporting devices", "Queries in the list"]
        for name, value in SETTINGS:
            page.get_by_label(name, exact=True).fill(value)
        operator.press("Make the task")
        operator.press("Draft a round")
        operator.press("Open the opt-in window")
        page.locator("[data-figure=optin]", has_text=f"{optin:,}").wait_for(timeout=240_000)
        operator.press("Close the opt-in window")
        operator.press("Yes, close the opt-in window")
        page.get_by_text("This is for a reviewer.").wait_for()

        reviewer.sign_in(started["reviewer"])
        reviewer.press("Review")
        reviewer.press("Review the list")
        reviewer.press("Approve the rest")
        reviewer.press("Yes, approve the list")

        page.locator("[data-figure=reports]", has_text=f"{clients:,}").wait_for(timeout=240_000)
        assert page.locator("[data-figure=conservation]").inner_text() == "holds"
        operator.press("Close the client window")
        operator.press("Yes, close the client window")
        operator.press("Take no more reports")
        operator.press("Yes, take no more reports")
        page.get_by_role("heading", name="Head list").wait_for()
        assert "weather" in page.locator(".list .query").all_inner_texts()
        for name in ("trends.csv", "result.json", "statement.json", "local-search.sbpack"):
            assert page.get_by_role("link", name=name, exact=True).count() == 1
        operator.press("See the trends")
        operator.press("Public page to share")
        page.get_by_text("Every figure was made differentially private").wait_for()
        operator.visitor.go("/console")
        operator.press("Budget")
        page.get_by_text("Plain sum").first.wait_for()
        page.locator("dd", has_text="ε = 4").first.wait_for()
        operator.press("Planner")
        operator.press("Why refused")
        page.get_by_text("Nothing was refused.").wait_for()
        assert operator.visitor.complaints() == []
        assert reviewer.visitor.complaints() == []
