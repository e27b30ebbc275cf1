"""An entry of the registry of differential privacy deployments, tier 3: the YAML that its schema asks for.

The schema is that of github.com/opendp/deployments-registry-data. It knows no hybrid model, so that such a release is
``Varies`` and the details say what it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from searchblend.pages.markdown import markdown
from searchblend.releases.paperwork.facts import ReleaseFacts
from searchblend.releases.paperwork.publication import Publication, open_field

Entry: TypeAlias = str | int | float | Sequence["Entry"] | Mapping[str, "Entry"]


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
        "publication_date": facts.made.isoformat(),
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
            "Readers of the release see its files, may know everything about everybody else, and are not trusted.",
        ),
        "release_type": "One release",
        "release_type_details": _text(
            "The promise is that of this release alone; every further one about the same people adds to it.",
            open_field("whether others are planned"),
        ),
        "data_source_type": "Static",
        "data_source_type_details": "The input was read once.",
        "access_type": "Non-interactive",
        "access_type_details": "Files are published; nobody can ask the data anything.",
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
