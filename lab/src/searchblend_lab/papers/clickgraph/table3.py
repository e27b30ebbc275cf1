"""[KKMN09] Table 3: impressions published over ε and δ."""

from __future__ import annotations

from searchblend_lab.papers.clickgraph.grid import GridExperiment
from searchblend_lab.papers.clickgraph.published import TABLE_3

EXPERIMENT = GridExperiment(
    "kkmn-table3",
    "Impressions published over ε and δ",
    "[KKMN09] Table 3",
    "ε = ln 2, ln 5, ln 10 and δ = 1e-6 to 1e-4 for a week's log, d = 21; percent of the impressions.",
    "published_impressions",
    TABLE_3,
    2,
    "percent of impressions",
)
