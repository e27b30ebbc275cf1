"""A pack made of one population, asked by another: how many of the new people's searches it answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from searchblend.blender.pipeline import run_blender
from searchblend.core.errors import EmptyHeadList
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList
from searchblend.search.build_pack import pack_of_release
from searchblend.synthetic.count_group import CountGroup
from searchblend.synthetic.seeded import SeededRandomness
from searchblend_lab.papers.blender.count_reports import CountedDevices
from searchblend_lab.papers.people import generator, people_named, seed_of


def compute(settings: Mapping[str, Any], run: int, seed: int) -> dict[str, Any]:
    """One pack and its answers; ``ideal`` is what the truly most frequent queries would answer."""
    name, users, size = settings["people"], settings["users"], settings["size"]
    people = people_named(name)
    here, new = _people(name, users, run, seed)
    top = HeadList(dict.fromkeys(here.top_queries(size), ()))
    ideal = 1 - int(new.cell_counts(top)[-1]) / new.n_users
    own = seed_of(seed, run, "local search", name, users, settings["epsilon"], size)
    optin, clients = here.seeded(generator(own, "split")).split(people.optin)
    try:
        release = run_blender(
            optin.seeded(generator(own)),
            clients.seeded(generator(own, "clients")),
            BlenderParams(Budget(settings["epsilon"], people.delta), max_head_queries=size),
            method=settings["method"],
            devices=CountedDevices(),
            randomness=SeededRandomness(own),
        )
    except EmptyHeadList:
        return {"queries": 0, "pairs": 0, "bytes": 0, "answered": 0.0, "first": 0.0, "any": 0.0, "ideal": ideal}
    pack = pack_of_release(release)
    return {
        "queries": len(pack),
        "pairs": pack.n_pairs,
        "bytes": len(pack.content),
        "ideal": ideal,
        **answered(new, HeadList((entry.query, [url.url for url in entry.urls]) for entry in pack.entries())),
    }


def answered(people: CountGroup, head: HeadList) -> dict[str, float]:
    """Shares of all searches: with an answer, whose first URL was the clicked one, where one of the URLs was."""
    counts, firsts = people.cell_counts(head), head.first_cells()[:-1]
    rest = [first + len(head.urls(query)) for first, query in zip(firsts, head.queries, strict=True)]
    total = people.n_users
    return {
        "answered": 1 - int(counts[-1]) / total,
        "first": int(counts[firsts].sum()) / total if firsts else 0.0,
        "any": 1 - (int(counts[-1]) + (int(counts[rest].sum()) if rest else 0)) / total,
    }


@lru_cache(maxsize=2)
def _people(name: str, users: int | None, run: int, seed: int) -> tuple[CountGroup, CountGroup]:
    """The people whose searches make the pack, and as many others who search alike."""
    people = people_named(name)
    return people.everyone(seed, run, users), people.everyone(seed_of(seed, "new people"), run, users)
