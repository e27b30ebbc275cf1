"""Whether this process of the service does its part, and its metrics: what its health listener answers."""

from __future__ import annotations

import contextlib

from starlette.applications import Starlette

from searchblend.service.checkup import gauges, trouble
from searchblend.service.http.connections import Connections
from searchblend.service.http.health import watch_app
from searchblend.service.services import Services
from searchblend.store.errors import StoreError
from searchblend.store.service_store import ServiceStore


def health_app(services: Services, connections: Connections, *, with_rounds: bool) -> Starlette:
    """The service's; ``with_rounds``: metrics and readiness tell of all rounds, not of this process alone."""

    async def why_not_ready() -> str | None:
        def read(store: ServiceStore) -> str | None:
            store.database.execute("SELECT 1")
            overdue = trouble(store, services.clock) if with_rounds else None
            return overdue or next((why for check in services.troubles if (why := check(store))), None)

        try:
            problem = await services.health.call(read)
        except StoreError:
            problem = "the database is out of reach"
        return problem if services.is_working() else "the worker does not run"

    async def exposition(openmetrics: bool) -> str:
        services.metrics.set("reports_waiting", services.writer.n_waiting)
        services.metrics.set("connections", len(connections))
        more: dict[str, float] = {}
        if with_rounds:
            with contextlib.suppress(StoreError):  # what this process has counted is still worth knowing
                more = await services.health.call(lambda store: gauges(store, services.clock, services.vault))
        return services.metrics.exposition(more, openmetrics=openmetrics)

    return watch_app(lambda: services.is_answering(), why_not_ready, exposition)
