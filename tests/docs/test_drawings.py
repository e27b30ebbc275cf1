"""The drawings in docs/ are what the script draws, and show every state of a round that the code has."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import draw
import pytest

from searchblend.store.states import State

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", draw.DRAWINGS)
def test_a_drawing_is_up_to_date(name: str):
    assert (draw.FOLDER / f"{name}.svg").read_text() == draw.DRAWINGS[name]().svg(), (
        "run: python scripts/documentation/draw.py"
    )


@pytest.mark.parametrize("name", draw.DRAWINGS)
def test_a_drawing_stands_alone_and_stays_on_its_card(name: str):
    root = ElementTree.fromstring((draw.FOLDER / f"{name}.svg").read_text())
    width, height = (float(part) for part in root.attrib["viewBox"].split()[2:])
    assert root.find(f"{SVG}title") is not None
    assert {element.tag for element in root.iter()} <= {
        f"{SVG}{tag}" for tag in ("svg", "title", "style", "rect", "text", "path", "polygon")
    }
    for rectangle in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(rectangle.attrib[key]) for key in ("x", "y", "width", "height"))
        assert x >= 0
        assert y >= 0
        assert x + w <= width
        assert y + h <= height


def test_every_state_is_drawn():
    drawn = re.findall(r'class="title"[^>]*>(\w+)<', (draw.FOLDER / "round-states.svg").read_text())
    assert sorted(drawn) == sorted(state.value for state in State)


@pytest.mark.parametrize("name", draw.DRAWINGS)
def test_every_drawing_is_shown_somewhere(name: str):
    assert any(f"drawings/{name}.svg)" in page.read_text() for page in (ROOT / "docs").rglob("*.md"))
