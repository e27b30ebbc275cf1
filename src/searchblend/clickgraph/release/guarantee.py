"""What a released click graph promises, under which conditions, and what was taken to be public."""

from __future__ import annotations

from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Condition, GroupGuarantee, Guarantee, Neighbors, TrustModel
from searchblend.core.randomness import Randomness


def click_graph_guarantee(design: ClickGraphDesign, randomness: Randomness) -> Guarantee:
    """The promise to every user of the log: proofs/click_graph_laplace.md, proofs/gaussian_threshold.md."""
    budget = design.params.budget
    return Guarantee(
        neighbors=Neighbors.ADD_REMOVE_ONE,
        groups=(GroupGuarantee("users", budget, TrustModel.CURATOR, design.delta),),
        conditions=(
            *(_contribution(step.name, step.cap.first, step.cap.distinct) for step in design.steps),
            *_threshold_conditions(design),
            Condition(
                "δ covers selection and sampler",
                design.delta <= budget.delta,
                f"the mechanisms use {design.mechanism_delta:.3g} at ε = {budget.epsilon:g}, "
                f"the noise samplers {design.sampler_delta:.2g}",
            ),
            Condition(
                "cryptographic randomness",
                randomness.cryptographic,
                "noise was drawn from the operating system's generator"
                if randomness.cryptographic
                else "a predictable generator was used: nothing here is private",
            ),
        ),
    )


def _contribution(name: str, first: int, distinct: bool) -> Condition:
    what = "different things" if distinct else "events"
    return Condition(f"bounded contribution to: {name}", True, f"the first {first} {what} of each user by time")


def _threshold_conditions(design: ClickGraphDesign) -> list[Condition]:
    """T above what one user adds to one count (K ≥ d of Theorem 1)."""
    return [
        Condition(
            f"threshold above one user's count in: {step.name}",
            step.threshold > least,
            f"T = {step.threshold}, one user adds at most {least} to a count",
        )
        for step in design.steps
        if step.threshold is not None
        for least in [step.units if step.cap.distinct else step.cap.first]
    ]


def treated_as_public(params: ClickGraphParams) -> dict[str, str]:
    """What the promise takes to be known to everybody, and why."""
    public = {
        "parameters": "all parameters, fixed before the log was read",
        "normal forms": "how queries and URLs are written, a fixed rule for each text",
    }
    if params.population is not None:
        public["population"] = "the declared number of users; it was not counted in the log"
    if params.urls == "public":
        public["pairs of query and URL"] = (
            f"from {params.public_source}. A ranking that learned from clicks is not strictly independent of the log."
        )
    return public
