"""Strings that look personal: card numbers, addresses, telephone numbers, ids, passwords in a URL.

Differential privacy hides what few people typed, not what many did: a number printed in a newspaper passes any
threshold. So a person looks at what is about to be published, and this says where to look first. It is a hint and no
guarantee: it knows shapes, not meanings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final


class Suspicion(Enum):
    """Why a person should look at a string. The value is the code that is written down instead of the string."""

    CARD = "card-number"
    EMAIL = "e-mail"
    PHONE = "phone"
    ID = "id-number"
    IP = "ip-address"
    CREDENTIALS = "credentials-in-url"
    LISTED = "listed-term"


EXPLAINED: Final = {
    Suspicion.CARD: "13 to 19 digits whose check digit is right (Luhn), as on payment cards",
    Suspicion.EMAIL: "an e-mail address",
    Suspicion.PHONE: "a telephone number: international, or ten digits in groups",
    Suspicion.ID: "shaped like a national id (three-two-four digits), an IBAN, or nine digits and more",
    Suspicion.IP: "a numeric network address",
    Suspicion.CREDENTIALS: "a name and password, a session or a key inside a URL",
    Suspicion.LISTED: "contains a term of your list",
}

_EMAIL: Final = re.compile(r"[\w.+-]+\s?(?:@|\(at\)|\[at\])\s?[\w-]+(?:\.[\w-]+)+", re.IGNORECASE)
_DIGIT_RUN: Final = re.compile(r"(?<![\d.])\d(?:[ \-.]?\d){8,}(?![\d.]*\d)")
_PHONE: Final = re.compile(
    r"(?<![\w.])(?:\+\d{1,3}[ .\-/]?(?:\(0?\d{1,4}\)[ .\-/]?)?\d(?:[ .\-/]?\d){5,12}"
    r"|(?:1[ .\-])?(?:\(\d{3}\) ?|\d{3}[ .\-])\d{3}[ .\-]?\d{4})(?![\w.]*\d)"
)
_NATIONAL_ID: Final = re.compile(r"(?<!\d)\d{3}[ \-]\d{2}[ \-]\d{4}(?!\d)")
_IBAN: Final = re.compile(r"\b[a-z]{2}\d{2}(?: ?[a-z0-9]{4}){3,7}(?: ?[a-z0-9]{1,3})?\b", re.IGNORECASE | re.ASCII)
_IP: Final = re.compile(r"(?<![\d.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\d.])")
_CREDENTIALS: Final = re.compile(
    r"\A[a-z][a-z0-9+.-]*://[^/?#@]*:[^/?#@]*@"
    r"|[?&#;](?:pass(?:word|wd)?|pwd|token|access_token|session(?:id)?|sid|jsessionid|phpsessid|api_?key|auth|secret|code)="
    r"|;jsessionid=",
    re.IGNORECASE | re.ASCII,
)


def is_luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of the others."""
    doubled = [int(digit) * (2 - (place % 2 == 0)) for place, digit in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _has_card(string: str) -> bool:
    """Runs of 13 to 19 digits, also in groups, that are not one digit repeated."""
    runs = (re.sub(r"\D", "", match[0]) for match in _DIGIT_RUN.finditer(string))
    return any(13 <= len(run) <= 19 and len(set(run)) > 1 and is_luhn(run) for run in runs)


def _has_id(string: str) -> bool:
    if _NATIONAL_ID.search(string) or _is_iban(string):
        return True
    return any(re.fullmatch(r"\d{9,}", match[0]) for match in _DIGIT_RUN.finditer(string))


def _is_iban(string: str) -> bool:
    """An IBAN's remainder by 97 is 1, its letters read as 10..35 and its first four signs last."""
    for match in _IBAN.finditer(string):
        plain = match[0].replace(" ", "").lower()
        if 15 <= len(plain) <= 34 and int("".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])) % 97 == 1:
            return True
    return False


_LOOKS: Final[tuple[tuple[Suspicion, Callable[[str], object]], ...]] = (
    (Suspicion.CREDENTIALS, _CREDENTIALS.search),
    (Suspicion.EMAIL, _EMAIL.search),
    (Suspicion.CARD, _has_card),
    (Suspicion.PHONE, _PHONE.search),
    (Suspicion.ID, _has_id),
    (Suspicion.IP, _IP.search),
)


class Suspects:
    """Looks at strings for what a person should see before they are published."""

    def __init__(self, terms: Iterable[str] = ()) -> None:
        """``terms`` are words and phrases of the caller's own list; they are found as whole words, in any case."""
        listed = sorted({" ".join(term.split()) for term in terms if term.strip()}, key=len, reverse=True)
        pattern = "|".join(re.escape(term) for term in listed)
        self._listed = re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE) if listed else None

    def in_text(self, string: str) -> list[Suspicion]:
        """Why this string should be looked at; empty for most."""
        suspicions = [suspicion for suspicion, matches in _LOOKS if matches(string)]
        return [*suspicions, Suspicion.LISTED] if self._listed and self._listed.search(string) else suspicions
