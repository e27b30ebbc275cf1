"""What can go wrong on a device, under ``RunError``.

DeviceError
├── DeviceRefused     the device will not do what it was asked for; ``reason`` says why in one word
├── NoAnswer          the service said nothing that can be believed; the same bytes may be sent again
└── StateError        the device's own file cannot be used
    └── StorageFull   there is no room; nothing was changed and nothing was sent
"""

from __future__ import annotations

from typing import Final

from searchblend.core.errors import RunError

REASONS: Final = {
    "forged": "the manifest carries no valid signature of a pinned key, or is malformed",
    "wrong-curator": "the key of the round is not signed by the curator whose key was pinned",
    "wrong-task": "the manifest is another task's",
    "expired": "the manifest has expired",
    "clock-behind": "the manifest was signed in this device's future: is the clock right?",
    "valid-too-long": "the manifest would be valid for longer than this device accepts",
    "rolled-back": "the manifest is older than one that was seen before",
    "two-faces": "the manifest differs from another one with the same number",
    "older-round": "the round is older than one that was seen before",
    "device-too-old": "the task asks for a newer version of this program",
    "over-policy": "the task asks for more than this device ever gives",
    "over-budget": "this device's privacy budget does not allow another report now",
    "window-closed": "the round does not take reports now",
    "wrong-artifact": "the head list is not the file that the manifest names",
    "bad-head-list": "the head list is malformed",
    "wrong-digest": "the head list is not the one that the manifest names",
    "wrong-parameters": "the head list asks for something else than the manifest",
    "empty-list": "the head list is empty",
    "short-list": "the head list has so few searches that most answers about it would be true",
    "not-drawn": "the head list asks about searches that its curator did not draw from opt-in users",
    "log-forged": "the checkpoint of the public log carries no valid signature of a pinned key, or is malformed",
    "log-forked": "the public log is not the one that this device was shown before, with more at its end",
    "log-unwitnessed": "too few witnesses have cosigned the public log",
    "not-logged": "the manifest is not in the public log",
    "bad-request": "nothing can be made that fits what the manifest asks for",
    "wrong-consent": "the round asks for consent to another text than the one that was agreed to",
    "more-than-agreed": "the round takes more searches than was agreed to",
    "gateway-key": "the key that the relay gives out for the service is not one that the manifest names",
    "no-credential": "an opt-in contribution needs an enrolment code",
    "no-account": "reports of this task are paid with tokens, and this device has no account at their issuer",
    "wrong-issuer": "the task names another issuer of tokens than the one where this device has its account",
    "no-token": "the issuer gave no token",
}


class DeviceError(RunError):
    """Base of what a device reports about itself."""


class DeviceRefused(DeviceError):
    """The device refuses; nothing of the user's was sent."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {REASONS[reason]}{f' ({detail})' if detail else ''}")


class NoAnswer(DeviceError):
    """Nothing came back that can be believed."""

    def __init__(self, kind: str, detail: str) -> None:
        self.kind = kind
        super().__init__(f"{kind}: {detail}")


class StateError(DeviceError):
    """The device's file cannot be used."""


class StorageFull(StateError):
    """No room on the device."""
