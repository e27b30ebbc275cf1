"""BLENDER as one call: head list and estimates from the opt-in users, reports of the clients, blended. [BLJ] Fig. 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from searchblend.blender.best.best import curator_design, estimate_best
from searchblend.blender.best.choose_design import choose_design
from searchblend.blender.best.observations import OptinCounts
from searchblend.blender.best.stability_histogram import count_head_list
from searchblend.blender.devices import EACH_DEVICE, Devices
from searchblend.blender.groups import UserGroup
from searchblend.blender.guarantees import best_guarantee, paper_guarantee
from searchblend.blender.mechanism_figures import best_figures, paper_figures
from searchblend.blender.paper.blend import blend_probabilities
from searchblend.blender.paper.create_head_list import create_head_list
from searchblend.blender.paper.estimate_client import estimate_client_probabilities
from searchblend.blender.paper.estimate_optin import estimate_optin_probabilities
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.blender.release import BlenderRelease, GroupSizes
from searchblend.core.errors import EmptyHeadList, InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import TrustModel
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.records import HeadList
from searchblend.mechanisms.tally import Ints
from searchblend.mechanisms.threshold import printed_threshold

OnStep = Callable[[str], None]
METHODS: Final = ("best", "paper")


def run_blender(
    optin_users: UserGroup,
    clients: UserGroup,
    params: BlenderParams,
    *,
    method: str = "best",
    project: bool = True,
    wide_list: bool = False,
    heed_check: bool = True,
    devices: Devices = EACH_DEVICE,
    randomness: Randomness | None = None,
    on_step: OnStep = lambda step: None,
) -> BlenderRelease:
    """[BLJ] Fig. 2, with the clients' devices played by this process; ``method`` is ``best`` or ``paper``.

    The clients' records are therefore in the hands of whoever runs it: to the clients the output is as
    private as their reports make it, but only real devices give them the local model. ``devices`` is who reports for
    them; ``heed_check=False`` blends in method ``best`` as if both groups were known to search alike.
    """
    if method not in METHODS:
        raise InvalidParameter("method", f"expected one of {', '.join(METHODS)}")
    for group, n in (("opt-in users", optin_users.n_users), ("clients", clients.n_users)):
        if n < 2:
            raise InvalidParameter(group, f"at least 2 are needed, found {n}")
    if optin_users.has_urls != clients.has_urls:
        raise InvalidParameter("clients", "expected records with URLs in both groups, or in neither")
    source = randomness or SystemRandomness()
    params = params.for_log(has_urls=optin_users.has_urls)
    if method == "paper":
        return run_paper(
            optin_users, clients, params, project=project, devices=devices, randomness=source, on_step=on_step
        )
    return run_best(
        optin_users,
        clients,
        params,
        project=project,
        wide_list=wide_list,
        heed_check=heed_check,
        devices=devices,
        randomness=source,
        on_step=on_step,
    )


def run_paper(
    optin_users: UserGroup,
    clients: UserGroup,
    params: BlenderParams,
    *,
    project: bool,
    devices: Devices = EACH_DEVICE,
    randomness: Randomness,
    on_step: OnStep,
) -> BlenderRelease:
    """The algorithm as printed: S names, T estimates, devices report in two stages, variances blend."""
    guarantee = paper_guarantee(params.for_printed_method(), randomness, TrustModel.HELD_LOG)
    threshold = printed_threshold(params.budget)
    head_users, estimate_users = split_optin(optin_users, params, randomness)
    on_step("head list")
    candidates = create_head_list(head_users, params, randomness=randomness)
    if not len(candidates):
        raise EmptyHeadList(empty_head_list_advice(head_users.n_users, threshold.integer, params))
    on_step("opt-in estimates")
    head, optin = estimate_optin_probabilities(estimate_users, candidates, params, randomness=randomness)
    on_step("client reports")
    report_counts = simulate_clients(clients, head, params, randomness, devices)
    on_step("blend")
    client = estimate_client_probabilities(report_counts, head, params)
    return BlenderRelease(
        method="paper",
        params=params,
        head=head,
        sizes=GroupSizes(optin_users.n_users, clients.n_users, head_users.n_users, estimate_users.n_users),
        mechanism=paper_figures(threshold, ReportProbabilities.of(head, params), params),
        optin=optin,
        client=client,
        records=blend_probabilities(optin.records, client.records, project=project),
        queries=blend_probabilities(optin.queries, client.queries, project=project),
        projected=project,
        guarantee=guarantee,
    )


def run_best(
    optin_users: UserGroup,
    clients: UserGroup,
    params: BlenderParams,
    *,
    project: bool,
    wide_list: bool,
    heed_check: bool = True,
    devices: Devices = EACH_DEVICE,
    randomness: Randomness,
    on_step: OnStep,
) -> BlenderRelease:
    """All opt-in users name and count, clients report in one step, one least squares blends."""
    curator = curator_design(params, wide=wide_list and optin_users.has_urls)
    on_step("head list")
    counted = count_head_list(optin_users, params, curator, randomness=randomness)
    head = counted.head
    if not len(head):
        needed = -(-curator.threshold.integer // curator.spread.units)
        raise EmptyHeadList(empty_head_list_advice(optin_users.n_users, needed, params))
    on_step("client design")
    chosen, forecasts = choose_design(head, OptinCounts.of(counted), params, clients.n_users)
    on_step("client reports")
    held = clients.cell_counts(head, params.records_per_client, randomness=randomness)
    reports = devices.sets_reported(held, head, chosen.design, params, randomness)
    on_step("blend")
    estimates = estimate_best(
        counted, reports, chosen.design, params, clients.n_users, project=project, heed_check=heed_check
    )
    return BlenderRelease(
        method="best",
        params=params,
        head=head,
        sizes=GroupSizes(optin_users.n_users, clients.n_users, optin_users.n_users, optin_users.n_users),
        mechanism=best_figures(curator, chosen.design, head, params, forecasts),
        optin=estimates.optin,
        client=estimates.client,
        records=estimates.records,
        queries=estimates.queries,
        projected=project,
        guarantee=best_guarantee(params, curator, randomness, TrustModel.HELD_LOG),
        design=chosen.design,
        check=estimates.check,
    )


def split_optin(optin_users: UserGroup, params: BlenderParams, randomness: Randomness) -> tuple[UserGroup, UserGroup]:
    """S and T, |S| = f_O |O|; T needs 2 users for a variance."""
    head_users, estimate_users = optin_users.split(params.head_fraction, randomness=randomness)
    if head_users.n_users < 1 or estimate_users.n_users < 2:
        raise InvalidParameter(
            "opt-in users",
            f"{optin_users.n_users} are too few at head_fraction {params.head_fraction:g}: at least 1 is needed "
            "to make the head list and 2 to estimate it",
        )
    return head_users, estimate_users


def simulate_clients(
    clients: UserGroup, head: HeadList, params: BlenderParams, randomness: Randomness, devices: Devices = EACH_DEVICE
) -> Ints:
    """The reports of every client, counted by cell: LocalAlg run once for each drawn record."""
    held = clients.cell_counts(head, params.records_per_client, randomness=randomness)
    return devices.cells_reported(held, head, ReportProbabilities.of(head, params), randomness)


def empty_head_list_advice(n_head_users: int, needed: int, params: BlenderParams) -> str:
    """Why the list is empty and what would help; says nothing about the data but that."""
    return (
        f"the head list is empty: a record needs about {needed} of the {n_head_users} opt-in users that make the list "
        f"({needed / n_head_users:.2%}) to be named at ε = {params.budget.epsilon:g}, δ = {params.budget.delta:g}. "
        "More opt-in users, a larger ε or a larger δ would help"
    )
