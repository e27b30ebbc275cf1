"""The rules and the dashboard of ``deploy``: they parse, they ask for metrics that there are, and the alarms go off."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from searchblend.service.telemetry import HELP, PREFIX
from searchblend.store.states import State

DEPLOY = Path(__file__).parents[3] / "deploy"
RULES, DASHBOARD = DEPLOY / "prometheus-rules.yml", DEPLOY / "grafana-dashboard.json"
promtool = pytest.mark.skipif(
    not shutil.which("promtool"), reason="promtool is not installed: scripts/install-servers.sh"
)


def expressions():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return {target["expr"] for panel in panels for target in panel["targets"]}


@pytest.mark.parametrize("text", [RULES.read_text(), "\n".join(expressions())], ids=["rules", "dashboard"])
def test_every_metric_and_state_that_is_named_exists(text):
    there = {PREFIX + name for name, (kind, _) in HELP.items() if kind != "histogram"}
    there |= {f"{PREFIX}{name}_bucket" for name, (kind, _) in HELP.items() if kind == "histogram"}
    named = set(re.findall(rf"\b{PREFIX}\w+", text))
    assert named
    assert named <= there
    assert set(re.findall(r'state="(\w+)"', text)) <= set(State)


def test_the_dashboard_shows_every_metric():
    shown = set(re.findall(rf"\b{PREFIX}(\w+)", "\n".join(expressions())))
    assert {name.removesuffix("_bucket") for name in shown} == set(HELP)


@promtool
def test_promtool_accepts_rules_and_expressions(tmp_path):
    rules = [{"record": f"x:{i}", "expr": expression} for i, expression in enumerate(sorted(expressions()))]
    shown = tmp_path / "dashboard.yml"
    shown.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))  # JSON is YAML
    done = subprocess.run(
        ["promtool", "check", "rules", str(RULES), str(shown)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def series(name, values):
    return {"series": name, "values": values}


@promtool
@pytest.mark.parametrize("broken", [True, False], ids=["trouble", "all is well"])
def test_every_alarm_goes_off_and_none_without_a_reason(tmp_path, broken):
    """Prometheus' own evaluation, over ten hours in which everything is wrong, or nothing."""
    reports = "searchblend_reports_total"
    values = {
        'up{job="searchblend"}': ("0x600", "1x600"),
        "searchblend_shredding_overdue": ("1x600", "0x600"),
        "searchblend_round_keys_refused": ("1x600", "0x600"),
        "searchblend_signature_expires_seconds": ("3600x600", "500000x600"),
        "searchblend_jobs_stuck": ("1x600", "0x600"),
        "searchblend_rounds_waiting_for_issuer": ("1x600", "0x600"),
        'searchblend_rounds{state="SHREDDED"}': ("1x600", "0x600"),
        "searchblend_oldest_unfinished_round_seconds": ("3000000x600", "3000x600"),
        f'{reports}{{result="accepted"}}': ("0+100x600", "0+100x600"),
        f'{reports}{{result="malformed"}}': ("0+10x600", "0+1x600"),
        'searchblend_commit_seconds_bucket{le="1.0"}': ("0+90x600", "0+100x600"),
        'searchblend_commit_seconds_bucket{le="3.0"}': ("0+100x600", "0+100x600"),
        'searchblend_commit_seconds_bucket{le="+Inf"}': ("0+100x600", "0+100x600"),
        "searchblend_reports_waiting": ("15000x600", "15x600"),
        'searchblend_requests_total{status="503"}': ("0+60x600", "0+1x600"),
        'searchblend_alerts_total{channel="mail",result="failed"}': ("0+1x600", "0x600"),
    }
    names = re.findall(r"- alert: (\w+)", RULES.read_text())
    alarm = 'count by (alertname) (ALERTS{alertstate="firing"})'
    expected = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in names] if broken else []
    document = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [series(name, pair[0 if broken else 1]) for name, pair in values.items()],
                "promql_expr_test": [{"expr": alarm, "eval_time": "9h", "exp_samples": expected}],
            }
        ],
    }
    test = tmp_path / "test.yml"
    test.write_text(json.dumps(document))
    done = subprocess.run(["promtool", "test", "rules", str(test)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
