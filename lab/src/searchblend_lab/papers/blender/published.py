"""Every number of the papers that an experiment is compared with."""

from __future__ import annotations

from typing import Final

OPTIN_SHARES: Final = tuple(round(0.01 + 0.005 * i, 3) for i in range(19))
"""[BLJ] Fig. 13 and 15: 1 % to 10 %"""
TINY_SHARES: Final = tuple(round(0.001 * i, 3) for i in range(1, 11))
"""[BLJ] Fig. 18 and 19: 0.1 % to 1 %"""
EPSILONS: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
"""[BLJ] Fig. 14 and 16"""
BUDGET_SPLITS: Final = tuple(round(0.55 + 0.05 * i, 2) for i in range(9))
"""[BLJ] Fig. 10"""

BLENDER_NDCG: Final = {1.0: 0.974, 2.0: 0.980, 3.0: 0.984, 4.0: 0.987, 5.0: 0.990}
"""[BLJ] Fig. 12, head size 10"""
CCS16_NDCG: Final = {1.0: 0.175, 2.0: 0.295, 3.0: 0.315, 4.0: 0.360, 5.0: 0.385}
"""Qin et al., as printed in [BLJ] Fig. 12"""
SPLIT_POINT: Final = (0.85, 0.990157725)
"""the one labelled point of [BLJ] Fig. 10b"""

FIGURE_8: Final = {
    "aol": {"queries": 4_811_646, "users": 519_371, "urls": 1_620_064},
    "yandex": {"queries": 13_171_961, "users": 4_970_073, "urls": 12_702_350},
}
FIGURE_8_DISK: Final = {"aol": "1.75 GB", "yandex": "16 GB"}
FIGURE_9: Final = (
    # query, AOL share, blended, opt-in, client (queries), client (sum over URLs)
    (None, 0.9121, 0.9144, 0.9148, 0.9143, 0.9143),
    ("google", 0.0211, 0.0211, 0.0220, 0.0210, 0.0210),
    ("yahoo", 0.0067, 0.0081, 0.0061, 0.0088, 0.0088),
    ("google.com", 0.0066, 0.0075, 0.0083, 0.0073, 0.0073),
    ("myspace.com", 0.0055, 0.0046, 0.0034, 0.0052, 0.0052),
    ("mapquest", 0.0055, 0.0062, 0.0051, 0.0066, 0.0066),
    ("yahoo.com", 0.0048, 0.0047, 0.0057, 0.0043, 0.0043),
    ("www.google.com", 0.0044, 0.0038, 0.0043, 0.0035, 0.0035),
    ("myspace", 0.0034, 0.0030, 0.0031, 0.0030, 0.0030),
    ("ebay", 0.0030, 0.0030, 0.0030, 0.0029, 0.0029),
)
FIGURE_9_BL17: Final = (
    # the same columns in [BL17] Fig. 9, ε = 4
    (None, 0.9108, 0.9103, 0.9199, 0.9100, 0.1468),
    ("google", 0.0213, 0.0216, 0.0213, 0.0217, 0.0216),
    ("yahoo", 0.0067, 0.0070, 0.0046, 0.0073, 0.0325),
    ("google.com", 0.0067, 0.0056, 0.0023, 0.0061, 0.0194),
    ("myspace.com", 0.0057, 0.0052, 0.0022, 0.0057, 0.0258),
    ("mapquest", 0.0054, 0.0051, 0.0062, 0.0053, 0.0192),
    ("yahoo.com", 0.0043, 0.0043, 0.0021, 0.0048, 0.0192),
    ("www.google.com", 0.0034, 0.0004, 0.0004, 0.0032, 0.0098),
    ("myspace", 0.0033, 0.0034, 0.0042, 0.0035, 0.0255),
    ("ebay", 0.0028, 0.0026, 0.0028, 0.0028, 0.0254),
)
FIGURE_11: Final = {
    # parameter: AOL, Yandex
    "ε": (4.0, 4.0),
    "δ": (1e-5, 1e-7),
    "opt-in share": (0.05, 0.03),
    "m_O": (1, 1),
    "m_C": (1, 1),
    "f_O": (0.95, 0.95),
    "f_C": (0.85, 0.85),
    "M": (50, 500),
}
"""[BLJ] Fig. 11"""
OPTIN_BL17: Final = (0.05, 0.025)
"""the one row of [BL17] Fig. 10 that differs"""
START_BL17: Final = 3.0
"""[BL17] §4.2.3: the ε at which the AOL list of 50 begins"""
NDCG_AXIS: Final = (0.95, 0.995)
"""the ends of the axis of [BLJ] Fig. 10b"""
NDCG_CLOSE: Final = 0.0075
"""how far an NDCG may be from a published one to agree: method best is further from all of them"""
