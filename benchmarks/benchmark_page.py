"""The page and the plots of all benchmarks, written from their JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

Document = dict[str, Any]
TEXTS = {
    "cold start": "What a command takes before it does anything.",
    "selection": "Which queries are heavy among rows of (user, query): one line of each user, users counted by query, (ε, δ) = (4, 1e-5). *Plain* is DuckDB's "
    "query without any privacy, which draws each user's line by the same keyed hash. DuckDB's own hash draws faster, but whoever writes values can make it collide, "
    "and threads would decide then; it is the limit of what a fair draw can take. *Any line* is no draw at all. All promise (ε, δ) for adding or removing a "
    "user, but for `read_log`, which promises it for replacing one: it takes twice the noise at the same ε and keeps fewer. PipelineDP and Tumult select keys only; PipelineDP's rows are Python tuples already when its time starts.",
    "local reports": "The two stages of BLENDER's local report for many clients at once, against the same on numpy's fast and unsafe generator.",
    "local report peers": "k-ary randomized response and subset selection by everyone. The error is the mean squared error of the estimates over what theory "
    "says of the raw ones: 1 is right; multi-freq-ldpy clips and rescales, which cannot be turned off. Peers are measured on fewer clients.",
    "head list": "Noise on every one of ten million distinct records, and fetching those that pass, against counting them.",
    "hybrid run": "Cold text (or Parquet) to released files. *Plain* is DuckDB's own query that counts one random record of each user by the same keyed hash, "
    "not private; *naive* leaves out the repetition of lines.",
    "click graph": "`searchblend release run` with its defaults against DuckDB's query that counts the first 20 different queries of each user, with all the "
    "machine's memory. The release is held to 2.5 GB.",
    "engines and growth": "The whole command `searchblend run`: by both engines, with few and many users, with short and long head lists.",
    "service": "Durable reports a second against the same server without storage; one core for the server.",
    "keywords": "Conjugate gradients against the iteration of Fuxman et al. 2008, a million edges.",
    "console": "Every page of the console on a year of weekly rounds with 500 queries each.",
    "JavaScript": "The core that runs in browsers, in Node, against the Python twin: reports a second, one by one.",
    "pack lookup": "A pack in real Chromium against a JavaScript Map of the same pairs.",
}
SHOWN = {
    "plain": "plain DuckDB count",
    "own_hash": "plain, by DuckDB's own hash",
    "any": "plain, any line of a user",
    "searchblend": "searchblend, `select_values`",
    "read_log": "searchblend, from `read_log` on",
    "opendp": "OpenDP with Polars",
    "pipelinedp": "PipelineDP, keys only",
    "tumult": "Tumult Analytics, keys only",
}


def number(value: Any) -> str:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return "–" if value is None else str(value)
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"


def table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    return [*lines, *("| " + " | ".join(map(number, row)) + " |" for row in rows), ""]


def page(document: Document) -> str:
    """The whole page; figures and words come from the run alone."""
    lines = ["# Benchmarks", "", "<!-- written by benchmarks/run_all.py: do not edit -->", ""]
    lines += ["`make bench` runs everything and writes this page. " + _machine(document.get("machine", {})), ""]
    if "seconds" in document:
        lines[-2] += f" The whole run took {document['seconds'] / 60:.0f} minutes."
    lines += [
        "Programs that are compared alternate in one run, and medians are compared. Seconds depend on the machine and on what else it does; ratios less so.",
        "",
        "![Record selection, local reports, growth of a hybrid run, memory](benchmarks.svg)",
        "",
        "## Targets",
        "",
    ]
    rows = [
        (name, target.replace("_", " "), row["value"], _aim(row), _met(row))
        for name, section in document["sections"].items()
        for target, row in section.get("targets", {}).items()
    ]
    lines += table(["benchmark", "what", "measured", "target", "met"], rows)
    if any(
        row.get("excused") for section in document["sections"].values() for row in section.get("targets", {}).values()
    ):
        lines += [
            "*Out of reach*: the target is missed, and the limit that was measured in the same run misses it too. Such a miss alone does not fail `make bench`, "
            "as long as the result is at least half of the limit.",
            "",
        ]
    for name, section in document["sections"].items():
        lines += _section(name, section)
    lines += ["## Time and memory of each benchmark", ""]
    some = [(n, s["command"], s["seconds"], s["peak_gb"], s["load_before"]) for n, s in document["sections"].items()]
    some = [(n, f"`{c}`", seconds, peak, load) for n, c, seconds, peak, load in some]
    lines += table(["benchmark", "command", "seconds", "largest process, GB", "load before it"], some)
    return "\n".join(lines).rstrip() + "\n"


def _machine(found: Document) -> str:
    if not found:
        return ""
    packages = ", ".join(f"{name} {version}" for name, version in found["packages"].items())
    return (
        f"Measured on {found['cores']} cores ({found['processor']}), {found['memory_gib']} GiB of memory, {found['system']}, "
        f"Python {found['python']}, {packages}."
    )


def _aim(row: Document) -> str:
    peer = f" ({row['peer']})" if "peer" in row else ""
    limit = f"; limit {row['limit']:.3g}" if "limit" in row else ""
    return (f"at most {row['at_most']:g}" if "at_most" in row else f"at least {row['at_least']:g}") + peer + limit


def _met(row: Document) -> str:
    return "yes" if row["met"] else "no: out of reach" if row.get("excused") else "**no**"


def _section(name: str, section: Document) -> list[str]:
    lines = [f"## {name[0].upper()}{name[1:]}", "", TEXTS.get(name, ""), ""]
    if section.get("quick"):
        lines += ["**Small sizes: these figures mean nothing.**", ""]
    if section.get("alone"):
        lines += ["Measured again by itself, after the whole run.", ""]
    if "failed" in section:
        return [*lines, f"**Not measured: {section['failed']}.**", ""]
    render: Callable[[Document], list[str]] = RENDER.get(name, _anything)
    return lines + render(section["result"])


def _cold_start(result: Document) -> list[str]:
    rows = [(f"`{name}`", 1e3 * row["seconds"], 1e3 * row["peak_gb"]) for name, row in result["table"].items()]
    return table(["command", "ms", "MB"], rows)


def _selection(result: Document) -> list[str]:
    lines: list[str] = []
    for rows, part in result.items():
        lines += [f"{int(rows):,} rows:", ""]
        measured = [
            (
                _name(name, row),
                row["seconds"],
                row["of_plain"],
                row["start_seconds"],
                row["peak_gb"],
                row["kept"],
                row["rounds"],
            )
            for name, row in part["table"].items()
            if "seconds" in row
        ]
        lines += table(["", "seconds", "× plain", "start-up, s", "peak, GB", "kept", "rounds"], measured)
        lines += _absent(part["table"])
        if part.get("left_out"):
            names = " and ".join(SHOWN[name] for name in part["left_out"])
            lines += [f"{names} were not run at this size: they take too long for a benchmark of half an hour.", ""]
    return lines


def _name(name: str, row: Document) -> str:
    return f"{SHOWN.get(name, name)}{' ' + row['version'] if 'version' in row else ''}"


def _absent(rows: Document) -> list[str]:
    found = [
        f"**{SHOWN.get(name, name)} was not measured: {row['absent']}.**"
        for name, row in rows.items()
        if "absent" in row
    ]
    return [line for reason in found for line in (reason, "")]


def _ldp(result: Document) -> list[str]:
    lines: list[str] = []
    for setting, part in result.items():
        rows = [
            (
                _name(name, row),
                row["privatise_per_second"],
                row["aggregate_per_second"],
                row["error_over_theory"],
                row["clients"],
            )
            for name, row in part["table"].items()
            if "absent" not in row
        ]
        lines += [f"{setting}:", "", *table(["", "reports/s", "counted/s", "error / theory", "clients"], rows)]
        lines += _absent(part["table"])
    return lines


def _local(result: Document) -> list[str]:
    rows = [
        (name, 1e3 * row["baseline"], 1e3 * row["searchblend"], row["ratio"]) for name, row in result["results"].items()
    ]
    lines = table(["against", "baseline, ms", "searchblend, ms", "speed ratio"], rows)
    return [f"{result['clients']:,} clients, {result['cells']} cells.", "", *lines]


def _head_list(result: Document) -> list[str]:
    return [
        f"{result['distinct_records']:,} distinct records, {result['listed']:,} listed: counting {result['count']:.2f} s, head list "
        f"{result['head list']:.2f} s, ratio {result['ratio']:.2f}.",
        "",
    ]


def _hybrid(result: Document) -> list[str]:
    names = ("searchblend", "plain", "ratio", "naive_ratio", "peak_gb")
    rows = [(log, *(row.get(name) for name in names)) for log, row in result["results"].items()]
    lines = table(["log", "searchblend, s", "plain, s", "ratio", "against naive", "peak, GB"], rows)
    growth = ", ".join(f"{value:.2f} at {part}" for part, value in result["microseconds_per_row"].items())
    after = ", ".join(f"{value:.2f}" for value in result["microseconds_per_row_after_start"].values())
    return [
        *lines,
        f"Growth: µs a line {growth} of the size; without the {result['start_seconds']:.2f} s of starting {after}.",
        "",
    ]


def _click_graph(result: Document) -> list[str]:
    rows = [(name, seconds, result["peak_gb"][name]) for name, seconds in result["seconds"].items()]
    lines = table(["", "seconds", "peak, GB"], rows)
    ratios = f"ratio {result['ratio_plain']:.2f} (against naive {result['ratio_naive']:.2f})"
    return [f"{result['lines']:,} lines: {ratios}.", "", *lines]


def _engines(result: Document) -> list[str]:
    lines = [
        f"Spark takes {result['spark_over_duckdb']:.1f} times as long as DuckDB on a log of {result['log_bytes'] / 1e6:.0f} MB on one machine.",
        "",
    ]
    for what, key in (
        ("engine", "engines"),
        (f"users of {result['rows']:,} rows", "by_users"),
        ("queries in the list", "by_max_queries"),
    ):
        rows = [(_count(name), row["seconds"], row["peak_gb"]) for name, row in result[key].items()]
        lines += table([what, "seconds", "peak, GB"], rows)
    return lines


def _count(name: str) -> str:
    return f"{int(name):,}" if name.isdecimal() else name


def _service(result: Document) -> list[str]:
    names = ("single", "single_ratio", "batch", "batch_ratio", "p50", "p99")
    rows = [(kind, *(row.get(name) for name in names)) for kind, row in result["medians"].items()]
    return table(["storage", "single/s", "ratio", "batched/s", "ratio", "p50, s", "p99, s"], rows)


def _keywords(result: Document) -> list[str]:
    rows = [
        (name, row["iterations"], row["seconds"], f"{row['max_error']:.1e}") for name, row in result["results"].items()
    ]
    return [
        *table(["method", "iterations", "seconds", "largest error"], rows),
        f"Time ratio {result['ratio']:.3f}.",
        "",
    ]


def _pack(result: Document) -> list[str]:
    cold = [(f"cold load, {name}", row["median_ms"], row["best_ms"]) for name, row in result["cold"].items()]
    lookups = [(f"lookup, {name}", row["median_us"], row["p99_us"]) for name, row in result["lookups"].items()]
    lines = table(["", "median, ms", "best, ms"], cold)
    return [f"{result['pairs']:,} pairs.", "", *lines, *table(["", "median, µs", "99th percentile, µs"], lookups)]


def _anything(result: Document) -> list[str]:
    """A benchmark without a table of its own here: a table for each part whose rows are alike, and the rest as it comes."""
    lines: list[str] = []
    rest: Document = {}
    for name, part in result.items():
        if (
            name != "targets"
            and isinstance(part, dict)
            and part
            and all(isinstance(row, dict) for row in part.values())
        ):
            names = list(dict.fromkeys(key for row in part.values() for key in row))
            rows = [(row_name, *(row.get(key) for key in names)) for row_name, row in part.items()]
            lines += table([name, *(key.replace("_", " ") for key in names)], rows)
        else:
            rest[name] = part
    said = [f"{name} {number(value)}" for name, value in _leaves(rest)]
    return [*([", ".join(said) + ".", ""] if said else []), *lines]


def _leaves(value: Any, name: str = "") -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key != "targets":
                yield from _leaves(inner, f"{name} {key}".strip())
    elif not isinstance(value, list):
        yield name, value


RENDER: dict[str, Callable[[Document], list[str]]] = {
    "cold start": _cold_start,
    "selection": _selection,
    "local reports": _local,
    "local report peers": _ldp,
    "head list": _head_list,
    "hybrid run": _hybrid,
    "click graph": _click_graph,
    "engines and growth": _engines,
    "service": _service,
    "keywords": _keywords,
    "pack lookup": _pack,
}

BLUE, GREY = "#2563a8", "#9aa3ad"


def draw(document: Document, folder: Path) -> None:
    """Four panels: selection, local reports, growth with lines, memory."""
    results = {name: section["result"] for name, section in document["sections"].items() if "result" in section}
    mpl.rcParams.update(
        {"font.size": 9, "svg.hashsalt": "searchblend", "axes.spines.top": False, "axes.spines.right": False}
    )
    figure = Figure(figsize=(11, 7.4), layout="constrained")
    axes = figure.subplots(2, 2)
    _draw_selection(axes[0][0], results.get("selection", {}))
    _draw_ldp(axes[0][1], results.get("local report peers", {}))
    _draw_growth(axes[1][0], results.get("hybrid run", {}))
    _draw_memory(axes[1][1], results)
    for suffix in ("svg", "png"):
        metadata = {"Date": None} if suffix == "svg" else {}
        figure.savefig(folder / f"benchmarks.{suffix}", dpi=130, metadata=metadata)


def _bars(axis: Any, bars: list[tuple[str, float]], title: str, unit: str) -> None:
    axis.set_title(title, loc="left", fontweight="bold")
    if not bars:
        axis.set_axis_off()
        axis.text(0, 0.5, "not measured", transform=axis.transAxes)
        return
    names, values = [name for name, _ in bars], [value for _, value in bars]
    drawn = axis.barh(names, values, color=[BLUE if "searchblend" in name else GREY for name in names])
    axis.set_xscale("log")
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlim(min(values) / 2, max(values) * 6)
    axis.bar_label(drawn, labels=[number(value) for value in values], padding=3)
    axis.invert_yaxis()
    axis.set_xlabel(unit)


def _draw_selection(axis: Any, result: Document) -> None:
    first = next(iter(result.items()), None)
    bars = (
        [(SHOWN[n].replace("`", ""), row["seconds"]) for n, row in first[1]["table"].items() if "seconds" in row]
        if first
        else []
    )
    _bars(
        axis,
        bars,
        f"Heavy queries among {int(first[0]):,} rows" if first else "Heavy queries",
        "seconds, log scale: less is better",
    )


def _draw_ldp(axis: Any, result: Document) -> None:
    first = next(iter(result.items()), None)
    bars = (
        [(n, row["privatise_per_second"]) for n, row in first[1]["table"].items() if "absent" not in row]
        if first
        else []
    )
    _bars(
        axis,
        bars,
        f"Local reports, {first[0]}" if first else "Local reports",
        "reports a second, log scale: more is better",
    )


def _draw_growth(axis: Any, result: Document) -> None:
    axis.set_title("A hybrid run grows with its log", loc="left", fontweight="bold")
    rows = [(_lines(name), row) for name, row in result.get("results", {}).items() if name.startswith("AOL text")]
    if not rows:
        axis.set_axis_off()
        return
    for kind, colour in (("searchblend", BLUE), ("plain", GREY)):
        axis.plot([n / 1e6 for n, _ in rows], [row[kind] for _, row in rows], "o-", color=colour, label=kind)
    axis.set_xlabel("million lines")
    axis.set_ylabel("seconds")
    axis.set_ylim(bottom=0)
    axis.set_xlim(left=0)
    axis.legend(frameon=False)


def _lines(name: str) -> int:
    return int("".join(c for c in name.split(" lines")[0] if c.isdecimal()))


def _draw_memory(axis: Any, results: Document) -> None:
    bars: list[tuple[str, float]] = []
    for name, row in results.get("hybrid run", {}).get("results", {}).items():
        if name.startswith("AOL text"):
            bars = [(f"searchblend run, {_lines(name) / 1e6:.0f} M lines", row["peak_gb"])]
    for name, peak in results.get("click graph", {}).get("peak_gb", {}).items():
        bars.append(("searchblend release" if name == "searchblend" else f"DuckDB, {name} query", peak))
    for part in list(results.get("selection", {}).values())[:1]:
        for name, row in part["table"].items():
            if name in ("opendp", "pipelinedp", "tumult") and "peak_gb" in row:
                bars.append((f"{SHOWN[name]}, 1 M rows", row["peak_gb"]))
    _bars(axis, bars, "Peak memory", "GB, log scale: less is better")
