"""A server's time goes on evenly: a jump of the machine's clock is followed only when it has lasted."""

from __future__ import annotations

import time

import pytest

from searchblend.service.clock import BELIEVED_SECONDS, TOLERATED_SECONDS, SteadyClock, SystemClock
from searchblend.store.states import State
from service_parts import Service, people

DAY = 86_400


class Machine:
    """Its clock can be set, the seconds since its start cannot."""

    def __init__(self) -> None:
        self.started, self.wrong = 0.0, 0.0

    def wall(self) -> float:
        return 1_800_000_000 + self.started + self.wrong

    def steady(self) -> float:
        return self.started

    def clock(self) -> SteadyClock:
        return SteadyClock(self.wall, self.steady)


@pytest.mark.parametrize("jump", [30 * DAY, -30 * DAY, TOLERATED_SECONDS + 1])
def test_a_jump_changes_nothing_until_it_has_lasted(jump):
    machine = Machine()
    clock = machine.clock()
    began = clock.now()
    machine.wrong = jump
    machine.started += 4
    assert clock.now() == began + 4
    assert "jumped" in clock.trouble()
    machine.wrong = 0
    machine.started += 1
    assert (clock.now(), clock.trouble()) == (began + 5, None)
    machine.wrong = jump
    clock.now()
    machine.started += BELIEVED_SECONDS - 1
    assert clock.now() == began + 5 + BELIEVED_SECONDS - 1
    machine.started += 1
    assert (clock.now(), clock.trouble()) == (began + 5 + BELIEVED_SECONDS + jump, None)


def test_a_clock_that_is_put_right_by_a_little_is_followed_at_once():
    machine = Machine()
    clock = machine.clock()
    machine.wrong = -TOLERATED_SECONDS
    assert (clock.now(), clock.trouble()) == (int(machine.wall()), None)


def test_many_small_steps_are_a_jump():
    machine = Machine()
    clock = machine.clock()
    began = clock.now()
    for _ in range(1000):
        machine.started += 1
        machine.wrong += 60
        clock.now()
    assert clock.now() == began + 1000
    assert clock.trouble()


def test_a_clock_that_drifts_is_followed_for_ever():
    machine = Machine()
    clock = machine.clock()
    for _ in range(1000):
        machine.started += 600
        machine.wrong += 5
        assert (clock.now(), clock.trouble()) == (int(machine.wall()), None)


def test_a_clock_that_jumps_to_and_fro_is_never_believed():
    machine = Machine()
    clock = machine.clock()
    began = clock.now()
    for n in range(100):
        machine.wrong = DAY * (2 + n % 2)
        machine.started += BELIEVED_SECONDS // 10
        clock.now()
    assert clock.now() == began + 10 * BELIEVED_SECONDS


def test_the_machines_own_clocks_agree():
    clock = SteadyClock()
    for other, apart in ((SystemClock().now, 1), (time.time, 2)):
        before, now, after = other(), clock.now(), other()
        assert before - apart <= now <= after + apart
    assert clock.trouble() is None


def test_a_jump_ends_no_round_and_leaves_no_manifest_that_devices_refuse(tmp_path):
    machine = Machine()
    service = Service.start(str(tmp_path / "service.db"), tmp_path, machine.clock())
    task = service.task()
    round_ = service.open(task)
    service.contribute(round_, people(60, seed=1))
    before = service.store.artifacts.manifest(task.task)
    machine.wrong = 30 * DAY
    machine.started += 4
    service.work()
    assert service.current(task).state is State.OPTIN_OPEN
    machine.wrong = 0
    service.work()
    assert service.store.artifacts.manifest(task.task) == before
    # Nor does a clock that is put back put off what has to be destroyed.
    machine.wrong = -30 * DAY
    machine.started += 1000
    service.work()
    assert service.current(task).state is State.ABORTED
    assert (service.store.contributions.count(round_.key), service.vault.held()) == (0, [])
    service.store.close()
