"""Files for Spark: names that it reads as they are meant, and text that only the gate can clean.

Spark tells a compression by the name of a file, takes stars and brackets in it for a pattern, and skips names that
begin with a dot or an underscore. So a file with such a name gets another one, a link. Executors read the files
themselves: all paths must be there on every machine.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from searchblend.core.errors import OutputError
from searchblend.logs.formats.delimited import header_line
from searchblend.logs.formats.files import BOM, compression_of, first_lines, open_text_bytes
from searchblend.logs.formats.gate import Gate, Passed
from searchblend.logs.formats.layout import Columns, Layout, LineRules
from searchblend.logs.summary import FIRST_PLACES, Malformed

_ORDINARY: Final = re.compile(r"[^._][^{}\[\]*?\\,%:#]*")
_COMPRESSED: Final = (".gz", ".bz2", ".deflate", ".snappy", ".lz4", ".zst", ".lzo", ".xz", ".passthrough")


@dataclass
class SparkFiles:
    """The files of one layout: those that Spark reads itself, and those that the gate has cleaned."""

    layout: Layout
    raw: dict[str, Path] = field(default_factory=dict)
    """name for Spark → file"""
    cleaned: list[str] = field(default_factory=list)
    passed: list[Passed] = field(default_factory=list)
    """what the gate saw of the cleaned files"""

    @property
    def rules(self) -> LineRules:
        return LineRules() if isinstance(self.layout, Columns) else self.layout.rules

    def headers(self) -> Counter[str]:
        """The header lines of the raw files, as they stand there; how many files begin with each."""
        if not self.rules.header:
            return Counter()
        return Counter(header_line(path, first_lines(path)) for path in self.raw.values())

    def plain_sizes(self) -> list[int]:
        """The bytes of the files that are not compressed, without a byte-order mark; Parquet files as they are."""
        return [
            path.stat().st_size - (len(BOM) if self.rules.header and _begins_with_bom(path) else 0)
            for name, path in self.raw.items()
            if not name.endswith(".gz")
        ]

    def take_out(self, found: Iterable[Path]) -> list[Path]:
        """Removes the raw files under these names, and says which they were."""
        names = [name for name in self.raw if name_as_path(name) in found]
        return [self.raw.pop(name) for name in names]


def name_as_path(name: str) -> Path:
    return Path(name.removeprefix("file://"))


def files_for_spark(layout: Layout, paths: Sequence[Path], directory: Path) -> SparkFiles:
    """zstd, which Spark's text reader does not know everywhere, goes through the gate; so does a file without header
    that begins with a byte-order mark, which Spark would take away without counting its bytes."""
    files = SparkFiles(layout)
    for path in paths:
        kind = None if isinstance(layout, Columns) else compression_of(path)
        if kind == "zstd" or (not isinstance(layout, Columns) and not layout.rules.header and _begins_with_bom(path)):
            clean(files, path, directory)
        else:
            files.raw[_name_for(path, kind, directory)] = path
    return files


def _name_for(path: Path, compression: str | None, directory: Path) -> str:
    path = path.absolute()
    suffix = next((end for end in _COMPRESSED if path.name.endswith(end)), None)
    if suffix == (".gz" if compression else None) and all(_ORDINARY.fullmatch(part) for part in path.parts[1:]):
        return f"file://{path}"
    link = _new_name(directory, ".gz" if compression else ".txt")
    link.symlink_to(path.resolve())
    return f"file://{link}"


def clean(files: SparkFiles, path: Path, directory: Path) -> None:
    """Writes what the gate lets through of a file, without its header, where executors can read it."""
    gate = Gate(path, files.rules)
    name = _new_name(directory, ".cleaned")
    header = files.rules.header
    try:
        with name.open("wb") as cleaned:
            cleaned.write(b"\n")  # Spark would take a byte-order mark away from the very first line
            for block in gate.blocks():
                text = block
                if header:
                    text = block.lstrip(b"\n").partition(b"\n")[2]
                    header = False
                cleaned.write(text)
    except OSError as error:
        raise OutputError("no space left in the temp directory: name one with more room") from error
    name.chmod(0o644)
    files.cleaned.append(f"file://{name}")
    files.passed.append(gate.passed)


def _begins_with_bom(path: Path) -> bool:
    with open_text_bytes(path) as (source, _):
        return source.read(len(BOM)).startswith(BOM)


def _new_name(directory: Path, suffix: str) -> Path:
    number = sum(1 for _ in directory.iterdir())
    return directory / f"input_{number}{suffix}"


def first_places(sources: Iterable[SparkFiles], counts: Mapping[str, int]) -> dict[str, Malformed]:
    """What was held back in raw files, with the first places of each kind, by a second look at the bytes."""
    found = {reason: Malformed(n) for reason, n in counts.items()}
    for path, rules in [(path, files.rules) for files in sources for path in files.raw.values()]:
        gate = Gate(path, rules)
        for _ in gate.blocks():
            pass
        for reason, kind in found.items():
            here = gate.passed.held_back.get(reason, Malformed()).first
            kind.first = (kind.first + here)[:FIRST_PLACES]
        if all(len(kind.first) >= min(kind.count, FIRST_PLACES) for kind in found.values()):
            break
    return found
