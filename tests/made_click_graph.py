"""A small released click graph, and the folder it would come in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from searchblend.clickgraph.release.noise_law import NoiseLaw
from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.core.privacy import StatedGuarantee
from searchblend.wire.click_graph import noise_parameters
from searchblend.wire.click_graph_files import encode_click_graph
from searchblend.wire.release import STATEMENT, encode_statement, make_statement

LAPLACE = NoiseLaw("discrete_laplace", 4.0)
GAUSSIAN = NoiseLaw("rounded_gaussian", 6.0)
SEARCHES = {
    "running shoes": 900,
    "trail shoes": 420,
    "shoe sizes": 260,
    "runing shoes": 110,
    "marathon": 300,
    "weather": 1500,
    "weather radar": 350,
    "fear of flying": 240,
    "fear of heights": 236,
    "fear of spiders": 180,
    "fear of snakes": 60,
    "fear of death": 170,
    "fear of clowns movie": 140,
}
CLICKS = {
    ("running shoes", "http://shoes.example/run"): 400,
    ("running shoes", "http://www.shop.example/shoes"): 210,
    ("trail shoes", "http://shoes.example/trail"): 180,
    ("trail shoes", "http://www.shop.example/shoes"): 90,
    ("shoe sizes", "http://sizes.example/table"): 120,
    ("shoe sizes", "http://www.shop.example/shoes"): 40,
    ("runing shoes", "http://shoes.example/run"): 15,
    ("marathon", "http://race.example/"): 200,
    ("marathon", "http://shoes.example/run"): 30,
    ("weather", "http://sky.example/"): 1100,
    ("weather radar", "http://sky.example/"): 150,
    ("weather radar", "http://sky.example/radar"): 180,
    ("weather", "http://race.example/"): 3,
    ("shoe sizes", "http://sky.example/"): -4,
}
REFORMULATIONS = {
    ("runing shoes", "running shoes"): 60,
    ("running shoes", "trail shoes"): 80,
    ("running shoes", "marathon"): 35,
    ("weather", "weather radar"): 120,
    ("weather", "marathon"): 4,
}


def with_interval(counts: dict[Any, int], noise: NoiseLaw) -> dict[Any, tuple[int, float, float]]:
    half = noise.half_width()
    return {key: (count, count - half, count + half) for key, count in counts.items()}


def made_graph(noise: NoiseLaw = LAPLACE) -> ClickGraph:
    return ClickGraph.of(
        with_interval(SEARCHES, noise),
        with_interval(CLICKS, noise),
        with_interval(REFORMULATIONS, noise),
        noise={"queries": noise, "clicks": noise, "reformulations": noise},
        cuts={"clicks": 10, "reformulations": 10},
    )


def write_release(folder: Path, graph: ClickGraph | None = None) -> Path:
    """The folder of a release: the files of the graph and a statement that knows their digests."""
    folder.mkdir(parents=True, exist_ok=True)
    graph = graph or made_graph()
    files = encode_click_graph(graph)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    write_statement(folder, {"population": 10_000, **noise_parameters(graph)})
    return folder


def write_statement(folder: Path, parameters: Any) -> None:
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != STATEMENT}
    statement = make_statement(
        files,
        kind="click-graph",
        method="made by hand",
        created="2026-01-01T00:00:00Z",
        parameters={},
        guarantee=StatedGuarantee(0.0, 0.0, False, "", "", (), ()),
        public=[],
        caveats=[],
    )
    (folder / STATEMENT).write_text(
        json.dumps({**encode_statement(statement), "guarantee": {}, "parameters": parameters})
    )
