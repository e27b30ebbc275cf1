"""[KKMN09] Table 2: distinct queries published over ε and δ."""

from __future__ import annotations

from searchblend_lab.papers.clickgraph.grid import GridExperiment
from searchblend_lab.papers.clickgraph.published import TABLE_2

EXPERIMENT = GridExperiment(
    "kkmn-table2",
    "Distinct queries published over ε and δ",
    "[KKMN09] Table 2",
    "ε = ln 2, ln 5, ln 10 and δ = 1e-6 to 1e-4 for a week's log, d = 21; percent of the distinct queries.",
    "published",
    TABLE_2,
    3,
    "percent of distinct queries",
)
