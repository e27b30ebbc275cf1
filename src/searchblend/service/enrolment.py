"""What the publisher gives out to those who join a task: its address, its signing keys, and the curators' keys."""

from __future__ import annotations

from dataclasses import dataclass

from searchblend.core.errors import InvalidParameter
from searchblend.service.api.answers import Refusal
from searchblend.service.round_model import settings_of
from searchblend.service.settings import ServeSettings
from searchblend.service.workers.signing_keys import SigningKeys, curator_points
from searchblend.store.rounds import Task
from searchblend.wire.enrolment import EnrolmentDocument
from searchblend.wire.signing import read_public_point


@dataclass(frozen=True)
class EnrolmentOffer:
    """Made by the role that has the signing keys; folders are read at each request, because keys come and go."""

    settings: ServeSettings
    address: str
    """where devices reach the service; a setting, because a request's own header may name any host"""

    def document(self, task: Task) -> EnrolmentDocument:
        if task.killed:
            raise Refusal("unknown-task", "the task was stopped for good")
        settings = settings_of(task)
        signing = [key.public_point for key in SigningKeys.of(self.settings).all()]
        spare = [read_public_point(key, "spare_key")[1] for key in self.settings.spare_key.replace(",", " ").split()]
        try:
            return EnrolmentDocument(
                self.address,
                task.task,
                tuple(dict.fromkeys(point.hex() for point in (*signing, *spare))),
                tuple(point.hex() for point in curator_points(self.settings).values()),
                settings.own_consent,
                settings.has_urls,
                self.settings.relay or None,
            )
        except InvalidParameter as error:
            raise Refusal("unknown-task", f"no enrolment can be given out: {error}") from error
