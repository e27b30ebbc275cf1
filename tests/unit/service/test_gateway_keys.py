"""Keys of the gateway: announced, preferred, accepted for a week more, destroyed; several gateways agree about them."""

from __future__ import annotations

import pytest

from searchblend.core.errors import InputError
from searchblend.service.clock import DAY
from searchblend.service.workers.gateway_keys import ACCEPTED_SECONDS, ANNOUNCED_SECONDS, GatewayKeys
from searchblend.service.workers.publisher import gateway_digests
from searchblend.store.errors import StoreError
from searchblend.store.service_store import open_store
from searchblend.wire.ohttp import GatewayKey

NOW = 1_800_000_000
EVERY = 30 * DAY


@pytest.fixture
def store(tmp_path):
    with open_store(str(tmp_path / "service.db")) as opened:
        yield opened


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_key_is_announced_then_preferred_then_accepted_then_gone(store, tmp_path):
    keys = GatewayKeys(tmp_path / "gateway", EVERY)
    keys.make_first(NOW)
    (first,) = keys.accepted(NOW)
    keys.keep_up(store, NOW)
    assert gateway_digests(store, NOW) == (first.configuration.digest,)

    keys.keep_up(store, NOW + EVERY - ANNOUNCED_SECONDS - 1)
    assert len(files(tmp_path / "gateway")) == 1
    announced = NOW + EVERY - ANNOUNCED_SECONDS
    keys.keep_up(store, announced)
    preferred, second = keys.accepted(announced)
    assert preferred == first, "it is named in manifests for a day before any device gets it"
    both = {key.configuration.digest for key in (first, second)}
    assert set(gateway_digests(store, announced)) == both

    assert keys.accepted(NOW + EVERY) == [second, first]
    last = NOW + EVERY + ACCEPTED_SECONDS - 1
    keys.keep_up(store, last)
    assert keys.accepted(last) == [second, first]
    assert set(gateway_digests(store, last)) == both
    keys.keep_up(store, last + 1)
    assert keys.accepted(last + 1) == [second]
    assert gateway_digests(store, last + 1) == (second.configuration.digest,)
    assert files(tmp_path / "gateway") == [f"gateway-{NOW + EVERY:012d}.key"]


def test_gateways_that_share_the_folder_agree(store, tmp_path):
    one, other = (GatewayKeys(tmp_path / "gateway", EVERY) for _ in range(2))
    for keys in (one, other):
        keys.make_first(NOW)
    for now in (NOW, NOW + EVERY - DAY, NOW + EVERY, NOW + 2 * EVERY - DAY, NOW + 2 * EVERY + ACCEPTED_SECONDS):
        for keys in (one, other, one):
            keys.keep_up(store, now)
        assert [key.key_id for key in one.accepted(now)] == [key.key_id for key in other.accepted(now)]
        assert set(gateway_digests(store, now)) == {key.configuration.digest for key in one.accepted(now)}


def test_a_gateway_that_slept_for_long_still_announces_its_next_key(store, tmp_path):
    keys = GatewayKeys(tmp_path / "gateway", EVERY)
    keys.make_first(NOW)
    (first,) = keys.accepted(NOW)
    now = NOW + 10 * EVERY
    assert keys.accepted(now) == [first], "a key without a successor goes on"
    keys.keep_up(store, now)
    assert keys.accepted(now)[0] == first
    assert keys.accepted(now + DAY)[0] != first
    assert len(gateway_digests(store, now)) == 2


def test_the_record_of_a_key_that_outlives_its_time_is_made_anew(store, tmp_path):
    keys = GatewayKeys(tmp_path / "gateway", EVERY)
    keys.make_first(NOW)
    keys.keep_up(store, NOW)
    late = NOW + EVERY + ACCEPTED_SECONDS + 1
    assert gateway_digests(store, late) == ()
    keys.keep_up(store, late)
    assert len(gateway_digests(store, late)) == 2


def test_a_damaged_key_and_an_open_file_are_named(tmp_path):
    folder = tmp_path / "gateway"
    GatewayKeys(folder, EVERY).make_first(NOW)
    (path,) = folder.iterdir()
    path.chmod(0o644)
    with pytest.raises(InputError, match=path.name):
        GatewayKeys(folder, EVERY).make_first(NOW)
    path.chmod(0o600)
    path.write_bytes(b"short")
    with pytest.raises(InputError, match="32 bytes"):
        GatewayKeys(folder, EVERY).make_first(NOW)


def test_a_key_that_was_written_into_the_database_is_taken_off_the_record(store, tmp_path):
    keys = GatewayKeys(tmp_path / "gateway", EVERY)
    keys.keep_up(store, NOW)
    (own,) = gateway_digests(store, NOW)
    strange = GatewayKey.of_bytes(bytes(range(32))).configuration.encoded
    store.artifacts.record_gateway_keys({strange: NOW + EVERY}, NOW)
    assert len(gateway_digests(store, NOW)) == 2
    with pytest.raises(StoreError, match="no gateway's folder"):
        keys.keep_up(store, NOW)
    assert gateway_digests(store, NOW) == (own,)
    assert keys.keep_up(store, NOW) == 0


def test_a_key_that_another_gateway_makes_meanwhile_is_no_strangers(store, tmp_path, monkeypatch):
    one, other = (GatewayKeys(tmp_path / "gateway", EVERY) for _ in range(2))
    one.keep_up(store, NOW)
    later = NOW + EVERY - ANNOUNCED_SECONDS
    record = store.artifacts.gateway_keys

    def made_meanwhile(now):
        monkeypatch.undo()
        other.keep_up(store, later)
        return record(now)

    monkeypatch.setattr(store.artifacts, "gateway_keys", made_meanwhile)
    one.keep_up(store, later - 1)
    assert len(gateway_digests(store, later)) == 2
