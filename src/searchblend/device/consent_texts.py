"""What people agree to, word for word. The SHA-256 of the text is kept with the time and the mode."""

from __future__ import annotations

import hashlib
from typing import Final

from searchblend.wire.consent import optin_consent

OFF: Final = "off"
LOCAL: Final = "local"
OPT_IN: Final = "opt-in"
MODES: Final = (OFF, LOCAL, OPT_IN)

LOCAL_TEXT: Final = """\
This device keeps your searches and the result that you chose, here and nowhere else. In each round of the task it
answers one question about one of them, chosen at random, and the answer is randomized on this device before it is
sent: whoever receives it cannot tell whether it is true. That you take part, and when, can be seen. You can look at
everything that was sent, pause, erase what is kept, and leave at any time; what was sent cannot be taken back."""
OPT_IN_TEXT: Final = optin_consent(1)
TEXTS: Final = {LOCAL: LOCAL_TEXT, OPT_IN: OPT_IN_TEXT}


def text_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
