"""What MkDocs does not do by itself: pages from outside docs/, links that work in both places, generated parts."""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from reference import PARTS

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
SECTIONS: Final = {
    "Tutorial": ("tutorial", ["first-release", "first-round", "first-click-graph", "notebook"]),
    "How-to": (
        "how-to",
        [
            "which-command",
            "run-on-your-log",
            "choose-a-budget",
            "select-values",
            "use-from-python",
            "generate-a-log",
            "run-on-spark",
            "use-a-released-graph",
            "publish-a-page",
            "write-the-paperwork",
            "search-locally",
            "evaluate-your-own",
            "reproduce-a-figure",
            "audit",
            "run-in-production",
            "restore-a-backup",
            "run-a-device",
            "ship-the-extension",
            "check-what-you-install",
        ],
    ),
    "Explanation": (
        "explanation",
        [
            "hybrid-model",
            "why-not-anonymise",
            "privacy-promise",
            "threat-model",
            "known-limits",
            "method-best",
            "method-paper",
            "click-graph",
            "ledger",
            "architecture",
            "design-decisions",
            "dependencies",
        ],
    ),
    "Reference": (
        "reference",
        ["cli", "api", "configuration", "errors", "protocol", "javascript-core", "papers", "symbols", "glossary"],
    ),
    "Results": ("results", ["index", "best-vs-paper", "benchmarks"]),
    "Proofs": ("proofs", ["README"]),
    "Project": ("project", ["contributing", "changelog", "security", "license"]),
}
"""the order of the pages that have one; a page that is not named here follows them by its name"""
_LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
_FENCE: Final = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
_LIST_AFTER_TEXT: Final = re.compile(r"^(?![-*+] |\d+\. |[|#>\s])(.+)\n(?=(?:[-*+]|\d+\.) )", re.MULTILINE)
_MARK: Final = re.compile(r"<!-- generated: ([\w-]+) -->")


def site_path(repository_path: str) -> str | None:
    """Where a file of the repository is in the site, ``None`` if it is not in it."""
    if repository_path in OUTSIDE:
        return OUTSIDE[repository_path]
    if repository_path.startswith("proofs/") and repository_path.endswith(".md"):
        return repository_path
    return repository_path.removeprefix("docs/") if repository_path.startswith("docs/") else None


def repository_path(source: str) -> str:
    """The other way round."""
    names = {site: name for name, site in OUTSIDE.items()}
    return names.get(source) or (source if source.startswith("proofs/") else f"docs/{source}")


def on_config(config: Any) -> Any:
    config.nav = [{"Start": "index.md"}, *({title: _section(*section)} for title, section in SECTIONS.items())]
    return config


def _section(folder: str, order: list[str]) -> list[str]:
    there = {path.stem for path in (ROOT / "docs" / folder).glob("*.md")}
    if folder == "proofs":
        there = {path.stem for path in (ROOT / "proofs").glob("*.md")}
    there |= {Path(site).stem for site in OUTSIDE.values() if Path(site).parent.name == folder}
    named = [name for name in order if name in there]
    return [f"{folder}/{name}.md" for name in [*named, *sorted(there - set(named), key=_by_number)]]


def _by_number(name: str) -> list[tuple[int, str]]:
    """fig9 before fig10"""
    return [(int(part or 0), word) for word, part in re.findall(r"(\D*)(\d*)", name)]


def on_files(files: Files, config: Any) -> Files:
    for name, site in OUTSIDE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, site, content=_page(name, text)))
    for path in sorted((ROOT / "proofs").glob("*.md")):
        files.append(File.generated(config, f"proofs/{path.name}", content=path.read_text(encoding="utf-8")))
    return files


def _page(name: str, text: str) -> str:
    if name.endswith(".ipynb"):
        return _notebook(text)
    return text if name.endswith(".md") else _license(text)


def _notebook(text: str) -> str:
    """The cells of a notebook as a page, with the notebook itself to take away."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]
    parts = [source if kind == "markdown" else f"```python\n{source}\n```" for kind, source in cells]
    return "\n\n".join([*parts, '<a href="notebook.ipynb" download>The notebook</a>']) + "\n"


def _license(text: str) -> str:
    return f"# Licence\n\n```text\n{text.rstrip()}\n```\n"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    source = repository_path(page.file.src_uri)
    pieces = _FENCE.split(markdown)
    return "".join(piece if index % 2 else prepare(piece, source) for index, piece in enumerate(pieces))


def prepare(text: str, source: str) -> str:
    """One piece of a page outside of code blocks, as MkDocs wants it."""
    text = _LIST_AFTER_TEXT.sub(r"\1\n\n", text)
    return _MARK.sub(_generated, _LINK.sub(lambda found: _link(found, source), text))


def _generated(found: re.Match[str]) -> str:
    if found[1] not in PARTS:
        raise PluginError(f"nothing is generated as {found[1]!r}; expected one of {', '.join(PARTS)}")
    return PARTS[found[1]]()


def _link(found: re.Match[str], source: str) -> str:
    """A link as it works in the repository, turned into one that works in the site.

    A file that only the repository has becomes plain text; a link that leads nowhere is left, for MkDocs to complain.
    """
    image, text, target = found.groups()
    if re.match(r"[a-z]+:|#", target):
        return found[0]
    path, _, anchor = target.partition("#")
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    here = site_path(source) or source
    there = site_path(wanted)
    if there is None:
        return text if (ROOT / wanted).exists() else found[0]
    relative = posixpath.relpath(there, posixpath.dirname(here) or ".")
    return f"{image}[{text}]({relative}{'#' + anchor if anchor else ''})"
