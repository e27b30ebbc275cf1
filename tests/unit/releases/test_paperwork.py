"""Papers of a release: their figures are those of its files, and what is damaged, untrue or not private has none."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import numpy as np
import pytest
import yaml

import searchblend as sb
from made_releases import graph_release, hybrid_release
from searchblend.cli.main import main
from searchblend.core.errors import InvalidParameter
from searchblend.core.statement import FileEntry
from searchblend.pages.layout import markdown, markdown_code, render_markdown
from searchblend.releases.paperwork import WRITERS, paperwork_of_folder
from searchblend.releases.publication import ASKED, PURPOSES, Publication, open_fields
from searchblend.releases.release_facts import ReleaseFacts, facts_of_folder

SCHEMA = Path(__file__).parents[4] / "shared/schemas/dp-registry-schema.yaml"
"""the registry's own; it states no licence, so that no copy of it is kept here"""
KINDS = ("hybrid", "graph", "values")
GIVEN = Publication(**{name: f"{'10.5281/' * (name == 'doi')}{name}, given" for name in ASKED})
NOTHING = Publication()


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {kind: tmp_path_factory.mktemp(kind) for kind in KINDS}
    table = {"user": np.arange(300).astype(str), "value": np.array(["a", "b", "=c"] * 100)}
    sb.select_values(table, sb.Budget(2.0, 1e-6)).save(folders["values"] / "release")
    hybrid_release(folders["hybrid"], "--records-per-optin", "1", "--method", "paper")
    graph_release(folders["graph"])
    return {kind: folder / "release" for kind, folder in folders.items()}


@pytest.fixture(params=KINDS)
def release(request: pytest.FixtureRequest, releases: dict[str, Path]) -> Path:
    return releases[request.param]


def statement_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "statement.json").read_text())


def changed(folder: Path, place: Path, change: dict[str, Any]) -> Path:
    """A copy of a release whose statement says something else."""
    place.mkdir()
    for path in folder.iterdir():
        (place / path.name).write_bytes(path.read_bytes())
    statement = statement_of(folder)
    for path, value in change.items():
        *parents, last = path.split(".")
        inner = statement
        for parent in parents:
            inner = inner[parent]
        inner[last] = value
    (place / "statement.json").write_text(json.dumps(statement))
    return place


def strings(document: object) -> list[str]:
    if isinstance(document, dict):
        return [text for value in document.values() for text in strings(value)]
    if isinstance(document, list):
        return [text for value in document for text in strings(value)]
    return [document] if isinstance(document, str) else []


@cache
def facts_of(folder: Path) -> ReleaseFacts:
    return facts_of_folder(folder)


def paper(folder: Path, purpose: str, given: Publication) -> str:
    return WRITERS[purpose](facts_of(folder), given)


def test_an_entry_of_the_registry_is_what_its_schema_asks_for(release: Path):
    document = yaml.safe_load(paper(release, "registry", NOTHING))
    if not SCHEMA.exists():
        pytest.skip(f"{SCHEMA.name} is not there: the entry was NOT validated")
    schema = yaml.safe_load(SCHEMA.read_text())
    jsonschema_rs.validator_for(schema, validate_formats=True).validate(document)
    for part, fields in schema["properties"]["deployment"]["properties"].items():
        assert sorted(document["deployment"][part]) == sorted(fields["properties"]), part
    document["deployment"]["basic"]["publication_date"] = 20261117
    assert not jsonschema_rs.is_valid(schema, document)


def test_an_entry_has_no_empty_field_and_the_figures_of_the_release(release: Path):
    document = yaml.safe_load(paper(release, "registry", GIVEN))
    guarantee, stated = statement_of(release)["guarantee"], document["deployment"]["privacy_loss"]
    assert all(text.strip() for text in strings(document))
    assert stated["privacy_parameters"] == {"epsilon": guarantee["epsilon"], "delta": guarantee["delta"]}
    assert document["tier"] == 3
    assert document["deployment"]["basic"]["data_curators"] == ["publisher, given"]


@pytest.mark.parametrize(("kind", "model"), [("hybrid", "Varies"), ("graph", "Central"), ("values", "Central")])
def test_the_registry_knows_no_hybrid(releases: dict[str, Path], kind: str, model: str):
    found = yaml.safe_load(paper(releases[kind], "registry", NOTHING))["deployment"]["deployment_model"]
    assert found["model_name"] == model
    assert ("Hybrid" in found["model_name_details"]) == (kind == "hybrid")
    for group in statement_of(releases[kind])["guarantee"]["groups"]:
        assert group["trust"] in found["actors"]


def test_every_paper_states_the_budget_and_no_query(release: Path):
    facts = facts_of(release)
    epsilon, delta = f"ε = {facts.guarantee.epsilon:g}", facts.words.promise.rpartition("δ = ")[2].rstrip(".")
    for purpose in PURPOSES:
        text = paper(release, purpose, NOTHING)
        assert epsilon in text
        assert delta in text
        assert "weather" not in text
        assert "hacked" not in text


def test_open_fields_are_marked_and_options_fill_them(release: Path):
    assert list(WRITERS) == list(PURPOSES)
    for purpose in PURPOSES:
        nothing, given = (paper(release, purpose, who) for who in (NOTHING, GIVEN))
        asked = {name for name in ASKED if f"(--{name})" in nothing}
        assert {name for name in ASKED if f"{name}, given" in given} == asked
        assert "(--" not in given
        assert open_fields(nothing) - open_fields(given) == len(re.findall(r"\(--\w+\)", nothing))
    assert open_fields(paper(release, "readme", GIVEN)) == 0


def test_a_readme_explains_every_column_and_lists_every_file(release: Path):
    text = paper(release, "readme", GIVEN)
    for table in facts_of(release).kind.tables:
        lines = (release / table.file).read_text(encoding="utf-8").splitlines()
        assert f"### {table.file}: ".replace("_", r"\_") in text
        assert list(table.columns) == lines[0].split(",")
        assert all(f"| `{column}` |" in text for column in table.columns)
    for name, entry in statement_of(release)["files"].items():
        assert f"| {name} | {entry['bytes']:,} | {entry['sha256']} |" in text


def test_a_readme_is_cited_with_publisher_and_doi_where_they_are_known(release: Path):
    cited, bare = (re.search("^> (.*)$", paper(release, "readme", who), re.MULTILINE)[1] for who in (GIVEN, NOTHING))
    assert cited == f"publisher, given: {bare} doi:10.5281/doi, given"
    assert "## How to cite" in paper(release, "readme", GIVEN)


def test_a_dataset_is_described_to_catalogues_column_by_column_and_file_by_file(release: Path):
    document = json.loads(paper(release, "dataset", GIVEN))
    assert (document["@context"], document["@type"]) == ("https://schema.org/", "Dataset")
    assert document["creator"]["name"] == "publisher, given"
    assert document["identifier"][0]["value"] == "10.5281/doi, given"
    files = statement_of(release)["files"]
    assert {one["name"]: one["sha256"] for one in document["distribution"]} == {
        name: entry["sha256"] for name, entry in files.items()
    }
    assert "application/octet-stream" not in {one["encodingFormat"] for one in document["distribution"]}
    columns = [f"{table.file}: {name}" for table in facts_of(release).kind.tables for name in table.columns]
    assert [one["name"] for one in document["variableMeasured"]] == columns
    assert all(one["description"] for one in document["variableMeasured"])
    assert all(text.strip() for text in strings(document))


@pytest.mark.parametrize("doi", ["https://doi.org/10.5281/x", "10.5281", "zenodo.1"])
def test_what_is_no_doi_is_refused(doi: str):
    with pytest.raises(InvalidParameter, match="doi: expected"):
        Publication(doi=doi)


def test_tables_are_whole(release: Path):
    """Every row of a table has the cells of its heading."""
    for purpose in ("nist", "dpia", "readme"):
        for table in re.findall(r"(?:^\|.*\n)+", paper(release, purpose, NOTHING), re.MULTILINE):
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


@pytest.mark.parametrize(("records", "wide", "urls"), [(1, False, False), (1, True, True), (20, False, True)])
def test_the_promise_of_every_curator_is_computed_again(tmp_path: Path, records: int, wide: bool, urls: bool):
    users = [[sb.Record(query, f"http://{query}.example/" if urls else sb.WILDCARD)] for query in ("a", "b") * 100]
    params = sb.BlenderParams(sb.Budget(4.0, 1e-5), records_per_optin=records)
    groups = (sb.InMemoryGroup.from_users(users) for _ in range(2))
    sb.run_blender(*groups, params, wide_list=wide).save(tmp_path / "out")
    assert "ε = 4, δ = 10⁻⁵" in paperwork_of_folder(tmp_path / "out", "nist", NOTHING)
    other = changed(tmp_path / "out", tmp_path / "other", {"parameters.records_per_optin": 21 - records})
    with pytest.raises(sb.InputError, match="parameters give"):
        facts_of_folder(other)


def test_odds_count_twice_where_neighbours_add_or_remove_a_person(releases: dict[str, Path]):
    hybrid, graph = (facts_of(releases[kind]) for kind in ("hybrid", "graph"))
    assert (hybrid.replaces_one, graph.replaces_one) == (True, False)
    assert hybrid.odds == pytest.approx(np.exp(4.0))
    assert graph.odds == pytest.approx(np.exp(8.0))
    assert (hybrid.odds_delta, graph.odds_delta) == (1e-5, pytest.approx(1e-5 * (1 + np.exp(4.0))))
    assert dict(hybrid.beliefs)[0.5] == pytest.approx(1 / (1 + np.exp(-4.0)))


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("hybrid", {"guarantee.epsilon": 1.0}),
        ("hybrid", {"parameters.epsilon": 1.0}),
        ("hybrid", {"parameters.epsilon": "four"}),
        ("hybrid", {"guarantee.groups": []}),
        ("hybrid", {"release.created": "some day"}),
        ("graph", {"guarantee.epsilon": 1.0}),
        ("graph", {"guarantee.delta": 1e-9}),
        ("graph", {"parameters.design.steps": []}),
        ("graph", {"parameters": []}),
        ("values", {"guarantee.delta": 1e-9, "parameters.delta": 1e-9}),
        ("values", {"parameters.integer_threshold": 2}),
        ("values", {"guarantee": {}}),
        ("values", {"release.kind": "another"}),
        ("values", {"files": {}}),
    ],
)
def test_a_statement_that_does_not_follow_from_its_parameters_has_no_papers(
    releases: dict[str, Path], kind: str, change: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = changed(releases[kind], tmp_path / "changed", change)
    assert main(["statement", str(folder), "--for", "readme", "-o", str(tmp_path / "README.md")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "README.md").exists()


@pytest.mark.parametrize("change", [{"notice": "NOT PRIVATE"}, {"guarantee.holds": False}])
def test_what_must_not_be_released_has_no_papers(
    releases: dict[str, Path], change: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["statement", str(changed(releases["values"], tmp_path / "x", change)), "--for", "nist"]) == 1
    assert re.search("must not be released|not private", capsys.readouterr().err)


def test_a_changed_table_or_no_release_has_no_papers(releases: dict[str, Path], tmp_path: Path):
    folder = changed(releases["values"], tmp_path / "changed", {})
    (folder / "values.csv").write_text("value,count\nme,1\n")
    assert main(["statement", str(folder), "--for", "nist"]) == 1
    assert main(["statement", str(tmp_path), "--for", "nist"]) == 1
    assert main(["statement", str(tmp_path / "nowhere"), "--for", "nist"]) == 1


@pytest.mark.parametrize("arguments", [["--for", "tax"], [], ["--for", "nist", "--publisher", " "], ["--json"]])
def test_misuse_is_refused(releases: dict[str, Path], arguments: list[str]):
    try:
        code = main(["statement", str(releases["values"]), *arguments])
    except SystemExit as ended:
        code = ended.code
    assert code == 2


def test_a_file_is_replaced_only_when_asked_and_never_inside_the_release(
    releases: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder, file = releases["graph"], tmp_path / "README.md"
    command = ["statement", str(folder), "--for", "readme", "-o"]
    assert main([*command, str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "file": str(file),
        "bytes": FileEntry.of(file.read_bytes()).size,
        "open_fields": len(ASKED),
    }
    file.write_text("mine")
    assert main([*command, str(file)]) == 1
    assert file.read_text() == "mine"
    assert main([*command, str(file), "--force"]) == 0
    assert file.read_text().startswith("# A query click graph\n")
    assert main([*command, str(folder / "README.md")]) == 2
    assert not (folder / "README.md").exists()


def test_texts_of_others_mean_nothing_in_markdown():
    assert markdown("a|b\n# <script> [x](y) `*_") == r"a\|b # \<script\> \[x\](y) \`\*\_"
    assert markdown_code("a`|b\n") == "`a'/b`"
    assert markdown(markdown_code("a_b")) == "`a_b`"


def test_a_template_escapes_what_it_is_given(releases: dict[str, Path], tmp_path: Path):
    folder = changed(releases["values"], tmp_path / "x", {"caveats": ["<script> | [a](b)\n\n# big"]})
    text = paperwork_of_folder(folder, "nist", NOTHING)
    assert r"- \<script\> \| \[a\](b) # big" in text
    with pytest.raises(Exception, match="undefined"):
        render_markdown("nist.md")
