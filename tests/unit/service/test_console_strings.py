"""Queries and URLs on the console's pages are people's own strings: every place that shows one spells controls out."""

from __future__ import annotations

import re
from pathlib import Path

from searchblend.service.console import render

TEMPLATES = sorted((Path(render.__file__).parent / "templates").glob("*.html"))
SHOWN = re.compile(r"""class="(?:query|url|\{\{ words \}\})[^>]*>(\{\{.*?\}\})""")


def test_every_query_and_url_is_shown_with_its_controls_spelt_out():
    shown = [(path.name, found) for path in TEMPLATES for found in SHOWN.findall(path.read_text())]
    assert len(shown) >= 10
    assert [place for place in shown if "| visible" not in place[1]] == []


def test_the_filter_is_the_one_of_every_page():
    template = render.environment().from_string("<span>{{ query | visible }}</span>")
    assert template.render(query="a\u202e<b>") == "<span>a[U+202E]&lt;b&gt;</span>"
