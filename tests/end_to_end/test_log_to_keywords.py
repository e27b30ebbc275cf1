"""A topical log, released privately, written, read again and used: the way of [KKMN09] §7.2 from end to end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import searchblend as sb
from made_click_graph import write_release
from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.clickgraph.use.similar import ClickWalk
from searchblend.synthetic.seeded import SeededRandomness

TOPICS, QUERIES, USERS = 4, 12, 6000
PUBLIC = [
    sb.Record(f"topic{t} q{q}", f"http://s{u}.topic{t}.example")
    for t in range(TOPICS)
    for q in range(QUERIES)
    for u in range(4)
]


def made_log(seed: int) -> list[list[sb.Search]]:
    """Every user likes one topic, but one search in ten is about another."""
    generator = np.random.default_rng(seed)
    users = []
    for _ in range(USERS):
        liked, searches = generator.integers(TOPICS), []
        for time in range(4):
            topic = generator.integers(TOPICS) if generator.random() < 0.1 else liked
            query = int(QUERIES * generator.random() ** 2)
            url = f"http://s{generator.integers(4)}.topic{topic}.example"
            searches.append(sb.Search(f"topic{topic} q{query}", 60.0 * time, (url,)))
        users.append(searches)
    return users


def released(algorithm: str) -> ClickGraph:
    params = sb.ClickGraphParams(
        sb.Budget(np.log(10), 1e-5),
        algorithm=algorithm,
        max_queries_per_user=4,
        max_clicks_per_user=4,
        urls="public",
        public_source="made up",
        population=USERS,
    )
    log = sb.InMemoryClickLog(made_log(1))
    return sb.release_data(log, params, public_records=PUBLIC, randomness=SeededRandomness(7)).graph()


@pytest.mark.parametrize("algorithm", ["gaussian", "kkmn2009"])
def test_keywords_of_a_release_are_on_topic(tmp_path: Path, algorithm: str):
    graph = sb.read_click_graph(write_release(tmp_path / "release", released(algorithm)))
    assert {"queries", "clicks"} <= set(graph.noise)
    assert graph.cuts["clicks"] > 0
    found = sb.generate_keywords(graph, ["s0.topic2.example", "http://s1.topic2.example"], threshold=0.5)
    queries = [word.query for word in found.keywords]
    assert len(queries) >= 4
    assert all(query.startswith("topic2 ") for query in queries)
    alike = [r.text for r in ClickWalk(steps=21).queries(graph, queries[0], limit=3)]
    assert alike
    assert all(query.startswith("topic2 ") for query in alike)


def test_a_release_agrees_with_the_log_it_came_from(tmp_path: Path):
    """Counted exactly, the same log gives a graph; what the release says of it should be much the same."""
    searches, clicks = {}, {}
    for user in made_log(1):
        for search in user:
            searches[search.query] = searches.get(search.query, 0) + 1
            edge = search.query, search.clicks[0]
            clicks[edge] = clicks.get(edge, 0) + 1
    original = ClickGraph.of(
        {query: (n, float(n), float(n)) for query, n in searches.items()},
        {edge: (n, float(n), float(n)) for edge, n in clicks.items()},
    )
    seeds = {f"topic{t}": [f"topic{t}.example"] for t in range(TOPICS)}
    truth = sb.generate_keywords(original, seeds, threshold=0.5)
    (compared,) = sb.compare_keywords(truth, sb.generate_keywords(released("gaussian"), seeds, threshold=0.5), [0.5])
    assert compared.ratio is not None
    assert compared.ratio > 0.5
    assert compared.shared == 1.0
    study = sb.run_study(released("gaussian"), r"^topic\d (q\d+)$")
    everyone: dict[str, int] = {}
    for query, n in searches.items():
        everyone[query.split()[1]] = everyone.get(query.split()[1], 0) + n
    truth_ranking = sorted(everyone, key=lambda name: -everyone[name])
    assert sb.compare_rankings(truth_ranking, study.ranking, 4).overlap == 1.0
