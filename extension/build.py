"""Build the extension: the sources as they are, a manifest for each browser, and archives that are always the same.

python extension/build.py --output dist
python extension/build.py --output dist --enrolment enrolment.json    for one list and its server alone
    … --issuer https://issuer.example                                 whose tokens pay for that list's reports
python extension/build.py --output DIR --for-tests                    the test engine's host is granted at once
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from searchblend.core.documents import encode
from searchblend.core.errors import InvalidParameter
from searchblend.wire.addresses import is_origin
from searchblend.wire.enrolment import EnrolmentDocument, read_enrolment

HERE: Final = Path(__file__).resolve().parent
BROWSERS: Final = {"chromium": "searchblend-chromium.zip", "firefox": "searchblend-firefox.xpi"}
PARTS: Final = {"src": ("*.js", "*.html", "*.css"), "icons": ("*.png", "*.svg"), "_locales": ("*.json",)}
GECKO_ID: Final = "extension@searchblend.example"
DATA_KINDS: Final = ["searchTerms", "browsingActivity"]
LOCAL: Final = "http://127.0.0.1/*"
_LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Build the browser extension.")
    parser.add_argument("--output", type=Path, default=Path("dist"), help="where the archives go (dist)")
    parser.add_argument("--folder", type=Path, default=Path("build/extension"), help="where the loose files go")
    parser.add_argument("--enrolment", type=Path, help="the enrolment.json of a list: the package is for it alone")
    parser.add_argument("--issuer", default="", help="with --enrolment: the issuer of the tokens that its reports need")
    parser.add_argument("--for-tests", action="store_true", help="grant the test engine's host; not for people")
    options = parser.parse_args(arguments)
    try:
        enrolment = packed(options.enrolment) if options.enrolment else None
        if options.issuer and not (enrolment and is_origin(options.issuer)):
            raise ValueError("--issuer: expected https://HOST, and --enrolment")
        for browser, archive in BROWSERS.items():
            folder = options.folder / browser
            build(browser, folder, enrolment, options.issuer, for_tests=options.for_tests)
            options.output.mkdir(parents=True, exist_ok=True)
            pack(folder, options.output / archive)
            print(options.output / archive)
    except (OSError, ValueError) as error:
        print(f"build: {error}", file=sys.stderr)
        return 2
    return 0


def packed(path: Path) -> EnrolmentDocument:
    """The enrolment to be packed in, by the rules that the device has: a package that cannot join is not built."""
    try:
        return read_enrolment(path.read_text(encoding="utf-8"))
    except InvalidParameter as error:
        raise ValueError(f"{path}: {error}") from error


def build(browser: str, folder: Path, enrolment: EnrolmentDocument | None, issuer: str, *, for_tests: bool) -> None:
    """The loose files of one browser's package."""
    shutil.rmtree(folder, ignore_errors=True)
    for part, patterns in PARTS.items():
        for source in sorted(path for pattern in patterns for path in (HERE / part).rglob(pattern)):
            target = folder / source.relative_to(HERE)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    shutil.copyfile(HERE.parent / "LICENSE", folder / "LICENSE")
    _write(folder / "manifest.json", manifest(browser, enrolment, issuer, for_tests=for_tests))
    _write(folder / "enrolment.json", encode(enrolment))


def manifest(browser: str, enrolment: EnrolmentDocument | None, issuer: str, *, for_tests: bool) -> dict[str, Any]:
    """The common manifest and what this browser wants differently."""
    document: dict[str, Any] = json.loads((HERE / "manifest.json").read_text(encoding="utf-8"))
    document["version"] = _version()
    asked = (enrolment.relay or enrolment.server) if enrolment else ""
    document["optional_host_permissions"] += [_origin_of(asked) if asked else "https://*/*"]
    document["optional_host_permissions"] += [_origin_of(issuer)] if issuer else []
    # A browser without a head cannot answer the question for a host: a test's package has it from the start.
    if for_tests:
        document["host_permissions"] = [LOCAL]
    worker = "src/background/main.js"
    if browser == "chromium":
        document["background"] = {"service_worker": worker, "type": "module"}
        return document
    del document["minimum_chrome_version"]
    document["background"] = {"scripts": [worker], "type": "module"}
    kinds = {"required": DATA_KINDS} if for_tests else {"required": ["none"], "optional": DATA_KINDS}
    gecko = {"id": GECKO_ID, "strict_min_version": "142.0", "data_collection_permissions": kinds}
    document["browser_specific_settings"] = {"gecko": gecko}
    return document


def pack(folder: Path, archive: Path) -> None:
    """A zip whose bytes depend on the files alone."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _LONG_AGO)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                out.writestr(entry, path.read_bytes())


def _origin_of(server: str) -> str:
    parts = urlsplit(server)
    return f"{parts.scheme}://{parts.hostname}/*"


def _version() -> str:
    """The package's own version, so that both say the same."""
    for line in (HERE.parent / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("version = "):
            return line.split('"')[1]
    raise ValueError("pyproject.toml: no version")


def _write(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
