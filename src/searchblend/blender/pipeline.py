"""BLENDER over a log as one call: head list and estimates from the opt-in users, reports of the clients, blended."""

from __future__ import annotations

from dataclasses import replace

from searchblend.blender.devices import EACH_DEVICE, Devices
from searchblend.blender.exchanged import check_voucher, from_outside, is_outside
from searchblend.blender.groups import UserGroup
from searchblend.blender.method import Method, OnStep, method_of
from searchblend.blender.release import BlenderRelease
from searchblend.core.errors import EmptyHeadList, InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import TrustModel
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.silent import SILENT


def run_blender(
    optin_users: UserGroup,
    clients: UserGroup,
    params: BlenderParams,
    *,
    method: str | Method = "best",
    vouched_by: str | None = None,
    project: bool = True,
    wide_list: bool = False,
    devices: Devices = EACH_DEVICE,
    randomness: Randomness | None = None,
    on_step: OnStep = SILENT,
) -> BlenderRelease:
    """[BLJ] Fig. 2, with the clients' devices played by this process.

    The clients' records are therefore in the hands of whoever runs it: to the clients the output is as
    private as their reports make it, but only real devices give them the local model.

    ``method`` is ``best`` or ``paper``, or a method of someone else's (``PrintedSteps``), for whose promise
    ``vouched_by`` vouches: without that name the guarantee of such a release does not hold. ``project`` makes shares of
    the estimates; ``wide_list`` lists queries without a common URL, too; ``devices`` is who reports for the clients;
    ``on_step`` is told the name of each step.

    Example:
        ``sb.run_blender(optin, clients, sb.BlenderParams(sb.Budget(4.0, 1e-5)))``
    """
    chosen, params = check_run(optin_users, clients, params, method=method, wide_list=wide_list)
    check_voucher(chosen, vouched_by)
    source = randomness or SystemRandomness()
    figures = chosen.list_head(optin_users, params, randomness=source, on_step=on_step)
    if not len(figures.head):
        advice = empty_head_list_advice(figures.head_users, chosen.users_to_be_listed(params), params)
        raise EmptyHeadList(advice)
    figures = chosen.design_reports(figures, params, clients.n_users, on_step=on_step)
    on_step("client reports")
    reports = chosen.simulate_reports(clients, figures, params, devices=devices, randomness=source)
    on_step("blend")
    release = chosen.estimate(figures, reports, params, clients.n_users, trust=TrustModel.HELD_LOG, project=project)
    release = replace(release, guarantee=replace(release.guarantee, unit=optin_users.unit))
    return from_outside(release, chosen, vouched_by) if is_outside(chosen) else release


def check_run(
    optin_users: UserGroup, clients: UserGroup, params: BlenderParams, *, method: str | Method, wide_list: bool
) -> tuple[Method, BlenderParams]:
    """The method and the parameters as they fit this log, if they do, with the number of records that count."""
    chosen = method_of(method, wide_list=wide_list and optin_users.has_urls)
    for group, n in (("opt-in users", optin_users.n_users), ("clients", clients.n_users)):
        if n < 2:
            raise InvalidParameter(group, f"at least 2 are needed, found {n}")
    if optin_users.unit != clients.unit:
        raise InvalidParameter("clients", "expected persons in both groups, or rows of a table in both")
    if optin_users.has_urls != clients.has_urls:
        raise InvalidParameter("clients", "expected records with URLs in both groups, or in neither")
    params = params.for_log(has_urls=optin_users.has_urls)
    return chosen, chosen.settled(params, has_rows=optin_users.has_rows)


def empty_head_list_advice(n_head_users: int, needed: int, params: BlenderParams) -> str:
    """Why the list is empty and what would help; says nothing about the data but that."""
    return (
        f"the head list is empty: a record needs about {needed} of the {n_head_users} opt-in users that make the list "
        f"({needed / n_head_users:.2%}) to be named at ε = {params.budget.epsilon:g}, δ = {params.budget.delta:g}. "
        "More opt-in users, a larger ε or a larger δ would help"
    )
