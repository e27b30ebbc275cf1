"""Papers for a release folder: a registry entry, NIST's questions, a draft of an impact assessment, a README."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from searchblend.core.errors import InvalidParameter
from searchblend.core.outlet import Where
from searchblend.pages.layout import small_number
from searchblend.pages.markdown import render_markdown
from searchblend.releases.paperwork.facts import ReleaseFacts, facts_of_folder
from searchblend.releases.paperwork.publication import Publication, open_field
from searchblend.releases.paperwork.registry import registry_entry

_LARGE: Final = 100
"""from here on a factor needs no digits behind the point"""
Writer = Callable[[ReleaseFacts, Publication], str]


def paperwork_of_folder(where: Where, purpose: str, given: Publication) -> str:
    """One paper: every figure from the release's own files, what only the publisher knows from ``given`` or open."""
    if purpose not in WRITERS:
        raise InvalidParameter("for", f"expected one of {', '.join(WRITERS)}")
    return WRITERS[purpose](facts_of_folder(where), given)


def _document(template: str, facts: ReleaseFacts, given: Publication) -> str:
    return render_markdown(
        template,
        facts=facts,
        kind=facts.kind,
        promise=facts.guarantee,
        words=facts.words,
        given=given.stated,
        open_field=open_field,
        small=small_number,
        factor=_factor,
    )


def _factor(value: float) -> str:
    return f"{value:,.0f}" if value >= _LARGE else f"{value:.3g}"


WRITERS: Final[Mapping[str, Writer]] = {
    "registry": registry_entry,
    "nist": partial(_document, "nist.md"),
    "dpia": partial(_document, "dpia.md"),
    "readme": partial(_document, "readme.md"),
}
"""what a paper is for → what writes it"""
