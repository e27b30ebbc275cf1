"""Steps of others: they are used, they are named, and their promise is theirs to state and someone's to vouch for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import searchblend as sb
from searchblend.blender.exchanged import OUTSIDE
from searchblend.blender.guarantees import paper_guarantee
from searchblend.cli.main import main
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Condition, Guarantee, TrustModel
from searchblend.synthetic.seeded import SeededRandomness

PARAMS = sb.BlenderParams(sb.Budget(4.0, 1e-5), max_head_queries=5)
QUERIES = ("weather", "news", "maps")
HERE = Path(__file__)


class FirstAlone(sb.PrintedSteps):
    """A head list of one query, which the opt-in users have nothing to do with."""

    name = "first alone"

    def create_head_list(self, head_users: Any, params: sb.BlenderParams, randomness: Any) -> sb.HeadList:
        return sb.HeadList({"weather": ["http://w.example"]})


class Stated(FirstAlone):
    """The same, with a promise: a list that no one's data decides costs nothing."""

    def guarantee(self, figures: Any, params: sb.BlenderParams, trust: TrustModel) -> Guarantee:
        return paper_guarantee(params, trust, cryptographic=figures.cryptographic)


class Dear(Stated):
    """Its promise is larger than the budget of the run, which a ledger is debited."""

    def guarantee(self, figures: Any, params: sb.BlenderParams, trust: TrustModel) -> Guarantee:
        larger = replace(params, budget=sb.Budget(2 * params.budget.epsilon, params.budget.delta))
        return paper_guarantee(larger, trust, cryptographic=figures.cryptographic)


class OfOthers(Stated):
    """Its promise is for adding and removing a user: half of what a ledger is debited for."""

    def guarantee(self, figures: Any, params: sb.BlenderParams, trust: TrustModel) -> Guarantee:
        return replace(super().guarantee(figures, params, trust), neighbors=sb.Neighbors.ADD_REMOVE_ONE)


class Boasting(Stated):
    """Calls itself ours."""

    name = "best"


class OtherBlend(sb.PrintedSteps):
    """Post-processing alone: the opt-in users decide."""

    name = "opt-in alone"

    def blend(self, optin: sb.Estimates, client: sb.Estimates) -> sb.Blended:
        says = np.where(np.isnan(optin.probability), 0.0, optin.probability)
        return sb.Blended(optin, says, np.ones(len(says)))


def groups() -> tuple[sb.InMemoryGroup, sb.InMemoryGroup]:
    people = [[sb.Record(QUERIES[i % 3], f"http://{QUERIES[i % 3][0]}.example")] for i in range(600)]
    return sb.InMemoryGroup.from_users(people[:300]), sb.InMemoryGroup.from_users(people[300:])


def run(method: Any, **options: Any) -> sb.BlenderRelease:
    return sb.run_blender(*groups(), PARAMS, method=method, **options)


def last(release: sb.BlenderRelease) -> Condition:
    return release.guarantee.conditions[-1]


def test_nothing_is_promised_for_an_exchanged_step_that_states_nothing():
    release = run(FirstAlone(), vouched_by="Ann")
    assert list(release.head.queries) == ["weather"]
    assert not release.guarantee.holds
    assert [one.name for one in release.guarantee.conditions if not one.holds] == ["a stated promise"]
    assert "create_head_list" in release.guarantee.conditions[0].detail


@pytest.mark.parametrize("method", [Stated, Boasting, OtherBlend])
def test_a_promise_holds_only_if_someone_vouches_for_it(method: type[sb.PrintedSteps]):
    release = run(method())
    assert not release.guarantee.holds
    assert (last(release).name, last(release).holds) == (OUTSIDE, False)
    assert release.method == f"{method.__module__}:{method.__qualname__}"
    assert f"{release.method} is not part of searchblend" in last(release).detail
    assert "no one vouches for it" in last(release).detail
    release = run(method(), vouched_by="Ann of the data office")
    assert release.guarantee.holds
    assert last(release).detail.endswith("Ann of the data office vouches for it")
    assert release.guarantee.published is None
    assert not run(method(), vouched_by="Ann", randomness=SeededRandomness(1)).guarantee.holds


def test_a_step_after_the_data_keeps_the_promise_of_the_printed_ones():
    release = run(OtherBlend(), vouched_by="Ann")
    np.testing.assert_array_equal(release.queries.probability, release.optin.queries.probability)
    assert release.mechanism["exchanged"] == {"steps": ["blend"]}
    assert {group.trust for group in release.guarantee.groups} == {TrustModel.CURATOR, TrustModel.HELD_LOG}


def test_a_voucher_is_a_name_for_what_is_from_outside():
    with pytest.raises(InvalidParameter, match="only with a method from outside"):
        run("best", vouched_by="Ann")
    for name in ("", "  ", "a\nb", "x" * 201):
        with pytest.raises(InvalidParameter, match="expected a name"):
            run(Stated(), vouched_by=name)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [f"u{i}\t{QUERIES[i % 3]}\thttp://{QUERIES[i % 3][0]}.example" for i in range(600)]
    (tmp_path / "log.tsv").write_text("\n".join(["user\tquery\turl", *rows]))
    (tmp_path / "steps_from_outside.py").write_text(HERE.read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / "log.tsv"


def command(log: Path, method: str, *options: str) -> list[str]:
    flags = ["-o", "out", "--force", "--opt-in", "0.5", "--ledger", "book.ledger", "--release-id", f"{len(options)}"]
    return ["run", str(log), "--method", method, *flags, *options]


def test_a_command_takes_a_method_and_its_statement_says_who_vouches(log: Path, capsys: Any):
    path = "steps_from_outside:Stated"
    assert main(command(log, path, "--html")) == 0
    assert "does NOT hold" in capsys.readouterr().out
    assert main(command(log, path, "--vouched-by", "Ann", "--html")) == 0
    assert "guarantee holds" in capsys.readouterr().out
    statement = json.loads(Path("out/statement.json").read_text())
    assert statement["release"]["method"] == path
    assert statement["guarantee"]["conditions"][-1]["detail"].endswith("Ann vouches for it")
    assert any("code from outside" in caveat for caveat in statement["caveats"])
    assert "Ann vouches for it" in Path("out/index.html").read_text()
    assert main(["release", "verify", "out"]) == 0
    assert main(["ledger", "show", "book.ledger", "--json"]) == 0
    assert path in capsys.readouterr().out
    assert main(["statement", "out", "--for", "registry"]) != 0
    assert "cannot be computed again" in capsys.readouterr().err


def test_a_package_offers_a_method_under_a_name(log: Path, capsys: Any):
    info = log.parent / "outside_steps-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-steps\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[searchblend.methods]\nstated = steps_from_outside:Stated\n")
    assert main(command(log, "stated", "--explain", "--vouched-by", "Ann")) == 0
    assert "steps_from_outside:Stated, from outside" in capsys.readouterr().out
    assert main(command(log, "nothing", "-o", "new")) == 2
    assert "expected best, paper, stated, or package.module:object" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("no_such_module:X", "no_such_module cannot be imported"),
        ("steps_from_outside:Nothing", "steps_from_outside has no Nothing"),
        ("steps_from_outside:QUERIES", "is not a method: derive it from searchblend.PrintedSteps"),
        (":x", "expected package.module:object"),
    ],
)
def test_what_is_no_method_is_one_line(method: str, words: str, log: Path, capsys: Any):
    assert main(command(log, method)) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert words in error
    assert not Path("out").exists()
    assert main(["run", str(log), "--method", "steps_from_outside:Stated", "--dry-run"]) == 2


@pytest.mark.parametrize("method", [Dear, OfOthers])
def test_a_promise_beyond_what_the_ledger_is_debited_does_not_hold(method: type[Stated]):
    assert run(Stated(), vouched_by="Ann").guarantee.holds
    guarantee = run(method(), vouched_by="Ann").guarantee
    assert [one.name for one in guarantee.conditions if not one.holds] == ["a promise within the budget"]
