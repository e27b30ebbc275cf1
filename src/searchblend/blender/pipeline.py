"""BLENDER as one call: head list from S, estimates from T and from the clients, blended. [BLJ] Fig. 2."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from searchblend.blender.blend import blend_probabilities
from searchblend.blender.create_head_list import create_head_list
from searchblend.blender.estimate_client import estimate_client_probabilities
from searchblend.blender.estimate_optin import estimate_optin_probabilities
from searchblend.blender.estimates import Blended, Floats, GroupEstimates
from searchblend.blender.groups import Ints, UserGroup
from searchblend.blender.local_report_bulk import BulkReporter
from searchblend.blender.report_probabilities import ReportProbabilities
from searchblend.errors import EmptyHeadList, InvalidParameter
from searchblend.mechanisms.threshold import Threshold, printed_threshold
from searchblend.params import BlenderParams
from searchblend.privacy import Budget, Condition, GroupGuarantee, Guarantee, Neighbors, TrustModel
from searchblend.randomness import Randomness, SystemRandomness
from searchblend.records import HeadList

OnStep = Callable[[str], None]


@dataclass(frozen=True)
class GroupSizes:
    """How many people took part; public, since neighbours differ in values and not in participation."""

    head_users: int
    estimate_users: int
    clients: int

    @property
    def optin_users(self) -> int:
        return self.head_users + self.estimate_users


@dataclass(frozen=True)
class BlenderRelease:
    """Everything that one run publishes. ``repr`` and every field are safe to show."""

    params: BlenderParams
    head: HeadList
    sizes: GroupSizes
    threshold: Threshold
    probabilities: ReportProbabilities
    optin: GroupEstimates
    client: GroupEstimates
    records: Blended
    queries: Blended
    projected: bool
    guarantee: Guarantee

    def ranked_queries(self) -> list[int]:
        """The positions of the listed queries, most probable first; ties by bytes, never by input order."""
        return _by_probability(self.queries.probability[:-1], self.head.queries)

    def ranked_urls(self, query: int) -> list[int]:
        """The positions of one query's listed URLs, most probable first; ties by bytes."""
        first, urls = self.head.first_cells()[query], self.head.urls(self.head.queries[query])
        return _by_probability(self.records.probability[first : first + len(urls)], urls)

    def __repr__(self) -> str:
        return f"BlenderRelease({self.head!r}, ε = {self.guarantee.epsilon:g}, δ = {self.guarantee.delta:g})"


def _by_probability(probability: Floats, names: Sequence[str]) -> list[int]:
    return sorted(range(len(names)), key=lambda i: (-probability[i], names[i].encode()))


def run_blender(
    optin_users: UserGroup,
    clients: UserGroup,
    params: BlenderParams,
    *,
    project: bool = True,
    randomness: Randomness | None = None,
    on_step: OnStep = lambda step: None,
) -> BlenderRelease:
    """[BLJ] Fig. 2, with the clients' devices played by this process.

    The clients' records are therefore in the hands of whoever runs it: to the clients the output is as
    private as LocalAlg makes it, but only real devices give them the local model.
    """
    source = randomness or SystemRandomness()
    params = params.for_log(has_urls=optin_users.has_urls or clients.has_urls)
    head_users, estimate_users = split_optin(optin_users, params, source)
    if clients.n_users < 2:
        raise InvalidParameter("clients", f"at least 2 are needed, found {clients.n_users}")

    on_step("head list")
    candidates = create_head_list(head_users, params, randomness=source)
    if not len(candidates):
        raise EmptyHeadList(empty_head_list_advice(head_users.n_users, printed_threshold(params.budget), params))
    on_step("opt-in estimates")
    head, optin = estimate_optin_probabilities(estimate_users, candidates, params, randomness=source)
    on_step("client reports")
    report_counts = simulate_clients(clients, head, params, source)
    on_step("blend")
    client = estimate_client_probabilities(report_counts, head, params)
    return BlenderRelease(
        params=params,
        head=head,
        sizes=GroupSizes(head_users.n_users, estimate_users.n_users, clients.n_users),
        threshold=printed_threshold(params.budget),
        probabilities=ReportProbabilities.of(head, params),
        optin=optin,
        client=client,
        records=blend_probabilities(optin.records, client.records, project=project),
        queries=blend_probabilities(optin.queries, client.queries, project=project),
        projected=project,
        guarantee=paper_guarantee(params, source),
    )


def split_optin(optin_users: UserGroup, params: BlenderParams, randomness: Randomness) -> tuple[UserGroup, UserGroup]:
    """S and T, |S| = f_O |O|; T needs 2 users for a variance."""
    if optin_users.n_users < 2:
        raise InvalidParameter("opt-in users", f"at least 2 are needed, found {optin_users.n_users}")
    head_users, estimate_users = optin_users.split(params.head_fraction, randomness=randomness)
    if head_users.n_users < 1 or estimate_users.n_users < 2:
        raise InvalidParameter(
            "opt-in users",
            f"{optin_users.n_users} are too few at head_fraction {params.head_fraction:g}: at least 1 is needed "
            "to make the head list and 2 to estimate it",
        )
    return head_users, estimate_users


def simulate_clients(clients: UserGroup, head: HeadList, params: BlenderParams, randomness: Randomness) -> Ints:
    """The reports of every client, counted by cell: LocalAlg run once for each drawn record."""
    held = clients.cell_counts(head, params.records_per_client, randomness=randomness)
    return BulkReporter(ReportProbabilities.of(head, params)).report_counts(held, randomness)


def empty_head_list_advice(n_head_users: int, threshold: Threshold, params: BlenderParams) -> str:
    """Why the list is empty and what would help; says nothing about the data but that."""
    share = threshold.integer / n_head_users
    return (
        f"the head list is empty: a record needs about {threshold.integer} of the {n_head_users} opt-in users that "
        f"make the list ({share:.2%}) to be named at ε = {params.budget.epsilon:g}, δ = {params.budget.delta:g}. "
        "More opt-in users, a larger ε or a larger δ would help"
    )


def paper_guarantee(params: BlenderParams, randomness: Randomness) -> Guarantee:
    """The promise of the printed method: opt-in by Theorems 3.1 and 3.2 on disjoint users, clients by 3.3."""
    budget, threshold = params.budget, printed_threshold(params.budget)
    rate, sampler = threshold.single_person_rate, threshold.sampler_delta(budget.epsilon)
    return Guarantee(
        neighbors=Neighbors.REPLACE_ONE,
        groups=(
            GroupGuarantee("opt-in users", budget, TrustModel.CURATOR, rate + sampler),
            GroupGuarantee("clients", budget, TrustModel.LOCAL, budget.delta / 2),
        ),
        conditions=(
            Condition("one record per opt-in user (m_O = 1)", True, "Theorems 3.1 and 3.2"),
            _budget_condition(budget, threshold),
            Condition("threshold at least 1", threshold.printed >= 1, f"τ = {threshold.printed:.4g} (Theorem 3.1)"),
            Condition(
                "selection within δ",
                rate + sampler <= budget.delta,
                f"a single person's record is named with probability {rate:.3g}; the noise sampler adds {sampler:.2g}",
            ),
            Condition(
                "cryptographic randomness",
                randomness.cryptographic,
                "noise and reports were drawn from the operating system's generator"
                if randomness.cryptographic
                else "a predictable generator was used: nothing here is private",
            ),
        ),
    )


def _budget_condition(budget: Budget, threshold: Threshold) -> Condition:
    if budget.epsilon > math.log(2):
        return Condition("ε > ln 2", True, "Theorem 3.1")
    return Condition(
        "e^(ε/2)(1 − π₁) ≥ 1",
        threshold.small_budget_condition(),
        f"stands in for ε > ln 2 of Theorem 3.1 (proofs/create_head_list.md); π₁ = {threshold.single_person_rate:.3g}",
    )
