"""Numbers of [KKMN09] that an experiment is compared with."""

from __future__ import annotations

import math
from typing import Final

EPSILON: Final = math.log(10)
DELTA: Final = 1e-5
TABLE_1: Final = {
    1: (5.70, 0.43),
    5: (31.99, 2.17),
    10: (66.99, 4.34),
    20: (140.00, 8.69),
    40: (292.04, 17.37),
    80: (608.16, 34.74),
    160: (1264.49, 69.49),
}
"""d: K, b"""
LEVEL: Final = 0.1
"""how far a number of a log may be from the published one, as a share of it, to agree"""
GRID_LIMIT: Final = 21
"""d of Tables 2 and 3"""
DISTINCT: Final = 0.75
"""percent of distinct queries at d = 1 (§7.1.1)"""
IMPRESSIONS: Final = {1: 10, 20: 34}
"""d: percent of impressions (§7.1.1)"""
GRID: Final = tuple((math.log(e), delta) for delta in (1e-6, 1e-5, 1e-4) for e in (2, 5, 10))
TABLE_2: Final = dict(zip(GRID, (0.03, 0.06, 0.09, 0.03, 0.07, 0.10, 0.04, 0.09, 0.12), strict=True))
"""percent of distinct queries"""
TABLE_3: Final = dict(zip(GRID, (26.79, 30.92, 32.64, 27.55, 31.67, 33.38, 28.45, 32.55, 34.23), strict=True))
"""percent of impressions"""
SPANS: Final = {"one day": 1, "one week": 7, "two weeks": 14, "one month": 30, "one year": 365}
GROWTH: Final = {"one week": (6, 7), "two weeks": (12, 15), "one month": (24, 33), "one year": (184, 325)}
"""distinct queries and impressions against one day, at d = 20"""
TABLE_4: Final = (
    ("Flying", "Flying"),
    ("Heights", "Heights"),
    ("Snakes, spiders", "Public speaking"),
    ("Death", "Snakes, spiders"),
    ("Public speaking", "Death"),
    ("Commitment", "Commitment"),
    ("Intimacy", "Abandonment"),
    ("Abandonment", "The dark"),
    ("The dark", "Intimacy"),
)
"""original log, released queries"""
SURVEY: Final = (
    "Bugs, mice, snakes",
    "Heights",
    "Water",
    "Public transportation",
    "Storms",
    "Closed spaces",
    "Tunnels and bridges",
    "Crowds",
    "Speaking in public",
)
"""the other column of Table 4, the National Comorbidity Survey's"""
SOCIAL_FEARS: Final = frozenset({"Public speaking", "Speaking in public", "Commitment", "Intimacy", "Abandonment"})
"""of Table 4, as §7.2.1 counts them: one in the survey, four in the log"""
TABLE_5: Final = {
    "colleges": ((3667, 2403, 1337, 883), (28346, 17103, 8287, 6373)),
    "shoes": ((2733, 1620, 448, 248), (19669, 8418, 1800, 1047)),
    "suicide": ((175, 116, 50, 39), (3945, 2517, 806, 525)),
}
"""released, original at relevance .5, .7, .9, .95"""
KEPT: Final = (0.0985, 0.2043)
"""queries and edges of the released graph"""
LEAST_OVERLAP: Final = 0.78
OVERLAP: Final = {"shoes": 0.93, "suicide": 0.99}
"""released keywords that the original has too, where it is printed (§7.2.2); no threshold is said"""
