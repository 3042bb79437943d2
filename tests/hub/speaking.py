"""Devices that say something over the bus, word for word as a test has it."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from events import topics
from events.mqtt import MqttSettings, MqttTransport
from tests.household import Household, until
from tests.hub.api.scripted import House


def event(device: str, name: str, kind: str, data: dict[str, Any], **attributes: Any) -> dict[str, Any]:
    """A CloudEvent of `device`; `attributes` are further ones (subject, cookwalaseq, time)."""
    return {
        "specversion": "1.0",
        "id": name,
        "source": f"cookwala://home/{device}",
        "type": f"cookwala.{kind}",
        "time": "2026-01-01T12:00:00Z",
        "datacontenttype": "application/json",
        "data": data,
        **attributes,
    }


def question(name: str, subject: str, *, expires_at: str = "2035-01-01T00:00:00Z") -> dict[str, Any]:
    """The hob asks whether somebody is there; `name` is also the question's nonce."""
    data = {
        "audience": ["role:household"],
        "urgency": "time_critical",
        "message": {"en": "anybody?"},
        "expiresAt": expires_at,
        "x-aboyeur-nonce": name,
    }
    return event("hob", name, "notify.request", data, subject=subject)


def topic_of(device: str, said: dict[str, Any]) -> str:
    """Where `said` belongs."""
    return topics.from_device("home", device, topics.category_of(said["type"]), said.get("subject"))


async def say(kitchen: House, device: str, events: Sequence[dict[str, Any]], ending: bytes = b"") -> None:
    """Publish `events` as `device`; returns once the broker has them."""
    household = kitchen.household
    pairing = json.loads((household.folder.root / f"{device}.pairing.json").read_text())
    broker = household.settings.broker
    settings = MqttSettings(
        host=broker.host,
        port=broker.port,
        username=device,
        password=pairing["token"],
        client_id=device,
        protocol="3.1.1",
    )
    async with MqttTransport(settings, household.clock).connect() as session:
        for one in events:
            await session.publish(topic_of(device, one), json.dumps(one).encode() + ending, qos=1)


def rows(household: Household, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """What stands in the hub's database."""
    with closing(sqlite3.connect(household.folder.database, timeout=10)) as connection:
        return connection.execute(query, values).fetchall()


def alter(household: Household, *statements: str) -> None:
    """Change the hub's database behind its back."""
    with closing(sqlite3.connect(household.folder.database, timeout=10, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


async def taken(household: Household, *names: str) -> None:
    """Wait until the events called so are in the log."""

    async def there() -> bool:
        known = {row[0] for row in rows(household, "SELECT id FROM seen")}
        return set(names) <= known

    await until(there)


async def connected(kitchen: House) -> None:
    """Wait until the hub is past its marker."""
    async with kitchen.client(None) as http:

        async def there() -> bool:
            return bool((await http.get("/health")).json()["broker"] == "connected")

        await until(there)


async def alive(kitchen: House) -> bool:
    """Whether the hub still answers and still hears."""
    await connected(kitchen)
    await say(kitchen, "hob", [event("hob", "still-there", "device.online", {}, subject="hob")])
    await taken(kitchen.household, "still-there")
    return True
