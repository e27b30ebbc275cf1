"""What people read of a release, from its folder alone: its page, and papers about it.

The papers are a registry entry, NIST's questions, a draft of an impact assessment, a README, and a description that
catalogues of data sets read (schema.org/Dataset). The registry is that of
differential privacy deployments (github.com/opendp/deployments-registry-data), whose schema of tier 3 the entry
follows. It knows no hybrid model, so that such a release is ``Varies`` and the details say what it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from searchblend.core.errors import InputError, InvalidParameter, MessageError
from searchblend.core.outlet import Where
from searchblend.core.silent import SILENT
from searchblend.core.statement import PAGE
from searchblend.pages.layout import markdown, render_markdown, small_number
from searchblend.pages.release_pages import click_graph_page, hybrid_page
from searchblend.releases.publication import Publication, open_field
from searchblend.releases.release_facts import ReleaseFacts, facts_of_folder
from searchblend.releases.saved_release import folder_and_statement
from searchblend.wire.click_graph import STATEMENT_KIND
from searchblend.wire.click_graph_files import read_attribute_tables, read_click_graph
from searchblend.wire.release import RESULT, read_result

_LARGE: Final = 100
"""from here on a factor needs no digits behind the point"""
_MEDIA_TYPES: Final = {
    "csv": "text/csv",
    "graphml": "application/graphml+xml",
    "html": "text/html",
    "json": "application/json",
    "md": "text/markdown",
    "parquet": "application/vnd.apache.parquet",
    "txt": "text/plain",
}
Entry: TypeAlias = str | int | float | Sequence["Entry"] | Mapping[str, "Entry"]
Writer = Callable[[ReleaseFacts, Publication], str]


def page_of_folder(where: Where, *, on_step: Callable[[str], None] = SILENT) -> str:
    """The same page that ``--html`` would have put there; files must have the hashes that the statement states.

    Args:
        where: the folder of a blend or of a click graph
        on_step: called with the name of each step

    Example:
        ``Path("release.html").write_text(sb.page_of_folder("out"))``
    """
    folder, statement = folder_and_statement(where)
    statement = statement.without_file(PAGE)
    try:
        if statement.kind == STATEMENT_KIND:
            tables = read_attribute_tables(folder, statement)
            columns = {name: {column: values.tolist() for column, values in of.items()} for name, of in tables.items()}
            return click_graph_page(read_click_graph(folder, on_step=on_step), statement, columns)
        return hybrid_page(read_result(folder / RESULT, statement), statement)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, MessageError) as error:
        raise InputError(folder, "expected the files of a release as searchblend writes them") from error


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
        publication=given,
        open_field=open_field,
        small=small_number,
        factor=_factor,
    )


def _factor(value: float) -> str:
    return f"{value:,.0f}" if value >= _LARGE else f"{value:.3g}"


def registry_entry(facts: ReleaseFacts, given: Publication) -> str:
    """The entry as YAML."""
    return "\n".join(_yaml(entry(facts, given))) + "\n"


def entry(facts: ReleaseFacts, given: Publication) -> Mapping[str, Entry]:
    """The entry as a document; the registry shows its strings as Markdown."""
    return {
        "url_slug": f"searchblend-{facts.kind.digest[:12]}",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": _basic(facts, given),
            "dp_variant": {
                "variant_name": "Approximate DP",
                "data_domain": markdown(facts.kind.data),
                "unprotected_quantities": _text(*facts.statement.public),
            },
            "privacy_loss": _privacy_loss(facts),
            "deployment_model": _deployment_model(facts),
            "accounting": {
                "post_processing": markdown(facts.kind.post_processing),
                "composition": markdown(facts.kind.composition),
            },
            "implementation": _implementation(facts),
            "administrative": _administrative(facts, given),
        },
    }


def _basic(facts: ReleaseFacts, given: Publication) -> Mapping[str, Entry]:
    return {
        "name": markdown(facts.kind.title),
        "data_curators": [markdown(given.stated("publisher"))],
        "intended_use": markdown(given.stated("purpose")),
        "data_product_type": "Summary statistics",
        "data_product_region": markdown(given.stated("region")),
        "description": _text(facts.kind.description, f"Period of the data: {given.stated('period')}."),
        "publication_date": facts.created.isoformat(),
        "data_product_sector": "Technology",
    }


def _privacy_loss(facts: ReleaseFacts) -> Mapping[str, Entry]:
    promise = facts.guarantee
    published = facts.words.published
    return {
        "privacy_unit": "user id",
        "privacy_unit_details": _text(promise.unit, f"Neighbours: {promise.neighbors}", *facts.bounds),
        "privacy_parameters": {"epsilon": promise.epsilon, "delta": promise.delta},
        "privacy_parameters_details": _text(
            facts.words.promise,
            *facts.words.groups,
            *([f"Of the published files alone: {'; '.join(published)}"] if published else []),
        ),
    }


def _deployment_model(facts: ReleaseFacts) -> Mapping[str, Entry]:
    return {
        "model_name": facts.kind.model,
        "model_name_details": markdown(facts.kind.model_details),
        "actors": _text(
            *(f"{group.group}: {group.trust}" for group in facts.guarantee.groups),
            "Readers of the release see its files, may know everything about everyone else, and are not trusted.",
        ),
        "release_type": "One release",
        "release_type_details": _text(
            "The promise is that of this release alone; every further one about the same people adds to it.",
            open_field("whether others are planned"),
        ),
        "data_source_type": "Static",
        "data_source_type_details": "The input was read once.",
        "access_type": "Non-interactive",
        "access_type_details": "Files are published; no one can ask the data anything.",
    }


def _implementation(facts: ReleaseFacts) -> Mapping[str, Entry]:
    software = ", ".join(f"{name} {version}" for name, version in facts.statement.software.items())
    return {
        "preprocessing_and_hyperparameter_tuning": _text(
            facts.kind.preprocessing, "The software decides nothing by the data but by what is private output already."
        ),
        "mechanisms": _text(
            *facts.kind.mechanisms,
            f"Implemented in {software}. Noise is whole numbers, drawn from tables with the operating system's "
            "generator; the samplers' distance from their laws is part of δ.",
        ),
        "justification": _text(
            "Conditions of the guarantee, all of which hold: "
            + "; ".join(f"{one.name} ({one.detail})" for one in facts.guarantee.conditions),
            open_field("why this ε and δ were chosen"),
        ),
    }


def _administrative(facts: ReleaseFacts, given: Publication) -> Mapping[str, Entry]:
    return {
        "sources": _text(*facts.source, f"Licence: {given.stated('licence')}", facts.words.citation),
        "notes": _text("Written by searchblend from the files of the release.", *facts.statement.caveats),
        "registry_authors": [markdown(given.stated("contact"))],
    }


def dataset(facts: ReleaseFacts, given: Publication) -> str:
    """JSON-LD after schema.org/Dataset: every column of every table, and every file with its hash."""
    document = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": facts.kind.title,
        "description": f"{facts.kind.description} {facts.words.promise}",
        "identifier": [
            {"@type": "PropertyValue", "propertyID": "DOI", "value": given.stated("doi")},
            {"@type": "PropertyValue", "propertyID": "SHA-256", "value": facts.kind.digest},
        ],
        "creator": {
            "@type": "Organization",
            "name": given.stated("publisher"),
            "contactPoint": {"@type": "ContactPoint", "description": given.stated("contact")},
        },
        "datePublished": facts.created.isoformat(),
        "temporalCoverage": given.stated("period"),
        "spatialCoverage": given.stated("region"),
        "license": given.stated("licence"),
        "creditText": facts.words.citation,
        "citation": list(facts.source),
        "measurementTechnique": list(facts.kind.mechanisms),
        "variableMeasured": [
            {"@type": "PropertyValue", "name": f"{table.file}: {column}", "description": meaning}
            for table in facts.kind.tables
            for column, meaning in table.columns.items()
        ],
        "distribution": [
            {
                "@type": "DataDownload",
                "name": name,
                "contentUrl": name,
                "encodingFormat": _MEDIA_TYPES.get(name.rpartition(".")[2], "application/octet-stream"),
                "contentSize": f"{entry.size} B",
                "sha256": entry.sha256,
            }
            for name, entry in facts.files.items()
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _text(*paragraphs: str) -> str:
    return "\n\n".join(map(markdown, paragraphs))


def _yaml(value: Entry, indent: str = "") -> Iterator[str]:
    """Block YAML whose scalars are JSON, which every version of YAML reads."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _yaml_under(f"{indent}{name}:", inner, indent)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield f"{indent}- {_scalar(inner)}"


def _yaml_under(heading: str, value: Entry, indent: str) -> Iterator[str]:
    if isinstance(value, str | int | float):
        yield f"{heading} {_scalar(value)}"
    else:
        yield heading
        yield from _yaml(value, indent + "  ")


def _scalar(value: Entry) -> str:
    """1e-05 is a string to YAML 1.1, which wants a point."""
    if isinstance(value, float):
        mantissa, exponent, power = repr(value).partition("e")
        return (mantissa if "." in mantissa else f"{mantissa}.0") + exponent + power
    return json.dumps(value, ensure_ascii=False)


WRITERS: Final[Mapping[str, Writer]] = {
    "registry": registry_entry,
    "nist": partial(_document, "nist.md"),
    "dpia": partial(_document, "dpia.md"),
    "readme": partial(_document, "readme.md"),
    "dataset": dataset,
}
"""what a paper is for → what writes it"""
