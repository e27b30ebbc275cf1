"""Local search answers what was released, for what people type."""

from __future__ import annotations

from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.pipeline import run_blender
from searchblend.params import BlenderParams
from searchblend.privacy import Budget
from searchblend.records import Record
from searchblend.search.index import SearchIndex


def test_best_url_first_and_typed_forms_are_normalized():
    users = [[Record("weather", "http://often.example")]] * 6000 + [[Record("weather", "http://seldom.example")]] * 600
    optin, clients = InMemoryGroup.from_users(users).split(0.5)
    index = SearchIndex(run_blender(optin, clients, BlenderParams(Budget(6.0, 1e-5))))
    assert index.urls_for("  WEATHER ") == ["http://often.example", "http://seldom.example"]
    assert index.urls_for("weather", limit=1) == ["http://often.example"]
    assert index.urls_for("nobody asked") == []
    assert index.urls_for("\ud800") == []
    assert len(index) == 1
