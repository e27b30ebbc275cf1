"""Every sentence that promises something is tied to the figure or the behaviour that makes it true."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import io
import json
import math
import pkgutil
import re
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import searchblend
from searchblend.accounting.spend import Spend
from searchblend.blender.best.many_records_design import default_records, design_of
from searchblend.blender.best.stability_histogram import curator_design
from searchblend.blender.best.trust import ALARM_LEVEL
from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.pipeline import run_blender
from searchblend.blender.report_odds import ReportOdds, list_odds
from searchblend.cli.main import main
from searchblend.core import errors
from searchblend.core.errors import InvalidParameter, SearchblendError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget, Neighbors, TrustModel
from searchblend.core.records import Record
from searchblend.device.consent_texts import local_text, text_of
from searchblend.device.policy import POLICY
from searchblend.service.console.task_page import GROUPS
from searchblend.service.task_settings import TaskSettings
from searchblend.service.workers.estimator import _CAVEATS
from searchblend.store.ledger import open_ledger
from searchblend.synthetic.seeded import SeededRandomness
from searchblend.wire.consent import BELIEF, odds_words, optin_consent, times_in_100

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


@dataclasses.dataclass(frozen=True)
class DefaultRun:
    """What `searchblend run --epsilon 4 --delta 1e-5` writes and says."""

    optin: dict[str, Any]
    parameters: dict[str, Any]
    printed: str


@pytest.fixture(scope="module")
def default_run(tmp_path_factory: pytest.TempPathFactory) -> DefaultRun:
    folder = tmp_path_factory.mktemp("run")
    lines = [f"u{user}\tweather\thttp://weather.example" for user in range(400)]
    (folder / "log.tsv").write_text("\n".join(["user\tquery\turl", *lines, ""]))
    printed = io.StringIO()
    budget = ["--epsilon", "4", "--delta", "1e-5"]
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        assert (
            main(["run", str(folder / "log.tsv"), "-o", str(folder / "out"), "--opt-in", "0.5", "--explain", *budget])
            == 0
        )
    result, statement = (json.loads((folder / "out" / name).read_text()) for name in ("result.json", "statement.json"))
    return DefaultRun(result["mechanism"]["optin"], statement["parameters"], " ".join(printed.getvalue().split()))


@pytest.mark.parametrize("name", ["privacy-promise", "known-limits"])
def test_the_probability_of_exposure_is_what_a_run_states_by_default(default_run: DefaultRun, name: str):
    text = " ".join(page(f"docs/explanation/{name}.md").split())
    by_run = f"{default_run.optin['selection_delta'] * 1e6:.3g}·10⁻⁶"
    of_one = f"{curator_design(PARAMS).selection_delta * 1e6:.3g}·10⁻⁶"
    assert (by_run, of_one) == ("9.93·10⁻⁶", "5.41·10⁻⁶")
    assert f"is named with probability {by_run} at most by `searchblend run`" in text
    assert re.findall(r"[\d.]+·10⁻⁶", text) == [by_run, of_one]


def test_pages_say_how_many_records_of_an_opt_in_user_count_by_default(default_run: DefaultRun):
    promise, hybrid = (
        " ".join(page(f"docs/explanation/{name}.md").split()) for name in ("privacy-promise", "hybrid-model")
    )
    counted = default_run.parameters["records_per_optin"]
    assert counted == default_run.optin["queries_per_user"] == default_run.optin["records_per_user"]
    assert (
        f"`searchblend run` counts all of your records. Up to {counted} of your queries, and as many records" in promise
    )
    assert f"of whom all records count (up to {counted} different queries and records)" in hybrid
    assert "measured with fresh noise" in promise
    assert small_release("best").params.records_per_optin == counted
    assert "`run_blender` in Python does the same" in promise
    sent = TaskSettings("t").records_per_optin
    assert sent == POLICY.most_records_per_round
    assert f"The collection service uses up to {sent} records a round, which your device draws at random" in promise
    assert f"up to {sent} a round, unless the task asks for another number" in hybrid


def test_pages_and_output_say_from_how_many_users_on_something_is_listed(default_run: DefaultRun):
    weight = default_run.optin["threshold"]
    alone, spread = math.ceil(weight), math.ceil(weight * math.sqrt(default_run.optin["queries_per_user"]))
    limits = " ".join(page("docs/explanation/known-limits.md").split())
    assert f"from about {alone} opt-in users on if they searched for nothing else, and from about {spread} on" in limits
    of_one = curator_design(PARAMS).figures["integer_threshold"]
    assert f"a record is listed from about {of_one} on" in limits
    several = [design_of(dataclasses.replace(PARAMS, records_per_optin=m)).figures["threshold"] for m in (2, 20)]
    assert {math.ceil(threshold) for threshold in several} == {10}
    assert "from about 10 on with more" in page("docs/explanation/threat-model.md")
    assert f"a query is named from a weight of {weight:.3g} users on (noise scale 1.89)" in default_run.printed
    assert f"a query needs about {alone} opt-in users who search for nothing else" in default_run.printed


def test_a_large_delta_is_refused_as_the_pages_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "log.tsv").write_text("user\tquery\n" + "".join(f"u{user}\tweather\n" for user in range(4)))
    assert (
        main(["run", str(tmp_path / "log.tsv"), "-o", str(tmp_path / "out"), "--opt-in", "0.5", "--delta", "0.25"]) == 2
    )
    assert "--allow-large-delta" in capsys.readouterr().err
    for name in ("explanation/privacy-promise", "how-to/choose-a-budget"):
        assert re.search(r"`searchblend run` refuses [^.]*--allow-large-delta", page(f"docs/{name}.md"), re.DOTALL)


def test_the_total_covers_one_role_in_a_round_as_the_threat_model_says(tmp_path: Path):
    text = " ".join(page("docs/explanation/threat-model.md").split())
    with open_ledger(tmp_path / "ledger.db") as ledger:
        for group, delta in (("opt-in", 1e-5), ("clients", 0.0)):
            spend = Spend(4.0, delta, Neighbors.REPLACE_ONE, group)
            ledger.debit(f"t/1/{group}", "people", "2027-W01", spend, role_in="t/1")
        assert ledger.totals("people").summed_epsilon == 4.0
    assert "the larger of the two counts" in text
    assert "They do **not** cover a person who is in both groups of one round" in text


def test_the_promise_states_the_figures_of_the_code():
    promise = page("docs/explanation/privacy-promise.md")
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


def odds_at(epsilon: float, n_queries: int) -> ReportOdds:
    return list_odds(BlenderParams(Budget(epsilon, 1e-5)), n_queries)


@pytest.mark.parametrize("page_name", ["docs/how-to/choose-a-budget.md"])
def test_the_table_of_odds_has_the_figures_of_the_code(page_name: str):
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in re.findall(r"^\| \d.*$", page(page_name), re.M)]
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "6"]
    measured = page("docs/results/best-vs-paper.md")
    for epsilon, of_fifty, of_one, belief, published, error in rows:
        odds = odds_at(float(epsilon), 50)
        assert of_fifty in times_in_100(odds.named).replace(" times", "")
        assert of_one in times_in_100(odds_at(float(epsilon), 1).named).replace(" times", "")
        assert belief == f"{math.ceil(100 * odds.belief_after(BELIEF))} %"
        row = next(line for line in measured.splitlines() if line.startswith(f"| aol | 5.0% | 50 | {epsilon} |"))
        assert f"→ {published} |" in row
        assert row.endswith(f"/ {error} |")


def test_the_promise_to_a_client_states_the_odds():
    promise = " ".join(page("docs/explanation/privacy-promise.md").split())
    assert f"may give it {math.ceil(100 * odds_at(4, 50).belief_after(BELIEF))} % after the report" in promise
    for n, words in ((50, "names your true search 52 times in 100"), (7, "over a list of 7 searches 89 times")):
        assert words in promise
        assert f"{math.floor(100 * odds_at(4, n).named + 0.5)} times" in words


def test_the_consent_to_local_reports_states_the_odds_of_a_usual_and_of_the_worst_task():
    usual = TaskSettings("t")
    consent = " ".join(text_of("local").split())
    assert odds_words(list_odds(usual.params, usual.max_head_queries)) in consent
    assert f"list of {usual.max_head_queries} searches at ε = {usual.epsilon:g}," in consent
    worst = odds_at(POLICY.largest_epsilon, POLICY.fewest_queries)
    assert odds_words(worst) in consent
    assert "it draws one of them at random and sends a randomized answer" in consent
    several = " ".join(local_text(POLICY, 3).split())
    assert "it draws up to 3 of them at random" in several
    assert odds_words(list_odds(dataclasses.replace(usual.params, records_per_client=3), 50)) in several
    assert odds_words(worst) in several
    strict = " ".join(local_text(dataclasses.replace(POLICY, largest_epsilon=1.0, fewest_queries=20)).split())
    assert "Over 20 searches at ε = 1, the shortest list and the most that this device accepts" in strict
    assert odds_words(odds_at(1, 20)) in strict


def english(name: str, *values: object) -> str:
    """A message of the extension."""
    message = json.loads((ROOT / "extension/_locales/en/messages.json").read_text())[name]["message"]
    return re.sub(r"\$([1-9])", lambda place: str(values[int(place[1]) - 1]), message)


@pytest.mark.parametrize("epsilon", [1, 4, 8])
@pytest.mark.parametrize("records", [1, 3])
def test_the_extension_says_the_odds_in_the_same_words(epsilon: int, records: int):
    for n in (1, 50):
        odds = list_odds(BlenderParams(Budget(epsilon, 1e-5), records_per_client=records), n)
        times, most = math.floor(100 * odds.named + 0.5), math.ceil(100 * odds.belief_after(BELIEF))
        often = english("times", times) if 1 < times <= 99 else times_in_100(odds.named)
        sent = english("odds_answers", often, records) if records > 1 else english("odds_one", often)
        bound = english("belief", most) if most < 100 else english("belief_certain")
        assert english("odds", sent, bound) == odds_words(odds)
    assert english("optin_consent_one") == optin_consent(1)
    assert english("optin_consent_other", 20) == optin_consent(20)


UNTRUE = re.compile(
    r"(?:nobody|no one|whoever receives it) can(?:not)? (?:tell|know)\b|next to nothing|safe to send|trusts? nobody"
    r"|does not say which|says nothing about you|never both|covers a person who was in both groups|warns otherwise",
    re.IGNORECASE,
)
"""promises that no mechanism here keeps: a report is evidence, of bounded strength"""


def test_no_text_promises_what_no_mechanism_keeps():
    texts = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("extension/src/**/*.html")]
    texts += ROOT.glob("extension/_locales/*/messages.json")
    texts += [*ROOT.glob("extension/src/**/*.js"), *ROOT.glob("src/searchblend/**/*.py")]
    texts += ROOT.glob("src/searchblend/**/*.html")
    assert len(texts) > 300
    found = {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in texts
        if "results" not in path.parts
        for match in UNTRUE.finditer(" ".join(path.read_text(encoding="utf-8").split()))
    }
    assert found == set()


def test_consent_says_how_many_searches_are_sent():
    assert "one of my searches is sent" in TaskSettings("t", records_per_optin=1).consent
    assert "up to 20 of my searches are sent" in TaskSettings("t").consent
    own = TaskSettings("t", records_per_optin=20, consent="Ask me first.")
    assert own.consent == f"{optin_consent(20)}\nAsk me first."
    assert TaskSettings(**vars(own)) == own


@pytest.mark.parametrize("change", [str, str.lower, lambda text: text + " ", lambda text: text[:-1]])
def test_an_operators_words_neither_replace_nor_contradict_the_sentence_about_the_number(change: Callable[[str], str]):
    settings = TaskSettings("t", records_per_optin=20, consent=change(optin_consent(1)))
    assert settings.consent.startswith(optin_consent(20))
    with pytest.raises(InvalidParameter, match="records_per_optin is 20"):
        settings.check_for_rounds()


def test_method_best_says_how_many_searches_of_a_user_count():
    """That stated variances are right for all of them is tests/unit/blender/test_many_records.py."""
    text = page("docs/explanation/method-best.md")
    assert f"up to m = {default_records(PARAMS.budget)} of them" in text
    assert "one record per user" not in text


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
        if not re.search(r"spark|__main__|jdk", module.name):
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


def test_the_page_on_what_devices_refuse_has_the_odds_of_the_mechanism():
    policy = page("docs/explanation/device-policy.md")
    rows = [[cell.strip(" *") for cell in line.strip("| ").split("|")] for line in policy.splitlines()]
    [lengths] = [row[1:-1] for row in rows if row[0] == "ε"]
    shown = {int(row[0]): row[1:] for row in rows if row[0].isdecimal()}
    assert set(shown) == {2, 4, 6, 8}
    for epsilon, (*often, belief) in shown.items():
        for length, said in zip(lengths, often, strict=True):
            digits = len(said.rstrip(" %").partition(".")[2])
            assert said == f"{100 * odds_at(epsilon, int(length.split()[0])).named:.{digits}f} %"
        assert belief == f"{math.ceil(100 * odds_at(epsilon, 20).belief_after(BELIEF))} %"
    for limit in (POLICY.largest_epsilon, POLICY.fewest_queries, POLICY.window_epsilon, POLICY.lifetime_epsilon):
        assert re.search(rf"(?:above|fewer than) {limit:g}\b", policy), limit
