"""[KKMN09] Fig. 3: distinct queries published from a day, a week, …, a year."""

from __future__ import annotations

from searchblend_lab.papers.clickgraph.spans import SpanExperiment

EXPERIMENT = SpanExperiment(
    "kkmn-fig3",
    "Distinct queries published over d, for logs of a day to a year",
    "[KKMN09] Fig. 3",
    "Logs of one day, one week, two weeks, a month and a year; percent of distinct queries over d, as printed.",
    "published",
    "distinct queries published (%)",
)
