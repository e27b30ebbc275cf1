"""Every sentence that promises something is tied to the figure or the behaviour that makes it true."""

from __future__ import annotations

import importlib
import math
import pkgutil
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import searchblend
from searchblend.blender.best.stability_histogram import curator_design
from searchblend.blender.best.trust import ALARM_LEVEL
from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.pipeline import run_blender
from searchblend.core import errors
from searchblend.core.errors import InvalidParameter, SearchblendError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget, TrustModel
from searchblend.core.records import Record
from searchblend.service.console.task_page import GROUPS
from searchblend.service.task_settings import TaskSettings
from searchblend.service.workers.estimator import _CAVEATS
from searchblend.synthetic.seeded import SeededRandomness

ROOT = Path(__file__).parents[2]
PARAMS = BlenderParams(Budget(4.0, 1e-5))


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def small_release(method: str):
    people = [[Record("weather", "http://weather.example")]] * 400
    randomness = SeededRandomness(1)
    groups = [InMemoryGroup.from_users(people, randomness=randomness) for _ in range(2)]
    return run_blender(*groups, PARAMS, method=method, randomness=randomness)


def test_the_promise_says_what_the_default_method_does_with_a_record():
    promise = page("docs/explanation/privacy-promise.md")
    sizes = small_release("best").sizes
    assert sizes.head_users == sizes.estimate_users == sizes.optin_users
    assert "helps both to name the head list and to count it" in promise
    printed = small_release("paper").sizes
    assert printed.head_users + printed.estimate_users == printed.optin_users
    assert "never both" not in promise


def test_the_promise_states_the_figures_of_the_code():
    promise = page("docs/explanation/privacy-promise.md")
    stated = re.search(r"named with probability ([\d.]+)·10⁻⁶", promise)
    assert stated is not None
    assert float(stated[1]) == pytest.approx(curator_design(PARAMS).selection_delta * 1e6, abs=0.05)
    factor = re.search(r"At ε = 4 that factor is about (\d+)", promise)
    assert factor is not None
    assert int(factor[1]) == round(math.exp(4))


@pytest.mark.parametrize("method", ["best", "paper"])
def test_a_run_on_a_held_log_does_not_promise_the_local_model(method: str):
    optin, clients = small_release(method).guarantee.groups
    assert optin.trust is TrustModel.CURATOR
    assert clients.trust is TrustModel.HELD_LOG
    assert "holds the log" in clients.trust.value


def test_no_trust_value_claims_that_no_one_needs_to_be_trusted():
    assert not [trust for trust in TrustModel if "nobody" in trust.value]


def test_consent_says_how_many_searches_are_sent():
    assert "one of my searches is sent" in TaskSettings("t").consent
    assert "up to 20 of my searches are sent" in TaskSettings("t", records_per_optin=20).consent
    with pytest.raises(InvalidParameter, match="records_per_optin is 20"):
        TaskSettings("t", records_per_optin=20, consent=TaskSettings("t").consent).check_for_rounds()


def test_influence_is_called_a_bound_and_is_one():
    """The search for a report that moves more is tests/unit/blender/test_influence.py."""
    assert [caveat for caveat in _CAVEATS if "influence" in caveat and "bounds" in caveat]
    assert "no single report can move" in page("docs/reference/glossary.md")


def test_the_alarms_rate_is_the_stated_one():
    assert ALARM_LEVEL == 0.01
    assert "one release in a hundred" in page("docs/explanation/method-best.md")


def test_the_form_does_not_say_that_more_records_cost_accuracy():
    help_texts = {field.name: field.help for group in GROUPS for field in group.fields}
    assert "weigh as one person" in help_texts["records_per_optin"]
    assert "share one ε" in help_texts["records_per_client"]
    assert PARAMS.budget.epsilon / 2 == BlenderParams(PARAMS.budget, records_per_client=2).per_record[0]


def test_every_module_with_errors_of_its_own_is_named():
    for module in pkgutil.walk_packages(searchblend.__path__, "searchblend."):
        if not re.search(r"spark|__main__|jdk|aggregate_spark", module.name):
            importlib.import_module(module.name)
    waiting, modules = [SearchblendError], set()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        modules.add(kind.__module__)
    own = {
        f"{name.removeprefix('searchblend.').replace('.', '/')}.py"
        for name in modules
        if name.startswith("searchblend.")
    }
    assert own - {"core/errors.py"} == set(re.findall(r"[\w/]+\.py", errors.__doc__ or ""))


def test_the_code_map_names_every_folder_once():
    listed = Counter(re.findall(r"^(\w+)/ +L\d", page("ARCHITECTURE.md"), re.MULTILINE))
    folders = {path.parent.name for path in (ROOT / "src/searchblend").glob("*/__init__.py")}
    assert listed == Counter(folders)


def test_dependencies_name_what_is_installed_and_call_none_of_it_avoided():
    text = page("docs/explanation/dependencies.md")
    project = tomllib.loads(page("pyproject.toml"))["project"]
    for requirement in project["dependencies"]:
        name = re.split(r"[\[=<>;]", requirement)[0]
        assert re.search(rf"^\| {name}\b", text, re.MULTILINE), name
        assert f"{name} would be a heavy dependency" not in text.lower()
