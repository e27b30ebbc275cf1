"""What an evaluation can run: method ``paper``, method ``best``, or someone's own, by its import path.

An algorithm is any object with a ``name`` and a ``run``. To exchange one step of the printed algorithm and keep the
others, derive from ``PrintedSteps`` and override that step (docs/how-to/evaluate-your-own.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from searchblend.blender import exchanged
from searchblend.blender.devices import Devices
from searchblend.blender.groups import UserGroup
from searchblend.blender.method import METHODS
from searchblend.blender.pipeline import run_blender
from searchblend.blender.release import BlenderRelease
from searchblend.core.errors import UsageError
from searchblend.core.params import BlenderParams
from searchblend.core.randomness import Randomness
from searchblend.releases.hybrid import object_at


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


class PrintedSteps(exchanged.PrintedSteps):
    """[BLJ] Fig. 2 step by step; every step is a method that can be overridden.

    What an overridden step does to privacy is for its author to prove: unless it states a promise, none is made.
    """

    def run(
        self,
        optin_users: UserGroup,
        clients: UserGroup,
        params: BlenderParams,
        *,
        devices: Devices,
        randomness: Randomness,
    ) -> BlenderRelease:
        """Fig. 2 with the steps of this object."""
        release = run_blender(optin_users, clients, params, method=self, devices=devices, randomness=randomness)
        return replace(release, method=self.name)


def algorithm_named(name: str) -> Algorithm:
    """``paper``, ``best``, or ``package.module:object``."""
    if name in METHODS:
        return Shipped(name)
    return load_algorithm(name)


def load_algorithm(path: str) -> Algorithm:
    """The object behind ``package.module:object``; modules of the current folder are found too."""
    loaded = object_at(path, "--algorithm")
    made = loaded() if isinstance(loaded, type) else loaded
    if not isinstance(made, Algorithm):
        raise UsageError(
            f"--algorithm: {path} needs a name and a run(optin_users, clients, params, *, devices, randomness)"
        )
    return made
