"""The files of a released graph: what is written is read again, and what is wrong is named."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_click_graph import CLICKS, REFORMULATIONS, SEARCHES, made_graph, write_release, write_statement
from searchblend.clickgraph.release.noise_law import NoiseLaw
from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.core.errors import InputError, MessageError
from searchblend.wire.click_graph import TABLES, data_dictionary, decode_noise, encode_graphml, noise_parameters
from searchblend.wire.click_graph_files import encode_click_graph, read_click_graph

GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"


def as_rows(graph: ClickGraph) -> dict[str, list[tuple[object, ...]]]:
    return {
        name: sorted(zip(*(values.tolist() for values in graph.columns(name).values()), strict=True)) for name in TABLES
    }


def rewrite(folder: Path, table: str, select: str) -> None:
    """Replace a table by a query over it, and state its new digest."""
    path = folder / f"{table}.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS {select.format(source=path)}")
        connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")
    write_statement(folder, noise_parameters(made_graph()))


@pytest.mark.parametrize("kinds", [("parquet", "csv"), ("parquet",), ("csv",)])
def test_what_is_written_is_read_again(tmp_path: Path, kinds: tuple[str, ...]):
    folder = write_release(tmp_path / "it's a release")
    for path in folder.iterdir():
        if path.suffix in {".parquet", ".csv"} and path.suffix[1:] not in kinds:
            path.unlink()
    graph = read_click_graph(folder)
    assert as_rows(graph) == as_rows(made_graph())
    assert graph.noise == made_graph().noise
    assert graph.cuts == {"clicks": 10.0, "reformulations": 10.0}


odd_text = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8),
    st.text(st.sampled_from("=+-@＝'\"\t\r\n ,;|\u200b\u3000ab1"), min_size=1, max_size=8),
)


@pytest.mark.thorough
@settings(max_examples=25)
@given(st.dictionaries(odd_text, st.integers(-(10**12), 10**12), min_size=1, max_size=8), st.data())
def test_any_text_survives_both_forms(tmp_path_factory: pytest.TempPathFactory, searches, data):
    queries = st.sampled_from(sorted(searches))
    clicks = data.draw(st.dictionaries(st.tuples(queries, odd_text), st.integers(-9, 9), max_size=6))
    following = data.draw(st.dictionaries(st.tuples(queries, queries), st.integers(-9, 9), max_size=6))

    def rows(counts):
        return {key: (n, n - 0.5, n + 1 / 3) for key, n in counts.items()}

    graph = ClickGraph.of(rows(searches), rows(clicks), rows(following))
    folder = write_release(tmp_path_factory.mktemp("any"), graph)
    assert as_rows(read_click_graph(folder)) == as_rows(graph)
    for table in TABLES.values():
        (folder / table.parquet).unlink()
    assert as_rows(read_click_graph(folder)) == as_rows(graph)


def test_spreadsheets_compute_nothing_of_a_graph_and_it_is_read_again(tmp_path: Path):
    row, query, url = (-5, -6.0, -4.0), "=cmd|' /c calc'!a0", "+1;=2"
    graph = ClickGraph.of({query: row, "@sum": row}, {(query, url): row}, {(query, "@sum"): row})
    folder = write_release(tmp_path / "release", graph)
    line = (folder / "clicks.csv").read_text().splitlines()[1]
    assert line == "\"'=cmd|' /c calc'!a0\",\"'+1;'=2\",-5,0,-5.0,-6.0,-4.0"
    assert "\n'@sum," in (folder / "queries.csv").read_text().replace('"', "")
    for table in TABLES.values():
        (folder / table.parquet).unlink()
    assert as_rows(read_click_graph(folder)) == as_rows(graph)


def test_files_do_not_tell_the_order_of_the_log():
    graph = made_graph()
    back = ClickGraph.of(*(dict(reversed(t.items())) for t in tables_by_text(graph)), noise=graph.noise)
    assert encode_click_graph(graph) == encode_click_graph(back)
    first_line = encode_click_graph(graph)["queries.csv"].decode().splitlines()[1]
    assert first_line.startswith("weather,1500,1500,")


def tables_by_text(graph: ClickGraph):
    for name, table in TABLES.items():
        columns = graph.columns(name)
        keys = [columns[c.name] for c in table.key]
        counted = zip(columns["count"], columns["lo95"], columns["hi95"], strict=True)
        texts = keys[0] if len(keys) == 1 else zip(*keys, strict=True)
        yield dict(zip(texts, counted, strict=True))


def test_the_clamped_column_is_never_negative(tmp_path: Path):
    columns = made_graph().columns("clicks")
    assert columns["count"].min() == -4
    assert (columns["count_clamped"] == np.maximum(columns["count"], 0)).all()


def test_graphml_is_xml_with_every_node_and_edge():
    root = ET.fromstring(encode_graphml(made_graph()))
    nodes, edges = root.findall(f".//{GRAPHML}node"), root.findall(f".//{GRAPHML}edge")
    kinds = [node.find(f"{GRAPHML}data[@key='kind']").text for node in nodes]
    assert kinds.count("query") == len(SEARCHES)
    assert kinds.count("url") == len({url for _, url in CLICKS})
    labels = {node.get("id"): node.find(f"{GRAPHML}data[@key='label']").text for node in nodes}
    found = {
        (labels[edge.get("source")], labels[edge.get("target")]): int(edge.find(f"{GRAPHML}data[@key='count']").text)
        for edge in edges
    }
    assert found == CLICKS | REFORMULATIONS


def test_graphml_survives_markup_and_control_characters():
    graph = ClickGraph.of({"a<b>&\x00\x1b\ud800": (1, 0.0, 2.0)}, {})
    label = ET.fromstring(encode_graphml(graph)).find(f".//{GRAPHML}data[@key='label']")
    assert label is not None
    assert label.text == "a<b>&\ufffd\ufffd\ufffd"


def test_the_data_dictionary_names_every_column():
    text = data_dictionary()
    assert "| users who searched the query (where the statement's `count_unit` is impressions: searches), plus" in text
    for table in TABLES.values():
        assert table.parquet in text
        assert all(f"| {column.name} |" in text for column in table.columns)


def test_a_graph_without_reformulations_may_lack_the_file(tmp_path: Path):
    folder = write_release(tmp_path)
    for name in ("reformulations.parquet", "reformulations.csv"):
        (folder / name).unlink()
    with pytest.raises(InputError, match=r"reformulations\.parquet: is missing"):
        read_click_graph(folder)
    write_statement(folder, {})
    assert len(read_click_graph(folder).reformulations) == 0


def test_a_changed_file_is_refused(tmp_path: Path):
    folder = write_release(tmp_path)
    path = folder / "clicks.parquet"
    path.write_bytes(path.read_bytes().replace(b"shoes", b"boots"))
    with pytest.raises(InputError, match=r"clicks\.parquet: is not the file that statement\.json describes"):
        read_click_graph(folder)


@pytest.mark.parametrize(
    ("table", "select", "problem"),
    [
        ("queries", "SELECT * EXCLUDE (lo95) FROM '{source}'", r"queries\.parquet: lo95: is missing; expected the col"),
        ("queries", "SELECT * REPLACE ('x' AS count) FROM '{source}'", r"count: expected whole numbers, found VARCHAR"),
        ("queries", "SELECT * REPLACE (1.5::DOUBLE AS count) FROM '{source}'", r"count: expected whole numbers, found"),
        ("clicks", "SELECT * REPLACE (NULL::VARCHAR AS url) FROM '{source}'", r"clicks\.parquet: url: row 1: expected"),
        (
            "clicks",
            "SELECT * REPLACE (5 AS url) FROM '{source}'",
            r"clicks\.parquet: url: expected text, found INTEGER",
        ),
        ("clicks", "SELECT * REPLACE ({{secret: 5}} AS url) FROM '{source}'", r"url: expected text, found STRUCT$"),
        ("clicks", "SELECT * REPLACE ('gone' AS query) FROM '{source}'", r"clicks: expected edges of the released que"),
        ("clicks", "SELECT * REPLACE ('nan'::DOUBLE AS hi95) FROM '{source}'", r"hi95: expected finite numbers"),
        ("clicks", "SELECT * REPLACE (lo95 - 1 AS hi95) FROM '{source}'", r"expected intervals whose lower end"),
        ("queries", "SELECT * FROM '{source}' UNION ALL SELECT * FROM '{source}'", r"expected each query"),
        ("clicks", "SELECT * FROM '{source}' UNION ALL SELECT * FROM '{source}'", r"clicks: expected each edge once"),
    ],
)
def test_a_wrong_table_is_named(tmp_path: Path, table: str, select: str, problem: str):
    folder = write_release(tmp_path)
    rewrite(folder, table, select)
    with pytest.raises(InputError, match=problem) as caught:
        read_click_graph(folder)
    assert "running shoes" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("query,count,", "query,number,", r"queries\.csv: count: is missing"),
        (",1500,", ",many,", r"queries\.csv: count: row 1: expected whole numbers"),
        ("weather,1500", ",1500", r"queries\.csv: query: row 1: expected text"),
    ],
)
def test_a_wrong_csv_is_named(tmp_path: Path, old: str, new: str, problem: str):
    folder = write_release(tmp_path)
    (folder / "queries.parquet").unlink()
    path = folder / "queries.csv"
    path.write_text(path.read_text().replace(old, new, 1))
    write_statement(folder, {})
    with pytest.raises(InputError, match=problem):
        read_click_graph(folder)


def test_a_file_that_is_no_table_is_named(tmp_path: Path):
    folder = write_release(tmp_path)
    (folder / "queries.parquet").write_bytes(b"PAR1 nothing of the kind")
    write_statement(folder, {})
    with pytest.raises(InputError, match=r"queries\.parquet: expected a Parquet file"):
        read_click_graph(folder)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda d: d.update(format="other"), "format: expected a searchblend statement"),
        (
            lambda d: d["release"].update(kind="blender"),
            "expected 'click-graph', which `searchblend release run` makes, found 'blender' of `searchblend run`; "
            "`searchblend page`",
        ),
        (lambda d: d["release"].update(kind="hybrid"), "found a kind of release that this version does not know"),
        (lambda d: d.update(files=[]), "files: expected an object"),
        (lambda d: d["files"].pop("queries.parquet"), r"files\.queries\.parquet: expected its SHA-256"),
        (lambda d: d["parameters"]["noise"]["clicks"].update(scale=-1), r"parameters\.noise\.clicks"),
        (lambda d: d.update(parameters=None), "parameters: expected a JSON object"),
    ],
)
def test_a_wrong_statement_is_named(tmp_path: Path, change, problem: str):
    folder = write_release(tmp_path)
    path = folder / "statement.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=problem):
        read_click_graph(folder)


def test_a_folder_without_a_statement_is_no_release(tmp_path: Path):
    with pytest.raises(InputError, match="expected the folder of a released click graph"):
        read_click_graph(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"statement\.json: is missing"):
        read_click_graph(tmp_path)
    (tmp_path / "statement.json").write_text("{")
    with pytest.raises(InputError, match=r"statement\.json: expected a JSON document"):
        read_click_graph(tmp_path)


def test_noise_parameters_are_decoded_again():
    graph = made_graph(NoiseLaw("rounded_gaussian", 7.87))
    assert decode_noise(json.loads(json.dumps(noise_parameters(graph)))) == (graph.noise, graph.cuts)
    for wrong in ({"noise": {"nodes": {}}}, {"noise": {"clicks": 3}}, {"false_edge_cut": {"clicks": "10"}}):
        with pytest.raises(MessageError, match="parameters"):
            decode_noise(wrong)
