"""Somebody's own algorithm: found by its path, run like ours, refused with a clear line."""

from __future__ import annotations

import numpy as np
import pytest

from searchblend.blender.devices import EACH_DEVICE
from searchblend.blender.estimates import Blended
from searchblend.core.errors import EmptyHeadList, UsageError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import Record
from searchblend.synthetic.count_group import RecordModel
from searchblend.synthetic.seeded import SeededRandomness
from searchblend_lab.papers.algorithms import Algorithm, PrintedSteps, algorithm_named, load_algorithm

PARAMS = BlenderParams(Budget(4.0, 1e-5), max_head_queries=5)
RECORDS = [Record(f"q{i}", f"u{j}") for i in range(6) for j in range(2)]


def groups(share: float = 0.06):
    model = RecordModel.of_records(RECORDS, [share] * len(RECORDS))
    generator = np.random.default_rng(1)
    return model.draw(3000, generator), model.draw(20_000, generator)


def run(algorithm: Algorithm):
    optin, clients = groups()
    optin, clients = (group.seeded(np.random.default_rng(4)) for group in (optin, clients))
    return algorithm.run(optin, clients, PARAMS, devices=EACH_DEVICE, randomness=SeededRandomness(7))


class OnlyOptin(PrintedSteps):
    name = "only opt-in"

    def blend(self, optin, client):
        says = np.where(np.isnan(optin.probability), 0.0, optin.probability)
        return Blended(optin, says, np.ones(len(says)))


class WithoutRun:
    name = "nothing"


def test_the_printed_steps_are_method_paper():
    ours, steps = run(algorithm_named("paper")), run(PrintedSteps())
    assert steps.head.queries == ours.head.queries
    np.testing.assert_array_equal(steps.records.probability, ours.records.probability)
    np.testing.assert_array_equal(steps.queries.probability, ours.queries.probability)
    np.testing.assert_array_equal(steps.client.records.variance, ours.client.records.variance)


def test_an_overridden_step_is_used():
    release = run(OnlyOptin())
    assert release.method == "only opt-in"
    np.testing.assert_array_equal(release.queries.probability, release.optin.queries.probability)


def test_an_empty_list_is_an_error_of_its_own():
    optin, clients = groups(share=1e-6)
    with pytest.raises(EmptyHeadList):
        PrintedSteps().run(optin, clients, PARAMS, devices=EACH_DEVICE, randomness=SeededRandomness(1))


def test_found_by_path_class_or_object(monkeypatch, tmp_path):
    (tmp_path / "somebodys.py").write_text(
        "from searchblend_lab.papers.algorithms import PrintedSteps\n"
        "class Mine(PrintedSteps):\n    name = 'mine'\n"
        "made = Mine()\n"
    )
    monkeypatch.chdir(tmp_path)
    assert load_algorithm("somebodys:Mine").name == "mine"
    assert algorithm_named("somebodys:made").name == "mine"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("best2", "expected package.module:object"),
        ("module:", "expected package.module:object"),
        ("no_such_module_here:x", "cannot be imported"),
        ("searchblend_lab.papers.algorithms:Nothing", "has no Nothing"),
        ("test_algorithms:WithoutRun", "needs a name and a run"),
        ("test_algorithms:RECORDS", "needs a name and a run"),
    ],
)
def test_refused(path, problem):
    with pytest.raises(UsageError, match=problem):
        load_algorithm(path)
