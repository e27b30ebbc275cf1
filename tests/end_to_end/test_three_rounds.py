"""Three rounds with people who join, leave and switch groups, and a device of another protocol minor."""

from __future__ import annotations

import json

import pytest

from databases import DATABASES, fresh_database
from searchblend.accounting.totals import BudgetCap
from searchblend.core.privacy import Budget
from searchblend.service.round_model import sealing_context
from searchblend.store.errors import BudgetExceeded
from searchblend.store.states import State
from searchblend.wire.manifest import MANIFEST_MINOR, encode_signed
from searchblend.wire.sealed import seal_records
from searchblend.wire.signing import sign_manifest, verify_manifest
from service_http import http_service
from service_parts import people

N = 700


def groups(n_round):
    """Opt-in users and clients of a round: everybody is in one group, a third changes from round to round."""
    everybody = list(enumerate(people(N, seed=5)))
    here = [person for person in everybody if person[0] % 10 != n_round]  # some join, some leave
    optin = [person for person in here if (person[0] + 100 * n_round) % 3 == 0]
    chosen = {number for number, _ in optin}
    return optin, [person for person in here if person[0] not in chosen]


@pytest.mark.parametrize("kind", DATABASES)
def test_three_rounds(kind, tmp_path):
    with http_service(fresh_database(kind, tmp_path), tmp_path) as http:
        parts = http.parts
        parts.store.ledger.set_cap(BudgetCap(lifetime=Budget(12.0, 1e-3)))
        task = parts.task(min_clients=100, expected_clients=400)
        codes = parts.lifecycle.enrol(task, N, actor="ann")
        memberships, earlier, old_message = [], None, b""
        for n_round in (1, 2, 3):
            optin, clients = groups(n_round)
            memberships.append(({number for number, _ in optin}, {number for number, _ in clients}))
            round_ = parts.open(task)
            assert round_.number == n_round
            for number, record in optin[:10]:
                context = sealing_context(round_)
                sealed = seal_records([record], context, context.tag_of(codes[number]), round_.public_key)
                assert http.contribute(round_, sealed, codes[number]).status_code == 200
            leaver = optin[0][0]
            assert http.contribute(round_, b"", codes[leaver], "DELETE").status_code == 204
            parts.contribute(round_, [record for _, record in optin[10:]], first=1000)
            assert parts.store.contributions.count(round_.key) == len(optin) - 1
            round_ = parts.head_list(task)
            messages = parts.messages(round_, [record for _, record in clients])
            assert http.reports(round_, b"".join(messages)).json()["accepted"] == len(clients)
            if earlier is not None:
                assert http.report(earlier, old_message).status_code == 409
                assert http.report(round_, old_message).status_code == 400
            assert parts.finish(task).state is State.PUBLISHED
            assert parts.current(task).reports == len(clients)
            earlier, old_message = round_, messages[0]
        switched = (memberships[0][0] & memberships[1][1]) | (memberships[0][1] & memberships[1][0])
        assert len(switched) > 100
        trends = http.client.get(f"/v1/tasks/{task.task}/trends").json()["trends"]
        assert {row["round"] for row in trends} == {1, 2, 3}
        # One lifetime total per person covers both groups: of a round's two debits each person bears one.
        entries = parts.store.ledger.entries("everybody")
        assert [entry.release_id.split("/", 1)[1] for entry in entries] == [
            f"{n}/{group}" for n in (1, 2, 3) for group in ("opt-in", "clients")
        ]
        assert parts.store.ledger.totals("everybody").summed_epsilon == 12.0
        with pytest.raises(BudgetExceeded):
            parts.open(task)


def test_devices_of_other_minors(tmp_path):
    """A manifest of a later minor with a new field still works; a later version does not."""
    with http_service(str(tmp_path / "service.db"), tmp_path) as http:
        round_ = http.client_round()
        keys = http.parts.signing_keys.all()
        pinned = {key.key_id: key.public_point for key in keys}
        manifest = verify_manifest(http.client.get(f"/v1/tasks/{round_.task}/manifest").content, pinned).document
        assert manifest["minor"] == MANIFEST_MINOR

        def signed(**changes):
            payload = json.dumps({**manifest, **changes}, sort_keys=True, separators=(",", ":")).encode()
            return encode_signed(sign_manifest(payload, keys))

        assert verify_manifest(signed(minor=MANIFEST_MINOR + 1, new_field="x"), pinned).round == round_.number
        for changes in ({"version": 2}, {"minor": MANIFEST_MINOR, "new_field": "x"}):
            with pytest.raises(Exception, match="manifest"):
                verify_manifest(signed(**changes), pinned)
