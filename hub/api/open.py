"""What is open without a token: health, capabilities, safety limits (DESIGN §8)."""

from typing import Any

import anyio
from litestar import Request, Response, Router, get

from hub.api.answers import Problem, answer
from hub.limits import strictest_limits, union_of_capabilities
from hub.parts import Parts
from hub.store.database import StoreFailed


def routes(parts: Parts) -> Router:
    """The router of what anybody may read."""
    kitchen = parts.kitchen

    @get("/health", operation_id="health")
    async def health(request: Request[Any, Any, Any]) -> Response[bytes]:
        """Whether the hub works: its store, its connection to the broker."""
        del request
        store = "ok"
        try:
            with anyio.fail_after(1):
                await kitchen.store.read(
                    lambda connection: connection.execute("SELECT 1 FROM meta").fetchone()
                )
        except (StoreFailed, TimeoutError):
            store = "failing"
        return answer(
            {
                "status": "ok" if store == "ok" else "degraded",
                "store": store,
                "broker": "connected" if parts.bus.live else "not connected",
            }
        )

    @get("/v1/capabilities", operation_id="capabilities")
    async def capabilities(request: Request[Any, Any, Any]) -> Response[bytes]:
        """What the kitchen can do, each operation and sensor with its devices."""
        del request
        return answer(union_of_capabilities(kitchen.name, kitchen.directory.devices.values()))

    @get("/v1/safety-limits", operation_id="safety_limits")
    async def safety_limits(request: Request[Any, Any, Any]) -> Response[bytes]:
        """The strictest limit of any device, by id. There is no other verb: nobody raises a limit here."""
        del request
        found = strictest_limits(kitchen.directory.devices.values())
        if found is None:
            raise Problem(404, "not_found", "no device is registered, so there are no limits to show")
        return answer(found)

    return Router("/", route_handlers=[health, capabilities, safety_limits])
