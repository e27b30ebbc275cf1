"""What an evaluation can run: method ``paper``, method ``best``, or someone's own, by its import path.

An algorithm is any object with a ``name`` and a ``run``. To exchange one step of the printed algorithm and keep the
others, derive from ``PrintedSteps`` and override that step (docs/how-to/evaluate-your-own.md).
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, runtime_checkable

from searchblend.blender.devices import Devices
from searchblend.blender.estimates import Blended, Estimates, GroupEstimates
from searchblend.blender.groups import UserGroup
from searchblend.blender.guarantees import paper_guarantee
from searchblend.blender.method import METHODS, simulate_clients, split_optin
from searchblend.blender.paper.blend import blend_probabilities
from searchblend.blender.paper.create_head_list import create_head_list
from searchblend.blender.paper.estimate_client import estimate_client_probabilities
from searchblend.blender.paper.estimate_optin import estimate_optin_probabilities
from searchblend.blender.pipeline import run_blender
from searchblend.blender.release import BlenderRelease, GroupSizes
from searchblend.core.errors import EmptyHeadList, UsageError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import TrustModel
from searchblend.core.randomness import Randomness
from searchblend.core.records import HeadList
from searchblend.mechanisms.tally import Ints


@runtime_checkable
class Algorithm(Protocol):
    """Two groups of people in, a release out. Raise ``EmptyHeadList`` if there is nothing to release."""

    @property
    def name(self) -> str: ...

    def run(
        self,
        optin_users: UserGroup,
        clients: UserGroup,
        params: BlenderParams,
        *,
        devices: Devices,
        randomness: Randomness,
    ) -> BlenderRelease: ...


@dataclass(frozen=True)
class Shipped:
    """A method of this package."""

    name: str

    def run(
        self,
        optin_users: UserGroup,
        clients: UserGroup,
        params: BlenderParams,
        *,
        devices: Devices,
        randomness: Randomness,
    ) -> BlenderRelease:
        return run_blender(
            optin_users,
            clients,
            params,
            method=self.name,
            devices=devices,
            randomness=randomness,
        )


class PrintedSteps:
    """[BLJ] Fig. 2 step by step; every step is a method that can be overridden.

    What an overridden step does to privacy is for its author to prove: the guarantee attached to the release is that
    of the printed steps.
    """

    name = "printed steps"

    def create_head_list(self, head_users: UserGroup, params: BlenderParams, randomness: Randomness) -> HeadList:
        """Fig. 3: the candidate list from the opt-in users S."""
        return create_head_list(head_users, params, randomness=randomness)

    def estimate_optin(
        self, estimate_users: UserGroup, candidates: HeadList, params: BlenderParams, randomness: Randomness
    ) -> tuple[HeadList, GroupEstimates]:
        """Fig. 4: the final list and what the opt-in users T say about it."""
        return estimate_optin_probabilities(estimate_users, candidates, params, randomness=randomness)

    def collect_reports(
        self, clients: UserGroup, head: HeadList, params: BlenderParams, devices: Devices, randomness: Randomness
    ) -> Ints:
        """Fig. 6: how often each cell of the list is reported."""
        return simulate_clients(clients, head, params, randomness, devices)

    def estimate_clients(self, report_counts: Ints, head: HeadList, params: BlenderParams) -> GroupEstimates:
        """Fig. 5: what the counted reports say."""
        return estimate_client_probabilities(report_counts, head, params)

    def blend(self, optin: Estimates, client: Estimates) -> Blended:
        """Fig. 7: one estimate from two; called for the records and for the queries."""
        return blend_probabilities(optin, client)

    def run(
        self,
        optin_users: UserGroup,
        clients: UserGroup,
        params: BlenderParams,
        *,
        devices: Devices,
        randomness: Randomness,
    ) -> BlenderRelease:
        """Fig. 2 with the steps above."""
        params = params.for_log(has_urls=optin_users.has_urls)
        head_users, estimate_users = split_optin(optin_users, params, randomness)
        candidates = self.create_head_list(head_users, params, randomness)
        if not len(candidates):
            raise EmptyHeadList("the head list is empty")
        head, optin = self.estimate_optin(estimate_users, candidates, params, randomness)
        client = self.estimate_clients(self.collect_reports(clients, head, params, devices, randomness), head, params)
        return BlenderRelease(
            method=self.name,
            params=params,
            head=head,
            sizes=GroupSizes(optin_users.n_users, clients.n_users, head_users.n_users, estimate_users.n_users),
            mechanism={},
            optin=optin,
            client=client,
            records=self.blend(optin.records, client.records),
            queries=self.blend(optin.queries, client.queries),
            projected=True,
            guarantee=paper_guarantee(params, TrustModel.HELD_LOG, cryptographic=randomness.cryptographic),
        )


def algorithm_named(name: str) -> Algorithm:
    """``paper``, ``best``, or ``package.module:object``."""
    if name in METHODS:
        return Shipped(name)
    return load_algorithm(name)


def load_algorithm(path: str) -> Algorithm:
    """The object behind ``package.module:object``; modules of the current folder are found too."""
    module_name, colon, attribute = path.partition(":")
    if not (module_name and colon and attribute):
        raise UsageError(f"--algorithm: expected package.module:object, found {path!r}")
    if os.getcwd() not in sys.path:  # noqa: PTH109 (sys.path holds strings)
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        loaded = getattr(import_module(module_name), attribute)
    except ImportError as error:
        raise UsageError(f"--algorithm: {module_name} cannot be imported: {error}") from error
    except AttributeError as error:
        raise UsageError(f"--algorithm: {module_name} has no {attribute}") from error
    made = loaded() if isinstance(loaded, type) else loaded
    if not isinstance(made, Algorithm):
        raise UsageError(
            f"--algorithm: {path} needs a name and a run(optin_users, clients, params, *, devices, randomness)"
        )
    return made
