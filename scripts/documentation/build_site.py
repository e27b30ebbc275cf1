"""Build the documentation as a site that needs no server.

    python scripts/documentation/build_site.py FOLDER

Pages are gathered from the repository, with links that work in the site, and Zensical builds them as zensical.toml
says. A warning is an error; FOLDER is replaced when all went well.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
OUTSIDE: Final = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "explanation/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "LICENSE": "project/license.md",
    "docs/tutorial/notebook.ipynb": "tutorial/notebook.md",
}
"""Pages from outside of docs/, and the notebook as a page"""
LEFT_OUT: Final = ("*.parquet", "drawings/*.py", "results/*.html")
"""Files of docs/ that no page shows"""
_LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
_FENCE: Final = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
_LIST_AFTER_TEXT: Final = re.compile(r"^(?![-*+] |\d+\. |[|#>\s])(.+)\n(?=(?:[-*+]|\d+\.) )", re.MULTILINE)


def site_path(repository_path: str) -> str | None:
    """Where a file of the repository is in the site, ``None`` if it is not in it."""
    if repository_path in OUTSIDE:
        return OUTSIDE[repository_path]
    if repository_path.startswith("proofs/") and repository_path.endswith(".md"):
        return repository_path
    return repository_path.removeprefix("docs/") if repository_path.startswith("docs/") else None


def sources() -> Iterator[Path]:
    """Every file that the site has a page or a copy of."""
    yield from (ROOT / name for name in OUTSIDE)
    yield from sorted((ROOT / "proofs").glob("*.md"))
    docs = ROOT / "docs"
    for path in sorted(docs.rglob("*")):
        if path.is_file() and not any(path.relative_to(docs).match(pattern) for pattern in LEFT_OUT):
            yield path


def gather(folder: Path) -> None:
    """Write the sources into a folder as Zensical wants them."""
    shutil.copy(ROOT / "docs/tutorial/notebook.ipynb", _place(folder, "tutorial/notebook.ipynb"))
    for path in sources():
        name = str(path.relative_to(ROOT))
        place = _place(folder, site_path(name) or name)
        if place.suffix == ".md":
            place.write_text(page(name, path.read_text(encoding="utf-8")), encoding="utf-8")
        else:
            shutil.copy(path, place)


def _place(folder: Path, name: str) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    return folder / name


def page(name: str, text: str) -> str:
    """A source as a page of the site; code blocks stay as they are."""
    if name == "LICENSE":
        text = f"# Licence\n\n```text\n{text.rstrip()}\n```\n"
    if name.endswith(".ipynb"):
        text = _notebook(text)
    pieces = _FENCE.split(text)
    return "".join(piece if index % 2 else prepare(piece, name) for index, piece in enumerate(pieces))


def _notebook(text: str) -> str:
    """The cells of a notebook as a page, with the notebook itself to take away."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]
    parts = [source if kind == "markdown" else f"```python\n{source}\n```" for kind, source in cells]
    return "\n\n".join([*parts, '<a href="notebook.ipynb" download>The notebook</a>']) + "\n"


def prepare(text: str, name: str) -> str:
    """One piece of a page outside of code blocks: a blank line before lists, links as they work in the site."""
    return _LINK.sub(lambda found: _link(found, name), _LIST_AFTER_TEXT.sub(r"\1\n\n", text))


def _link(found: re.Match[str], name: str) -> str:
    """A link as it works in the repository, turned into one that works in the site.

    A file that only the repository has becomes plain text; a link that leads nowhere is left, for Zensical to complain.
    """
    image, text, target = found.groups()
    if re.match(r"[a-z]+:|#", target):
        return found[0]
    path, _, anchor = target.partition("#")
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
    here = site_path(name) or name
    there = site_path(wanted)
    if there is None:
        return text if (ROOT / wanted).exists() else found[0]
    relative = posixpath.relpath(there, posixpath.dirname(here) or ".")
    return f"{image}[{text}]({relative}{'#' + anchor if anchor else ''})"


def build(output: Path) -> int:
    """Build the site and put it where it was asked for; the exit code of Zensical."""
    with tempfile.TemporaryDirectory() as folder:
        gather(Path(folder) / "docs")
        shutil.copy(ROOT / "zensical.toml", folder)
        done = subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=folder, check=False)
        if done.returncode == 0:
            shutil.rmtree(output, ignore_errors=True)
            shutil.copytree(Path(folder) / "site", output)
    return done.returncode


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1])))
