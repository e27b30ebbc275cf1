"""[KKMN09] Fig. 4: impressions published from a day, a week, …, a year."""

from __future__ import annotations

from searchblend_lab.papers.clickgraph.spans import SpanExperiment

EXPERIMENT = SpanExperiment(
    "kkmn-fig4",
    "Impressions published over d, for logs of a day to a year",
    "[KKMN09] Fig. 4",
    "Logs of one day, one week, two weeks, a month and a year; percent of impressions over d, as printed.",
    "published_impressions",
    "impressions published (%)",
)
