"""``searchblend graph`` as a person meets it, on the folder of a small release."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from made_click_graph import GAUSSIAN, LAPLACE, made_graph, write_release
from searchblend.cli.main import main
from searchblend.clickgraph.use.graph import ClickGraph

FEARS = "^fear of (.+)$"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(tmp_path_factory.mktemp("graph") / "release")


def says(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["graph", *(str(argument) for argument in arguments)]) == 0
    return capsys.readouterr().out


def answers(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    return json.loads(says(capsys, *arguments, "--json"))


def fails(capsys: pytest.CaptureFixture[str], code: int, *arguments: object) -> str:
    assert main(["graph", *(str(argument) for argument in arguments)]) == code
    said = capsys.readouterr()
    assert said.out == ""
    lines = [line for line in said.err.splitlines() if line.startswith("searchblend: error: ")]
    assert len(lines) == 1
    assert "Traceback" not in said.err
    return lines[0]


def test_keywords(release: Path, capsys: pytest.CaptureFixture[str]):
    found = answers(capsys, "keywords", release, "--seed-domain", "sky.example", "--threshold", ".7")
    assert [row["query"] for row in found["rows"]] == ["weather", "weather radar"]
    assert found["rows"][0] | {"relevance": 0} == {
        "query": "weather", "class": "seed", "relevance": 0, "count": 1500, "lo95": 1488.0, "hi95": 1512.0,
    }  # fmt: skip
    assert found["rows"][0]["relevance"] == pytest.approx(0.999)
    assert (found["kept_edges"], found["all_edges"]) == (12, 14)
    printed = says(capsys, "keywords", release, "--seed-domain", "sky.example", "--method", "arw2008")
    assert "weather radar" in printed
    assert "12 of 14 click edges pass the cut" in printed


@pytest.mark.parametrize("name", ["study.csv", "study.tsv"])
def test_spreadsheets_compute_nothing_of_what_is_written(tmp_path: Path, capsys, name: str):
    graph = ClickGraph.of({"fear of =cmd|' /c calc'!a0": (90, 80.0, 100.0)}, {}, {}, noise={"queries": LAPLACE})
    release, target = write_release(tmp_path / "release", graph), tmp_path / name
    says(capsys, "study", release, "--pattern", FEARS, "-o", target)
    assert target.read_text().splitlines()[1].startswith("\"'=cmd|' /c calc'!a0\"")


def test_keywords_of_classes_into_a_file(release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    seeds, target = tmp_path / "seeds.csv", tmp_path / "new" / "keywords.tsv"
    seeds.write_text("class,url\nshoes,shoes.example\nsky,http://sky.example/\n\n")
    says(capsys, "keywords", release, "--seeds", seeds, "-o", target)
    rows = list(csv.DictReader(target.read_text().splitlines(), delimiter="\t"))
    assert {(row["query"], row["class"]) for row in rows} >= {("running shoes", "shoes"), ("weather", "sky")}
    assert "exists; choose another name or pass --force" in fails(
        capsys, 1, "keywords", release, "--seeds", seeds, "-o", target
    )
    says(capsys, "keywords", release, "--seeds", seeds, "-o", target, "--force", "--cut", "0")
    assert list(target.parent.iterdir()) == [target]


def test_seeds_that_fit_nothing_are_told(release: Path, capsys: pytest.CaptureFixture[str]):
    main(["graph", "keywords", str(release), "--seed-domain", "sky.example", "--seed-url", "http://gone.example"])
    assert "1 seeds fit no URL" in capsys.readouterr().err


def test_similar(release: Path, capsys: pytest.CaptureFixture[str]):
    rows = answers(capsys, "similar", release, "Running Shoes", "--limit", "2")["rows"]
    assert [(row["query"], row["relation"]) for row in rows] == [
        ("runing shoes", "narrower"),
        ("trail shoes", "overlapping"),
    ]
    walked = answers(capsys, "similar", release, "trail shoes", "--by", "backward", "--steps", "101")["rows"]
    assert {"running shoes", "marathon"} <= {row["query"] for row in walked}
    urls = answers(capsys, "similar", release, "trail shoes", "--by", "forward", "--urls", "--limit", "1")["rows"]
    assert urls[0]["url"] == "http://shoes.example/trail"
    assert says(capsys, "similar", release, "fear of flying") == "Nothing found.\n"


def test_suggest_and_spell(release: Path, capsys: pytest.CaptureFixture[str]):
    rows = answers(capsys, "suggest", release, "running shoes", "--limit", "3")["rows"]
    assert [row["source"] for row in rows] == ["reformulation", "reformulation", "similar clicks"]
    assert [row["correction"] for row in answers(capsys, "spell", release)["rows"]] == ["running shoes"]
    assert [row["edits"] for row in answers(capsys, "spell", release, "runing shoes")["rows"]] == [1]
    assert answers(capsys, "spell", release, "weather")["rows"] == []


def test_study(release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "map.csv").write_text("spiders,animals\nsnakes,animals\n")
    (tmp_path / "stop.txt").write_text("clowns movie\n\n")
    options = ["--pattern", FEARS, "--categories", tmp_path / "map.csv", "--stop", tmp_path / "stop.txt"]
    found = answers(capsys, "study", release, *options)
    assert [row["name"] for row in found["rows"]] == ["animals", "flying", "heights", "death"]
    assert (found["matched"], found["stopped"]) == (6, 1)
    assert found["rows"][1]["swap_probability"] == pytest.approx(0.2754, abs=1e-3)
    assert found["rows"][-1]["swap_probability"] is None
    printed = says(capsys, "study", release, *options, "--top", "2", "-o", tmp_path / "study.csv")
    assert "death" not in printed
    assert len((tmp_path / "study.csv").read_text().splitlines()) == 5


def test_studies_of_two_releases_are_compared(release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    other = write_release(tmp_path / "other", made_graph(GAUSSIAN))
    found = answers(capsys, "study", release, "--pattern", FEARS, "--top", "3", "--compare", other)["comparison"]
    assert found == {"k": 3, "overlap": 1.0, "kendall_tau": 1.0, "common": 3}
    assert "overlap@3 1.00, Kendall's tau 1.000" in says(
        capsys, "study", release, "--pattern", FEARS, "--top", "3", "--compare", other
    )


def test_an_empty_result_has_a_header(release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    says(capsys, "study", release, "--pattern", "^zzz", "-o", tmp_path / "none.csv")
    assert (tmp_path / "none.csv").read_text() == "name,count,lo95,hi95,queries,swap_probability\n"


def test_synthesize(release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    target = tmp_path / "synth.tsv"
    document = answers(capsys, "synthesize", release, "--searches", "3000", "--users", "50", "-o", target)
    content = target.read_bytes()
    manifest = json.loads((tmp_path / "synth.tsv.manifest.json").read_text())
    assert manifest == document
    assert manifest["sha256"] == hashlib.sha256(content).hexdigest()
    assert manifest["notice"].startswith("SYNTHETIC")
    assert any("no times" in text for text in manifest["is_not"])
    statement = (release / "statement.json").read_bytes()
    assert manifest["drawn_from"]["statement_sha256"] == hashlib.sha256(statement).hexdigest()
    rows = list(csv.DictReader(content.decode().splitlines(), delimiter="\t"))
    assert len(rows) == manifest["searches"] == 3000
    assert {int(row["user"]) for row in rows} <= set(range(1, 51))
    assert sum(row["url"] != "" for row in rows) == manifest["clicks"]
    assert sum(row["reformulated"] == "1" for row in rows) == manifest["reformulations"] > 0
    assert "exists" in fails(capsys, 1, "synthesize", release, "--searches", "5", "-o", target)
    assert target.read_bytes() == content


def test_a_made_up_log_can_be_run_on(release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    says(capsys, "synthesize", release, "--searches", "20000", "--users", "4000", "-o", tmp_path / "synth.tsv")
    assert main(["run", str(tmp_path / "synth.tsv"), "-o", str(tmp_path / "out"), "--opt-in", "0.5"]) == 0
    assert "weather" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["keywords"], 2, "expected seeds: --seed-domain"),
        (["keywords", "--seed-domain", "gone.example"], 2, "none of its 1 seeds is in the released graph"),
        (["keywords", "--seed-domain", "sky.example", "--cut", "5000"], 1, "nothing in the graph leads to the seeds"),
        (["keywords", "--seed-domain", "sky.example", "--alpha", ".1", "--threshold", ".95"], 2, "threshold: expected"),
        (["keywords", "--seeds", "nowhere.csv"], 1, "nowhere.csv: cannot be read"),
        (["similar", "my own secret"], 2, "query: expected a query of the released graph"),
        (["similar", "weather", "--urls"], 2, "--urls needs a walk"),
        (["similar", "weather", "--by", "forward", "--idf"], 2, "--idf weighs shared clicks"),
        (["similar", "weather", "--by", "forward", "--stay", "0"], 2, "steps: expected an even number"),
        (["suggest", "my own secret"], 2, "query: expected a query of the released graph"),
        (["spell", "my own secret"], 2, "query: expected a query of the released graph"),
        (["study", "--pattern", "("], 2, "pattern: expected a regular expression"),
        (["study", "--pattern", "a", "--stop", "nowhere.txt"], 1, "nowhere.txt: cannot be read"),
        (["study", "--pattern", "a", "--compare", "nowhere"], 1, "nowhere: expected the folder of a released"),
    ],
)
def test_mistakes_are_said_in_one_line(
    release: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, problem: str
):
    message = fails(capsys, code, arguments[0], release, *arguments[1:])
    assert problem in message
    assert "secret" not in message


@pytest.mark.parametrize("action", ["keywords", "similar", "suggest", "spell", "study", "synthesize"])
def test_a_folder_that_is_no_release_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str], action: str):
    rest = {
        "keywords": ["--seed-domain", "a.example"],
        "similar": ["q"],
        "suggest": ["q"],
        "study": ["--pattern", "a"],
        "synthesize": ["--searches", "5", "-o", tmp_path / "synth.tsv"],
    }.get(action, [])
    assert "statement.json: is missing" in fails(capsys, 1, action, tmp_path, *rest)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "wrong", [["--stay", "1"], ["--cut", "-1"], ["--limit", "0"], ["--steps", "x"], ["--by", "magic"], ["--stay", "x"]]
)
def test_wrong_options_are_misuse(release: Path, capsys: pytest.CaptureFixture[str], wrong: list[str]):
    with pytest.raises(SystemExit) as ended:
        main(["graph", "similar", str(release), "weather", *wrong])
    assert ended.value.code == 2
    assert wrong[0] in capsys.readouterr().err


def test_keywords_of_two_graphs_are_compared(release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    other = write_release(tmp_path / "other", made_graph(GAUSSIAN))
    options = ["--seed-domain", "shoes.example", "--compare", other]
    found = answers(capsys, "keywords", release, *options)["comparison"]
    assert [row["threshold"] for row in found] == [0.7, 0.9, 0.95]
    assert found[0] == {"threshold": 0.7, "first": 5, "second": 5, "ratio": 1.0, "shared": 1.0}
    assert "ratio" in says(capsys, "keywords", release, *options)


def test_what_comes_of_a_graph_that_is_not_private_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = write_release(tmp_path / "release")
    statement = json.loads((folder / "statement.json").read_text())
    (folder / "statement.json").write_text(json.dumps({"notice": "NOT PRIVATE: for this test", **statement}))
    assert main(["graph", "spell", str(folder), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["notice"] == "NOT PRIVATE: for this test"
    assert "NOT PRIVATE" in said.err
    made = answers(capsys, "synthesize", folder, "--searches", "5", "-o", tmp_path / "synth.tsv")
    assert made["notice"].startswith("NOT PRIVATE: for this test. SYNTHETIC")
