"""The sentence that opt-in users agree to, as service and devices write it by themselves."""

from __future__ import annotations


def optin_consent(records: int) -> str:
    """It says how many searches are sent: a round takes up to ``records`` of each person."""
    sent = "one of my searches is" if records == 1 else f"up to {records} of my searches are"
    return f"I agree that {sent} sent, sealed, to the curator of this list."
