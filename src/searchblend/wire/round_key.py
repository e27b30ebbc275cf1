"""What a curator signs when it opens a round: the key that records are sealed to, and what it will be used for.

A manifest is signed by the publisher, who reads the round from the database. Whoever can write there could put a key of
their own in its place, or change what the curator will do with the records. So the curator signs the round with a key
that never leaves it; the publisher signs no manifest of a round that the curator did not sign, and a device that has
pinned the curator's key seals to no other. Signed is ``"searchblend round key v1\\n"`` and the canonical JSON of these
fields, ECDSA as for manifests. Standard library only; signatures are checked in ``signing``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from searchblend.wire.canonical import canonical_json
from searchblend.wire.manifest import Manifest

SIGNED_PREFIX: Final = b"searchblend round key v1\n"


@dataclass(frozen=True)
class RoundKey:
    """A round as its curator opened it, in the words of the manifest."""

    task: str
    round: int
    public_key: str
    consent: str
    closes: int
    epsilon: str
    delta: str
    records_per_optin: int
    settings: str
    """SHA-256 of all settings of the round, those that no device sees among them"""

    @classmethod
    def of_manifest(cls, manifest: Manifest) -> RoundKey:
        """Of a manifest in phase opt-in, from minor version 1 on."""
        optin = manifest.optin
        assert optin is not None
        assert optin.settings is not None
        return cls(
            task=manifest.task,
            round=manifest.round,
            public_key=optin.public_key,
            consent=optin.consent,
            closes=optin.closes,
            epsilon=manifest.epsilon,
            delta=manifest.delta,
            records_per_optin=manifest.records_per_optin,
            settings=optin.settings,
        )

    @property
    def signed_bytes(self) -> bytes:
        return SIGNED_PREFIX + canonical_json(vars(self))
