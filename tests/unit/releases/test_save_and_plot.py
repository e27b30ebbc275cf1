"""Results that people hold are saved as the folders of the commands, read back, drawn, packed and checked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import searchblend as sb
from searchblend.cli.main import main
from searchblend.synthetic.seeded import SeededRandomness
from searchblend.wire.release import UNKNOWN_READING_CAVEAT

ODD = "$x_1^$ <b>=1+1"
"""mathematics for Matplotlib, markup for a page, a formula for a spreadsheet"""
BUDGET = sb.Budget(4.0, 1e-5)
DECIDED = {"format": "tsv", "urls": True, "host_only": False, "quoted_line_feeds": False}


@pytest.fixture(scope="module")
def blend() -> sb.BlenderRelease:
    users = [[sb.Record(ODD, "u.example")]] * 900 + [[sb.Record("weather", "v.example")]] * 300
    return sb.run_blender(
        sb.InMemoryGroup.from_users(users),
        sb.InMemoryGroup.from_users(10 * users),
        sb.BlenderParams(BUDGET),
        method="paper",
        randomness=SeededRandomness(2),
    )


@pytest.fixture(scope="module")
def graph() -> sb.ClickGraphRelease:
    users = [[sb.Search(ODD, 0, ("w.example",)), sb.Search("news", 60)] for _ in range(400)]
    return sb.release_data(sb.InMemoryClickLog(users), sb.ClickGraphParams(BUDGET))


@pytest.fixture(scope="module")
def heavy() -> sb.HeavyValues:
    table = {"user": [f"user {i}" for i in range(600)], "value": [ODD if i % 3 else "" for i in range(600)]}
    return sb.select_values({name: np.array(column) for name, column in table.items()}, BUDGET)


@pytest.mark.parametrize("kind", ["blend", "graph", "heavy"])
def test_a_saved_result_is_read_back_and_drawn_as_it_was(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    result: Any = request.getfixturevalue(kind)
    result.save(tmp_path / "out")
    read = sb.read_release(tmp_path / "out")
    columns = read.columns()
    for name, column in result.columns().items():
        if name != "debiased":  # the files have estimate
            assert columns[name] == pytest.approx(list(column)) if name != "query" else columns[name] == list(column)
    assert str(read.guarantee) == str(result.guarantee).partition("\n")[0]
    for held in (result, read):
        figure = held.plot(tmp_path / "plot.png")
        labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        assert ODD in labels
        assert figure._repr_png_().startswith(b"\x89PNG")
    read.save(tmp_path / "again")
    for path in (tmp_path / "out").iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
    with pytest.raises(sb.OutputError, match="earlier release"):
        result.save(tmp_path / "out")
    assert "<b>" not in read._repr_html_()
    assert "out" not in repr(read)


def test_how_the_log_was_read_is_stated_or_said_to_be_unknown(graph: sb.ClickGraphRelease, tmp_path: Path) -> None:
    graph.save(tmp_path / "known", log=DECIDED, html=True)
    graph.save(tmp_path / "unknown")
    known, unknown = (sb.read_release(tmp_path / name).statement for name in ("known", "unknown"))
    assert known.parameters["log"] == DECIDED
    assert UNKNOWN_READING_CAVEAT not in known.caveats
    assert UNKNOWN_READING_CAVEAT in unknown.caveats
    assert all(check.holds for check in sb.verify_release(tmp_path / "known"))
    assert main(["release", "verify", str(tmp_path / "unknown")]) == 0
    assert sb.page_of_folder(str(tmp_path / "known")) == (tmp_path / "known/index.html").read_text()


def test_a_selection_and_a_blend_are_verified_too(
    blend: sb.BlenderRelease, heavy: sb.HeavyValues, tmp_path: Path
) -> None:
    heavy.save(tmp_path / "heavy")
    names = [check.name for check in sb.verify_release(tmp_path / "heavy") if check.holds]
    assert names == ["file values.csv", "no other files", "promise", "conditions", "δ computed again", "threshold"]
    statement = tmp_path / "heavy/statement.json"
    statement.write_text(statement.read_text().replace('"integer_threshold": ', '"integer_threshold": 1'))
    assert [check.name for check in sb.verify_release(tmp_path / "heavy") if not check.holds] == ["threshold"]
    evaluated = statement.read_text().replace("{", '{"notice": "NOT PRIVATE",', 1)
    statement.write_text(evaluated)
    assert "private" in [check.name for check in sb.verify_release(tmp_path / "heavy") if not check.holds]
    with pytest.raises(sb.InputError, match="not private"):
        sb.read_release(tmp_path / "heavy")
    blend.save(tmp_path / "blend")
    failed = [check.name for check in sb.verify_release(tmp_path / "blend") if not check.holds]
    assert failed == ["conditions"]  # its generator is a seeded one


def test_a_head_list_message_is_what_a_device_reports_by() -> None:
    head, params = sb.HeadList({"weather": ["w.example"]}), sb.BlenderParams(BUDGET)
    message = sb.decode_head_list(sb.encode_head_list(head, params, sb.ReportDesign(0, 1, 1)))
    assert message.design is not None
    (report,) = sb.subset_report([sb.Record("weather", "w.example")], message.head, message.design, message.params)
    assert not report.about_queries


def test_a_pack_is_the_same_from_a_blend_its_folder_and_the_command(blend: sb.BlenderRelease, tmp_path: Path) -> None:
    blend.save(tmp_path / "out")
    built = sb.build_from_release(blend)
    assert built.content == sb.build_from_release(tmp_path / "out").content
    assert built.content == sb.build_from_release(sb.read_release(tmp_path / "out")).content
    assert main(["pack", "build", str(tmp_path / "out"), "-o", str(tmp_path / "p.sbpack")]) == 0
    assert (tmp_path / "p.sbpack").read_bytes() == built.content
    assert sb.SearchIndex(built.pack).urls_for("weather", limit=1)


def test_what_a_kind_of_release_does_not_have_is_refused(
    graph: sb.ClickGraphRelease, heavy: sb.HeavyValues, tmp_path: Path
) -> None:
    heavy.save(tmp_path / "out")
    read = sb.read_release(tmp_path / "out")
    for result in (heavy, read):
        with pytest.raises(sb.InvalidParameter, match="html"):
            result.save(tmp_path / "other", html=True)
        with pytest.raises(sb.InvalidParameter, match="log"):
            result.save(tmp_path / "other", log=DECIDED)
    with pytest.raises(sb.InvalidParameter, match="a blend"):
        sb.build_from_release(read)
    with pytest.raises(sb.UsageError, match=r"\.png"):
        graph.plot(tmp_path / "plot.txt")
    assert not (tmp_path / "other").exists()


def test_an_empty_release_is_not_saved(tmp_path: Path) -> None:
    none = sb.release_data(sb.InMemoryClickLog([[sb.Search("a", 0)]]), sb.ClickGraphParams(BUDGET))
    with pytest.raises(sb.EmptyHeadList, match="nothing was published"):
        none.save(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [("values.csv", b"value,count\na,9\n", "differs"), ("statement.json", b"{}", "statement")],
)
def test_a_changed_folder_is_refused(
    name: str, content: bytes, reason: str, heavy: sb.HeavyValues, tmp_path: Path
) -> None:
    heavy.save(tmp_path / "out")
    (tmp_path / "out" / name).write_bytes(content)
    with pytest.raises(sb.InputError, match=reason):
        sb.read_release(tmp_path / "out")


def test_without_matplotlib_a_plot_says_what_to_install(heavy: sb.HeavyValues, monkeypatch: pytest.MonkeyPatch) -> None:
    import searchblend.pages

    monkeypatch.delattr(searchblend.pages, "plots", raising=False)
    monkeypatch.delitem(sys.modules, "searchblend.pages.plots", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(sb.UsageError, match=r"searchblend\[plots\]"):
        heavy.plot()
