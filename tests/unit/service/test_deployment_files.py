"""The files of ``deploy`` say what the code needs: limits, times, and a health check that no image format loses."""

from __future__ import annotations

import configparser
import json
import re
from pathlib import Path

import pytest
import yaml

from searchblend.service.process import SPARE_FILES
from searchblend.service.settings import ROLES, ServeSettings, load_settings
from searchblend.store.schema import GRANTS

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
APART = set(ROLES) - {"all"}


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


def ignored_by_builds(path):
    """What ``.dockerignore`` leaves out, by its last rule that fits, as engines read it."""
    verdict = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        rule = line.removeprefix("!")
        pattern = re.escape(rule).replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*")
        if rule and not line.startswith("#") and re.fullmatch(f"{pattern}(?:/.*)?", path):
            verdict = not line.startswith("!")
    return verdict


def test_a_build_sees_what_it_copies_and_nothing_else():
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    for path in " ".join(copied).split():
        assert (ROOT / path).exists()
        inner = f"{path}/inner.py" if (ROOT / path).is_dir() else path
        assert not ignored_by_builds(inner), path
    for path in (
        ".git/config",
        ".venv/bin/python",
        "searchblend-data/signing/a.pem",
        "deploy/secrets/owner.env",
        "lab/x",
    ):
        assert ignored_by_builds(path), path


def test_the_base_is_pinned_by_version_and_can_be_another():
    text = (DEPLOY / "Containerfile").read_text()
    assert re.search(r"^ARG BASE=python:3\.11\.\d+-slim-\w+$", text, re.MULTILINE)
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BASE}", "${BASE}"]
    assert text.index("USER 8470") < text.index("ENTRYPOINT")


def test_compose_starts_every_role_apart_and_none_with_more_than_it_needs():
    roles = {}
    for name, service in COMPOSE["services"].items():
        if not service["image"].startswith("localhost/searchblend:"):
            assert re.search(r":[\d.]*\d-\w+$", service["image"]), f"{name} is pinned by version"
            continue
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        settings = load_settings(
            {}, environment={key: str(value) for key, value in service.get("environment", {}).items()}
        )
        if settings.role != "all":
            roles[settings.role] = service
            assert service["env_file"] == [f"secrets/{settings.role}.env"], name
    assert set(roles) == APART
    assert all(role in GRANTS for role in roles)
    holders = {
        name for name, service in COMPOSE["services"].items() if "curator-keys:/data/keys" in service.get("volumes", ())
    }
    assert holders == {"curator", "tables", "owner"}
    assert [name for name, service in COMPOSE["services"].items() if "ports" in service] == ["proxy"]


def test_the_proxys_configuration_names_each_role_that_it_reaches():
    named = re.findall(r"127\.0\.0\.1:8470;.*role (\w+)", (DEPLOY / "nginx.conf").read_text())
    assert set(named) == APART - {"curator"}
    assert "127\\.0\\.0\\.1:8470;(.*role ([a-z]+))" in COMPOSE["services"]["proxy"]["command"][0]
