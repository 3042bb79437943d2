"""Clocks that jump, hubs that stall, old heartbeats: nobody is wrongly lost or alive (CASES 6, 7)."""

import itertools
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import anyio
import paho.mqtt.client as paho
import pytest

from events import topics
from events.documents import read
from events.seams import SystemClock, SystemIds
from hub.entries import DeviceLife, EventTaken
from hub.service import Seams
from sim.pairing import Pairing
from sim.speech import Voice
from tests.delivery.cooks import (
    KOSHARI,
    SOUP,
    all_alive,
    in_state,
    lives,
    log_of,
    order,
    person_helping,
    rebuilt,
    say_here,
)
from tests.delivery.home_broker import HomeBroker, mosquitto_settings
from tests.delivery.watching import Watched
from tests.household import Household, found_household, running_hub, running_kitchen, until

HEARTBEAT_S = 1.0
"""The shortest that a device may have: its interval, times three, is when it is lost."""
OVEN, ARM = "demo-oven", "robot-arm"
LOST_S = 3 * HEARTBEAT_S
GRACE_S = 0.5
"""What the hub may take beyond: it looks five times a second."""


class MovableClock(SystemClock):
    """The machine's clock with a wall clock that a test sets."""

    def __init__(self) -> None:
        self.offset = timedelta()

    def wall(self) -> datetime:
        return super().wall() + self.offset


def said_of_life(household: Household) -> list[tuple[str, str]]:
    return [(entry.device, entry.life) for entry in log_of(household) if isinstance(entry, DeviceLife)]


@asynccontextmanager
async def kitchen_with_hub(
    folder: Path, clock: MovableClock | None = None, speed: float = 1500.0
) -> AsyncGenerator[tuple[Household, dict[str, str]]]:
    household = found_household(folder / "hub")
    kitchen = running_kitchen(
        folder / "kitchen", speed=speed, progress_interval_s=0.1, heartbeat_s=HEARTBEAT_S
    )
    async with running_hub(household, clock=clock), kitchen as urls:
        hashes = await household.add_recipes()
        await household.pair(folder / "kitchen", urls)
        await until(lambda: all_alive(household))
        await say_here(household)
        yield household, hashes


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_wall_clock_that_jumps_in_the_middle_of_a_cook_changes_nothing(
    tmp_path: Path, hours: int
) -> None:
    clock = MovableClock()
    async with kitchen_with_hub(tmp_path, clock) as (household, hashes), person_helping(household):
        dishes = [await order(household, dish, hashes[dish]) for dish in (KOSHARI, SOUP)]
        for dish in dishes:
            await in_state(household, dish, "running")
        clock.offset = timedelta(hours=hours)
        for dish in dishes:
            done = await in_state(household, dish, "completed", within_s=40)
            assert done.get("x-aboyeur-waiting") is None
        await anyio.sleep(LOST_S + GRACE_S)
        assert await all_alive(household)
        # In the new hour everything works as before, a new order too.
        await say_here(household)
        await in_state(household, await order(household, SOUP, hashes[SOUP]), "completed", within_s=40)
    assert said_of_life(household) == []
    assert rebuilt(household).ok


class Beating:
    """Paired devices that do nothing but beat, each from a thread of its own."""

    def __init__(self, household: Household, pairings: dict[str, Pairing]) -> None:
        self._household = household
        self._pairings = pairings
        self._ends: dict[str, threading.Event] = {}
        self._threads: list[threading.Thread] = []

    def begin(self, device: str, *, interval_s: float = HEARTBEAT_S, more: float | None = None) -> None:
        """Beat until `end`; `more` sets what the heartbeats say of their interval."""
        end = self._ends[device] = threading.Event()
        thread = threading.Thread(target=self._beat, args=(device, end, interval_s, more or interval_s))
        self._threads.append(thread)
        thread.start()

    def end(self, device: str) -> None:
        self._ends[device].set()

    def end_all(self) -> None:
        for end in self._ends.values():
            end.set()
        for thread in self._threads:
            thread.join(10)

    def publish(self, device: str, count: int = 1, *, qos: int = 0, retain: bool = False) -> None:
        """Publish `count` heartbeats on a connection of their own and wait until the broker has them."""
        client = self.connect(device)
        try:
            for number in range(count):
                sent = client.publish(*self.heartbeat(device, number), qos=qos, retain=retain)
                sent.wait_for_publish(5)
        finally:
            client.disconnect()
            client.loop_stop()

    def connect(self, device: str) -> paho.Client:
        pairing = self._pairings[device]
        client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id=device, protocol=paho.MQTTv5)
        client.username_pw_set(device, pairing.token)
        client.connect(pairing.broker.host, pairing.broker.port)
        client.loop_start()
        until_s = time.monotonic() + 5
        while not client.is_connected() and time.monotonic() < until_s:
            time.sleep(0.01)
        assert client.is_connected()
        return client

    def heartbeat(self, device: str, number: int, interval_s: float = HEARTBEAT_S) -> tuple[str, bytes]:
        said = Voice("home", device, "boot-1", SystemClock(), SystemIds()).heartbeat(interval_s, number)
        return topics.from_device("home", device, said.category, said.subject), said.payload

    def _beat(self, device: str, end: threading.Event, interval_s: float, says_s: float) -> None:
        client = self.connect(device)
        try:
            for number in itertools.count():
                client.publish(*self.heartbeat(device, number, says_s), qos=0)
                if end.wait(interval_s):
                    return
        finally:
            client.disconnect()
            client.loop_stop()


@asynccontextmanager
async def beating(
    folder: Path, *, seams: Seams | None = None
) -> AsyncGenerator[tuple[Household, AsyncExitStack, Beating]]:
    """A hub on a real broker, with the sample devices paired but silent; closing the stack ends the hub."""
    household = found_household(folder / "hub", broker=mosquitto_settings())
    broker = HomeBroker(household, folder / "mosquitto")
    broker.start()
    pairings: dict[str, Pairing] = {}
    made = Beating(household, pairings)
    try:
        async with running_kitchen(folder / "kitchen") as urls, AsyncExitStack() as hub:
            await hub.enter_async_context(running_hub(household, seams=seams))
            async with household.client() as http:
                for name, url in urls.items():
                    answer = await http.post("/v1/devices", json={"name": name, "url": url})
                    pairings[name] = read(Pairing, answer.content)
            broker.let_in_the_paired()
            await anyio.sleep(0.3)
            yield household, hub, made
    finally:
        made.end_all()
        broker.kill()


async def is_life(household: Household, device: str, life: str) -> bool:
    return (await lives(household))[device] == life


@pytest.mark.mosquitto
async def test_a_silent_device_is_lost_in_time_and_one_that_beats_is_not(tmp_path: Path) -> None:
    async with beating(tmp_path) as (household, _, devices):
        for name in (OVEN, ARM):
            devices.begin(name)
            await until(lambda name=name: is_life(household, name, "alive"))
        devices.end(ARM)
        silent_since = time.monotonic()
        await until(lambda: is_life(household, ARM, "lost"), LOST_S + 2, every_s=0.02)
        waited_s = time.monotonic() - silent_since
        assert LOST_S - HEARTBEAT_S <= waited_s <= LOST_S + GRACE_S
        assert await is_life(household, OVEN, "alive")
        devices.begin(ARM)
        await until(lambda: is_life(household, ARM, "alive"))
        await until(lambda: _told(household, (ARM, "returned")))
    assert said_of_life(household) == [(ARM, "late"), (ARM, "lost"), (ARM, "returned")]
    assert rebuilt(household).ok


async def _told(household: Household, entry: tuple[str, str]) -> bool:
    return entry in said_of_life(household)


@pytest.mark.mosquitto
async def test_a_hub_that_stood_still_for_three_intervals_calls_nobody_lost_nor_the_dead_alive(
    tmp_path: Path,
) -> None:
    async with beating(tmp_path) as (household, _, devices):
        for name in (OVEN, ARM):
            devices.begin(name)
            await until(lambda name=name: is_life(household, name, "alive"))
        # One of them dies while the hub stands still; its last words wait in the hub's socket.
        last_words = threading.Timer(1.5, devices.end, (ARM,))
        last_words.start()
        time.sleep(LOST_S + HEARTBEAT_S)
        woke = time.monotonic()
        seen: set[tuple[str, str]] = set()
        while time.monotonic() < woke + LOST_S + GRACE_S + 0.5:
            found = await lives(household)
            seen |= {(name, found[name]) for name in (OVEN, ARM)}
            if found[ARM] == "lost":
                break
            await anyio.sleep(0.02)
        assert (ARM, "lost") in seen
        assert LOST_S - 0.3 <= time.monotonic() - woke <= LOST_S + GRACE_S + 0.3
        assert (ARM, "alive") not in seen, "old heartbeats are no life"
        assert (OVEN, "lost") not in seen
        assert await is_life(household, OVEN, "alive")
    assert said_of_life(household) == [(ARM, "lost")]


@pytest.mark.mosquitto
async def test_kept_and_queued_heartbeats_bring_nobody_to_life(tmp_path: Path) -> None:
    """CASES 6: a kept heartbeat outlives its device; one queued for an absent hub looks fresh."""
    async with beating(tmp_path) as (household, hub, devices):
        devices.begin(OVEN)
        await until(lambda: is_life(household, OVEN, "alive"))
        await hub.aclose()
        devices.publish(ARM, 1, qos=1, retain=True)
        devices.publish(ARM, 30, qos=1)
        watched = Watched()
        async with running_hub(household, seams=watched.seams):
            seen: set[tuple[str, str]] = set()
            back = time.monotonic()
            while time.monotonic() < back + LOST_S + GRACE_S:
                found = await lives(household)
                seen |= {(name, found[name]) for name in (OVEN, ARM)}
                await anyio.sleep(0.02)
            assert await is_life(household, OVEN, "alive")
            async with household.client() as http:
                assert (await http.get("/v1/quarantine")).json()["counters"] == {"retained_heartbeat": 1}
        queued = [one for one in watched.delivered if f"/{ARM}/" in one.topic]
        assert len(queued) == 32, "the broker kept them for the hub: 31 queued, one kept"
        assert [one.retained for one in queued].count(True) == 1
        assert (ARM, "alive") not in seen
        assert (OVEN, "lost") not in seen
    assert said_of_life(household) == []


@pytest.mark.mosquitto
async def test_overlapping_subscriptions_change_nothing(tmp_path: Path) -> None:
    """CASES 1: every publication comes twice, and has one effect."""
    watched = Watched(more=[(topics.all_from_devices("home").replace("#", f"{OVEN}/#"), 1)])
    async with beating(tmp_path, seams=watched.seams) as (household, _, devices):
        client = devices.connect(OVEN)
        online = Voice("home", OVEN, "boot-1", SystemClock(), SystemIds()).online()
        topic = topics.from_device("home", OVEN, online.category, online.subject)
        client.publish(topic, online.payload, qos=1).wait_for_publish(5)
        client.disconnect()
        client.loop_stop()
        devices.begin(OVEN)
        await until(lambda: is_life(household, OVEN, "alive"))
        devices.end(OVEN)
        await until(lambda: is_life(household, OVEN, "lost"), LOST_S + HEARTBEAT_S + 2)
    assert [one.payload for one in watched.acknowledged].count(online.payload) == 2
    assert sum(isinstance(entry, EventTaken) for entry in log_of(household)) == 1
    assert said_of_life(household) == [(OVEN, "late"), (OVEN, "lost")]
