"""Small releases of both kinds, made by the commands from a log in which people search for hostile texts too."""

from __future__ import annotations

from pathlib import Path

from searchblend.cli.main import main

SCRIPT = "<script>window.hacked=1</script>"
IMAGE = '"><img src=x onerror=window.hacked=1>'
RIGHT_TO_LEFT = "שלום עולם"
LONG = "how to " + "very " * 30 + "carefully read a long query"
QUERIES = {
    "weather": 900,
    "news": 600,
    SCRIPT: 500,
    IMAGE: 400,
    RIGHT_TO_LEFT: 300,
    LONG: 250,
    "maps": 200,
    "a & b": 150,
}


def write_log(path: Path) -> Path:
    """Every user searches one thing and clicks on one of two results of it."""
    lines = ["user\tquery\turl"]
    for query, people in QUERIES.items():
        first, name = len(lines), sum(map(ord, query)) % 10_000
        lines += [f"u{first + i}\t{query}\thttp://site{name}.example/{'a' if i % 3 else 'b'}" for i in range(people)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def hybrid_release(folder: Path, *options: str) -> Path:
    """``folder/release``, with its page."""
    log = write_log(folder / "log.tsv")
    assert main(["run", str(log), "-o", str(folder / "release"), "--opt-in", "0.4", "--html", *options]) == 0
    return folder / "release"


def graph_release(folder: Path, *options: str) -> Path:
    log = write_log(folder / "log.tsv")
    arguments = ["--users", "5000", "--epsilon", "4", "--delta", "1e-5", "--max-queries-per-user", "2"]
    arguments += ["--urls", "private", "--html", *options]
    assert main(["release", "run", str(log), "-o", str(folder / "release"), *arguments]) == 0
    return folder / "release"
