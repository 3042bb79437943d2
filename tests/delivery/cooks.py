"""Whole cooks with a person who helps, and what a hub's log tells of them afterwards."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx

from hub.entries import Payload, decode
from hub.event_types import event_registry
from hub.projections.projector import TABLES, Projector
from hub.store.database import open_reader
from hub.store.rebuild import Report, check
from tests.household import Household, until

KOSHARI, SOUP = "koshari", "lentil-soup"


async def order(household: Household, recipe: str, recipe_hash: str, **more: Any) -> str:
    """Order a dish as the owner; the hub's execution id."""
    async with household.client() as http:
        answer = await http.post("/v1/executions", json=household.request(recipe, recipe_hash, **more))
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])


async def say_here(household: Household) -> None:
    """The owner says that she is there."""
    async with household.client() as http:
        answer = await http.post("/v1/presence", json={"present": True})
        assert answer.status_code == 200, answer.text


@asynccontextmanager
async def person_helping(household: Household, *, pause_s: float = 0.1) -> AsyncGenerator[None]:
    """The owner answers every question and goes on with what waits for her, whenever the hub answers."""

    async def help_out() -> None:
        async with household.client() as http:
            while True:
                try:
                    await _help_once(http)
                except httpx.HTTPError:
                    await anyio.sleep(pause_s)
                await anyio.sleep(pause_s)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(help_out)
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()


async def _help_once(http: httpx.AsyncClient) -> None:
    answer = await http.get("/v1/needs")
    if answer.status_code != 200:
        return
    for need in answer.json()["needs"]:
        if need["kind"] == "presence":
            await http.post("/v1/presence", json={"present": True, "nonce": need["nonce"]})
        elif need["kind"] == "resume":
            await http.post(
                f"/v1/executions/{need['execution']}/resume", headers={"If-Match": str(need["seq"])}
            )


async def status(household: Household, execution: str) -> dict[str, Any]:
    """What the hub shows of an execution; empty while it is away."""
    async with household.client() as http:
        try:
            answer = await http.get(f"/v1/executions/{execution}")
        except httpx.HTTPError:
            return {}
    found: dict[str, Any] = answer.json() if answer.status_code == 200 else {}
    return found


async def in_state(
    household: Household, execution: str, *states: str, within_s: float = 30.0
) -> dict[str, Any]:
    """Wait until an execution is in one of `states`."""

    async def there() -> dict[str, Any] | None:
        found = await status(household, execution)
        if found.get("state") in states:
            return found
        assert found.get("state") not in ("failed", "stopped", "refused"), found
        return None

    found: dict[str, Any] = await until(there, within_s)
    return found


async def all_alive(household: Household) -> bool:
    """Whether every registered device is heard, so that it has read its pairing, too."""
    return set((await lives(household)).values()) == {"alive"}


async def lives(household: Household) -> dict[str, str]:
    """What the hub says of each device's life."""
    async with household.client() as http:
        answer = await http.get("/v1/devices")
    return {device["name"]: device["liveness"] for device in answer.json()["devices"]}


def log_of(household: Household) -> list[Payload]:
    """Every entry of the hub's log, in order."""
    connection = open_reader(household.folder.database)
    try:
        rows = connection.execute("SELECT body FROM payload ORDER BY seq").fetchall()
    finally:
        connection.close()
    return [decode(body) for (body,) in rows]


def rebuilt(household: Household) -> Report:
    """What `aboyeur rebuild --check` finds."""
    return check(
        household.folder.database, Projector(household.settings.kitchen, event_registry()).replay, TABLES
    )
