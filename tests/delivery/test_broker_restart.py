"""A broker that goes away in the middle of a cook, and a hub that lives with it (DESIGN §6; CASES 3, 10)."""

import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

import sim.kitchen
from events import topics
from hub.entries import EventTaken, Payload
from hub.store.database import open_reader
from sim.appliance import Appliance
from tests.delivery.cooks import (
    KOSHARI,
    SOUP,
    all_alive,
    in_state,
    log_of,
    order,
    person_helping,
    rebuilt,
    say_here,
    status,
)
from tests.delivery.home_broker import HomeBroker, mosquitto_settings
from tests.delivery.watching import Watched
from tests.household import Household, HubProcess, found_household, running_hub, running_kitchen, until

SPEED = 700.0


@dataclass
class Evening:
    """A kitchen at work with a real broker."""

    household: Household
    broker: HomeBroker
    watched: Watched
    hashes: dict[str, str]
    appliances: dict[str, Appliance]


@pytest.fixture
def appliances(monkeypatch: pytest.MonkeyPatch) -> dict[str, Appliance]:
    """The simulated appliances by name, to press their buttons and break their parts."""
    made: dict[str, Appliance] = {}

    def make(**options: Any) -> Appliance:
        appliance = made[options["name"]] = Appliance(**options)
        return appliance

    monkeypatch.setattr(sim.kitchen, "Appliance", make)
    return made


@asynccontextmanager
async def evening(
    folder: Path, appliances: dict[str, Appliance], *, protocol: str = "5", **kitchen: Any
) -> AsyncGenerator[Evening]:
    household = found_household(folder / "hub", broker=mosquitto_settings(protocol))
    broker = HomeBroker(household, folder / "mosquitto")
    broker.start()
    watched = Watched()
    options = {"speed": SPEED, "progress_interval_s": 0.05, **kitchen}
    try:
        async with (
            running_hub(household, seams=watched.seams),
            running_kitchen(folder / "kitchen", **options) as urls,
        ):
            hashes = await household.add_recipes()
            async with household.client() as http:
                pairings = {
                    name: (await http.post("/v1/devices", json={"name": name, "url": url})).content
                    for name, url in urls.items()
                }
            broker.let_in_the_paired()
            for name, pairing in pairings.items():
                (folder / "kitchen" / f"{name}.pairing.json").write_bytes(pairing)
            await say_here(household)
            await until(lambda: all_alive(household))
            yield Evening(household, broker, watched, hashes, appliances)
    finally:
        broker.kill()


def taken(log: list[Payload]) -> Counter[str]:
    """How often each event id stands in the log."""
    return Counter(
        f"{entry.device} {json.loads(bytes(entry.event))['id']}"
        for entry in log
        if isinstance(entry, EventTaken)
    )


def acknowledged(watched: Watched) -> set[str]:
    """The logged kinds of events that the hub acknowledged at the broker, each with its device."""
    found = set()
    for one in watched.acknowledged:
        topic = topics.parse_from(one.topic)
        if topic is None or one.qos == 0:
            continue
        event = json.loads(one.payload)
        found.add(f"{topic.device} {event['id']}")
    return found


def assert_nothing_acknowledged_is_lost(household: Household, watched: Watched) -> None:
    counted = taken(log_of(household))
    assert set(counted.values()) == {1}
    confirmed = acknowledged(watched)
    assert len(confirmed) > 50
    assert confirmed <= set(counted)
    assert rebuilt(household).ok


@pytest.mark.mosquitto
@pytest.mark.parametrize(("how", "protocol"), [("stop", "5"), ("kill", "5"), ("kill", "3.1.1")])
async def test_a_cook_survives_its_broker(
    tmp_path: Path, appliances: dict[str, Appliance], how: str, protocol: str
) -> None:
    async with evening(tmp_path, appliances, protocol=protocol) as night, person_helping(night.household):
        dishes = [await order(night.household, dish, night.hashes[dish]) for dish in (KOSHARI, SOUP)]
        for dish in dishes:
            await in_state(night.household, dish, "running")
        for _ in range(2):
            await anyio.sleep(0.6)
            before = night.watched.connections
            getattr(night.broker, how)()
            await anyio.sleep(0.5)
            night.broker.start()
            await until(lambda before=before: _is(night.watched.connections > before))
        for dish in dishes:
            done = await in_state(night.household, dish, "completed", within_s=40)
            assert done.get("x-aboyeur-waiting") is None
        await until(lambda: _verified(night.household, dishes))
        await until(lambda: all_alive(night.household))
    assert_nothing_acknowledged_is_lost(night.household, night.watched)


async def _is(value: bool) -> bool:
    return value


async def _verified(household: Household, dishes: list[str]) -> bool:
    """Whether the log of each dish's device was collected and verified."""
    found = [await status(household, dish) for dish in dishes]
    return all((one.get("x-aboyeur-log") or {}).get("verdict") == "ok" for one in found)


@pytest.mark.mosquitto
async def test_alarms_and_faults_in_force_are_said_again_after_the_broker_was_killed(
    tmp_path: Path, appliances: dict[str, Appliance]
) -> None:
    async with evening(tmp_path, appliances) as night:
        async with person_helping(night.household):
            soup = await order(night.household, SOUP, night.hashes[SOUP])
            device = (await in_state(night.household, soup, "running"))["x-aboyeur-device"]
            appliance = appliances[device]
            await until(lambda: _stuck(appliance))
        first = await until(lambda: _said(night, device))
        night.broker.kill()
        await anyio.sleep(0.3)
        night.broker.start()
        again = await until(lambda: _said(night, device, more_than=len(first)))
        assert first[0]["data"]["x-aboyeur-limit"] == again[-1]["data"]["x-aboyeur-limit"]
        assert first[0]["id"] != again[-1]["id"]
        faults = await until(lambda: _said(night, device, more_than=1, event_type="cookwala.device.fault"))
        assert {fault["data"]["x-aboyeur-fault"] for fault in faults} == {"thermostat"}
        assert await _in_force(night.household) == {
            (device, "cookwala.safety.limit_fired"),
            (device, "cookwala.device.fault"),
        }
    assert rebuilt(night.household).ok


async def _stuck(appliance: Appliance) -> bool:
    """Break the thermostat of whatever step heats now, until a limit has fired."""
    appliance.stick_heater()
    return bool(appliance.station.alarms)


async def _said(
    night: Evening, device: str, more_than: int = 0, event_type: str = "cookwala.safety.limit_fired"
) -> list[dict[str, Any]]:
    events = [
        json.loads(bytes(entry.event))
        for entry in log_of(night.household)
        if isinstance(entry, EventTaken) and entry.device == device
    ]
    found = [event for event in events if event["type"] == event_type]
    return found if len(found) > more_than else []


async def _in_force(household: Household) -> set[tuple[str, str]]:
    connection = open_reader(household.folder.database)
    try:
        return set(connection.execute("SELECT device, type FROM condition WHERE active = 1").fetchall())
    finally:
        connection.close()


@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_a_cook_survives_a_hub_that_takes_its_embedded_broker_along(tmp_path: Path, how: str) -> None:
    household = found_household(tmp_path / "hub")
    hub = HubProcess(household)
    hub.start()
    try:
        await hub.wait_ready()
        kitchen = running_kitchen(tmp_path / "kitchen", speed=SPEED, progress_interval_s=0.05)
        async with kitchen as urls, person_helping(household):
            hashes = await household.add_recipes()
            await household.pair(tmp_path / "kitchen", urls)
            await say_here(household)
            await until(lambda: all_alive(household))
            dishes = [await order(household, dish, hashes[dish]) for dish in (KOSHARI, SOUP)]
            for dish in dishes:
                await in_state(household, dish, "running")
            await anyio.sleep(0.7)
            before = taken(log_of(household))
            getattr(hub, how)()
            await anyio.sleep(0.3)
            hub.start()
            await hub.wait_ready()
            # CASES 10: what was in flight is found again in the store and at the devices.
            async with household.client() as http:
                found = (await http.get("/v1/executions", params={"state": "all"})).json()["executions"]
            assert {one["id"] for one in found} == set(dishes)
            await say_here(household)
            for dish in dishes:
                done = await in_state(household, dish, "completed", within_s=40)
                assert done.get("x-aboyeur-waiting") is None
            await until(lambda: _verified(household, dishes))
            await until(lambda: all_alive(household))
    finally:
        hub.stop()
    counted = taken(log_of(household))
    assert set(counted.values()) == {1}
    assert set(before) <= set(counted)
    assert rebuilt(household).ok
