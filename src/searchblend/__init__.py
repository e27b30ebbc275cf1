"""searchblend: the head of a search log, computed privately.

The public surface; everything else may change. Names are loaded when first used, so that a device that needs
``local_report`` alone loads nothing but the standard library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from searchblend.blender.estimates import Blended, Estimates, GroupEstimates
    from searchblend.blender.groups import InMemoryGroup, UserGroup
    from searchblend.blender.paper.blend import blend_probabilities
    from searchblend.blender.paper.create_head_list import create_head_list
    from searchblend.blender.paper.estimate_client import count_reports, estimate_client_probabilities
    from searchblend.blender.paper.estimate_optin import estimate_optin_probabilities
    from searchblend.blender.paper.local_report import local_report
    from searchblend.blender.paper.report_probabilities import ReportProbabilities
    from searchblend.blender.pipeline import run_blender
    from searchblend.blender.release import BlenderRelease
    from searchblend.clickgraph.release.click_log import Cap, ClickLog
    from searchblend.clickgraph.release.design import ClickGraphDesign
    from searchblend.clickgraph.release.in_memory import InMemoryClickLog, Search
    from searchblend.clickgraph.release.noise_law import NoiseLaw
    from searchblend.clickgraph.release.release import ClickGraphRelease
    from searchblend.clickgraph.release.release_data import release_data
    from searchblend.clickgraph.use.absorbing_walk import WalkSettings
    from searchblend.clickgraph.use.graph import ClickGraph
    from searchblend.clickgraph.use.keywords import Keyword, Keywords, compare_keywords, generate_keywords
    from searchblend.clickgraph.use.similar import ClickWalk, similar_queries, suggest
    from searchblend.clickgraph.use.spell import SpellingRules, spelling_corrections
    from searchblend.clickgraph.use.study import Study, compare_rankings, run_study
    from searchblend.clickgraph.use.synthesize import SyntheticLog, synthesize_log
    from searchblend.core.errors import (
        EmptyHeadList,
        InputError,
        InvalidColumns,
        InvalidParameter,
        MessageError,
        OutputError,
        RunError,
        SearchblendError,
        UsageError,
    )
    from searchblend.core.normalization import normalize, normalize_url
    from searchblend.core.params import BlenderParams, ClickGraphParams, Shares
    from searchblend.core.privacy import Budget, Guarantee, Neighbors, TrustModel
    from searchblend.core.records import WILDCARD, HeadList, Record
    from searchblend.logs.read import read_log
    from searchblend.releases.select_values import HeavyValues, select_values
    from searchblend.search.index import SearchIndex
    from searchblend.search.pack import Pack, decode_pack
    from searchblend.wire.click_graph_files import encode_click_graph, read_click_graph

_HOME = {
    "blender.paper.blend": ["blend_probabilities"],
    "blender.paper.create_head_list": ["create_head_list"],
    "blender.paper.estimate_client": ["count_reports", "estimate_client_probabilities"],
    "blender.paper.estimate_optin": ["estimate_optin_probabilities"],
    "blender.estimates": ["Blended", "Estimates", "GroupEstimates"],
    "blender.groups": ["InMemoryGroup", "UserGroup"],
    "blender.paper.local_report": ["local_report"],
    "blender.pipeline": ["run_blender"],
    "blender.release": ["BlenderRelease"],
    "blender.paper.report_probabilities": ["ReportProbabilities"],
    "clickgraph.use.absorbing_walk": ["WalkSettings"],
    "clickgraph.release.click_log": ["Cap", "ClickLog"],
    "clickgraph.release.design": ["ClickGraphDesign"],
    "clickgraph.use.graph": ["ClickGraph"],
    "clickgraph.release.in_memory": ["InMemoryClickLog", "Search"],
    "clickgraph.use.keywords": ["Keyword", "Keywords", "compare_keywords", "generate_keywords"],
    "clickgraph.release.noise_law": ["NoiseLaw"],
    "clickgraph.release.release": ["ClickGraphRelease"],
    "clickgraph.release.release_data": ["release_data"],
    "clickgraph.use.similar": ["ClickWalk", "similar_queries", "suggest"],
    "clickgraph.use.spell": ["SpellingRules", "spelling_corrections"],
    "clickgraph.use.study": ["Study", "compare_rankings", "run_study"],
    "clickgraph.use.synthesize": ["SyntheticLog", "synthesize_log"],
    "core.errors": [
        "EmptyHeadList",
        "InputError",
        "InvalidColumns",
        "InvalidParameter",
        "MessageError",
        "OutputError",
        "RunError",
        "SearchblendError",
        "UsageError",
    ],
    "releases.select_values": ["HeavyValues", "select_values"],
    "logs.read": ["read_log"],
    "core.normalization": ["normalize", "normalize_url"],
    "core.params": ["BlenderParams", "ClickGraphParams", "Shares"],
    "core.privacy": ["Budget", "Guarantee", "Neighbors", "TrustModel"],
    "core.records": ["WILDCARD", "HeadList", "Record"],
    "search.index": ["SearchIndex"],
    "search.pack": ["Pack", "decode_pack"],
    "wire.click_graph_files": ["encode_click_graph", "read_click_graph"],
}
_MODULE_OF = {name: f"{__name__}.{module}" for module, names in _HOME.items() for name in names}

__all__ = [  # noqa: RUF022  # in the order of a run, not of the alphabet
    "Budget",
    "BlenderParams",
    "Guarantee",
    "Neighbors",
    "TrustModel",
    "Record",
    "WILDCARD",
    "HeadList",
    "normalize",
    "normalize_url",
    "read_log",
    "UserGroup",
    "InMemoryGroup",
    "run_blender",
    "create_head_list",
    "estimate_optin_probabilities",
    "local_report",
    "ReportProbabilities",
    "count_reports",
    "estimate_client_probabilities",
    "blend_probabilities",
    "select_values",
    "HeavyValues",
    "Estimates",
    "GroupEstimates",
    "Blended",
    "BlenderRelease",
    "SearchIndex",
    "Pack",
    "decode_pack",
    "ClickGraphParams",
    "Shares",
    "ClickGraphDesign",
    "ClickLog",
    "Cap",
    "InMemoryClickLog",
    "Search",
    "release_data",
    "ClickGraphRelease",
    "ClickGraph",
    "NoiseLaw",
    "encode_click_graph",
    "read_click_graph",
    "generate_keywords",
    "Keyword",
    "Keywords",
    "compare_keywords",
    "WalkSettings",
    "similar_queries",
    "ClickWalk",
    "suggest",
    "spelling_corrections",
    "SpellingRules",
    "run_study",
    "Study",
    "compare_rankings",
    "synthesize_log",
    "SyntheticLog",
    "SearchblendError",
    "UsageError",
    "InvalidParameter",
    "InvalidColumns",
    "RunError",
    "InputError",
    "EmptyHeadList",
    "MessageError",
    "OutputError",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
