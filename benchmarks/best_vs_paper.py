"""Method best against the printed one on the same people and budget: the table of docs/results/best-vs-paper.md.

Every run makes a population, splits it and runs both methods; ratios are of means, best over paper, below 1 = best is
better. Opt-in users have all of their searches for method best, and one random search for the printed one, as `run`
takes them; groups that are tiny or tilted have one search for both. The truth is everyone's own share. The forecasts
of ``searchblend plan`` are made without these people and compared.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from rich.progress import track

from searchblend.core.params import MANY_RECORDS, BlenderParams
from searchblend.core.privacy import Budget
from searchblend.pages.plots import new_figure, save
from searchblend.synthetic.count_group import RecordModel, Situation, Voices
from searchblend.synthetic.plan import scores_of, simulate
from searchblend.synthetic.population import MEDIAN_SEARCHES, profile_named
from searchblend_lab.papers.compare import run_scored, shared_errors, tilted_split, true_top

RESULTS = Path(__file__).parents[1] / "docs" / "results"


@dataclass(frozen=True)
class Cell:
    """One setting of the grid."""

    profile: str
    optin: float
    size: int
    epsilon: float
    tilt: float = 0.0
    searches: int = MEDIAN_SEARCHES
    """of a person, the median; 1: everyone has one, and it is the one that counts"""

    @property
    def params(self) -> BlenderParams:
        return BlenderParams(
            Budget(self.epsilon, profile_named(self.profile).delta),
            max_head_queries=self.size,
            records_per_optin=1 if self.searches == 1 else MANY_RECORDS,
        )


AOL = [Cell("aol", share, size, e) for share in (0.05, 0.01) for size in (10, 25, 50) for e in (1, 2, 3, 4, 5, 6)]
YANDEX = [Cell("yandex", 0.03, size, e) for size in (100, 500) for e in (1, 2, 4, 6)]
TINY = [Cell("aol", share, 50, e, searches=1) for share in (0.001, 0.003, 0.01) for e in (4, 6)]
TILTED = [Cell("aol", 0.05, 50, e, tilt, searches=1) for tilt in (0.1, 0.3, 0.6) for e in (1, 2, 4, 6)]


@cache
def model_of(profile: str) -> RecordModel:
    return RecordModel.of_profile(profile_named(profile))


def run_one(task: tuple[str, int, tuple[Cell, ...]]) -> list[tuple[Cell, dict[str, float]]]:
    """Both methods in every cell on one population."""
    profile, seed, cells = task
    population = profile_named(profile).population(seed=seed)
    rows = []
    for cell in cells:
        generator = np.random.Generator(np.random.PCG64([seed, int(1000 * cell.optin), int(10 * cell.tilt)]))
        drawn, clients = tilted_split(population, cell.optin, cell.tilt, generator)
        optin, model = drawn, model_of(profile)
        if cell.searches > 1:
            optin = model.searchers(drawn.n_users, cell.searches, generator, drawn=drawn.drawn)
        people = Voices.around(model, optin, clients, cell.searches, generator, whole=cell.searches > 1)
        top = true_top(population, cell.size, people.truth)
        paper = run_scored(drawn, clients, replace(cell.params, records_per_optin=1), "paper", seed, people.truth)
        best = run_scored(optin, clients, cell.params, "best", seed, people.truth)
        row = {
            "paper_queries": len(paper.release.head) if paper else 0,
            "best_queries": len(best.release.head) if best else 0,
        }
        if best:
            row |= {
                "best_own_query_l1": sum(best.query_errors.values()),
                "best_own_record_l1": sum(best.record_errors.values()),
                "ndcg": best.ndcg,
                "best_top": best.top_error(top),
                "best_error": scores_of(best.release, top, cell.size, people)["error"],
                "optin_only": best.group_error(best.release.optin.queries),
                "clients_only": best.group_error(best.release.client.queries),
                "disagrees": float(not best.release.check.agrees),
            }
            row |= dict(zip(("q_in", "q_all", "r_in", "r_all"), map(float, best.covered()), strict=True))
        if paper and best:
            names = ("paper_query", "best_query", "paper_record", "best_record")
            row |= dict(zip(names, shared_errors(paper, best), strict=True))
            row["paper_top"] = paper.top_error(top)
        rows.append((cell, row))
    return rows


def measure(tasks: list[tuple[str, int, tuple[Cell, ...]]], workers: int) -> dict[Cell, dict[str, list[float]]]:
    values: dict[Cell, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with ProcessPoolExecutor(workers) as pool:
        for rows in track(pool.map(run_one, tasks), total=len(tasks), description="populations"):
            for cell, row in rows:
                for name, value in row.items():
                    values[cell][name].append(value)
    return values


def ratio(values: dict[str, list[float]], name: str) -> tuple[float, float]:
    """best/paper of the means and its standard error (first-order)."""
    best, paper = np.array(values[f"best_{name}"]), np.array(values[f"paper_{name}"])
    n = min(len(best), len(paper))
    best, paper = best[:n], paper[:n]
    r = best.mean() / paper.mean()
    return float(r), float((best - r * paper).std(ddof=1) / math.sqrt(n) / paper.mean())


def forecast(cell: Cell, runs: int) -> dict[str, float]:
    profile = profile_named(cell.profile)
    situation = Situation(profile.n_users, cell.optin, cell.params, cell.searches)
    found = simulate(model_of(cell.profile), situation, "best", runs=runs, seed=77)
    return {"error": found.error.mean, "head_queries": found.head_queries.mean}


def geometric(values: list[float]) -> float:
    return math.exp(float(np.mean(np.log(values))))


def summarize(cells: list[Cell], values: dict[Cell, dict[str, list[float]]], forecasts: dict[Cell, dict[str, float]]):
    rows = []
    for cell in cells:
        v = values[cell]
        if len(v["paper_query"]) < 2:
            continue  # the printed method's list was empty almost always: nothing to compare
        row = {"profile": cell.profile, "optin": cell.optin, "M": cell.size, "epsilon": cell.epsilon, "tilt": cell.tilt}
        for name in ("query", "record", "top"):
            row[name], row[f"{name}_se"] = ratio(v, name)
        row |= {name: float(np.mean(v[name])) for name in ("ndcg", "paper_queries", "best_queries")}
        row["queries_se"] = float(
            np.std(np.array(v["best_queries"]) - np.array(v["paper_queries"])) / math.sqrt(len(v["best_queries"]))
        )
        row["query_l1"] = float(np.mean(v["best_own_query_l1"]))
        row["error"] = float(np.mean(v["best_error"]))
        row["record_l1"] = float(np.mean(v["best_own_record_l1"]))
        row["paper_query_l1"] = float(np.mean(v["paper_query"]))
        row["best_query_l1_shared"] = float(np.mean(v["best_query"]))
        row["optin_only"] = float(np.mean(v["optin_only"]))
        row["clients_only"] = float(np.mean(v["clients_only"]))
        row["single_se"] = float(
            np.std(np.array(v["best_own_query_l1"]) - np.minimum(row["optin_only"], row["clients_only"]))
            / math.sqrt(len(v["optin_only"]))
        )
        row["disagrees"] = float(np.mean(v["disagrees"]))
        row["covered"] = [sum(v[name]) for name in ("q_in", "q_all", "r_in", "r_all")]
        if cell in forecasts:
            row["forecast"] = forecasts[cell]
        rows.append(row)
    return rows


def table(rows: list[dict]) -> str:
    lines = [
        "| profile | opt-in | M | ε | query L1 ratio | record L1 ratio | top-M L1 ratio | NDCG (best) | queries paper → best "
        "| error over the top M and its records, best: forecast / measured |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        f = r.get("forecast")
        lines.append(
            f"| {r['profile']} | {r['optin']:.1%} | {r['M']} | {r['epsilon']:g} | {r['query']:.2f} ± {r['query_se']:.2f} "
            f"| {r['record']:.2f} ± {r['record_se']:.2f} | {r['top']:.2f} ± {r['top_se']:.2f} | {r['ndcg']:.4f} "
            f"| {r['paper_queries']:.1f} → {r['best_queries']:.1f} | "
            + (f"{f['error']:.4f} / {r['error']:.4f} |" if f else "– |")
        )
    return "\n".join(lines)


def verdict(rows: list[dict]) -> dict[str, float]:
    covered = np.sum([r["covered"] for r in rows], axis=0)
    out = {
        "query ratio": geometric([r["query"] for r in rows]),
        "record ratio": geometric([r["record"] for r in rows]),
        "top-M ratio": geometric([r["top"] for r in rows]),
        "worst query ratio minus two standard errors": max(r["query"] - 2 * r["query_se"] for r in rows),
        "worst record ratio minus two standard errors": max(r["record"] - 2 * r["record_se"] for r in rows),
        "shortest list, best minus paper plus two standard errors": min(
            r["best_queries"] - r["paper_queries"] + 2 * r["queries_se"] for r in rows
        ),
        "least NDCG with at least 3 % opt-in": min([r["ndcg"] for r in rows if r["optin"] >= 0.03], default=math.nan),
        "coverage of queries": covered[0] / covered[1],
        "coverage of records": covered[2] / covered[3],
    }
    with_forecast = [r for r in rows if "forecast" in r]
    if with_forecast:
        close = [abs(r["error"] / r["forecast"]["error"] - 1) <= 0.25 for r in with_forecast]
        sizes = [abs(r["best_queries"] / r["forecast"]["head_queries"] - 1) <= 0.15 for r in with_forecast]
        out["cells with an error within 25 % of the forecast"] = float(np.mean(close))
        out["cells with list length within 15 % of the forecast"] = float(np.mean(sizes))
    return out


def single_group_table(rows: list[dict]) -> str:
    lines = [
        "| opt-in | tilt | ε | paper | best | opt-in only | clients only | groups found to differ |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        lines.append(
            f"| {r['optin']:.1%} | {r['tilt']:g} | {r['epsilon']:g} | {r['paper_query_l1']:.4f} | {r['best_query_l1_shared']:.4f} "
            f"| {r['optin_only']:.4f} | {r['clients_only']:.4f} | {r['disagrees']:.0%} |"
        )
    return "\n".join(lines)


def draw(rows: list[dict], path: Path) -> None:
    figure, axes = new_figure(2)
    for axis, name, title in zip(axes, ("query", "record"), ("queries", "records"), strict=True):
        for (profile, optin, size), style in zip(
            sorted({(r["profile"], r["optin"], r["M"]) for r in rows}), "osD^vPX*", strict=False
        ):
            mine = [r for r in rows if (r["profile"], r["optin"], r["M"]) == (profile, optin, size)]
            axis.errorbar(
                [r["epsilon"] for r in mine],
                [r[name] for r in mine],
                [2 * r[f"{name}_se"] for r in mine],
                marker=style,
                label=f"{profile}, {optin:.0%}, M = {size}",
                capsize=2,
            )
        axis.axhline(1, color="grey", linewidth=1)
        axis.set(xlabel="ε", ylabel=f"L1 of {title}, best / paper", ylim=(0, None))
    axes[1].legend(frameon=False, fontsize=8)
    save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=16, help="AOL populations")
    parser.add_argument("--yandex-runs", type=int, default=2)
    parser.add_argument("--forecast-runs", type=int, default=6)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    options = parser.parse_args()

    grid = tuple(dict.fromkeys([*AOL, *TINY, *TILTED]))
    tasks = [("aol", seed, grid) for seed in range(options.runs)]
    values = measure(tasks, options.workers)
    values |= measure([("yandex", seed, tuple(YANDEX)) for seed in range(options.yandex_runs)], min(options.workers, 2))
    with ProcessPoolExecutor(options.workers) as pool:
        found = track(
            pool.map(forecast, AOL, [options.forecast_runs] * len(AOL)), total=len(AOL), description="forecasts"
        )
        forecasts = dict(zip(AOL, found, strict=True))
    rows = {
        name: summarize(cells, values, forecasts)
        for name, cells in (("aol", AOL), ("yandex", YANDEX), ("tiny", TINY), ("tilted", TILTED))
    }
    verdicts = {name: verdict(rows[name]) for name in ("aol", "yandex")}

    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "best-vs-paper.json").write_text(
        json.dumps({"rows": rows, "verdicts": verdicts}, indent=1) + "\n"
    )
    for suffix in ("png", "svg"):
        draw([*rows["aol"], *rows["yandex"]], options.output / f"best-vs-paper.{suffix}")
    text = [
        "# Method best against the printed method",
        "",
        f"Made by `make slow` ({options.runs} AOL populations of 519,371 people, {options.yandex_runs} Yandex populations of "
        "4,970,073, δ = 1e-5 and 1e-7). Both methods run on the same people at the same (ε, δ): half of the opt-in users have 9 searches or fewer, "
        "all of which count in method best and one random one in the printed method; a client reports on one. The truth is everyone's own "
        "share. Ratios are best / paper of mean errors over the queries and records that both lists hold, ± one standard error; top-M is the L1 error over the truly most "
        "frequent M queries, a missing one counting as 0. The forecast is that of `searchblend plan`, made without these people.",
        "",
        "![ratios over ε](best-vs-paper.png)",
        "",
    ]
    for name, title in (("aol", "AOL profile"), ("yandex", "Yandex profile")):
        text += [f"## {title}", ""]
        text += [f"- {what}: {value:.3f}" for what, value in verdicts[name].items()]
        text += ["", table(rows[name]), ""]
    text += [
        "## Tiny opt-in groups, and opt-in users unlike clients",
        "",
        "Query L1 of the AOL profile, M = 50, one search each. *Paper* and *best* over the queries both list; *only* columns are one group's own estimates of "
        "best's list. Tilt t multiplies each query's odds of opting in by exp(N(0, t)).",
        "",
        single_group_table(rows["tiny"]),
        "",
        single_group_table(rows["tilted"]),
        "",
    ]
    (options.output / "best-vs-paper.md").write_text("\n".join(text))
    for name, figures in verdicts.items():
        print(name, *(f"{what}: {value:.3f}" for what, value in figures.items()), sep="\n  ")


if __name__ == "__main__":
    main()
