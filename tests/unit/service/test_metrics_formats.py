"""What a scraper gets: every name with its description and type, in both formats, as the reference parsers read it."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_plain

from searchblend.service.telemetry import HELP, OPENMETRICS, PLAIN, PREFIX
from service_http import http_service
from service_parts import people


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """The metrics of a service on which everything has happened once, plain and as OpenMetrics."""
    folder = tmp_path_factory.mktemp("metrics")
    with http_service(str(folder / "service.db"), folder) as http:
        round_ = http.client_round()
        http.report(round_, http.parts.messages(round_, people(1, seed=2))[0])
        http.report(round_, b"x")
        http.services.metrics.count("contributions_total", result="new")
        http.services.metrics.count("jobs_total", result="done")
        http.services.metrics.count("alerts_total", channel="mail", result="sent")
        http.services.metrics.count("relayed_total", result="answered")
        http.services.metrics.count("relay_batches_total")
        http.services.metrics.set("relay_waiting", 0)
        http.services.metrics.count("connections_cut_total", reason="silent")
        plain = http.health.get("/metrics")
        openmetrics = http.health.get("/metrics", headers={"accept": f"{OPENMETRICS};q=0.5,text/plain;q=0.2"})
    assert plain.headers["content-type"] == PLAIN
    assert openmetrics.headers["content-type"] == OPENMETRICS
    return plain.text, openmetrics.text


@pytest.mark.parametrize(("place", "parse"), [(0, parse_plain), (1, parse_openmetrics)], ids=["plain", "openmetrics"])
def test_every_metric_has_its_description_and_type(texts, place, parse):
    families = {family.name: family for family in parse(texts[place])}
    assert set(families) == {PREFIX + name.removesuffix("_total") for name in HELP}
    for name, (kind, meaning) in HELP.items():
        family = families[PREFIX + name.removesuffix("_total")]
        assert (family.type, family.documentation) == (kind, meaning)
        assert family.samples


def test_both_formats_say_the_same(texts):
    plain, openmetrics = (
        {(sample.name, *sorted(sample.labels.items())): sample.value for family in found for sample in family.samples}
        for found in (parse_plain(texts[0]), parse_openmetrics(texts[1]))
    )
    assert plain == openmetrics


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed: scripts/install-servers.sh")
def test_promtool_has_nothing_to_say(texts):
    done = subprocess.run(["promtool", "check", "metrics"], input=texts[0], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
