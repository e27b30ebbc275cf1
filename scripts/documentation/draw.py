"""The drawings of the documentation, as SVG: `python scripts/documentation/draw.py` writes docs/drawings.

Words and order of states and steps are taken from the code where it has them, so that a drawing cannot fall behind it.
"""

from __future__ import annotations

import math
from html import escape
from pathlib import Path
from typing import Final

from searchblend.store.states import ENDED, HOLDS_RAW, NEXT, TAKES_REPORTS, State

FOLDER: Final = Path(__file__).parents[2] / "docs/drawings"
RAW, SEALED, PRIVATE, PLAIN = "raw", "sealed", "private", "plain"
_COLOURS: Final = {
    RAW: ("#fdeceb", "#b3261e"),
    SEALED: ("#fff4e0", "#a15c00"),
    PRIVATE: ("#e6f4ea", "#1d6b3a"),
    PLAIN: ("#f3f4f8", "#4a5568"),
}
_MEANING: Final = {
    RAW: "raw: what a person searched",
    SEALED: "sealed: only the curator's key opens it",
    PRIVATE: "private output: may be published",
}
_STYLE: Final = """
text { font-family: system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: #1c2430; }
.title { font-size: 15px; font-weight: 600; } .small { font-size: 12.5px; fill: #434c5b; }
.lane { font-size: 13px; font-weight: 600; fill: #566072; }
.label { font-size: 12px; } .halo { stroke: #ffffff; stroke-width: 5px; paint-order: stroke; stroke-linejoin: round; }
"""


class Drawing:
    """Boxes, arrows and words on a white card."""

    def __init__(self, title: str, width: int, height: int) -> None:
        self._title, self._width, self._height = title, width, height
        self._parts: list[str] = []

    def lane(self, x: int, width: int, label: str) -> None:
        height = self._height - 100
        self._parts.append(
            f'<rect x="{x}" y="44" width="{width}" height="{height}" rx="10" fill="#fafbfd" stroke="#d9dee6"/>'
            f'<text class="lane" x="{x + width / 2:g}" y="32" text-anchor="middle">{escape(label)}</text>'
        )

    def box(self, x: int, y: int, width: int, height: int, kind: str, title: str, *lines: str) -> None:
        fill, line = _COLOURS[kind]
        self._parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}" stroke="{line}" '
            f'stroke-width="1.5"/>'
        )
        middle, top = x + width / 2, y + height / 2 - 8.5 * len(lines) + 5
        self._parts.append(
            f'<text class="title" x="{middle:g}" y="{top:g}" text-anchor="middle">{escape(title)}</text>'
        )
        for i, text in enumerate(lines, start=1):
            self.text(middle, top + 17 * i, text, "small")

    def arrow(
        self, points: list[tuple[int, int]], kind: str, label: str = "", at: tuple[int, int] | None = None
    ) -> None:
        colour = _COLOURS[kind][1]
        dash = ' stroke-dasharray="5 4"' if kind == SEALED else ""
        path = " ".join(f"{'ML'[i > 0]}{x} {y}" for i, (x, y) in enumerate(points))
        self._parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        self._head(points[-2], points[-1], colour)
        if label and at:
            for i, text in enumerate(label.split("\n")):
                self.text(at[0], at[1] + 15 * i, text, "label halo")

    def _head(self, before: tuple[int, int], end: tuple[int, int], colour: str) -> None:
        angle = math.atan2(end[1] - before[1], end[0] - before[0])
        corners = [
            (end[0] - 11 * math.cos(angle + turn), end[1] - 11 * math.sin(angle + turn)) for turn in (0.45, -0.45)
        ]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in [end, *corners])
        self._parts.append(f'<polygon points="{points}" fill="{colour}"/>')

    def text(self, x: float, y: float, text: str, kind: str = "small", anchor: str = "middle") -> None:
        self._parts.append(f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>')

    def legend(self, kinds: list[str], words: dict[str, str] = _MEANING) -> None:
        x = 24
        for kind in kinds:
            fill, line = _COLOURS[kind]
            y = self._height - 34
            self._parts.append(f'<rect x="{x}" y="{y}" width="18" height="14" rx="3" fill="{fill}" stroke="{line}"/>')
            self.text(x + 26, y + 12, words[kind], "small", "start")
            x += 46 + round(6.9 * len(words[kind]))

    def svg(self) -> str:
        width, height = self._width, self._height
        card = f'width="{width - 1}" height="{height - 1}" rx="12" fill="#ffffff" stroke="#d9dee6"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{escape(self._title)}"><title>{escape(self._title)}</title><style>{_STYLE}</style>'
            f'<rect x=".5" y=".5" {card}/>' + "\n".join(self._parts) + "</svg>\n"
        )


def hybrid_model() -> Drawing:
    """The data's way, and who may see what."""
    drawing = Drawing("How data flows in the hybrid model, and who sees it", 1000, 640)
    drawing.lane(20, 290, "people's own devices")
    drawing.lane(355, 290, "the service")
    drawing.lane(690, 290, "public")
    drawing.box(45, 74, 240, 86, RAW, "opt-in user", "⟨query, URL⟩ of their own,", "sealed on the device")
    drawing.box(
        380,
        64,
        240,
        106,
        RAW,
        "curator",
        "opens records in memory, adds",
        "noise, names what many share;",
        "then the key is destroyed",
    )
    drawing.box(715, 74, 240, 86, PRIVATE, "head list", "common queries and URLs,", "reviewed by a person, signed")
    drawing.arrow([(285, 117), (378, 117)], SEALED, "sealed\nrecord", (332, 91))
    drawing.arrow([(620, 117), (713, 117)], PRIVATE, "(ε, δ)-\nprivate", (667, 91))
    drawing.box(
        45,
        268,
        240,
        106,
        RAW,
        "client",
        "randomizes one record of their",
        "own over the list, on the device;",
        "the record stays there",
    )
    drawing.box(380, 278, 240, 86, PRIVATE, "collector", "counts what reports say;", "keeps no report")
    drawing.arrow(
        [(835, 160), (835, 214), (165, 214), (165, 266)], PRIVATE, "the same list for every device", (500, 207)
    )
    drawing.arrow([(285, 321), (378, 321)], PRIVATE, "randomized\nreport", (332, 295))
    drawing.box(
        380, 440, 240, 86, PRIVATE, "estimator", "undoes the randomization, blends", "both groups by their variance"
    )
    drawing.arrow([(500, 364), (500, 438)], PRIVATE, "counts", (528, 406))
    drawing.arrow([(760, 160), (760, 402), (572, 402), (572, 438)], PRIVATE, "opt-in users'\nnoisy counts", (810, 296))
    drawing.box(715, 440, 240, 86, PRIVATE, "result", "shares with intervals, privacy", "statement, local-search pack")
    drawing.arrow([(620, 483), (713, 483)], PRIVATE)
    drawing.box(45, 440, 240, 86, PRIVATE, "local search", "answers from the pack;", "nothing is sent")
    drawing.arrow([(835, 526), (835, 558), (165, 558), (165, 528)], PRIVATE, "pack", (500, 552))
    drawing.legend([RAW, SEALED, PRIVATE])
    return drawing


MOVED_BY: Final = {
    State.DRAFT: "operator drafts",
    State.OPTIN_OPEN: "operator opens\ncurator makes a key",
    State.OPTIN_CLOSED: "clock\nor operator",
    State.HEADLIST_READY: "curator draws the list,\nonce",
    State.SHREDDED: "curator destroys\nkey and records",
    State.REVIEWED: "reviewer approves",
    State.CLIENT_OPEN: "publisher signs\nthe manifest",
    State.CLIENT_GRACE: "clock\nor operator",
    State.CLOSED: "clock\nor operator",
    State.ESTIMATED: "estimator blends",
    State.PUBLISHED: "publisher",
}


def round_states() -> Drawing:
    """The states of a round in the order of the code; from every one that has not ended there is a way to ABORTED."""
    drawing = Drawing("The states of a round", 1000, 520)
    order = [State.DRAFT]
    while order[-1] in NEXT:
        order.append(NEXT[order[-1]])
    places = {state: (24 + 244 * (i % 4), 40 + 118 * (i // 4)) for i, state in enumerate(order)}
    for state, (x, y) in places.items():
        kind = RAW if state in HOLDS_RAW else SEALED if state in TAKES_REPORTS else PRIVATE if state in ENDED else PLAIN
        drawing.box(x, y, 204, 74, kind, state.value, *MOVED_BY[state].split("\n"))
    for before, after in NEXT.items():
        (x, y), (to_x, to_y) = places[before], places[after]
        if y == to_y:
            drawing.arrow([(x + 204, y + 37), (to_x - 2, to_y + 37)], PLAIN)
        else:
            drawing.arrow([(x + 102, y + 74), (x + 102, y + 96), (to_x + 102, y + 96), (to_x + 102, to_y - 2)], PLAIN)
    drawing.box(360, 396, 280, 60, PLAIN, State.ABORTED.value, "from every state that has not ended")
    drawing.text(500, 386, "too few people, too few queries, time is up, or the operator stops it", "small")
    words = {
        RAW: "sealed records and their key may exist",
        SEALED: "reports are taken",
        PRIVATE: "the result is public",
    }
    drawing.legend([RAW, SEALED, PRIVATE], words)
    return drawing


def click_graph_steps() -> Drawing:
    """The steps of Korolova et al. 2009 and their noise."""
    drawing = Drawing("How a click graph is released", 1000, 330)
    steps = [
        (RAW, "log", ["every search", "and click"]),
        (RAW, "limit activity", ["the first d queries", "and d_c clicks", "of each user"]),
        (PRIVATE, "select queries", ["count + noise", "reaches K;", "pays ε and δ"]),
        (PRIVATE, "count queries", ["noise b_q on", "each count;", "pays ε"]),
        (PRIVATE, "count clicks", ["noise b_c on each", "published pair;", "pays ε"]),
        (PRIVATE, "folder", ["tables, graph,", "statement with", "hashes"]),
    ]
    for i, (kind, title, lines) in enumerate(steps):
        x = 24 + 162 * i
        drawing.box(x, 70, 142, 110, kind, title, *lines)
        if i:
            drawing.arrow([(x - 20, 125), (x - 2, 125)], PLAIN)
    drawing.text(24, 44, "on the publisher's machine", "lane", "start")
    drawing.text(834, 44, "public", "lane", "start")
    drawing.arrow([(905, 180), (905, 226), (772, 226)], PRIVATE)
    drawing.box(
        470, 200, 300, 56, PRIVATE, "keywords, studies, suggestions", "from the folder alone, at no further cost"
    )
    drawing.text(24, 232, "URLs come from a public table, or are chosen", "small", "start")
    drawing.text(24, 249, "privately like queries; never from the log as they are", "small", "start")
    drawing.legend([RAW, PRIVATE])
    return drawing


def device() -> Drawing:
    """What a device does in a round: agent and extension alike."""
    drawing = Drawing("What a device does", 1000, 560)
    drawing.lane(20, 640, "on the device: agent or browser extension")
    drawing.lane(700, 280, "the service")
    drawing.box(
        45, 74, 270, 70, RAW, "searches", "observed only after consent; kept here,", "deleted when they are old"
    )
    drawing.box(
        45,
        182,
        270,
        70,
        PLAIN,
        "verify the manifest",
        "signature, sequence, expiry, ε and δ",
        "against the device's own policy",
    )
    drawing.box(
        725, 182, 230, 70, PRIVATE, "manifest and head list", "the same for every device,", "signed, with a digest"
    )
    drawing.arrow([(723, 217), (317, 217)], PRIVATE, "fetched, checked", (520, 210))
    drawing.box(
        45, 300, 270, 70, RAW, "draw a report", "one record, randomized over the list", "with the system's generator"
    )
    drawing.arrow([(180, 252), (180, 298)], PLAIN)
    drawing.arrow([(70, 144), (34, 144), (34, 335), (43, 335)], RAW)
    drawing.box(
        370,
        300,
        265,
        70,
        PRIVATE,
        "debit, then keep the bytes",
        "both on disk before anything is sent:",
        "a crash never draws twice",
    )
    drawing.arrow([(315, 335), (368, 335)], PRIVATE)
    drawing.box(725, 300, 230, 70, PRIVATE, "collector", "counts a report's id once;", "says so after the commit")
    drawing.arrow([(635, 327), (723, 327)], PRIVATE, "same bytes", (680, 318))
    drawing.arrow([(723, 347), (637, 347)], PLAIN, "receipt", (680, 366))
    drawing.box(
        45,
        412,
        270,
        70,
        PRIVATE,
        "local search",
        "typed text is answered from the pack;",
        "no request leaves the device",
    )
    drawing.box(725, 412, 230, 70, PRIVATE, "pack", "the result of earlier rounds")
    drawing.arrow([(723, 447), (317, 447)], PRIVATE, "once a round, by delta", (520, 440))
    drawing.box(370, 74, 265, 70, PLAIN, "the user", "agrees, looks at everything that", "was sent, withdraws, deletes")
    drawing.arrow([(368, 109), (317, 109)], PLAIN)
    drawing.legend([RAW, PRIVATE])
    return drawing


DRAWINGS: Final = {
    "hybrid-model": hybrid_model,
    "round-states": round_states,
    "click-graph-steps": click_graph_steps,
    "device": device,
}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, draw in DRAWINGS.items():
        (FOLDER / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
