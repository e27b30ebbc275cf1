"""Write a software bill of materials in CycloneDX 1.6 JSON: what a full installation holds, and who needs what.

    python scripts/sbom.py [--output dist/searchblend.cdx.json]

Versions and hashes are those of requirements.lock, licences those that the distributions state. No address of an index
is in it, and no time: the same lock gives the same bytes.
"""

from __future__ import annotations

import argparse
import json
import tomllib
import uuid
from pathlib import Path
from typing import Any

from licences import PAGE, licences_of
from pins import ROOT, Pin, declared, installed, locked, needs, requirement


def purl(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def component(name: str, version: str, hashes: list[str], licence: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl(name, version),
        "name": name,
        "version": version,
        "purl": purl(name, version),
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in hashes],
    }
    if licence:
        found["licenses"] = [{"license": {"name": licence}}]
    return found


def dependencies(lock: dict[str, Pin], root: str) -> list[dict[str, Any]]:
    """Who needs whom, as far as it is installed here."""
    ours = sorted({requirement(text)[0] for some in declared().values() for text in some} & lock.keys())
    found = [{"ref": root, "dependsOn": [purl(name, lock[name].version) for name in ours]}]
    here = installed()
    for name, pin in sorted(lock.items()):
        texts = needs(here[name], "") if name in here else []
        named = sorted({requirement(text)[0] for text in texts} & lock.keys())
        found.append({"ref": purl(name, pin.version), "dependsOn": [purl(one, lock[one].version) for one in named]})
    return found


def document() -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    root = purl("searchblend", project["version"])
    lock, stated = locked(), licences_of(PAGE.read_text(encoding="utf-8"))
    parts = [component(name, pin.version, pin.hashes, stated.get(name)) for name, pin in sorted(lock.items())]
    content: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": "searchblend",
                "version": project["version"],
                "purl": root,
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": parts,
        "dependencies": dependencies(lock, root),
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    return {**content, "serialNumber": f"urn:uuid:{serial}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=ROOT / "dist" / "searchblend.cdx.json")
    options = parser.parse_args()
    text = json.dumps(document(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    assert "://" not in text, "an address in the bill of materials"
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text, encoding="utf-8")
    print(f"{options.output.name}: {len(locked())} components")


if __name__ == "__main__":
    main()
