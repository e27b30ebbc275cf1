"""The privacy statement of a released click graph: as JSON for programs, and as one page for people.

The page has the parts that NIST SP 800-226 asks about: the guarantee, its unit, mechanisms, utility and bias, trust,
implementation, security, and how the data were collected.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from searchblend.clickgraph.release.adaptive_selection import PARTS, FirstRound
from searchblend.clickgraph.release.attribute_counts import AttributeForecast
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.release import ClickGraphRelease
from searchblend.clickgraph.release.step import StepDesign
from searchblend.core.attributes import Attribute
from searchblend.core.documents import JsonObject
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.params import ClickGraphParams, Shares
from searchblend.core.privacy import UNIT, Budget
from searchblend.core.statement import Statement
from searchblend.wire.click_graph import STATEMENT_KIND, noise_parameters
from searchblend.wire.release import all_caveats, make_statement

STATEMENT_TEXT: Final = "statement.txt"
CAVEATS: Final = (
    "The unit is one user id. A person with k ids is protected by k·ε, and δ grows by (e^{kε} − 1)/(e^ε − 1).",
    "What many people search is not hidden: names of public persons, and secrets that many know.",
    "Whoever controls enough accounts can have a text published (see accounts_to_force).",
    "What is searched often and clicked seldom shows the search engine's own weaknesses.",
    "Every further release about the same people adds to their ε and δ.",
)


def parameters_of(release: ClickGraphRelease, options: JsonObject) -> JsonObject:
    """All that is needed to compute (ε, δ) again, and to read the tables."""
    params = asdict(release.params)
    budget = params.pop("budget")
    return {
        **budget,
        **params,
        "design": release.design.as_json(),
        **noise_parameters(release.graph()),
        "log": dict(options),
    }


def params_of_statement(parameters: Any) -> ClickGraphParams:
    """The parameters that a statement states, or ``MessageError`` naming the field that is wrong."""
    if not isinstance(parameters, dict):
        raise MessageError("parameters: expected a JSON object")
    known = {name: parameters[name] for name in ClickGraphParams.__dataclass_fields__ if name in parameters}
    try:
        known["shares"] = Shares(**known["shares"])
        known["attributes"] = tuple(Attribute(**each) for each in known.get("attributes", ()))
        return ClickGraphParams(budget=Budget(parameters["epsilon"], parameters["delta"]), **known)
    except InvalidParameter as error:
        raise MessageError(f"parameters.{error}") from error
    except (KeyError, TypeError) as error:
        raise MessageError("parameters: expected those of a released click graph") from error


def click_graph_statement(
    release: ClickGraphRelease, files: Mapping[str, bytes], *, created: str, options: JsonObject
) -> Statement:
    """The statement of a released graph that is made of these files."""
    return make_statement(
        files,
        kind=STATEMENT_KIND,
        method=release.params.algorithm,
        created=created,
        parameters=parameters_of(release, options),
        guarantee=release.guarantee.stated(),
        public=[f"{what}: {why}" for what, why in release.treated_as_public.items()],
        caveats=all_caveats([*CAVEATS, *_of_windows(release.params)], options),
    )


WINDOW_CAVEATS: Final = (
    "The month's account holds if the log of each window has every line of the month up to its end, and if no line "
    "that an earlier window was released from is missing later; that is the publisher's to see to.",
    "Who reaches their bound early in a month counts less later in it, so that counts fall towards its end.",
    "Lines whose time cannot be read belong to no window and are left out.",
)


def _of_windows(params: ClickGraphParams) -> Sequence[str]:
    return () if params.per == "none" else WINDOW_CAVEATS


def statement_page(release: ClickGraphRelease, *, created: str, options: JsonObject) -> str:
    """``statement.txt``: one page that says what was promised, to whom, and what was not."""
    design, params = release.design, release.params
    budget = params.budget
    parts = [
        ("1. The guarantee", _guarantee(design)),
        (
            "2. Unit of privacy",
            f"{_unit(release)} Two logs are neighbours if one of them has one user more. "
            "If instead a user's searches are replaced, ε counts twice and δ is multiplied by 1 + e^ε.",
        ),
        ("3. Mechanisms", _mechanisms(design)),
        ("4. Utility", _utility(release)),
        (
            "5. Bias",
            "Only what many users share is published; rare queries and small groups of users are missing. Each user's "
            "earliest activity counts, later activity beyond the caps does not. Clamped counts add up to too much."
            " Where counts were selected by their own noise, the column estimate corrects them.",
        ),
        (
            "6. Trust model",
            "Central: the publisher held the raw log and drew the noise. Readers of this folder need not be trusted.",
        ),
        (
            "7. What was treated as public",
            " ".join(f"{what}: {why}." for what, why in release.treated_as_public.items()),
        ),
        (
            "8. Implementation",
            "Noise is drawn from tables of integers and the operating system's generator; counts are whole numbers. "
            f"The samplers' distance from the ideal laws, {design.sampler_delta:.2g}, is part of δ.",
        ),
        (
            "9. Security and further releases",
            "The raw log is not part of this folder. Its protection, and the sum of all releases about the same "
            "people, are the publisher's duty; a budget ledger adds them up.",
        ),
        ("10. Data", _data(options)),
        ("11. What is not promised", " ".join(all_caveats([*CAVEATS, *_of_windows(params)], options))),
    ]
    heading = f"made {created}; ε = {budget.epsilon:g}, δ = {budget.delta:g}"
    return f"Privacy statement of a released query click graph\n{heading}\n" + "".join(
        f"\n{title}\n{_wrapped(text)}\n" for title, text in parts
    )


def _unit(release: ClickGraphRelease) -> str:
    unit = release.guarantee.unit
    return "One user id with all its searches and clicks." if unit == UNIT else f"{unit[:1].upper()}{unit[1:]}."


def _guarantee(design: ClickGraphDesign) -> str:
    budget, population = design.params.budget, design.params.population
    text = (
        f"(ε, δ)-differential privacy with ε = {budget.epsilon:g} and δ = {budget.delta:g} for everything in this "
        "folder together. In plain words: whatever a reader concludes from it about a user, that user's own data "
        f"change the odds by a factor of {math.exp(budget.epsilon):.3g} at most, except with probability "
        f"{design.delta:.2g}."
    )
    if design.params.per != "none":
        text += (
            f" That is what one person's whole month costs: its windows (per {design.params.per}) share one account, "
            "in which a user's first searches and clicks of the month count, and not more in any later window."
        )
    if population is not None:
        text += f" The declared number of users is {population:,}: δ times users is {budget.delta * population:.2g}."
    return text


def _mechanisms(design: ClickGraphDesign) -> str:
    lines = [f"Algorithm {design.params.algorithm} (proofs/README.md), accounting: {design.params.accounting}."]
    for step in design.steps:
        if step.first_round is not None:
            lines.append(_first_round(step, step.first_round))
        unit = "different things" if step.cap.distinct else "events"
        threshold = "all counts are published" if step.threshold is None else f"published from {step.threshold} on"
        lines.append(
            f"{step.name}: the first {step.cap.first} {unit} of each user; noise {step.law.law} of scale "
            f"{step.noise.scale:.4g}; {threshold}; ε = {step.epsilon:.4g}, δ = {step.delta:.2g}."
        )
    return "\n".join(lines)


def _first_round(step: StepDesign, first: FirstRound) -> str:
    """What directs a step in two rounds; none of its noisy weights is published."""
    return (
        f"{step.name}, first round: the same of each user, in weights of {first.units} at most; noise {step.law.law} "
        f"of scale {first.noise.scale:.4g}; below {first.lower} dropped, from {first.upper} on published, between them "
        f"counted again with new noise, and {first.carried / PARTS:.3g} of the first weight added; its cost is in the "
        "ε and δ of the second round."
    )


def _utility(release: ClickGraphRelease) -> str:
    law = release.design.query_counts.law
    return (
        f"{len(release.queries):,} queries, {len(release.clicks):,} clicks, {len(release.reformulations):,} "
        f"reformulations. Standard deviation of a query count: {law.standard_deviation:.3g}; 95 % interval about "
        f"± {law.half_width():.0f}. The intervals in the tables account for selection."
        + "".join(f" {_by_attribute(forecast)}" for forecast in release.design.forecasts())
    )


def _by_attribute(forecast: AttributeForecast) -> str:
    """How fine counts by attribute are, and why."""
    detail = {
        "cells": "each published one in each combination of declared values",
        "marginals": "each published one by each attribute alone",
        "totals": "people by the declared values of their first, and no published one",
    }[forecast.detail]
    return (
        f"{forecast.of.capitalize()} by attribute: {detail}, as the forecast from the parameters alone has it: a "
        f"typical count of {forecast.typical:.0f} spread over {forecast.cells:,} cells, each ± "
        f"{forecast.half_width:.0f}{'' if forecast.readable else ', so that most of these counts are noise'}."
    )


def _data(options: JsonObject) -> str:
    chosen = [f"{name}: {value}" for name, value in options.items() if value]
    return " ".join(["A search log; queries and URLs in normal form.", *([f"{'; '.join(chosen)}."] if chosen else [])])


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.fill(line, 100, initial_indent="  ", subsequent_indent="  ") for line in text.split("\n"))
