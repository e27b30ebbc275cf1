"""Results as tables of other libraries, and as a notebook shows them."""

from __future__ import annotations

import inspect
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from made_groups import people

import searchblend as sb
from searchblend.blender.result import result_of
from searchblend.mechanisms.value_selection import SelectionDesign
from searchblend.synthetic.seeded import SeededRandomness

HOSTILE = "<script>alert(1)</script>\u202e"
OPTIN = {(HOSTILE, "u"): 900, ("weather", "v"): 200, **{(f"rare {i}", "u"): 1 for i in range(90)}}
CLIENTS = {key: 10 * n for key, n in OPTIN.items()}
BUDGET = sb.Budget(4.0, 1e-5)


@pytest.fixture(scope="module")
def released() -> sb.BlenderRelease:
    return sb.run_blender(
        people(OPTIN), people(CLIENTS), sb.BlenderParams(BUDGET), method="paper", randomness=SeededRandomness(2)
    )


@pytest.fixture(scope="module")
def graph() -> sb.ClickGraphRelease:
    users = [[sb.Search(HOSTILE, 0, ("w.example",)), sb.Search("news", 60)] for _ in range(400)]
    log = sb.InMemoryClickLog(users)
    return sb.release_data(log, sb.ClickGraphParams(BUDGET), randomness=SeededRandomness(1))


@pytest.fixture(scope="module")
def heavy(graph: sb.ClickGraphRelease) -> sb.HeavyValues:
    design = SelectionDesign.of(sb.Budget(1.0, 1e-6))
    return sb.HeavyValues({HOSTILE: 900, **{f"value {i}": 50 for i in range(11)}}, design, graph.guarantee)


def test_the_columns_of_a_blend_are_those_of_its_files(released: sb.BlenderRelease):
    result = result_of(released)
    assert released.columns()["query"] == [row.query for row in result.trends]
    assert released.columns("records")["url"] == [row.url for row in result.records]
    for table, rows in (("queries", result.trends), ("records", result.records)):
        columns = released.columns(table)  # type: ignore[arg-type]
        assert columns["probability"].tolist() == [row.probability for row in rows]
        assert list(zip(columns["low"], columns["high"], strict=True)) == [row.interval for row in rows]


def test_the_columns_of_a_click_graph_are_its_rows(graph: sb.ClickGraphRelease):
    assert [len(column) for column in graph.columns().values()] == [len(graph.queries)] * 6
    assert graph.columns("clicks")["url"] == [row.url for row in graph.clicks]
    assert graph.columns("reformulations")["next_query"] == [row.next_query for row in graph.reformulations]


@pytest.mark.parametrize("kind", ["released", "graph", "heavy"])
def test_other_libraries_get_the_columns(kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    result: Any = request.getfixturevalue(kind)
    for name, convert in (("pandas", "to_pandas"), ("polars", "to_polars"), ("pyarrow", "to_arrow")):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(DataFrame=dict, table=dict))
        columns = result.columns()
        assert {name: list(column) for name, column in getattr(result, convert)().items()} == {
            name: list(column) for name, column in columns.items()
        }
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(sb.UsageError, match=f"{name} is not installed"):
            getattr(result, convert)()
    with pytest.raises(sb.InvalidParameter, match="table"):
        result.columns("no such table")


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_real_libraries_take_the_columns(library: str, released: sb.BlenderRelease):
    pytest.importorskip(library, reason=f"{library} is not installed: results are not tested with it")
    table = getattr(released, {"pyarrow": "to_arrow"}.get(library, f"to_{library}"))()
    assert len(table) == len(released.head) + 1


@pytest.mark.parametrize("kind", ["released", "graph", "heavy"])
def test_a_notebook_shows_a_small_table_with_everything_escaped(kind: str, request: pytest.FixtureRequest):
    result: Any = request.getfixturevalue(kind)
    page = result._repr_html_()
    assert "<script" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;[U+202E]" in page
    assert "ε = 4, δ = 1e-05" in page
    assert "does NOT hold" in page  # the generator is a seeded one
    assert page.count("<tr>") <= 11
    assert ("and 2 more" in page) is (kind == "heavy")


@pytest.mark.parametrize("kind", ["released", "graph", "heavy"])
def test_a_result_is_one_short_line(kind: str, request: pytest.FixtureRequest):
    shown = repr(request.getfixturevalue(kind))
    assert "\n" not in shown
    assert len(shown) < 140
    assert "script" not in shown
    assert "ε = 4, δ = 1e-05, does NOT hold" in shown


def test_estimates_are_not_screens_of_numbers(released: sb.BlenderRelease):
    assert repr(released.queries) == "Blended(3 shares)"
    assert repr(released.optin.queries) == "Estimates(3 shares)"


def test_a_log_without_its_activity_is_refused_with_what_to_call():
    with pytest.raises(sb.InvalidParameter, match="activity"):
        sb.release_data(object(), sb.ClickGraphParams(BUDGET))  # type: ignore[arg-type]


def test_help_shows_no_address():
    for name in sb.__all__:
        if inspect.isfunction(function := getattr(sb, name)):
            assert " at 0x" not in str(inspect.signature(function)), name


def test_the_package_shows_its_names_and_version_alone():
    assert [name for name in dir(sb) if not name.startswith("__")] == sorted(sb.__all__)
    assert sb.__version__.split(".")[0].isdigit()
