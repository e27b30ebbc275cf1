"""The files of ``deploy`` say what the code needs: limits, times, and a health check that no image format loses."""

from __future__ import annotations

import configparser
import json
import re
from pathlib import Path

import pytest

from searchblend.service.process import SPARE_FILES
from searchblend.service.settings import ServeSettings

DEPLOY = Path(__file__).parents[3] / "deploy"


def unit(name):
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    parser.optionxform = str
    parser.read(DEPLOY / name)
    return parser


@pytest.mark.parametrize("name", ["searchblend.service", "searchblend.container"])
def test_a_unit_gives_the_process_time_to_end(name):
    assert float(unit(name)["Service"]["TimeoutStopSec"]) > ServeSettings().stop_seconds


def test_every_way_of_starting_it_allows_files_for_all_connections():
    needed = ServeSettings().connections + SPARE_FILES
    allowed = [
        unit("searchblend.service")["Service"]["LimitNOFILE"],
        re.search(r"^Ulimit=nofile=(\d+)", (DEPLOY / "searchblend.container").read_text(), re.MULTILINE).group(1),
        re.search(r"--ulimit nofile=(\d+)", (DEPLOY / "Containerfile").read_text()).group(1),
    ]
    assert all(int(files) >= needed for files in allowed)


def test_the_containers_health_check_does_not_depend_on_the_images_format():
    """OCI images have no HEALTHCHECK: the unit repeats it, and the build command keeps it."""
    text = (DEPLOY / "Containerfile").read_text()
    in_image = json.loads(re.search(r"^HEALTHCHECK .* CMD (\[.*\])$", text, re.MULTILINE).group(1))
    assert unit("searchblend.container")["Container"]["HealthCmd"].split() == in_image
    assert "podman build --format docker " in text
    copied = re.search(r"^COPY deploy/healthcheck.py (\S+)$", text, re.MULTILINE).group(1)
    assert in_image == ["python", copied]


def test_the_containers_ports_are_the_defaults():
    exposed = re.search(r"^EXPOSE (.*)$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE).group(1)
    assert exposed.split() == [str(ServeSettings().port), str(ServeSettings().health_listens)]
