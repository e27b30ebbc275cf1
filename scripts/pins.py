"""What pyproject.toml asks for, constraints.txt pins and the environment holds: read by the scripts beside this."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAB = ROOT / "lab"
OURS = {"searchblend", "searchblend-lab"}
CONSTRAINTS = ROOT / "constraints.txt"
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


def constrained() -> dict[str, str]:
    """Name → version of every plain pin."""
    lines = [line.strip() for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines()]
    pairs = [line.partition("==") for line in lines if line and not line.startswith("#")]
    return {normal(name): version for name, _, version in pairs}


def locked() -> dict[str, tuple[str, list[str]]]:
    """Name → version and hashes of the lock."""
    text = LOCK.read_text(encoding="utf-8").replace("\\\n", " ")
    found = {}
    for line in (line for line in text.splitlines() if line and not line.startswith("#")):
        requirement, *hashes = line.split()
        name, _, version = requirement.partition("==")
        found[normal(name)] = (version, [entry.removeprefix("--hash=sha256:") for entry in hashes])
    return found


def installed() -> dict[str, Distribution]:
    """What is in this environment, without our packages and the environment's own tools."""
    found = {normal(distribution.metadata["Name"]): distribution for distribution in distributions()}
    return {name: found[name] for name in sorted(found) if name not in TOOLS | OURS}


def reached(extra: str) -> set[str]:
    """All that installing the package with an extra brings here, by walking what is installed."""
    here, todo, seen = installed(), [requirement(text) for text in declared()[extra]], set[tuple[str, str]]()
    while todo:
        name, extras = todo.pop()
        new = {(name, one) for one in ("", *extras)} - seen
        if name not in here or not new:
            continue
        seen |= new
        todo += [requirement(text) for _, one in new for text in needs(here[name], one)]
    return {name for name, _ in seen}


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
