"""Strings of other people as they may be shown: what cannot be seen, or moves what stands beside it, is spelt out.

A query of a list may hold U+202E, which turns the rest of a line around so that a page seems to be another's, or a
control character that a terminal obeys. ``extension/src/core/visible.js`` has the same rule. Joiners and variation
selectors stay: Persian and many emoji are written with them.
"""

from __future__ import annotations

import re
from typing import Final

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(string: str) -> str:
    """The string with ``[U+202E]`` for each control, bidi control and invisible sign; tabs and line feeds stay."""
    return _UNSEEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", string)
