"""Attacks on real servers, over both databases. All of them are slow; ``make attack`` runs them alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from attack_service import attacked
from databases import DATABASES, fresh_database
from postgres_cluster import postgres_cluster


def pytest_collection_modifyitems(items):
    here = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="module", params=DATABASES)
def service(request, tmp_path_factory):
    """One server that has every role, for the attacks of one file: each plays on a task of its own."""
    folder = tmp_path_factory.mktemp("service")
    with attacked(folder, fresh_database(request.param, folder)) as running:
        yield running


@pytest.fixture(params=DATABASES)
def own_service(request, tmp_path):
    """A server of the test's own, for attacks that others would notice."""
    with attacked(tmp_path, fresh_database(request.param, tmp_path)) as running:
        yield running


@pytest.fixture
def cluster():
    """A PostgreSQL server that this test may kill, freeze and add users to."""
    with postgres_cluster() as made:
        yield made
