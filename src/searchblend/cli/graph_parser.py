"""The arguments of ``searchblend graph``: what people do with a released click graph."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from searchblend.cli.arguments import Commands, add_command, positive_int, share

GRAPH_EXAMPLES = """\
examples:
  searchblend graph keywords release/ --seed-domain shoes.example --threshold .7
  searchblend graph similar release/ 'running shoes'
  searchblend graph study release/ --pattern '^fear of (.+)$' --top 20
  searchblend graph synthesize release/ --searches 100000 -o synth.tsv
"""
KEYWORDS_EXAMPLES = """\
examples:
  searchblend graph keywords release/ --seed-domain shoes.example --threshold .7
  searchblend graph keywords release/ --seed-url http://shoes.example/run --seed-url http://boots.example
  searchblend graph keywords release/ --seeds seeds.csv -o keywords.csv    several classes: class,url-or-domain
  searchblend graph keywords release/ --seed-domain shoes.example --method arw2008 --json
"""
SIMILAR_EXAMPLES = """\
examples:
  searchblend graph similar release/ 'running shoes'                 shared clicks, with the relation of the URL sets
  searchblend graph similar release/ 'running shoes' --idf --limit 50
  searchblend graph similar release/ 'running shoes' --by backward --steps 101
  searchblend graph similar release/ 'running shoes' --by forward --urls      URLs for the query, clicked or not
"""
SUGGEST_EXAMPLES = """\
examples:
  searchblend graph suggest release/ 'running shoes'
  searchblend graph suggest release/ 'running shoes' --limit 5 --json
"""
SPELL_EXAMPLES = """\
examples:
  searchblend graph spell release/                         every correction that the release is sure of
  searchblend graph spell release/ 'runing shoes' --json
"""
STUDY_EXAMPLES = """\
examples:
  searchblend graph study release/ --pattern '^fear of (.+)$' --top 20
  searchblend graph study release/ --pattern '^fear of (.+)$' --categories map.csv --stop list.txt
  searchblend graph study release/ --pattern '^fear of (.+)$' --compare other-release/ --json
"""
SYNTHESIZE_EXAMPLES = """\
examples:
  searchblend graph synthesize release/ --searches 100000 -o synth.tsv
  searchblend graph synthesize release/ --searches 1000000 --users 50000 -o synth.tsv --force
"""


def add_graph(commands: Commands) -> None:
    parser = add_command(commands, "graph", "keywords, similar queries, studies of a released graph", GRAPH_EXAMPLES)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_keywords(actions)
    _add_similar(actions)
    _add_suggest(actions)
    _add_spell(actions)
    _add_study(actions)
    _add_synthesize(actions)


def _add_keywords(actions: Commands) -> None:
    parser = _action(actions, "keywords", "queries that lead to seed URLs, by a random walk", KEYWORDS_EXAMPLES)
    parser.add_argument("--seed-domain", action="append", default=[], metavar="HOST", help="all URLs of this host")
    parser.add_argument("--seed-url", action="append", default=[], metavar="URL", help="this URL")
    parser.add_argument("--seeds", type=Path, metavar="FILE", help="CSV with lines of class,url-or-domain")
    parser.add_argument("--threshold", type=share, default=0.7, metavar="P", help="least relevance (0.7)")
    parser.add_argument(
        "--alpha", type=share, default=0.001, metavar="A", help="chance of being lost at a step (0.001)"
    )
    parser.add_argument(
        "--method", choices=["cg", "arw2008"], default="cg", help="conjugate gradients (default), or as printed in 2008"
    )
    parser.add_argument("--compare", type=Path, metavar="DIR", help="another graph: keywords kept and confirmed")
    _add_cut(parser)
    _add_output(parser, "all keywords as CSV, or TSV if it ends in .tsv")


def _add_similar(actions: Commands) -> None:
    parser = _action(actions, "similar", "queries like a query, by clicks", SIMILAR_EXAMPLES)
    parser.add_argument("query", metavar="QUERY", help="a released query")
    parser.add_argument(
        "--by", choices=["clicks", "forward", "backward"], default="clicks", help="shared clicks, or a random walk"
    )
    parser.add_argument("--idf", action="store_true", help="URLs that everybody clicks count less (--by clicks)")
    parser.add_argument("--steps", type=positive_int, default=11, metavar="T", help="of the walk (11)")
    parser.add_argument("--stay", type=_stay, default=0.9, metavar="S", help="chance of not moving in a step (0.9)")
    parser.add_argument("--urls", action="store_true", help="rank URLs instead of queries (walks only)")
    _add_cut(parser)
    _add_limit(parser)


def _add_suggest(actions: Commands) -> None:
    parser = _action(actions, "suggest", "what to ask next, from reformulations and similar clicks", SUGGEST_EXAMPLES)
    parser.add_argument("query", metavar="QUERY", help="a released query")
    _add_cut(parser)
    _add_limit(parser)


def _add_spell(actions: Commands) -> None:
    parser = _action(actions, "spell", "spelling corrections that people made themselves", SPELL_EXAMPLES)
    parser.add_argument("query", metavar="QUERY", nargs="?", help="of this query alone (of all)")
    _add_output(parser, "all corrections as CSV, or TSV if it ends in .tsv")


def _add_study(actions: Commands) -> None:
    parser = _action(actions, "study", "rank what queries ask about, with the doubt that noise leaves", STUDY_EXAMPLES)
    parser.add_argument("--pattern", required=True, metavar="REGEX", help="which queries; its first group is the term")
    parser.add_argument("--categories", type=Path, metavar="FILE", help="CSV with lines of term,category")
    parser.add_argument("--stop", type=Path, metavar="FILE", help="terms or queries to leave out, one a line")
    parser.add_argument("--top", type=positive_int, default=20, metavar="K", help="categories to show and compare (20)")
    parser.add_argument("--compare", type=Path, metavar="DIR", help="another release: overlap and Kendall's tau")
    _add_output(parser, "all categories as CSV, or TSV if it ends in .tsv")


def _add_synthesize(actions: Commands) -> None:
    parser = _action(actions, "synthesize", "a made-up log drawn from the release alone", SYNTHESIZE_EXAMPLES)
    parser.add_argument("--searches", type=positive_int, required=True, metavar="N", help="lines of the log")
    parser.add_argument("--users", type=positive_int, metavar="N", help="made-up users (a tenth of the searches)")
    _add_cut(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the log, tab-separated")
    parser.add_argument("--force", action="store_true", help="replace FILE")


def _action(actions: Commands, name: str, what: str, examples: str) -> argparse.ArgumentParser:
    parser = add_command(actions, name, what, examples)
    parser.add_argument("release", type=Path, metavar="DIR", help="the folder of a released click graph")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    return parser


def _add_cut(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cut", type=_cut, metavar="N", help="least count of an edge (the release's false-edge cut)")


def _add_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=positive_int, default=10, metavar="N", help="how many (10)")


def _add_output(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help=what)
    parser.add_argument("--force", action="store_true", help="replace FILE")


def _cut(text: str) -> float:
    value = _number(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError("expected a count of at least 0")
    return value


def _stay(text: str) -> float:
    value = _number(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError("expected a number in [0, 1), for example 0.9")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
