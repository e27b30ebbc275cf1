"""What a release says without noise must not depend on one person's records."""

from __future__ import annotations

from contextlib import suppress

import pytest

from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.paper.create_head_list import create_head_list
from searchblend.blender.paper.estimate_optin import estimate_optin_probabilities
from searchblend.blender.pipeline import run_blender
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import Record
from searchblend.synthetic.seeded import SeededRandomness

PARAMS = BlenderParams(Budget(4, 1e-5))


@pytest.mark.parametrize("method", ["paper", "best"])
def test_one_client_with_a_url_does_not_change_the_parameters(method: str):
    """A log of queries in which one client's record has a URL, and its neighbour in which it has none.

    A log that mixes the two may be refused as ill-formed; it must not be answered with other parameters.
    """
    optin = InMemoryGroup.from_users([[Record("a")]] * 400)
    fractions = set()
    for one in (Record("a"), Record("a", "u")):
        with suppress(InvalidParameter):
            clients = InMemoryGroup.from_users([[Record("a")]] * 999 + [[one]])
            release = run_blender(optin, clients, PARAMS, method=method, randomness=SeededRandomness(1))
            fractions.add(release.params.query_budget_fraction)
    assert len(fractions) == 1


def test_a_query_clicked_by_nobody_is_not_estimated_as_absent():
    """A log with URLs in which one query is always searched without a click: ⟨q,⋆⟩ is common, no URL of it is.

    Refused as ill-formed, or not listed, or estimated with those people; anything but listed with a share of 0.
    """
    users = [[Record("clicked", "u")]] * 500 + [[Record("never clicked")]] * 500
    share = 0.5
    with suppress(InvalidParameter):
        group = InMemoryGroup.from_users(users)
        head, optin = estimate_optin_probabilities(group, create_head_list(group, PARAMS), PARAMS)
        if "never clicked" in head:
            share = optin.queries.probability[head.queries.index("never clicked")]
    assert share == pytest.approx(0.5, abs=0.1)
