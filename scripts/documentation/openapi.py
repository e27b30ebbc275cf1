"""Write docs/reference/openapi.json; a test compares the file with the code."""

from __future__ import annotations

import json
from pathlib import Path

from searchblend.service.api.app import all_operations
from searchblend.service.api.operations import openapi_document
from searchblend.service.services import Services

FILE = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"


def content() -> str:
    document = openapi_document(all_operations(Services("unused")))
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(content(), encoding="utf-8")
