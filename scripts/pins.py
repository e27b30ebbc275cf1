"""What pyproject.toml asks for, requirements.lock pins and the environment holds: read by the scripts beside this."""

from __future__ import annotations

import platform
import re
import tomllib
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LAB = ROOT / "lab"
OURS = {"searchblend", "searchblend-lab"}
LOCK = ROOT / "requirements.lock"
TOOLS = {"pip", "setuptools", "wheel"}
"""Of the environment itself, not of ours."""


def normal(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(folder: Path = ROOT) -> dict[str, list[str]]:
    """Extra → requirements of a project; those of the package alone under the empty name."""
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {"": project["dependencies"], **project.get("optional-dependencies", {})}


class Pin(NamedTuple):
    """One distribution of the lock."""

    version: str
    hashes: list[str]
    groups: list[str]
    """What brings it: ``base``, extras, ``lab``."""


def locked() -> dict[str, Pin]:
    """Name → pin."""
    text = LOCK.read_text(encoding="utf-8").replace("\\\n", " ")
    pins = {}
    for line in (line for line in text.splitlines() if line and not line.startswith("#")):
        pinned, _, groups = line.partition("#")
        requirement, *hashes = pinned.split()
        name, _, version = requirement.partition("==")
        digests = [entry.removeprefix("--hash=sha256:") for entry in hashes]
        pins[normal(name)] = Pin(version, digests, groups.split())
    return pins


def group_requirements(group: str) -> list[str]:
    """What a group asks for itself: the package alone, one of its extras, or the lab beside the package."""
    if group == "lab":
        return [text for text in declared(LAB)[""] if requirement(text)[0] not in OURS]
    return declared()["" if group == "base" else group]


def platform_name() -> str:
    """Python and machine, for which the hashes of the lock are."""
    version = ".".join(platform.python_version_tuple()[:2])
    return f"{platform.python_implementation()} {version} on {platform.system()} {platform.machine()}"


def installed() -> dict[str, Distribution]:
    """What is in this environment, without our packages and the environment's own tools."""
    found = {normal(distribution.metadata["Name"]): distribution for distribution in distributions()}
    return {name: found[name] for name in sorted(found) if name not in TOOLS | OURS}


def requirement(text: str) -> tuple[str, list[str]]:
    """Name and extras of a requirement: ``psycopg[binary]>=3.2`` is psycopg and binary."""
    found = re.match(r"([A-Za-z0-9._-]+)\s*(?:\[([^]]*)\])?", text)
    assert found, text
    return normal(found[1]), [one.strip() for one in (found[2] or "").split(",") if one.strip()]


def needs(distribution: Distribution, extra: str) -> list[str]:
    """The requirements of a distribution, or those that one of its extras adds."""
    found = []
    for text in distribution.requires or []:
        asked = re.search(r"extra\s*==\s*['\"]([^'\"]+)", text.partition(";")[2])
        if (asked[1] if asked else "") == extra:
            found.append(text)
    return found
