"""``searchblend audit`` as a program: exit codes, JSON, pages."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from searchblend.cli.main import main
from searchblend_lab.evidence import run
from searchblend_lab.evidence.plan import STATEMENTS


@pytest.mark.slow
def test_a_quick_audit_passes(capsys, tmp_path):
    document = audited(["--quick"], capsys, tmp_path)
    assert document["mutants"]["planted"] >= 15
    assert sum(len(check["findings"]) for check in document["checks"]) > 60


@pytest.mark.thorough
def test_an_audit_that_passes_says_so_in_json_and_on_pages(capsys, tmp_path):
    """A few checks: all of them are run by tests of their own and by `make slow`."""
    arguments = ["--workers", "1", "--only", "exact-noise,sampled-noise,mutant: noise without a sign"]
    document = audited(arguments, capsys, tmp_path)
    assert document["mutants"]["planted"] == 1
    assert [check["name"] for check in document["checks"]] == ["exact-noise", "sampled-noise"]


def audited(arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> dict[str, Any]:
    """The document of an audit that passes, checked against its pages."""
    page, text = tmp_path / "audit.html", tmp_path / "audit.md"
    assert main(["audit", *arguments, "--json", "--html", str(page), "--markdown", str(text)]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document["passed"] is True
    assert document["level"] == 1e-6
    assert document["mutants"]["killed"] == document["mutants"]["planted"]
    findings = [finding for check in document["checks"] for finding in check["findings"]]
    bounded = [f for f in findings if f["resolution"] is not None and f["verdict"] == "holds"]
    assert bounded
    assert all(f["measured_epsilon"] <= f["claimed_epsilon"] < f["resolution"] for f in bounded)
    assert document["cannot_see"]
    assert document["random_statements"] <= STATEMENTS
    assert "Planted faults" in page.read_text()
    assert text.read_text().startswith("# Audit")
    return document


def test_names_without_running(capsys):
    assert main(["audit", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed["mutants"]) >= 25
    assert {"program-service", "program-javascript", "program-spark"} <= {check["name"] for check in listed["checks"]}


@pytest.mark.thorough
def test_a_table_for_people(capsys, monkeypatch):
    """In this process: the audit above has a worker."""
    monkeypatch.setattr(run, "WorkerPool", ThreadPoolExecutor)
    assert main(["audit", "--only", "exact-choices", "--workers", "1"]) == 0
    shown = capsys.readouterr().out
    assert "All verdicts hold." in shown
    assert "What this audit cannot see" in shown


@pytest.mark.parametrize(
    "arguments", [["--only", ","], ["--samples", "10"], ["--level", "2"], ["--without", "everything"]]
)
def test_misuse_of_audit(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["audit", *arguments])
    assert exit_.value.code == 2
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--only", "nonsense"], ["--html", "no/such/folder/a.html"]])
def test_what_cannot_be_asked_ends_with_2(arguments, capsys):
    assert main(["audit", *arguments]) == 2
    assert "searchblend: error:" in capsys.readouterr().err
