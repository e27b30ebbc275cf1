"""The extension in real Firefox (ESR) over WebDriver BiDi: consent, a click on a result, a report that is counted.

As in Chromium the package has the host 127.0.0.1 granted from the start, and the data collection that Firefox would ask
about: nobody can answer a browser without a head.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading

from console_browser import SCREENSHOTS
from extension_parts import EXTENSION, EngineHandler, Pages, browser_path, build_extension
from extension_parts import driven_round as driven
from service_parts import enough_to_answer, people

SEARCHES = [["weather", "#first"], ["news", "#second"], ["card 4111 1111 1111 1111", "#first"]]


class Firefox:
    """The script that drives the browser; every answer is a line."""

    def __init__(self, wanted: dict) -> None:
        script = EXTENSION / "tests" / "firefox" / "run.js"
        self._process = subprocess.Popen(
            [browser_path("node"), str(script), json.dumps(wanted)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._guard = threading.Timer(560, self._process.kill)

    def __enter__(self):
        self._guard.start()
        return self

    def __exit__(self, *_):
        self._guard.cancel()
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def answer(self) -> dict:
        line = self._process.stdout.readline()
        assert line, self._process.stderr.read()[-3000:]
        return json.loads(line)

    def do(self, command: str) -> dict:
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return self.answer()

    def quit(self) -> None:
        self._process.stdin.write("quit\n")
        self._process.stdin.flush()
        assert self._process.wait(240) == 0, self._process.stderr.read()[-3000:]


def test_consent_click_report(tmp_path):
    package = build_extension(tmp_path / "package", "--for-tests") / "firefox"
    with Pages(EngineHandler) as engine, driven(tmp_path / "service") as round_:
        round_.open()
        round_.contribute([*people(400, seed=1), *enough_to_answer()])
        round_.name_head()
        wanted = {
            "firefox": browser_path("firefox-esr"),
            "extension": str(package),
            "engine": engine.address,
            "searches": SEARCHES,
            "link": round_.link,
            "screenshot": str(SCREENSHOTS / "extension/firefox-options.png") if os.environ.get("SCREENSHOTS") else "",
        }
        with Firefox(wanted) as firefox:
            agreed = firefox.answer()
            assert agreed["state"] == "On", agreed
            records = firefox.answer()["records"]
            assert sorted(records) == ["“news” → http://news.example/b", "“weather” → http://weather.example/a"]
            checked = firefox.do("check")
            assert checked["reports"] == ["pending"], checked
            sent = firefox.do("send")
            assert sent["reports"] == ["sent"]
            assert firefox.do("check")["reports"] == ["sent"]
            firefox.quit()
        round_.report(people(60, seed=2))
        assert round_.publish().reports_counted == 61
