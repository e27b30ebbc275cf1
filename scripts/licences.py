"""Write docs/reference/licences.md: every distribution that an installation may bring, its licence, and who needs it.

    python scripts/licences.py [--check]

Licences are what the distributions themselves state, in the metadata that is installed here. --check writes nothing and
fails if the page is not what would be written.
"""

from __future__ import annotations

import argparse
import re
import sys
from importlib.metadata import Distribution

from pins import ROOT, installed, locked, normal

PAGE = ROOT / "docs" / "reference" / "licences.md"
WORDS = {
    "apache software license": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license, version 2.0, january 2004": "Apache-2.0",
    "mit license": "MIT",
    "bsd license": "BSD",
    "gnu library or lesser general public license (lgpl)": "LGPL",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
    "isc license (iscl)": "ISC",
    "the unlicense (unlicense)": "Unlicense",
}
ELSEWHERE = {"atheris": "Apache-2.0"}
"""Stated in a distribution's sources and not in its metadata."""
HEAD = """# Licences of what we depend on

<!-- written by scripts/licences.py: do not edit -->

searchblend itself is under the Apache License 2.0. Installing it brings the distributions below: those *(always)*, and
those with an extra that you ask for (`pip install 'searchblend[server]'`). Licences are as each states its own.

Two files of others are in the package itself, for the console: htmx (0BSD) and uPlot (MIT).

"""


def licence(distribution: Distribution) -> str:
    """The licence as the metadata states it: an expression, else classifiers, else the first line of the old field."""
    metadata = distribution.metadata
    if expression := metadata.get("License-Expression"):
        return expression
    classified = [
        text.rpartition(" :: ")[2] for text in metadata.get_all("Classifier") or [] if text.startswith("License ::")
    ]
    named = [text for text in classified if text != "OSI Approved"]
    if named:
        return " AND ".join(sorted(WORDS.get(text.lower(), text) for text in named))
    if metadata["Name"] in ELSEWHERE:
        return ELSEWHERE[metadata["Name"]]
    first = (metadata.get("License") or "").strip().splitlines()[:1]
    return WORDS.get(first[0].strip().lower(), first[0].strip()[:60]) if first else "not stated"


def page() -> str:
    here = installed()
    pins, earlier = locked(), rows_of(PAGE.read_text(encoding="utf-8"))
    rows = []
    for name in pins:
        if name not in here:
            rows += [earlier[name]] if name in earlier else []
            continue
        shown = "(always)" if "base" in pins[name].groups else ", ".join(sorted(pins[name].groups))
        rows.append(f"| {here[name].metadata['Name']} | {pins[name].version} | {licence(here[name])} | {shown} |")
    table = ["| distribution | version | licence | with |", "|---|---|---|---|", *sorted(rows, key=str.lower)]
    return HEAD + "\n".join(table) + "\n"


def rows_of(text: str) -> dict[str, str]:
    """Normal name → row."""
    found = re.findall(r"^(\| (\S+) \| .+\|)$", text, re.MULTILINE)
    return {normal(name): row for row, name in found if name != "distribution"}


def licences_of(text: str) -> dict[str, str]:
    return {name: row.split(" | ")[2] for name, row in rows_of(text).items()}


def faults() -> list[str]:
    """Pins without a row, old rows, licences that no one stated. What is not installed here is not compared."""
    written, now = rows_of(PAGE.read_text(encoding="utf-8")), rows_of(page())
    found = [f"{name} has no row" for name in locked() if name not in written]
    found += [f"{name} is old" for name, row in now.items() if name in written and written[name] != row]
    return found + [f"{name} states no licence" for name, row in written.items() if "not stated" in row]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        for line in (found := faults()):
            print(f"docs/reference/licences.md: {line}: run make lock", file=sys.stderr)
        return int(bool(found))
    text = page()
    PAGE.write_text(text, encoding="utf-8")
    print(f"docs/reference/licences.md: {text.count(chr(10)) - HEAD.count(chr(10)) - 2} distributions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
